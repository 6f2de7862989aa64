"""Latency while a snapshot is taken, second by second, under a steady load.

A probe of its own asks one question at a time on the load's core; redis-benchmark makes the load. The
probe's slowest answer of each second is what is kept.
"""

import random
import subprocess
import threading
import time

import load
import subjects
from harness import paths
from harness.resp import Disconnected, Refusal
from subjects import LOAD_CORE

VALUE_BYTES = 500
DATASET_BYTES = 4 << 30
BEFORE_SECONDS = 10
DURING_SECONDS_MIN = 10
DURING_SECONDS_MAX = 120
TURNS_MAX = 3


class Probe(threading.Thread):
    """Asks GET and SET in turn; keeps (second, slowest answer in ms)."""

    def __init__(self, server, keys):
        super().__init__(daemon=True)
        self.server, self.keys = server, keys
        self.stopping = threading.Event()
        self.slowest = {}

    def run(self):
        draw, value = random.Random(1), b"y" * VALUE_BYTES
        with self.server.client(timeout=60) as client:
            while not self.stopping.is_set():
                key = b"key:%012d" % draw.randrange(self.keys)
                began = time.monotonic()
                if draw.random() < 0.2:
                    client.call("SET", key, value)
                else:
                    client.call("GET", key)
                took = (time.monotonic() - began) * 1000
                second = int(began)
                self.slowest[second] = max(took, self.slowest.get(second, 0.0))
                time.sleep(0.0005)


def background(port, test, connections):
    line = ["taskset", "-c", LOAD_CORE, paths.tool("redis-benchmark"), "-p", str(port), "-q", "-l",
            "-t", test, "-c", str(connections), "-d", str(VALUE_BYTES), "-r", str(load.KEYS)]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def in_progress(client):
    return b"rdb_bgsave_in_progress:1" in client.call("INFO", "persistence")


def once(subject, keys):
    """One dataset, one snapshot; None when the server has none to offer."""
    with subject.server() as server:
        load.fill(server.port, load.strings(keys, VALUE_BYTES))
        before_bytes = server.resident_bytes()
        loads = [background(server.port, "get", 100), background(server.port, "set", 20)]
        probe = Probe(server, keys)
        probe.start()
        try:
            time.sleep(BEFORE_SECONDS)
            with server.client(timeout=60) as client:
                # Loading may have made a snapshot due: the one measured begins after it.
                while in_progress(client):
                    time.sleep(0.1)
                began = time.monotonic()
                client.call("BGSAVE", "SCHEDULE")
                most = snapshot_memory(server, client, began)
                took = time.monotonic() - began
                growth = max(most - before_bytes, copied_bytes(client))
        except (Refusal, Disconnected):
            return None
        finally:
            probe.stopping.set()
            probe.join(60)
            for process in loads:
                process.kill()
                process.wait()
    seconds = sorted(probe.slowest)[1:]
    return {"took_seconds": took, "growth": growth / before_bytes,
            "before_ms": [probe.slowest[s] for s in seconds if s < int(began)],
            "during_ms": [probe.slowest[s] for s in seconds if int(began) <= s <= began + took]}


def snapshot_memory(server, client, began):
    """Waits for the snapshot's end; the most resident memory meanwhile."""
    most = 0
    while time.monotonic() - began < DURING_SECONDS_MAX:
        time.sleep(0.2)
        most = max(most, server.resident_bytes())
        if not in_progress(client):
            if time.monotonic() - began > DURING_SECONDS_MIN:
                break
            client.call("BGSAVE", "SCHEDULE")
    return most


def copied_bytes(client):
    """What a fork's copy-on-write cost, where the server forks."""
    for line in client.call("INFO", "persistence").split(b"\r\n"):
        if line.startswith(b"rdb_last_cow_size:"):
            return int(line.split(b":")[1])
    return 0


def run(options, note):
    """Returns {subject: [one result a run]}."""
    keys = max(10_000, int(DATASET_BYTES / 600 * options.scale))
    found = {"keys": keys}
    for turn in range(min(TURNS_MAX, options.turns)):
        for subject in (subjects.PROFILED, subjects.REDIS):
            result = once(subject, keys)
            if result is None:
                note(f"{subject.name}: BGSAVE is refused")
                continue
            found.setdefault(subject.name, []).append(result)
            note(f"turn {turn + 1}: {subject.name}: slowest {max(result['before_ms']):.1f} ms before, "
                 f"{max(result['during_ms']):.1f} ms during, memory + {result['growth']:.1%}")
    return found
