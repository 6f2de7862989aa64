"""What `bench/paper` sends to a server, from one process or from several at once, and what it sees of that."""

import concurrent.futures
import contextlib
import dataclasses
import os
import time

import load
import paper_servers
import subjects

# What is sent, and in which proportion.
WORKLOADS = {"read-only": {"get": 1}, "write-only": {"set": 1}, "mixed": {"get": 80, "set": 20}}
CONNECTIONS = 100

# How many processes there may be: the MemoryDB paper has ten, on a machine each.
COUNTS = (1, 2, 5, 10)

# As many requests as are answered, and below that as many as still leave a server time for each: there the goals are.
GOAL_SHARE = 0.8
SATURATION, GOAL = "saturation", f"{GOAL_SHARE:.0%} of saturation"

# With less of its core idle the load was the limit, or nearly so, and not the server. A guess: ten times what a row of
# three seconds can tell of a core, as /proc/stat counts hundredths of a second. `tables.IDLE_MIN` is larger, as it only
# warns of rows in which the load may have been the limit; this one decides how many processes there are, too.
IDLE_MIN = 0.03


@dataclasses.dataclass(frozen=True)
class Load:
    """What is sent to a server: by so many processes, of so many connections each, for so long. With a `rate` so many
    requests a second fall due, of all processes together."""

    workload: str
    processes: int
    seconds: float
    keys: int
    seed: int
    rate: int = 0

    def words(self, number):
        """What the load's process of this number, from 0, is told."""
        # Parts of the rate that are whole numbers, and together the rate.
        rate = self.rate * (number + 1) // self.processes - self.rate * number // self.processes
        return ("--connections", str(CONNECTIONS), "--keyspace", str(self.keys), "--value", str(load.VALUE_BYTES),
                "--seconds", str(self.seconds), "--seed", str(self.seed * max(COUNTS) + number),
                *(("--rate", str(rate)) if self.rate else ()), *load.mix(WORKLOADS[self.workload]))

    @property
    def writes(self):
        return "set" in WORKLOADS[self.workload]


def keys_of(options):
    return max(20_000, int(load.KEYS * options.scale))


def seconds_of(options, seconds):
    return max(1.0, seconds * min(1.0, options.scale))


def measured(servers, name, wanted):
    """A sample of one server, once nothing of an earlier one goes on."""
    for server in servers.values():
        load.wait_for_upkeep(server)
    if wanted.writes:
        paper_servers.settle(servers, name)
    time.sleep(paper_servers.REST_SECONDS)
    return measure(servers[name], wanted)


def measure(server, wanted):
    """What all processes saw together, and what it took."""
    used = server.cpu_seconds()
    with cores_idle() as idle, concurrent.futures.ThreadPoolExecutor(wanted.processes) as pool:
        seen = list(pool.map(lambda number: load.generate(server.port, *wanted.words(number)), range(wanted.processes)))
    requests = sum(one["requests"] for one in seen)
    missed = sum(one["missed"] for one in seen)
    if missed:
        raise SystemExit(f"{missed:,} of {requests:,} keys are missing")
    return {"requests_per_second": sum(one["requests_per_second"] for one in seen), "rate": wanted.rate,
            **{f"p{percent}_ms": quantile(seen, percent / 100) for percent in (50, 99)},
            "p99_ms_worst": max(one["p99_ms"] for one in seen),
            "cpu_seconds_per_million": (server.cpu_seconds() - used) / requests * 1e6,
            "load_cpu_seconds_per_million": sum(one["cpu_seconds"] for one in seen) / requests * 1e6, **idle}


def quantile(seen, share):
    """The time that this share of all processes' requests does not exceed. Of each process some quantiles are known;
    between them it is interpolated."""
    if len(seen) == 1:
        return seen[0][f"p{share * 100:.0f}_ms"]
    requests = sum(one["requests"] for one in seen)
    low, high = 0.0, max(one["max_ms"] for one in seen)
    while high - low > 1e-4:
        middle = (low + high) / 2
        if sum(one["requests"] * share_below(one, middle) for one in seen) < share * requests:
            low = middle
        else:
            high = middle
    return high


KNOWN = (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99), ("p999_ms", 0.999), ("max_ms", 1.0))


def share_below(one, ms):
    """The share of a process's requests that took less. What is left falls by powers between two known times: a line
    would put too few just behind the first of them."""
    time_before, left_before = 0.0, 1.0
    for field, share in KNOWN:
        left = max(1 - share, 1 / one["requests"])
        if ms < one[field]:
            part = (ms - time_before) / (one[field] - time_before)
            return 1 - left_before * (left / left_before) ** part
        time_before, left_before = one[field], left
    return 1.0


@contextlib.contextmanager
def cores_idle():
    """Yields what is filled at the end: the share of the time in which each core had nothing to do."""
    found, began, before = {}, time.monotonic(), idle_ticks()
    yield found
    seconds = time.monotonic() - began
    for field, core in (("server_idle", subjects.SERVER_CORE), ("load_idle", subjects.LOAD_CORE)):
        ticks = idle_ticks()[int(core)] - before[int(core)]
        found[field] = min(1.0, ticks / os.sysconf("SC_CLK_TCK") / seconds)


def idle_ticks():
    """For how long each core had nothing to do or waited for a disk, from /proc/stat."""
    lines = [line.split() for line in open("/proc/stat", encoding="ascii") if line.startswith("cpu")]
    return [int(fields[4]) + int(fields[5]) for fields in lines[1:]]


def told(sample):
    """A sample in one line."""
    offered = f" of {sample['rate']:,}" if sample["rate"] else ""
    return (f"{sample['requests_per_second']:,.0f}{offered}/s, p50 {sample['p50_ms']:.2f}, p99 {sample['p99_ms']:.2f} "
            f"(at worst {sample['p99_ms_worst']:.2f}) ms, idle: server {sample['server_idle']:.0%}, load "
            f"{sample['load_idle']:.0%}")
