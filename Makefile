# The words of this project. `make check` while writing, `make test` before handing in.

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:/usr/local/go/bin:$(PATH)

.PHONY: run run-ha build check test test-long bench bench-shard install

# Serves on 6379, durable in ./data.
run:
	$(CARGO) build --release -p kiln
	mkdir -p data
	exec target/release/kiln server --port 6379 --dir data

# A primary and two replicas over a log that three NATS servers keep, until Ctrl-C.
run-ha: install build
	tests/failover/serve

build:
	$(CARGO) build --release -p kiln

# The inner loop: nothing to install, no server started.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy -q --workspace --all-targets --profile checked -- -D warnings
	$(CARGO) xtask tidy
	$(CARGO) test -q --workspace --profile checked

# Everything, in its short form: under 30 minutes on a fresh machine of 2 cores.
test: install
	tests/all

# The same with long campaigns: hours.
test-long:
	tests/install --long
	tests/all --long

# Kiln beside Debian's redis-server; tables and plots into docs/measurements.
bench: install
	bench/run

# A shard over each kind of log beside bare clients of the same log, and its failovers; likewise.
bench-shard: install
	bench/shard

install:
	tests/install
