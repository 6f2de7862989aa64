"""Throughput, latency and processor time, every subject in turn.

This kind of machine drifts by 15–30 % within minutes, so only what was measured side by side can be
compared: all servers of a turn stay up, idle but for the one that is asked, and each row goes from one to
the next before the next row begins.
"""

import contextlib
import time

import load
import subjects
from harness.authority import TestAuthority
from load import Cell

CELLS = [
    Cell("set", 100, 16, 1_500_000),
    Cell("get", 100, 16, 1_500_000),
    Cell("get", 100, 1, 250_000),
    Cell("set", 100, 1, 250_000),
    Cell("set", 1, 1, 30_000),
    Cell("incr", 100, 16, 1_500_000),
    Cell("lpush", 100, 16, 1_500_000),
    Cell("hset", 100, 16, 1_000_000),
    Cell("zadd", 100, 16, 500_000),
    # Of ten fields, and of a hundred members.
    Cell("hgetall", 100, 16, 500_000, ("HGETALL", "fields"),
         (("HSET", "fields", *(f"{word}{at}" for at in range(10) for word in ("field", "value"))),)),
    Cell("zrange", 100, 16, 100_000, ("ZRANGE", "ranked", "0", "99"),
         (("ZADD", "ranked", *(word for at in range(100) for word in (str(at), f"member:{at}"))),)),
    # From the list that LPUSH has filled.
    Cell("brpop", 100, 16, 1_000_000, ("BRPOP", "mylist", "0")),
    Cell("eval", 100, 16, 500_000,
         ("EVAL", "return redis.call('SET',KEYS[1],ARGV[1])", "1", "key:__rand_int__", "x" * 100)),
    Cell("xadd", 100, 16, 500_000, ("XADD", "mystream", "*", "field", "x" * 100)),
    # From the stream that XADD has filled, each entry to be acknowledged.
    Cell("xreadgroup", 100, 16, 400_000,
         ("XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "mystream", ">"),
         (("XGROUP", "CREATE", "mystream", "group", "0"),)),
    # With a snapshot, or a rewrite of the AOF, for half a gigabyte of log: Kiln takes one for each.
    Cell("set", 100, 16, 4_000_000, upkeep=True),
    # TLS 1.3, with a key of P-256.
    Cell("get", 100, 1, 250_000, tls=True),
    Cell("get", 100, 16, 1_500_000, tls=True),
    Cell("set", 100, 16, 1_000_000, tls=True),
    Cell("set", 100, 16, 250_000, value=1000, tls=True),
]

SUBJECTS = [subjects.KILN, subjects.REDIS, subjects.REDIS_ALWAYS, subjects.FLOOR]

# What does no work is the same for every command, so two stand for all.
FLOOR_TESTS = {"get", "set"}


def measured(subject, cell):
    return subject is not subjects.FLOOR or cell.test in FLOOR_TESTS and not (cell.tls or cell.upkeep)


def run(options, note):
    """Returns {cell: {subject: [sample of each turn]}} as plain data. Samples of one cell and turn were taken
    one after another."""
    found = {}
    with TestAuthority() as authority:
        authority.issue("server")
        for turn in range(options.turns):
            for cell, subject, sample in one_turn(turn, authority, options.scale):
                found.setdefault(cell.name, {}).setdefault(subject.name, []).append(vars(sample))
                note(f"turn {turn + 1}: {cell.name}: {subject.name}: "
                     f"{sample.requests_per_second:,.0f}/s, "
                     f"{sample.cpu_seconds_per_million:.2f} CPU-s per million, "
                     f"load {sample.load_idle:.0%} idle")
    return found


def one_turn(turn, authority, scale):
    """Each cell with what each subject showed in it. Another begins each time, and in every other turn the
    order is reversed: whatever one leaves behind falls on each of the others."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for subject in SUBJECTS:
            server = servers[subject] = stack.enter_context(subject.server(authority))
            if subject is not subjects.FLOOR:
                load.fill(server.port, load.strings(load.KEYS, load.VALUE_BYTES))
        for number, cell in enumerate(CELLS):
            asked = [subject for subject in SUBJECTS if measured(subject, cell)]
            first, step = turn + number, 1 if turn % 2 else -1
            for place in range(len(asked)):
                subject = asked[(first + step * place) % len(asked)]
                prepare(servers, subject)
                if cell.upkeep and subject.upkeep:
                    call(servers[subject], *subject.upkeep)
                yield cell, subject, load.measure(servers[subject], cell.scaled(scale))


def prepare(servers, subject):
    """Has a server shorten its log before a row, once none does anything of the kind: it would fall into
    any row otherwise, and cost that row a fifth."""
    for server in servers.values():
        if server is not servers.get(subjects.FLOOR):
            load.wait_for_upkeep(server)
    if subject.saves_first:
        load.save(servers[subject])
    # What that, and the row before, leave to the system takes a moment more.
    time.sleep(1)


def call(server, *words):
    with server.client(timeout=600.0) as client:
        client.call(*words)
