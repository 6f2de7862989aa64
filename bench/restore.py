"""How fast data comes back: from a snapshot's parts and from the log, beside redis-server's RDB file and its
AOF of commands. Servers have all cores, and nothing else runs.

Each server is filled once and then started again and again, in turns, from what it wrote. Counted is the
time from exec to the first PONG, less what the same server takes with no data.
"""

import contextlib
import dataclasses
import os
import time

import load
import subjects
from harness.resp import Disconnected, Refusal

AOF = ("--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no",
       "--auto-aof-rewrite-percentage", "0")
START_SECONDS_MAX = 600
POLL_SECONDS = 0.005


def spread_strings(count):
    """Values of 16 to 100 bytes."""
    value = b"".join(b"%06d" % (n * 7919 % 999983) for n in range(40))
    return ((b"SET", b"key:%012d" % n, value[n % 97:][:16 + n * 31 % 85]) for n in range(count))


def long_strings(count):
    """Values of 500 bytes."""
    value = b"".join(b"%06d" % (n * 7919 % 999983) for n in range(100))
    return ((b"SET", b"key:%012d" % n, value[n % 97:][:500]) for n in range(count))


def small_values(count):
    """Hashes of five fields, lists of eight elements, sorted sets of six members, in equal parts."""
    for n in range(count):
        key = b"key:%012d" % n
        match n % 3:
            case 0:
                yield (b"HSET", key, b"name", b"n%08d" % n, b"age", b"41", b"city", b"Utrecht",
                       b"mail", b"m%08d" % n, b"seen", b"1700000000")
            case 1:
                yield (b"RPUSH", key, *(b"element:%d" % (n * 31 + i) for i in range(8)))
            case 2:
                yield (b"ZADD", key, *(part for i in range(6)
                                       for part in (b"%d" % (n * 7919 % 1000 + i), b"member:%d" % i)))


@dataclasses.dataclass(frozen=True)
class Content:
    name: str
    keys: int
    requests: object


CONTENTS = (Content("strings of 16 – 100 B", 2_000_000, spread_strings),
            Content("strings of 500 B", 400_000, long_strings),
            Content("small hashes, lists, sorted sets", 3_000_000, small_values))


@dataclasses.dataclass(frozen=True)
class Way:
    """One way in which a server's data comes back. `saves`: from a file or from parts that it has saved."""

    name: str
    subject: subjects.Subject
    arguments: tuple
    saves: bool


KILN, REDIS = subjects.PROFILED, subjects.REDIS
WAYS = (Way("kiln parts", KILN, (), True), Way("redis RDB", REDIS, (), True),
        Way("kiln log", KILN, (), False), Way("redis AOF", REDIS, AOF, False))


def server(way):
    """Not pinned: a restore may take all cores."""
    subject = dataclasses.replace(way.subject, arguments=(*way.subject.arguments, *way.arguments))
    return subjects.Server(subject.command, subject.arguments)


def run(options, note):
    """Returns {content: {"keys": n, way: [keys per second]}}."""
    found = {}
    for content in CONTENTS:
        keys = max(10_000, int(content.keys * options.scale))
        rates = found[content.name] = {"keys": keys}
        with contextlib.ExitStack() as stack:
            filled = {way.name: fill(way, content, keys, stack) for way in WAYS}
            empty = {way.name: fill(way, content, 0, stack) for way in WAYS}
            settle(filled)
            for turn in range(options.turns):
                for way in WAYS:
                    took = start(filled[way.name], way, keys) - start(empty[way.name], way, 0)
                    rates.setdefault(way.name, []).append(keys / took)
                    note(f"{content.name}, turn {turn + 1}: {way.name}: {keys / took:,.0f} keys/s")
    return found


def settle(filled):
    """Once all that was written is on the disk, and has been read once: no start waits for either."""
    os.sync()
    for made in filled.values():
        for file in sorted((made.directory / "data").rglob("*")):
            if file.is_file():
                with open(file, "rb") as content:
                    while content.read(1 << 24):
                        pass


def fill(way, content, keys, stack):
    """A server that was killed once it had all of that. `stack` closes it."""
    made = server(way)
    stack.callback(made.close)
    made.start()
    load.fill(made.port, content.requests(keys))
    if way.saves:
        load.save(made)
    made.kill()
    return made


def start(made, way, keys):
    """Seconds from exec to PONG."""
    began = time.monotonic()
    made.launch()
    while not answers(made):
        time.sleep(POLL_SECONDS)
    took = time.monotonic() - began
    with made.client() as client:
        told = client.call("INFO", "persistence").decode()
        if client.call("DBSIZE") != keys:
            raise SystemExit(f"{way.name} came back with {client.call('DBSIZE')} keys")
        if way.subject is KILN and f"rdb_last_load_keys_loaded:{keys * way.saves}\r" not in told:
            raise SystemExit(f"{way.name} came back in another way: {told}")
    made.kill()
    return took


def answers(made):
    """Whether it has loaded. A dead one is an error."""
    if not made.alive():
        raise SystemExit(f"{made.command} ended at its start: {made.log_tail()}")
    try:
        with made.client(timeout=START_SECONDS_MAX) as client:
            return client.call("PING") == b"PONG"
    except (OSError, Disconnected, Refusal):
        return False
