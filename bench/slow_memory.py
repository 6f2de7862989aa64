"""memKeyDB's measurement: LPUSH, SET and GET of 64 bytes, all in ordinary memory against one part in nine there, with
tables in ordinary memory and in slow memory. Slow is node 0, so what is measured first is the work of dividing alone.
Then a build is measured whose slow memory answers late, as one behind CXL does (crates/structures/src/slow_touch.rs).
"""

import contextlib
import os
import subprocess
import time

import load
import subjects
import tiered
from harness import paths
from harness.server import Server
from load import Cell
from turns import in_turn

KEYS = 1_000_000
VALUE_BYTES = 64
RATIO = (1, 8)

CELLS = [Cell(test, 100, pipeline, requests, value=VALUE_BYTES)
         for pipeline, requests in ((1, 250_000), (16, 1_500_000)) for test in ("lpush", "set", "get")]

# A tenth is to be told from the noise of a tenth, so each turn asks often.
ROUNDS = 3

DRAM, TABLE_IN_DRAM, TABLE_SLOW = "all in DRAM", "1:8, tables in DRAM", "1:8, tables slow"
DIVIDED = ("--memory-alloc-policy", "ratio", "--dram-pmem-ratio", *map(str, RATIO), "--slow-memory-nodes", "0")
POLICIES = {DRAM: (), TABLE_IN_DRAM: DIVIDED, TABLE_SLOW: (*DIVIDED, "--hashtable-on-dram", "no")}

# The memory's latency: as it is; 200 ns more, which overlap where lines are prefetched; and the same if no prefetch
# helped. Whether the build is the one that simulates, and what its variable says.
PLAIN, LATE, ALONE = "as it is", "200 ns late", "200 ns late, no prefetch"
LATENCIES = {PLAIN: None, LATE: "overlapping", ALONE: "alone"}

BUILD_SECONDS_MAX = 3600
REST_SECONDS_MAX = 60


def run(options, note):
    """Returns {"keys", "shares": {latency: {policy: [share of slow bytes of each turn]}},
    "rows": {latency: {cell: {policy: [sample of each round]}}}}."""
    commands = {how: built() if how else subjects.KILN.command for how in LATENCIES.values()}
    keys = tiered.scaled(KEYS, options.scale, 20_000)
    found = {"keys": keys, "shares": {}, "rows": {}}
    for turn in range(options.turns):
        for latency, how in LATENCIES.items():
            with contextlib.ExitStack() as stack:
                servers = {name: stack.enter_context(Simulated(commands[how], policy, how))
                           for name, policy in POLICIES.items()}
                for name, server in servers.items():
                    share = filled(server, keys)
                    found["shares"].setdefault(latency, {}).setdefault(name, []).append(share)
                    note(f"turn {turn + 1}: {latency}: {name}: {share:.1%} of bytes are slow")
                rows = found["rows"].setdefault(latency, {})
                for cell, name, sample in one_turn(turn, servers, keys, options.scale):
                    rows.setdefault(cell.name, {}).setdefault(name, []).append(sample)
            for cell, samples in rows.items():
                note(f"turn {turn + 1}: {latency}: {cell}: " + ", ".join(
                    f"{name} {samples[name][-1]['requests_per_second']:,.0f}/s" for name in POLICIES))
    return found


class Simulated(Server):
    """Kiln with a policy; `how` its slow memory answers late, for the build that can."""

    def __init__(self, command, policy, how):
        super().__init__(command, policy, wrapper=["taskset", "-c", subjects.SERVER_CORE])
        if how:
            self.wrapper = ["env", f"KILN_SLOW_TOUCH={how}", *self.wrapper]


def built():
    """The command of the build whose slow memory answers late. It has a folder of its own."""
    folder = paths.ROOT / "target" / "slow-touch"
    subprocess.run(["cargo", "build", "-q", "--release", "-p", "kiln", "--features", "slow-touch"], cwd=paths.ROOT,
                   check=True, timeout=BUILD_SECONDS_MAX, env={**os.environ, "CARGO_TARGET_DIR": str(folder)})
    return f"{folder / 'release' / 'kiln'} server"


def filled(server, keys):
    """Fills a server and waits until it moves nothing; the share of its bytes that is slow."""
    load.fill_keys(server.port, keys, value=VALUE_BYTES)
    before, deadline = None, time.monotonic() + REST_SECONDS_MAX
    while (now := slow_share(server)) != before:
        if time.monotonic() > deadline:
            raise SystemExit("a server moves values for ever")
        before = now
        time.sleep(0.5)
    return now


def slow_share(server):
    told = tiered.fields(server, "memory")
    slow = int(told["used_memory_pmem"])
    return slow / (slow + int(told["used_memory_dram"]))


def one_turn(turn, servers, keys, scale):
    """Each cell with what each policy showed in it, `ROUNDS` times."""
    names = list(servers)
    for number in range(ROUNDS * len(CELLS)):
        cell = CELLS[number % len(CELLS)].scaled(scale)
        # One further in each round: else the same policy would be first in a cell each time, as cells are a multiple.
        for name in in_turn(names, turn, number + number // len(CELLS)):
            # The next snapshot falls due by what the log grows, and then into no row of another's.
            if cell.test != "get":
                load.save(servers[name])
            yield cell, name, measure(servers[name], cell, keys)


def measure(server, cell, keys):
    """What the load saw, and what the server spent."""
    cpu = server.cpu_seconds()
    seen = load.generate(server.port, "--connections", str(cell.connections), "--pipeline", str(cell.pipeline),
                         "--requests", str(cell.requests), "--value", str(cell.value), "--keyspace", str(keys),
                         *load.COMMANDS[cell.test])
    return {**seen, "cpu_seconds_per_million": (server.cpu_seconds() - cpu) / cell.requests * 1e6}
