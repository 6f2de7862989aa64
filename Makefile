# The words of this project. `make run` to try it, `make quick` and `make check` while writing, `make test`
# before handing in.

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:/usr/local/go/bin:$(PATH)

# A server to try things with, in a minute or two on a fresh machine and in seconds after an edit: as a
# release is, but not optimised across crates, with the system's allocator, and without the clients of
# services that keep logs.
TRIAL = $(CARGO) build --profile trial -p kiln --no-default-features

.PHONY: run run-ha build build-profiled quick check test test-long bench bench-shard bench-evaluations bench-tiers bench-paper install

# Serves on 6379, durable in ./data.
run:
	$(TRIAL)
	mkdir -p data
	exec target/trial/kiln server --port 6379 --dir data

# A primary and two replicas over a log that three NATS servers keep, until Ctrl-C.
run-ha:
	tests/install nats
	$(TRIAL) --features jetstream
	tests/failover/serve

# The release, with every log but etcd's, whose client needs protoc: `--features etcd` for that too.
build:
	$(CARGO) build --release -p kiln

# The same with a profile of a load that this runs in between, which takes a tenth or a fifth off what a command costs:
# target/profiled/release/kiln, after 20 minutes. What is to be served for long is best built so, and `make bench`
# measures it.
build-profiled:
	python3 bench/profiled.py

# After every edit: what is below clients and services. No server, no tokio.
quick:
	$(CARGO) fmt --all --check
	$(CARGO) xtask tidy
	$(CARGO) test -q --profile checked --tests \
		-p base -p resp -p structures -p engine -p txlog -p archive -p shard -p config -p catalog

# Before every commit: nothing to install, no server started.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy -q --workspace --all-targets --profile checked -- -D warnings
	$(CARGO) xtask tidy
	$(CARGO) test -q --workspace --profile checked --tests

# Everything, in its short form: under 30 minutes on a fresh machine of 2 cores. Installs what it needs.
test:
	tests/all --install

# The same with long campaigns: hours.
test-long:
	tests/all --install --long

# Kiln beside Debian's redis-server, a Valkey 9 and a Redis 8; tables and plots into docs/measurements. Two hours
# and a half. Without the last two it goes on, and says so.
bench: install
	-tests/install peers
	bench/run

# A shard over each kind of log beside bare clients of the same log, and its failovers; likewise.
bench-shard: install
	bench/shard

# What snapshots cost clients, what a fork costs, and how fast a moment comes back; likewise, an hour.
bench-evaluations: install
	bench/evaluations

# Values on a disk beside all of them in memory, redis-server with swap and memcached's extstore; likewise, two
# hours, as root: it makes control groups and a swap file.
bench-tiers: install
	tests/install memcached
	bench/tiers

# Section 6.1 of the MemoryDB paper: throughput at saturation, latency against offered load, and one shard's MB/s, beside
# Redis and Valkey; likewise, an hour.
bench-paper: install
	-tests/install peers
	bench/paper

install:
	tests/install
