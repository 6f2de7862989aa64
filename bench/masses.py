"""Many cold keys that go at once, in four ways, and a bystander: how long the slowest of its requests takes, of which
one falls due each millisecond whether or not the server keeps up. And what a tier writes that nobody uses.

The loop has a core for itself and goes before the system's own threads there, so that its turns are its own time, and
the machine's; the server's other threads share the load's core.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import load
import machine
import tiered
from harness.info import info_fields
from harness.server import die_with_parent
from harness.waiting import wait_for
from scene import FIRST
from subjects import LOAD_CORE, RELEASE, SERVER_CORE

KEYS = 1_250_000
MEMORY_SHARE = 0.08

# Keys that the bystander asks for, beside PING, and its requests a second.
NEAR = 1000
RATE = 1000

# One for each millisecond of the longest answer that is allowed (50 ms). A request is sent once one of the connections
# has no other under way: so none waits for another of the bystander's own until an answer takes longer than that.
BYSTANDER_CONNECTIONS = 50

# Who deletes: so many clients, so many keys at a time.
CONNECTIONS, BATCH = 50, 100

BEFORE_SECONDS, AFTER_SECONDS = 10, 5
IDLE_SECONDS = 60

# How long it is watched how the machine keeps a process from the loop's core.
PAUSE_SECONDS = 10
DEED_SECONDS_MAX = 300

# All keys are given the same time, which is to come after they were told and the bystander was watched: half of what
# a server takes in that is idle otherwise, a guess.
TELLING_KEYS_A_SECOND = 50_000


def run(options, note):
    """Returns {"keys", "unthrottled": whether nothing but the machine kept the loop from its core, as far as
    `machine.unthrottled` goes, "idle": {"seconds", "written"}, "pauses": [the machine's longest on the loop's core, ms,
    of each turn], "pauses_cpu": [and the longest that counted as the process's own], "deeds": {deed: [{"cold",
    "took_seconds", "before": [worst answer of each second, ms], "during", "after", "turn_before": the loop's longest
    turn, ms, "turn": and from the deed on, "turn_before_cpu", "turn_cpu": the longest that it had its core in one} of
    each turn]}}."""
    keys = tiered.scaled(KEYS, options.scale, 100_000)
    found = {"keys": keys, "idle": None, "pauses": [], "pauses_cpu": [], "deeds": {}}
    server = tiered.with_tier(tiered.maxmemory_for(keys, MEMORY_SHARE), tiered.tier_bytes_for(keys))
    with machine.unthrottled() as found["unthrottled"], server:
        note("Linux's limit for who goes first is "
             + ("lifted" if found["unthrottled"] else f"as it is: {machine.FIFO_LIMIT_FILE} cannot be set"))
        load.generate(server.port, "--requests", str(NEAR), "--ascending", "0", "--value", str(tiered.VALUE_BYTES),
                      "SET", "near:__rand_int__", "__value__")
        for turn in range(options.turns):
            pause, pause_cpu = machine.longest_pauses_ms(SERVER_CORE, PAUSE_SECONDS)
            found["pauses"].append(pause)
            found["pauses_cpu"].append(pause_cpu)
            note(f"turn {turn + 1}: the machine's longest pauses: {pause:.1f} and {pause_cpu:.1f} ms")
            for deed, (prepare, does) in DEEDS.items():
                cold = filled(server, keys)
                if found["idle"] is None:
                    found["idle"] = idle(server, max(10.0, IDLE_SECONDS * min(1.0, options.scale)))
                    note(f"idle: {found['idle']}")
                at = prepare(server, keys)
                row = {"cold": cold, **watched(server, at, lambda does=does: does(server, keys))}
                found["deeds"].setdefault(deed, []).append(row)
                note(f"turn {turn + 1}: {deed}: {cold:,} cold keys in {row['took_seconds']:.1f} s, slowest answer "
                     + " → ".join(f"{max(row[phase]):.1f}" for phase in ("before", "during", "after")) + " ms")
    return found


def filled(server, keys):
    """Fills the server; how many values are not in memory."""
    tiered.fill(server, 0, keys)
    tiered.tighten(server, MEMORY_SHARE)
    load.wait_for_upkeep(server)
    part(server)
    return int(tiered.fields(server)["curr_items_ssd"])


def part(server):
    """The loop runs in the first thread."""
    for task in pathlib.Path(f"/proc/{server.pid}/task").iterdir():
        core = SERVER_CORE if int(task.name) == server.pid else LOAD_CORE
        os.sched_setaffinity(int(task.name), {int(core)})
    machine.go_first(server.pid)


def idle(server, seconds):
    """Bytes that a tier writes which nobody uses."""
    before = int(tiered.fields(server)["bytes_written_to_disk"])
    time.sleep(seconds)
    return {"seconds": seconds, "written": int(tiered.fields(server)["bytes_written_to_disk"]) - before}


def watched(server, at, deed):
    """What a bystander waited before the deed, during it and after it. It begins at this time, or soon."""
    with Bystander(server) as bystander, server.client(timeout=DEED_SECONDS_MAX) as client:
        client.call("CONFIG", "RESETSTAT")
        time.sleep(BEFORE_SECONDS if at is None else max(0.0, at - time.time()))
        turn_before, turn_before_cpu = longest_turn(client)
        client.call("CONFIG", "RESETSTAT")
        began = time.monotonic()
        deed()
        ended = time.monotonic()
        time.sleep(AFTER_SECONDS)
        turn, turn_cpu = longest_turn(client)
        if not bystander.alive():
            raise SystemExit(f"the bystander ended: {server.log_tail()}")
    phases = {"before": [], "during": [], "after": []}
    for row in bystander.rows()[1:-1]:
        second = row["second"]
        phase = "before" if second < int(began) else "during" if second <= int(ended) else "after"
        phases[phase].append(row["max_ms"])
    return {"took_seconds": ended - began, "turn_before": turn_before, "turn_before_cpu": turn_before_cpu,
            "turn": turn, "turn_cpu": turn_cpu, **phases}


def longest_turn(client):
    """Of the loop, in milliseconds: by the clock, and how long the loop had its core in one."""
    fields = info_fields(client.call("INFO", "stats"))
    return tuple(int(fields[f"kiln_eventloop_{what}_max"]) / 1000 for what in ("duration", "cpu"))


class Bystander:
    """PINGs and GETs of keys that are in use, at a fixed rate, until the block ends."""

    def __init__(self, server):
        self.line = [*FIRST, "taskset", "-c", LOAD_CORE, str(RELEASE / "examples" / "load"), "--port",
                     str(server.port), "--connections", str(BYSTANDER_CONNECTIONS), "--rate", str(RATE), "--seconds",
                     str(24 * 3600), "--keyspace", str(NEAR), "--by-second", "--command", "PING", "--command",
                     "GET near:__rand_int__"]

    def __enter__(self):
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.line, stdout=self.output, stderr=subprocess.DEVNULL,
                                        preexec_fn=die_with_parent)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def alive(self):
        return self.process.poll() is None

    def rows(self):
        self.output.seek(0)
        found = []
        for line in self.output.read().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # the last, cut by the kill
                found.append(json.loads(line))
        return found


def gone(server):
    """Waits until there are only the bystander's keys."""
    with server.client(timeout=DEED_SECONDS_MAX) as client:
        wait_for("a server without the keys", lambda: client.call("DBSIZE") <= NEAR, DEED_SECONDS_MAX)


