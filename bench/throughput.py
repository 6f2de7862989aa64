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

# Rows of other sizes have keys of their own, and so few that seven servers hold them beside the rest.
SIZED_KEYS = 100_000


def sized(value, pipelined, single):
    """SET and GET of values of so many bytes, of keys that are all there: the first row fills them in."""
    key = f"size{value}"
    write, read = ("SET", f"{key}:__rand_int__", "__value__"), ("GET", f"{key}:__rand_int__")
    like = {"connections": 100, "value": value, "keys": SIZED_KEYS}
    return [Cell("set", pipeline=16, requests=pipelined, command=write,
                 before=load.Strings(key, SIZED_KEYS, value), **like),
            Cell("set", pipeline=1, requests=single, command=write, **like),
            Cell("get", pipeline=16, requests=pipelined, command=read, **like),
            Cell("get", pipeline=1, requests=single, command=read, **like)]


# A hundred members, elements or fields, and ten fields.
RANKED = (("ZADD", "ranked", *(word for at in range(100) for word in (str(at), f"member:{at}"))),)
ROWED = (("DEL", "rowed"), ("RPUSH", "rowed", *(f"element:{at}" for at in range(100))))
FIELDS = (("HSET", "fields", *(f"{word}{at}" for at in range(10) for word in ("field", "value"))),)
EVAL = ("EVAL", "return redis.call('SET',KEYS[1],ARGV[1])", "1", "key:__rand_int__", "x" * 100)
XADD = ("XADD", "mystream", "*", "field", "x" * 100)
# Fields of a hash that are all there.
HASH_FIELDS = 100_000
HGET = ("HGET", "found", "element:__rand_int__")
MIXED = {"GET key:__rand_int__": 80, "SET key:__rand_int__ __value__": 20}

