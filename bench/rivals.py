"""Data of which a fifth of the values fits into memory, as MemoryDB measured its data tiering: some requests in a
hundred are for cold keys, all others for the hot tenth. Beside Kiln with a tier: the same Kiln with all of it in
memory, redis-server whose memory is swapped out, and memcached with its extstore.

All servers of a turn stay up, idle but for the one that is asked, and each row goes from one to the next before
the next row begins. What the disk gives by itself is measured in each turn too.
"""

import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile

import load
import scene
import subjects
import tiered
from harness import paths
from turns import in_turn

KEYS = 2_000_000
HOT_SHARE = 0.1
COLD_PERCENTS = (10, 20)
CONNECTIONS = 100

# What is sent, and in which proportion.
LOADS = {"read only": {"get": 1}, "write only": {"set": 1}, "80 % read": {"get": 80, "set": 20}}

# Each row, and before it the same load unmeasured, so that who was idle has in memory what the row wants there.
ROW_SECONDS, WARM_SECONDS = 10, 4

# How often all hot keys are read before the first row. What was used once is the first to leave Kiln's memory.
WARM_ROUNDS = 3

IN_MEMORY, TIER, SWAP, EXTSTORE = "kiln, all in memory", "kiln, tier", "redis with swap", "memcached extstore"
SUBJECTS = (IN_MEMORY, TIER, SWAP, EXTSTORE)

READ_THREADS = (1, 4, 16, 32)
DISK_SECONDS = 3
DISK_BYTES_MIN = 256 << 20


# Reads once more, of which so many fall due each second whether or not the server keeps up: this share of what Kiln
# with a tier answered in the same turn. Times then are those of requests, and not of a full queue.
STEADY_SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class Row:
    """A share of cold requests, of a hundred, and what is sent."""

    cold: int
    load: str
    is_steady: bool = False

    @property
    def name(self):
        return f"{100 - self.cold}/{self.cold}, {self.load}" + ", at half the speed" * self.is_steady

    @property
    def weights(self):
        return LOADS[self.load]

    @property
    def writes(self):
        return "set" in self.weights


READ_ONLY = "read only"
ROWS = [Row(cold, load_name) for cold in COLD_PERCENTS for load_name in LOADS] + [
    Row(cold, READ_ONLY, is_steady=True) for cold in COLD_PERCENTS]


def run(options, note):
    """Returns {"keys", "hot", "maxmemory", "group_bytes", "tier_bytes", "disk": [{threads: sample} of each turn],
    "filled": [{subject: …}], "rows": {row: {subject: [sample of each turn]}}}."""
    keys = tiered.scaled(KEYS, options.scale, 20_000)
    maxmemory = tiered.maxmemory_for(keys)
    found = {"keys": keys, "hot": int(keys * HOT_SHARE), "maxmemory": maxmemory,
             "group_bytes": tiered.group_bytes_for(maxmemory), "tier_bytes": tiered.tier_bytes_for(keys),
             "disk": [], "filled": [], "rows": {}}
    row_seconds = max(1.0, ROW_SECONDS * min(1.0, options.scale))
    for turn in range(options.turns):
        found["disk"].append(disk(found, min(DISK_SECONDS, row_seconds)))
        note(f"turn {turn + 1}: disk: " + ", ".join(
            f"{threads} threads {sample['reads_per_second']:,.0f}/s" for threads, sample in found["disk"][-1].items()))
        with contextlib.ExitStack() as stack:
            servers = {name: stack.enter_context(MADE[name](found)) for name in SUBJECTS}
            found["filled"].append({name: filled(name, server, found) for name, server in servers.items()})
            note(f"turn {turn + 1}: filled: {found['filled'][-1]}")
            for row, name, sample in one_turn(turn, servers, found, row_seconds):
                found["rows"].setdefault(row.name, {}).setdefault(name, []).append(sample)
                note(f"turn {turn + 1}: {row.name}: {name}: {told(sample)}")
    return found


def one_turn(turn, servers, found, seconds):
    """Each row with what each subject showed in it."""
    speeds = {}
    for number, row in enumerate(ROWS):
        for name in in_turn(SUBJECTS, turn, number):
            if row.writes:
                save(name, servers[name])
            rate = speeds[row.cold, row.load] * STEADY_SHARE if row.is_steady else None
            seed = len(ROWS) * turn + number + 1
            tiered.wait_for_disk()
            ask(name, servers[name], found, row, WARM_SECONDS * seconds / ROW_SECONDS, 1000 + seed, rate)
            sample = measure(name, servers[name], found, row, seconds, seed, rate)
            if row.writes:
                save(name, servers[name])
            if name == TIER and not row.is_steady:
                speeds[row.cold, row.load] = sample["requests_per_second"]
            yield row, name, sample


def save(name, server):
    """Has Kiln take a snapshot before a row that writes and after it. By itself it takes one when its log has grown, but
    not within a minute of the last: so none falls into that row, nor into another one's."""
    if name in (IN_MEMORY, TIER):
        load.save(server)


