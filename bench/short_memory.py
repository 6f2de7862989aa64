"""Five times as much data as memory, in a control group that has a quarter more than `maxmemory`: what the server takes
while it is loaded, while it takes a snapshot, while all keys are rewritten, and while both happen; and what a replica
takes, in a group of its own, until it has all that.
"""

import contextlib
import signal
import subprocess
import time

import load
import scene
import small_replica
import tiered
from harness.resp import Disconnected

KEYS = 10_000_000
LOAD_REQUESTS = 2_000_000
FLOOD_SECONDS = 30
FLOOD_CONNECTIONS = 50
SAMPLE_SECONDS = 0.05
DEATH_SECONDS = 10


def run(options, note):
    """Returns {"keys", "maxmemory", "group_bytes", "phases": {phase: {"used", "resident", "took_seconds", "requests",
    "refused"}}, "outcome"}: the most there had been of each by then, in that process."""
    keys = tiered.scaled(KEYS, options.scale, 50_000)
    maxmemory = int(keys * tiered.WARM_KEY_BYTES * tiered.MEMORY_SHARE) + tiered.BUFFER_BYTES
    group_bytes = tiered.group_bytes_for(maxmemory)
    found = {"keys": keys, "maxmemory": maxmemory, "group_bytes": group_bytes, "phases": {}, "outcome": None}
    server = tiered.with_tier(maxmemory, tiered.tier_bytes_for(keys))
    seconds = max(3.0, FLOOD_SECONDS * min(1.0, options.scale))
    with tiered.limited(server, group_bytes, "-short"):
        try:
            for phase, acts in (("load", lambda: loaded(server, keys)), ("BGSAVE", lambda: saved(server)),
                                ("flood of SETs", lambda: flooded(server, keys, seconds)),
                                ("BGSAVE amid the flood", lambda: flooded(server, keys, seconds, save=True))):
                row = found["phases"][phase] = {"requests": 0, "refused": 0}
                watched(server, acts, row)
                note(f"{phase}: used_memory {row['used'] / maxmemory:.1%} of maxmemory, resident "
                     f"{row['resident'] / group_bytes:.0%} of the group's, {row['refused']:,} of {row['requests']:,} "
                     f"SETs refused, {row['took_seconds']:.0f} s")
            found["cold_share"] = tiered.cold_share(server)
            phase = "a replica's start"
            row = found["phases"][phase] = joined(server, maxmemory, group_bytes, keys)
            note(f"{phase}: used_memory {row['used'] / maxmemory:.1%} of maxmemory, resident "
                 f"{row['resident'] / group_bytes:.0%} of the group's, {row['took_seconds']:.0f} s")
        except (SystemExit, OSError, Disconnected) as error:
            # Its connections close before it is seen to be dead.
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.process.wait(DEATH_SECONDS)
            if server.alive():
                raise
            note(f"ended: {error}")
        found["outcome"] = "alive" if server.alive() else f"ended by {ending(server)} in: {phase}"
    note(found["outcome"])
    return found


def ending(server):
    """Of a server that is dead: the signal, which is SIGKILL if the kernel found no memory."""
    code = server.process.returncode
    return signal.Signals(-code).name if code < 0 else f"itself with {code}"


def watched(server, acts, row):
    """Adds to the row what was done, and the most memory until it was done or failed."""
    began = time.monotonic()
    watch = Watch(server)
    try:
        with watch:
            row["requests"], row["refused"] = acts()
    finally:
        row.update(took_seconds=time.monotonic() - began, used=watch.used, resident=watch.resident)


def joined(primary, maxmemory, group_bytes, keys):
    """A replica with as little memory loads what the primary has, and reads its log to the end."""
    began = time.monotonic()
    replica = small_replica.replica_of(primary, maxmemory, keys)
    with tiered.limited(replica, group_bytes, "-joining"):
        row = {"requests": 0, "refused": 0}
        watched(replica, lambda: (small_replica.catch_up(primary, replica), (0, 0))[1], row)
    return {**row, "took_seconds": time.monotonic() - began}


class Watch(scene.Watcher):
    """The most that a server says it has used, before anything left for that, and that was in RAM of it."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.used, self.resident = 0, 0

    def run(self):
        with contextlib.suppress(OSError, Disconnected), self.server.client(timeout=600) as client:
            is_over = False
            while not is_over:
                is_over = self.stopping.wait(SAMPLE_SECONDS)
                told = tiered.info_fields(client.call("INFO", "memory"))
                self.used = int(told["used_memory_peak"])
                self.resident = self.server.resident_peak_bytes()


def loaded(server, keys):
    """In parts: how long the load may take has a bound."""
    refused = 0
    for first in range(0, keys, LOAD_REQUESTS):
        refused += tiered.fill(server, first, min(LOAD_REQUESTS, keys - first))["refused"]
    return keys, refused


def saved(server):
    load.wait_for_upkeep(server)
    scene.bgsave(server)
    return 0, 0


def flooded(server, keys, seconds, save=False):
    """SETs of random keys for so long, and until the snapshot is taken."""
    load.wait_for_upkeep(server)
    with scene.Loads(server, keys, gets=0, sets=FLOOD_CONNECTIONS, how=("--go-on",)) as loads:
        until = time.monotonic() + seconds
        if save:
            scene.bgsave(server)
        time.sleep(max(0.0, until - time.monotonic()))
        if not loads.alive():
            raise SystemExit(f"the load ended: {server.log_tail()}")
    rows = list(loads.rows())
    return sum(row["requests"] for row in rows), sum(row["refused"] for row in rows)