# Requests of a row: enough for a second and a half of a server, and few enough that the whole of five turns takes
# about two hours. What is written in a row makes no snapshot due but in the one named so.
CELLS = [
    Cell("set", 100, 16, 1_000_000, beside_logs=True),
    Cell("get", 100, 16, 1_500_000),
    Cell("get", 100, 1, 150_000),
    Cell("set", 100, 1, 150_000, beside_logs=True),
    Cell("mixed", 100, 16, 1_000_000, MIXED),
    Cell("mixed", 100, 1, 150_000, MIXED),
    # From one connection, and from a thousand.
    Cell("set", 1, 1, 10_000, beside_logs=True),
    Cell("get", 1, 1, 20_000),
    Cell("set", 1, 16, 60_000),
    Cell("get", 1, 16, 200_000),
    Cell("set", 1000, 1, 150_000),
    Cell("get", 1000, 1, 150_000),
    Cell("set", 1000, 16, 1_000_000),
    Cell("get", 1000, 16, 1_500_000),
    Cell("incr", 100, 16, 750_000),
    Cell("incr", 100, 1, 150_000),
    # Of ten keys.
    Cell("mset", 100, 16, 120_000),
    Cell("mset", 100, 1, 60_000),
    Cell("lpush", 100, 16, 1_000_000),
    Cell("lpush", 100, 1, 150_000),
    Cell("hset", 100, 16, 750_000),
    Cell("hset", 100, 1, 150_000),
    Cell("hget", 100, 16, 1_000_000, HGET, load.Fields("found", HASH_FIELDS), keys=HASH_FIELDS),
    Cell("hget", 100, 1, 150_000, HGET, load.Fields("found", HASH_FIELDS), keys=HASH_FIELDS),
    Cell("sadd", 100, 16, 750_000),
    Cell("sadd", 100, 1, 150_000),
    Cell("zadd", 100, 16, 500_000),
    Cell("zadd", 100, 1, 150_000),
    Cell("hgetall", 100, 16, 750_000, ("HGETALL", "fields"), FIELDS),
    Cell("hgetall", 100, 1, 150_000, ("HGETALL", "fields"), FIELDS),
    Cell("lrange", 100, 16, 250_000, ("LRANGE", "rowed", "0", "99"), ROWED),
    Cell("lrange", 100, 1, 100_000, ("LRANGE", "rowed", "0", "99"), ROWED),
    Cell("zrange", 100, 16, 250_000, ("ZRANGE", "ranked", "0", "99"), RANKED),
    Cell("zrange", 100, 1, 100_000, ("ZRANGE", "ranked", "0", "99"), RANKED),
    # From the list that LPUSH has filled.
    Cell("brpop", 100, 16, 1_000_000, ("BRPOP", "mylist", "0")),
    Cell("eval", 100, 16, 250_000, EVAL),
    Cell("eval", 100, 1, 100_000, EVAL),
    Cell("xadd", 100, 16, 500_000, XADD),
    Cell("xadd", 100, 1, 150_000, XADD),
    # From the stream that XADD has filled, each entry to be acknowledged.
    Cell("xreadgroup", 100, 16, 400_000,
         ("XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "mystream", ">"),
         (("XGROUP", "CREATE", "mystream", "group", "0"),)),
    # With a snapshot, or a rewrite of the AOF, for half a gigabyte of log: Kiln takes one for each.
    Cell("set", 100, 16, 4_000_000, beside_logs=True, upkeep=True),
    # TLS 1.3, with a key of P-256.
    Cell("get", 100, 1, 150_000, tls=True),
    Cell("get", 100, 16, 1_000_000, tls=True),
    Cell("set", 100, 16, 750_000, tls=True),
    Cell("set", 100, 16, 250_000, value=1000, tls=True),
    *sized(16, 1_000_000, 150_000),
    *sized(500, 500_000, 150_000),
    *sized(4096, 100_000, 60_000),
]

# What does no work is the same for every command, so two stand for all.
FLOOR_TESTS = {"get", "set"}
FLOORS = {cell.value: subjects.floor(cell.value) for cell in CELLS if cell.test in FLOOR_TESTS and not cell.tls}

SUBJECTS = [subjects.KILN, *subjects.WITHOUT_LOG, *subjects.WITH_LOG, subjects.FLOOR]


def asked(cell):
    """The subjects that a row is for."""
    found = [subjects.KILN, *subjects.WITHOUT_LOG]
    if cell.beside_logs:
        found += subjects.WITH_LOG
    if cell.test in FLOOR_TESTS and not (cell.tls or cell.upkeep):
        found.append(FLOORS[cell.value])
    return found


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
    """Each cell with what each subject showed in it, in an order that changes: whatever one leaves behind
    falls on each of the others."""
    with contextlib.ExitStack() as stack:
        servers = start(stack, [*subjects.present(SUBJECTS[:-1]), *FLOORS.values()], authority)
        for number, cell in enumerate(CELLS):
            there = [subject for subject in asked(cell) if subject in servers]
            for subject in rotated(there, turn, number):
                load.fill(servers[subject].port, cell.before)
                prepare(servers, subject)
                if cell.upkeep and subject.upkeep:
                    call(servers[subject], *subject.upkeep)
                yield cell, subject, load.measure(servers[subject], cell.scaled(scale))


def start(stack, chosen, authority=None):
    """{subject: its server}, each with the same keys."""
    servers = {}
    for subject in chosen:
        server = servers[subject] = stack.enter_context(subject.server(authority))
        if subject.name != subjects.FLOOR_NAME:
            load.generate(server.port, "--connections", "4", "--pipeline", "64", "--ascending", "0",
                          "--requests", str(load.KEYS), "--value", str(load.VALUE_BYTES), *load.COMMANDS["set"])
    return servers


def rotated(chosen, turn, number):
    """Another begins each time, and in every other turn the order is reversed."""
    first, step = turn + number, 1 if turn % 2 == 0 else -1
    return [chosen[(first + step * place) % len(chosen)] for place in range(len(chosen))]


def prepare(servers, subject):
    """Has a server shorten its log before a row, once none does anything of the kind: it would fall into
    any row otherwise, and cost that row a fifth."""
    for other, server in servers.items():
        if other.name != subjects.FLOOR_NAME:
            load.wait_for_upkeep(server)
    if subject.saves_first:
        load.save(servers[subject])
    # What that, and the row before, leave to the system takes a moment more.
    time.sleep(1)


def call(server, *words):
    with server.client(timeout=600.0) as client:
        client.call(*words)