def deleted(command):
    """Batches of keys from many clients."""
    def deed(server, keys):
        load.generate(server.port, "--connections", str(CONNECTIONS), "--requests", str(-(-keys // BATCH)),
                      "--ascending", "0", command, *["key:__rand_int__"] * BATCH)
        gone(server)
    return deed


def told_to_expire(server, keys):
    """Gives all keys the same time, and returns it."""
    at = int(time.time() + keys / TELLING_KEYS_A_SECOND + BEFORE_SECONDS)
    load.generate(server.port, "--connections", "10", "--pipeline", "16", "--requests", str(keys), "--ascending", "0",
                  "PEXPIREAT", "key:__rand_int__", str(at * 1000))
    if time.time() > at - 2:
        raise SystemExit("the time came before every key was told")
    return at


def expired(server, _keys):
    """They go by themselves: nobody asks for them."""
    gone(server)


def nothing(_server, _keys):
    """Prepares nothing."""


def flushed(server, _keys):
    with server.client(timeout=DEED_SECONDS_MAX) as client:
        client.call("FLUSHALL")
    gone(server)


# How it is prepared, and done.
DEEDS = {"DEL": (nothing, deleted("DEL")), "UNLINK": (nothing, deleted("UNLINK")),
         "expiry": (told_to_expire, expired), "FLUSHALL": (nothing, flushed)}
