"""A server with much data under a steady load, watched second by second: what the evaluations are made of.

The server has core 0. The load has core 1 and the highest priority there; whoever else works for the server,
a forked child or a snapshot worker, has what is left of core 1.
"""

import contextlib
import json
import pathlib
import subprocess
import tempfile
import threading
import time

import load
import subjects
from harness import paths
from harness.server import die_with_parent
from subjects import LOAD_CORE, RELEASE, Subject

VALUE_BYTES = 500
KEY_BYTES = 16
GET_CONNECTIONS, SET_CONNECTIONS = 100, 20
WARM_UP_SECONDS = 3
BEFORE_SECONDS = 20
AFTER_SECONDS = 10
MEMORY_SECONDS = 0.5

# A snapshot that takes longer is an error: the largest takes some minutes.
SNAPSHOT_SECONDS_MAX = 1800

# Whoever runs it must be root for the priority; without it the load is merely at its core first.
FIRST = ("nice", "-n", "-20")
# Not `nice 19`: behind that a task that wakes up waits until the one that runs has had its slice, a millisecond
# or two, which would be measured as the snapshot's. An idle task goes at once.
LAST = ("chrt", "--idle", "0")

# The fork's child may leave the server's core, as a snapshot worker does. This Valkey is the one that the suites
# compare with, which is there wherever they run; `subjects.VALKEY` is another, built as its makers build it.
FORKS_ASIDE = (*subjects.NO_SNAPSHOTS, "--bgsave_cpulist", LOAD_CORE)
REDIS = Subject("redis", paths.perhaps("redis-server"), FORKS_ASIDE)
VALKEY = Subject("valkey", paths.perhaps("valkey-server"), FORKS_ASIDE)
KILN = Subject("kiln", subjects.KILN.command)


def keys_of(payload_bytes):
    """As many keys as have that much in keys and values."""
    return int(payload_bytes / (KEY_BYTES + VALUE_BYTES))


def fill(server, first, keys):
    """Keys from number `first` on, `keys` of them."""
    if keys > 0:
        load.fill_keys(server.port, keys, first, VALUE_BYTES)


class Loads:
    """GETs and SETs of random keys, from so many connections each, until the block ends."""

    def __init__(self, server, keys, gets=GET_CONNECTIONS, sets=SET_CONNECTIONS, how=()):
        self.server, self.keys, self.how = server, keys, how
        self.wanted = {name: count for name, count in (("get", gets), ("set", sets)) if count}

    def __enter__(self):
        self.outputs = {name: tempfile.TemporaryFile("w+") for name in self.wanted}
        self.processes = {name: subprocess.Popen(
            [*FIRST, "taskset", "-c", LOAD_CORE, str(RELEASE / "examples" / "load"),
             "--port", str(self.server.port), "--connections", str(count), "--by-second",
             "--requests", str(10**15), "--keyspace", str(self.keys), "--value", str(VALUE_BYTES),
             *self.how, *load.COMMANDS[name]],
            stdout=self.outputs[name], stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
            for name, count in self.wanted.items()}
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def alive(self):
        """Whether the server has refused nothing and is there."""
        return all(process.poll() is None for process in self.processes.values())

    def rows(self):
        """What each load says of each second."""
        for output in self.outputs.values():
            output.seek(0)
            for line in output.read().splitlines():
                with contextlib.suppress(json.JSONDecodeError):  # the last, cut by the kill
                    yield json.loads(line)

    def seconds(self):
        """{second of the monotonic clock: (requests, mean in ms, slowest in ms)} of both together."""
        together = {}
        for row in self.rows():
            count, mean, slowest = together.get(row["second"], (0, 0.0, 0.0))
            both = count + row["requests"]
            mean = (count * mean + row["requests"] * row["mean_ms"]) / max(1, both)
            together[row["second"]] = (both, mean, max(slowest, row["max_ms"]))
        return together


class Watcher(threading.Thread):
    """Looks at servers again and again while its block runs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stopping = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


class Memory(Watcher):
    """Watches a server's memory: what is in RAM, and what a forked child has for itself."""

    def __init__(self, server):
        super().__init__()
        self.server, self.seen = server, {}

    def run(self):
        while not self.stopping.wait(MEMORY_SECONDS):
            try:
                now = resident_with_children(self.server)
            except (OSError, ValueError):
                return  # it is gone
            second = int(time.monotonic())
            self.seen[second] = max(now, self.seen.get(second, 0))


def children(server):
    """The processes that a server has forked."""
    return [int(pid) for pid in pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def resident_with_children(server):
    """Bytes. Pages that a child shares with its parent count once."""
    total = server.resident_bytes()
    for child in children(server):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for line in pathlib.Path(f"/proc/{child}/smaps_rollup").read_text().splitlines():
                if line.startswith("Private_"):
                    total += int(line.split()[1]) << 10
    return total


def watched(server, keys, snapshot, may_end=False, before_seconds=BEFORE_SECONDS, **connections):
    """A snapshot amid the load, which the server outlives unless it `may_end`: {"before": [...],
    "during": [...], "after": [...], "took_seconds"}, a row {"requests", "mean_ms", "max_ms", "memory"} for
    each whole second."""
    with Loads(server, keys, **connections) as loads, Memory(server) as memory:
        time.sleep(WARM_UP_SECONDS + before_seconds)
        began = time.monotonic()
        snapshot()
        ended = time.monotonic()
        time.sleep(AFTER_SECONDS)
        held = loads.alive()
    rows, last = {"before": [], "during": [], "after": []}, server_memory(memory)
    for second, (requests, mean_ms, max_ms) in sorted(loads.seconds().items())[WARM_UP_SECONDS:-1]:
        last = memory.seen.get(second, last)
        phase = "before" if second < int(began) else "during" if second <= int(ended) else "after"
        rows[phase].append({"requests": requests, "mean_ms": mean_ms, "max_ms": max_ms, "memory": last})
    if not held and not may_end:
        raise SystemExit(f"the load ended before the snapshot: {server.log_tail()}")
    return {**rows, "took_seconds": ended - began}


def server_memory(memory):
    """The first that was seen."""
    return next(iter(memory.seen.values()), 0)


def bgsave(server):
    """Takes a snapshot by the server itself, and waits for its end. A child that it forks goes behind the load."""
    with server.client(timeout=SNAPSHOT_SECONDS_MAX) as client:
        client.call("BGSAVE", "SCHEDULE")
        for child in children(server):
            subprocess.run([*LAST[:2], "--pid", "0", str(child)], check=False, capture_output=True)
        deadline = time.monotonic() + SNAPSHOT_SECONDS_MAX
        while b"rdb_bgsave_in_progress:1" in client.call("INFO", "persistence"):
            if time.monotonic() > deadline:
                raise SystemExit(f"a snapshot does not end: {server.log_tail()}")
            time.sleep(0.1)
        if b"rdb_last_bgsave_status:ok" not in client.call("INFO", "persistence"):
            raise SystemExit(f"a snapshot failed: {server.log_tail()}")


def info(server, section, name):
    """A field of INFO."""
    with server.client(timeout=60) as client:
        for line in client.call("INFO", section).decode().splitlines():
            if line.startswith(f"{name}:"):
                return line.split(":", 1)[1]
    raise SystemExit(f"INFO {section} has no {name}")