def measure(name, server, found, row, seconds, seed, rate):
    """What the load saw, and what the server spent."""
    cpu, before = server.cpu_seconds(), disk_reads(name, server)
    seen = ask(name, server, found, row, seconds, seed, rate)
    cpu = server.cpu_seconds() - cpu
    reads = disk_reads(name, server)
    return {**seen, "cpu_seconds_per_million": cpu / seen["requests"] * 1e6,
            "disk_read_share": (reads - before) / seen["requests"] if reads is not None else None,
            "resident_bytes": server.resident_bytes()}


def ask(name, server, found, row, seconds, seed, rate):
    """Requests for so long, one after the other on each connection; at a rate if there is one."""
    pace = ("--rate", str(max(1, int(rate)))) if rate else ()
    return load.generate(server.port, *words(name), *pace, "--connections", str(CONNECTIONS), "--keyspace",
                         str(found["keys"]), "--hot", str(found["hot"]), "--cold", str(row.cold), "--value",
                         str(tiered.VALUE_BYTES), "--seconds", str(seconds), "--seed", str(seed), "--go-on",
                         *load.mix(row.weights))


def words(name):
    return ("--memcached",) if name == EXTSTORE else ()


def disk_reads(name, server):
    """Values that were read of the disk; None of who does not count them."""
    if name == TIER:
        return int(tiered.fields(server)["num_items_read_from_disk"])
    if name == EXTSTORE:
        return int(server.statistics()["get_extstore"])
    return None


def filled(name, server, found):
    """Fills a server, the hot keys last, and reads these until they are in memory. Returns how it went, and the
    share of values that are not in memory, of who tells."""
    keys, hot = found["keys"], found["hot"]
    seen = [fill(name, server, first, count) for first, count in ((hot, keys - hot), (0, hot))]
    if name in (IN_MEMORY, TIER):
        tiered.settle(server)
        load.save(server)
    for _ in range(WARM_ROUNDS):
        load.generate(server.port, *words(name), "--connections", str(CONNECTIONS), "--requests", str(hot),
                      "--ascending", "0", *load.COMMANDS["get"])
    return {"seconds": sum(part["seconds"] for part in seen), "refused": sum(part["refused"] for part in seen),
            **placed(name, server)}


def fill(name, server, first, count):
    if name != EXTSTORE:
        return tiered.fill(server, first, count)
    rate = tiered.EXTSTORE_FILL_RATE
    return tiered.fill(server, first, count, *words(name), "--rate", str(rate), "--seconds", str((count + 0.5) / rate),
                       pipeline=1)


def placed(name, server):
    """The share of values that are not in memory, and how many are gone, of who tells."""
    if name == TIER:
        return {"cold_share": tiered.cold_share(server), "gone": 0}
    if name == EXTSTORE:
        told_of = server.statistics()
        cold = int(told_of["extstore_objects_used"]) / max(1, int(told_of["curr_items"]))
        return {"cold_share": cold, "gone": int(told_of["evictions"]) + int(told_of["extstore_objects_evicted"])}
    return {"cold_share": None, "gone": 0}


def told(sample):
    """A sample in one line."""
    parts = [f"{sample['requests_per_second']:,.0f}/s"]
    parts += [f"{kind} p50 {sample[kind]['p50_ms']:.2f}, p99 {sample[kind]['p99_ms']:.2f} ms" for kind in ("hot", "cold")]
    parts += [f"{sample[kind]} {kind}" for kind in ("missed", "refused") if sample[kind]]
    if sample["disk_read_share"] is not None:
        parts.append(f"{sample['disk_read_share']:.1%} read of the disk")
    return ", ".join([*parts, f"load {sample['idle']:.0%} idle"])


@contextlib.contextmanager
def in_memory(_found):
    with tiered.kiln() as server:
        yield server


@contextlib.contextmanager
def tier(found):
    server = tiered.with_tier(found["maxmemory"], found["tier_bytes"])
    with tiered.limited(server, found["group_bytes"], "-tier"):
        yield server


@contextlib.contextmanager
def swap(found):
    """Twice the room that all the data takes, since all of it may be swapped out."""
    server = subjects.REDIS.server()
    with contextlib.closing(tiered.Swap(found["keys"] * tiered.WARM_KEY_BYTES * 2 + (64 << 20))):
        with tiered.limited(server, found["group_bytes"], "-swap"):
            yield server


@contextlib.contextmanager
def extstore(found):
    server = tiered.Memcached(found["maxmemory"], max(tiered.EXTSTORE_BYTES_MIN, found["tier_bytes"]))
    with tiered.limited(server, found["group_bytes"], "-extstore"):
        yield server


MADE = {IN_MEMORY: in_memory, TIER: tier, SWAP: swap, EXTSTORE: extstore}


def disk(found, seconds):
    """{threads: what they read}, of a file as large as the values."""
    paths.RUNS.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=paths.RUNS) as file:
        for _ in range(max(DISK_BYTES_MIN, found["keys"] * scene.VALUE_BYTES) >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        return {str(threads): reads(file.name, threads, seconds) for threads in READ_THREADS}


def reads(name, threads, seconds):
    line = [str(subjects.RELEASE / "examples" / "reads"), name, str(threads), str(seconds)]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=seconds + 60)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(line)} failed: {ran.stderr}")
    return json.loads(ran.stdout)
