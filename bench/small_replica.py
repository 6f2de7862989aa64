"""A replica with a quarter of its primary's memory, and a tier, while the primary changes values that are not in the
replica's memory: how long it is behind, and whether it has the same data in the end. The replica has core 0 for itself.
"""

import time

import load
import scene
import subjects
import tiered
from following import pin

KEYS = 500_000
MEMORY_SHARE = 0.25
RATE = 50_000
SECONDS = 15
# As many as come together from a connection: the primary shares its core with the load, and does not get to so many
# changes one by one.
CONNECTIONS, PIPELINE = 50, 8
SAMPLE_SECONDS = 0.1
CATCH_UP_SECONDS_MAX = 120.0

# Half of the keys are strings of VALUE_BYTES, half are hashes of some fields.
HASH_FIELDS, FIELD_BYTES = 5, 100
CHANGES = ("--command", "APPEND key:__rand_int__ 0123456789abcdef", "--weight", "1",
           "--command", "HSET hash:__rand_int__ field:0 __value__", "--weight", "1")


def run(options, note):
    """Returns {"keys", "maxmemory", "used_by_primary", "asked": changes a second, "turns": [{"changes_per_second",
    "behind_seconds": [of each look], "fetched", "equal"}]}."""
    keys = tiered.scaled(KEYS, options.scale, 50_000) // 2
    seconds = max(5.0, SECONDS * min(1.0, options.scale))
    primary = tiered.kiln(["--enable-debug-command", "yes"])
    with primary:
        pin(primary, subjects.LOAD_CORE)
        fill(primary, keys)
        used = int(tiered.fields(primary, "memory")["used_memory"])
        found = {"keys": 2 * keys, "used_by_primary": used, "maxmemory": int(used * MEMORY_SHARE), "asked": RATE,
                 "turns": []}
        with replica_of(primary, found["maxmemory"], 2 * keys) as replica:
            wait_until_equal(primary, replica)
            for turn in range(options.turns):
                found["turns"].append(one_turn(primary, replica, keys, seconds, turn))
                note(f"turn {turn + 1}: {told(found['turns'][-1])}")
    return found


def told(row):
    return (f"{row['changes_per_second']:,.0f} changes a second, behind {max(row['behind_seconds']):.2f} s at most, "
            f"{row['fetched']:,} values fetched, data {'equal' if row['equal'] else 'DIFFERENT'}")


def fill(server, keys):
    tiered.fill(server, 0, keys)
    fields = [word for number in range(HASH_FIELDS) for word in (f"field:{number}", "__value__")]
    load.generate(server.port, "--connections", "20", "--pipeline", "16", "--requests", str(keys), "--value",
                  str(FIELD_BYTES), "--ascending", "0", "HSET", "hash:__rand_int__", *fields)
    load.save(server)


def replica_of(primary, maxmemory, keys):
    """A member of the same shard, not yet started, that reads the primary's log."""
    data = primary.directory / "data"
    log, snapshots = data / "log", data / "snapshots"
    return tiered.with_tier(maxmemory, tiered.tier_bytes_for(keys),
                            ["--transaction-log", f"file:{log}", "--snapshot-store", f"file:{snapshots}",
                             "--enable-debug-command", "yes"])


def one_turn(primary, replica, keys, seconds, turn):
    before = fetched(replica)
    with Behind(primary, replica) as behind:
        seen = load.generate(primary.port, "--rate", str(RATE), "--connections", str(CONNECTIONS), "--pipeline",
                             str(PIPELINE), "--keyspace", str(keys), "--value", str(FIELD_BYTES), "--seconds",
                             str(seconds), "--seed", str(turn + 1), *CHANGES)
    return {"changes_per_second": seen["requests_per_second"], "behind_seconds": behind.seen,
            "fetched": fetched(replica) - before, "equal": wait_until_equal(primary, replica)}


def fetched(server):
    return int(tiered.fields(server)["tier_fetched"])


def position(client):
    """How far it has come in the log, in records."""
    return int(tiered.info_fields(client.call("INFO", "replication"))["kiln_log_sequence"])


class Behind(scene.Watcher):
    """Looks again and again how long it takes until a replica has what its primary had at a moment."""

    def __init__(self, primary, replica):
        super().__init__()
        self.primary, self.replica = primary, replica
        self.seen = []

    def run(self):
        with self.primary.client(timeout=600) as ahead, self.replica.client(timeout=600) as behind:
            while not self.stopping.wait(SAMPLE_SECONDS):
                wanted, began = position(ahead), time.monotonic()
                while position(behind) < wanted and time.monotonic() - began < CATCH_UP_SECONDS_MAX:
                    time.sleep(0.005)
                self.seen.append(time.monotonic() - began)


def wait_until_equal(primary, replica):
    """Whether the replica has the same data once it has come as far."""
    catch_up(primary, replica)
    with primary.client(timeout=scene.SNAPSHOT_SECONDS_MAX) as ahead, \
            replica.client(timeout=scene.SNAPSHOT_SECONDS_MAX) as behind:
        return ahead.call("DEBUG", "DIGEST") == behind.call("DEBUG", "DIGEST")


def catch_up(primary, replica):
    """Waits until the replica has come as far as its primary."""
    with primary.client(timeout=scene.SNAPSHOT_SECONDS_MAX) as ahead, \
            replica.client(timeout=scene.SNAPSHOT_SECONDS_MAX) as behind:
        deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
        while position(behind) < position(ahead):
            if time.monotonic() > deadline:
                raise SystemExit(f"the replica does not come as far: {replica.log_tail()}")
            time.sleep(0.05)
