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
from turns import in_turn

# Rows of other sizes have keys of their own, and so few that seven servers hold them beside the rest.
SIZED_KEYS = 100_000


def sized(value, pipelined, single):
    """SET and GET of values of so many bytes, of keys that are all there."""
    key = f"size{value}:__rand_int__"
    write, read = ("SET", key, "__value__"), ("GET", key)

    def before(port):
        load.ascending(port, SIZED_KEYS, *write, value=value)

    like = {"connections": 100, "value": value, "keys": SIZED_KEYS, "before": before}
    return [Cell("set", pipeline=16, requests=pipelined, command=write, **like),
            Cell("set", pipeline=1, requests=single, command=write, **like),
            Cell("get", pipeline=16, requests=pipelined, command=read, **like),
            Cell("get", pipeline=1, requests=single, command=read, **like)]


def sends(*requests):
    """What prepares a row with these requests."""
    return lambda port: load.fill(port, requests)


# A sorted set of a hundred members, a list of a hundred elements, a hash of ten fields.
RANKED = sends(("ZADD", "ranked", *(word for at in range(100) for word in (str(at), f"member:{at}"))))
ROWED = sends(("DEL", "rowed"), ("RPUSH", "rowed", *(f"element:{at}" for at in range(100))))
FIELDS = sends(("HSET", "fields", *(f"{word}{at}" for at in range(10) for word in ("field", "value"))))
EVAL = ("EVAL", "return redis.call('SET',KEYS[1],ARGV[1])", "1", "key:__rand_int__", "x" * 100)
XADD = ("XADD", "mystream", "*", "field", "x" * 100)
MIXED = {"get": 80, "set": 20}

HASH_FIELDS = 100_000
HGET = ("HGET", "found", "element:__rand_int__")


def hash_there(port):
    """A hash that has each field which is asked for."""
    load.ascending(port, HASH_FIELDS, "HSET", "found", "element:__rand_int__", "__value__")


POPPED = 1_000_000


def list_there(port):
    """A list that lasts for all of its row."""
    load.ascending(port, POPPED, *load.COMMANDS["lpush"])


READ_ENTRIES = 400_000


def stream_there(port):
    """A stream that lasts for all of its row, and nobody has read."""
    load.fill(port, [("DEL", "mystream")])
    load.ascending(port, READ_ENTRIES, *XADD)
    load.fill(port, [("XGROUP", "CREATE", "mystream", "group", "0")])


# Requests of a row: enough for a second and a half of a server, and few enough that the whole of five turns takes
# about two hours. What is written in a row makes no snapshot due but in the one named so. Each row stands alone: what
# it needs beside the keys that all servers have, its `before` makes.
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
    Cell("hget", 100, 16, 1_000_000, HGET, hash_there, keys=HASH_FIELDS),
    Cell("hget", 100, 1, 150_000, HGET, hash_there, keys=HASH_FIELDS),
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
    Cell("brpop", 100, 16, POPPED, ("BRPOP", "mylist", "0"), list_there),
    Cell("eval", 100, 16, 250_000, EVAL),
    Cell("eval", 100, 1, 100_000, EVAL),
    Cell("xadd", 100, 16, 500_000, XADD),
    Cell("xadd", 100, 1, 150_000, XADD),
    # Each entry is to be acknowledged.
    Cell("xreadgroup", 100, 16, READ_ENTRIES,
         ("XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "mystream", ">"), stream_there),
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

# What the profile brings shows in these.
BOTH_BUILDS = {"SET 100 × 16", "SET 100 × 1", "GET 100 × 16", "GET 100 × 1", "INCR 100 × 16", "ZADD 100 × 16"}

SERVERS = [subjects.PROFILED, subjects.PLAIN, *subjects.WITHOUT_LOG, *subjects.WITH_LOG]
SUBJECTS = [*SERVERS, subjects.FLOOR]


def asked(cell):
    """The subjects that a row is for."""
    found = [subjects.PROFILED, *subjects.WITHOUT_LOG]
    if cell.name in BOTH_BUILDS:
        found.append(subjects.PLAIN)
    if cell.beside_logs:
        found += subjects.WITH_LOG
    if cell.test in FLOOR_TESTS and not (cell.tls or cell.upkeep):
        found.append(FLOORS[cell.value])
    return found


def chosen(words):
    """The cells whose name is one of these words, or contains one that is no name; all of them without any."""
    names = {cell.name for cell in CELLS}
    cells = [cell for cell in CELLS if not words or cell.name in words
             or any(word in cell.name for word in words if word not in names)]
    if not cells:
        raise SystemExit(f"no row's name contains {' or '.join(words)}; there are:\n"
                         + "\n".join(cell.name for cell in CELLS))
    return cells


def run(options, note):
    """Returns {cell: {subject: [sample of each turn]}} as plain data, of the rows that are chosen. Samples of one cell
    and turn were taken one after another."""
    found, cells = {}, chosen(options.rows)
    with TestAuthority() as authority:
        authority.issue("server")
        for turn in range(options.turns):
            for cell, subject, sample in one_turn(turn, cells, authority, options.scale):
                found.setdefault(cell.name, {}).setdefault(subject.name, []).append(vars(sample))
                note(f"turn {turn + 1}: {cell.name}: {subject.name}: "
                     f"{sample.requests_per_second:,.0f}/s, "
                     f"{sample.cpu_seconds_per_million:.2f} CPU-s per million, "
                     f"load {sample.load_idle:.0%} idle")
    return found


def one_turn(turn, cells, authority, scale):
    """Each cell with what each subject showed in it."""
    wanted = [subject for cell in cells for subject in asked(cell)]
    there = [subject for subject in [*subjects.present(SERVERS), *FLOORS.values()] if subject in wanted]
    with contextlib.ExitStack() as stack:
        servers = start(stack, there, authority)
        prepared = set()
        for number, cell in enumerate(cells):
            for subject in in_turn([subject for subject in asked(cell) if subject in servers], turn, number):
                if cell.before and (cell.before, subject) not in prepared:
                    cell.before(servers[subject].port)
                    prepared.add((cell.before, subject))
                prepare(servers, subject)
                if cell.upkeep and subject.upkeep:
                    call(servers[subject], *subject.upkeep)
                yield cell, subject, load.measure(servers[subject], cell.scaled(scale))


def merged(kept, found):
    """What was recorded, with these rows in place of those of the same name, in the order of CELLS."""
    places = {cell.name: place for place, cell in enumerate(CELLS)}
    both = {**kept, **found}
    return {name: both[name] for name in sorted(both, key=lambda name: places.get(name, len(places)))}


def start(stack, wanted, authority=None):
    """{subject: its server}, each with the same keys."""
    servers = {}
    for subject in wanted:
        server = servers[subject] = stack.enter_context(subject.server(authority))
        if subject.name != subjects.FLOOR_NAME:
            load.fill_keys(server.port, load.KEYS)
    return servers


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
