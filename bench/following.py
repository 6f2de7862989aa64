"""What replicas cost: themselves for applying a SET, and their primary for having them.

Whoever is measured sits on core 0 alone. Load, everybody else and whatever keeps the log share core 1.
"""

import os
import pathlib
import sys
import time

import load
import subjects
from harness import paths
from harness.resp import Disconnected, Refusal
from steady import Steady

# Behind this folder, whose modules some there are namesakes of.
sys.path.append(str(paths.ROOT / "tests" / "failover"))
from shard import Shard  # noqa: E402

KEYS = load.KEYS
APPLY_REQUESTS = 1_000_000

# Of keys under a steady load: what is set again and again, as in a cache that is warm.
STEADY_KEYS = 300_000
STEADY_SECONDS = 8.0
REPLICAS = 5

# How long a replica may take to hold what the primary holds.
CATCH_UP_SECONDS_MAX = 120.0


def pin(server, core):
    """All threads of a process onto one core."""
    for task in pathlib.Path(f"/proc/{server.pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {int(core)})


def cpu_seconds(server):
    """Time on a processor of all threads that live, in nanoseconds' precision."""
    tasks = pathlib.Path(f"/proc/{server.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Marks:
    """A key that is written last: a replica that has it has applied all before it."""

    def __init__(self, primary):
        self.primary, self.number = primary, 0

    def wait_for(self, replicas):
        """Seconds until every replica has applied what the primary has acknowledged by now."""
        self.number += 1
        began = time.monotonic()
        with self.primary.client() as client:
            client.call("SET", "mark", str(self.number))
        for replica in replicas:
            while self.seen_by(replica) != self.number:
                if time.monotonic() - began > CATCH_UP_SECONDS_MAX:
                    raise SystemExit(f"a replica is behind for long: {replica.log_tail()}")
                time.sleep(0.005)
        return time.monotonic() - began

    def seen_by(self, replica):
        try:
            with replica.client() as client:
                client.call("READONLY")
                return int(client.call("GET", "mark") or 0)
        except (Refusal, Disconnected, OSError):
            return 0  # it loads: nothing is applied yet


def save(primary):
    """Takes the snapshot that might otherwise come due while something is measured."""
    with primary.client() as client:
        client.call("SAVE")


def apply(log, name, options, note):
    """Returns [{"primary": CPU-seconds per million SETs, "replica": …, "behind_ms"} of each turn].

    Each has the core for itself in its half of a turn: whoever shares one with the load, and with
    three servers of a log, pays for their use of its caches."""
    requests = max(20_000, int(APPLY_REQUESTS * options.scale))
    found = []
    with Shard(subjects.KILN.command, 2, log.shard()) as shard:
        primary, (replica,) = shard.primary(), shard.replicas()
        load.fill(primary.port, load.strings(KEYS, load.VALUE_BYTES))
        marks = Marks(primary)
        marks.wait_for([replica])
        for turn in range(options.turns):
            halves = [("primary", primary, replica), ("replica", replica, primary)]
            sample = {}
            for half, measured, other in halves if turn % 2 == 0 else reversed(halves):
                pin(measured, subjects.SERVER_CORE)
                pin(other, subjects.LOAD_CORE)
                save(primary)
                before = cpu_seconds(measured)
                row = load.benchmark(primary.port, "-t", "set", "-c", "100", "-P", "16",
                                     "-n", str(requests))
                # A replica that is behind catches up after the load, which counts as well.
                behind = marks.wait_for([replica])
                sample[half] = (cpu_seconds(measured) - before) / requests * 1e6
                if half == "primary":
                    sample["behind_ms"] = behind * 1000
                    sample["requests_per_second"] = float(row["rps"])
            sample["ratio"] = sample["replica"] / sample["primary"]
            found.append(sample)
            note(f"turn {turn + 1}: {name}: {sample['requests_per_second']:,.0f}/s: primary "
                 f"{sample['primary']:.2f}, replica {sample['replica']:.2f} CPU-s per million, "
                 f"ratio {sample['ratio']:.2f}; {sample['behind_ms']:.0f} ms behind")
    return found


def rate(log, name, options, note):
    """Returns {"0": [primary's CPU-seconds per million of each turn], "5": […], "offered": rate}."""
    found = {"0": [], str(REPLICAS): [], "offered": Steady.rate}
    with Shard(subjects.KILN.command, 1 + REPLICAS, log.shard()) as shard:
        primary = shard.primary()
        pin(primary, subjects.SERVER_CORE)
        others = [member for member in shard.members if member is not primary]
        load.fill(primary.port, load.strings(STEADY_KEYS, load.VALUE_BYTES))
        marks = Marks(primary)
        for turn in range(options.turns):
            for count in (REPLICAS, 0) if turn % 2 == 0 else (0, REPLICAS):
                have(others, count)
                save(primary)
                marks.wait_for(others[:count])
                spent, answered = under_load(primary, max(1.0, STEADY_SECONDS * options.scale))
                found[str(count)].append(spent / answered * 1e6)
                note(f"turn {turn + 1}: {name}: {count} replicas: "
                     f"{found[str(count)][-1]:.3f} CPU-s per million, {answered:,} SETs")
    return found


def have(others, count):
    """As many replicas as that run, and no more."""
    for number, member in enumerate(others):
        if number >= count:
            member.kill()
        elif not member.alive():
            member.start()
    for member in others[:count]:
        pin(member, subjects.LOAD_CORE)


def under_load(primary, seconds):
    """The primary's processor time during a steady load, and the SETs that it answered meanwhile."""
    steady = Steady(primary.port, STEADY_KEYS)
    steady.start()
    time.sleep(1.0)
    before, answered = cpu_seconds(primary), steady.answered
    time.sleep(seconds)
    spent, answered = cpu_seconds(primary) - before, steady.answered - answered
    steady.stop()
    return spent, answered
