"""Makes load: a client that does as little as one can for speed (crates/world/examples/load), which fills servers
too, redis-benchmark beside a shard's logs and snapshots, and a loader of exact contents for memory and restarts."""

import csv
import dataclasses
import io
import json
import socket
import subprocess
import typing

from harness import paths
from harness.resp import Refusal, encode
from harness.waiting import wait_for
from subjects import LOAD_CORE, RELEASE

VALUE_BYTES = 100
KEYS = 1_000_000

# What redis-benchmark sends for its tests of these names.
COMMANDS = {
    "set": ("SET", "key:__rand_int__", "__value__"),
    "get": ("GET", "key:__rand_int__"),
    "incr": ("INCR", "counter:__rand_int__"),
    "lpush": ("LPUSH", "mylist", "__value__"),
    "hset": ("HSET", "myhash", "element:__rand_int__", "__value__"),
    "sadd": ("SADD", "myset", "element:__rand_int__"),
    "zadd": ("ZADD", "myzset", "__rand_int__", "element:__rand_int__"),
    "mset": ("MSET", *("key:__rand_int__", "__value__") * 10),
}


# How long a snapshot or a rewrite may take.
UPKEEP_SECONDS_MAX = 600


@dataclasses.dataclass(frozen=True)
class Cell:
    """One measurement: this command from so many connections, so many requests ahead.

    `test` is one of COMMANDS, or names `command`: words, or tests by their weight in a mix. `before` prepares a
    server, whose port it is given. `value` is the length of a value, in bytes; random numbers are below `keys`.
    `beside_logs`: servers that sync a log of their own are asked too. `upkeep`: what a server does now and then
    to keep its log short begins with it.
    """

    test: str
    connections: int
    pipeline: int
    requests: int
    command: tuple | dict = ()
    before: typing.Callable | None = None
    value: int = VALUE_BYTES
    keys: int = KEYS
    tls: bool = False
    beside_logs: bool = False
    upkeep: bool = False

    def scaled(self, scale):
        return dataclasses.replace(self, requests=max(2000, int(self.requests * scale)))

    @property
    def name(self):
        kind = f" of {self.value} B" * (self.value != VALUE_BYTES) + " over TLS" * self.tls
        kind += ", a snapshot beside" * self.upkeep
        return f"{self.test.upper()} {self.connections} × {self.pipeline}{kind}"

    @property
    def words(self):
        """What the load generator is told to send."""
        sent = mix(self.command) if isinstance(self.command, dict) else self.command or COMMANDS[self.test]
        return ["--connections", str(self.connections), "--pipeline", str(self.pipeline),
                "--value", str(self.value), "--keyspace", str(self.keys), *sent]


def mix(weights):
    """What the load generator is told to send: tests of COMMANDS, by their weight."""
    return [word for test, weight in weights.items()
            for word in ("--command", " ".join(COMMANDS[test]), "--weight", str(weight))]


@dataclasses.dataclass
class Sample:
    """What one run of one cell showed. CPU counts all of the server's threads. `load_idle` is the share of
    the time in which the load had nothing to do."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_seconds_per_million: float
    load_cpu_seconds_per_million: float
    load_idle: float


def measure(server, cell):
    """Runs the load once, on a server that has what the cell needs before."""
    before = server.cpu_seconds()
    port, speak = server.port, ()
    if cell.tls:
        port, speak = server.tls_port, ("--ca", str(server.authority.file("ca.crt")))
    seen = generate(port, *speak, "--requests", str(cell.requests), *cell.words)
    cpu = server.cpu_seconds() - before
    return Sample(seen["requests_per_second"], seen["p50_ms"], seen["p99_ms"],
                  cpu / cell.requests * 1e6, seen["cpu_seconds"] / cell.requests * 1e6, seen["idle"])


def generate(port, *arguments):
    """What the load says of one run."""
    line = ["taskset", "-c", LOAD_CORE, str(RELEASE / "examples" / "load"), "--port", str(port),
            "--keyspace", str(KEYS), *arguments]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=600)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(line)} failed: {ran.stderr[-1000:]}")
    return json.loads(ran.stdout)


def benchmark(port, *arguments, core=LOAD_CORE):
    """The last row of redis-benchmark's table."""
    line = ["taskset", "-c", core, paths.tool("redis-benchmark"), "-p", str(port), "--csv",
            "-d", str(VALUE_BYTES), "-r", str(KEYS), *arguments]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=600)
    rows = list(csv.DictReader(io.StringIO(
        "\n".join(text for text in ran.stdout.splitlines() if text.startswith('"')))))
    if ran.returncode != 0 or not rows:
        raise SystemExit(f"{' '.join(line)} failed: {ran.stdout[-500:]}{ran.stderr[-500:]}")
    return rows[-1]


def fill_keys(port, keys, first=0, value=VALUE_BYTES):
    """So many keys, from number `first` on, so that a GET of any of these numbers finds one."""
    ascending(port, keys, *COMMANDS["set"], first=first, value=value)


def ascending(port, requests, *command, first=0, value=VALUE_BYTES):
    """Sends a command for each number from `first` on."""
    generate(port, "--connections", "4", "--pipeline", "64", "--requests", str(requests), "--value", str(value),
             "--ascending", str(first), *command)


def fill(port, requests, batch=1000):
    """Sends an iterator of requests and waits for their one-line replies."""
    with socket.create_connection(("127.0.0.1", port), 120) as link:
        waiting, out = 0, []
        for parts in requests:
            out.append(encode(*parts))
            waiting += 1
            if waiting == batch:
                _exchange(link, out, waiting)
                waiting, out = 0, []
        _exchange(link, out, waiting)


def _exchange(link, out, replies):
    link.sendall(b"".join(out))
    while replies > 0:
        chunk = link.recv(1 << 16)
        if not chunk or chunk.startswith(b"-"):
            raise SystemExit(f"the server refused: {chunk[:200]!r}")
        replies -= chunk.count(b"\n")


def wait_for_upkeep(server):
    """Waits until a server neither takes a snapshot nor rewrites its AOF."""
    def is_idle():
        told = client.call("INFO", "persistence").decode()
        return not any(f"{name}_in_progress:1" in told for name in ("rdb_bgsave", "aof_rewrite"))

    with server.client(timeout=UPKEEP_SECONDS_MAX) as client:
        wait_for("a server that saves nothing", is_idle, UPKEEP_SECONDS_MAX)


def save(server):
    """Has a server take a snapshot, once it takes none by itself."""
    def is_saved():
        try:
            return client.call("SAVE") == b"OK"
        except Refusal as refusal:
            if "in progress" not in str(refusal):
                raise
            return False

    with server.client(timeout=UPKEEP_SECONDS_MAX) as client:
        wait_for("a snapshot", is_saved, UPKEEP_SECONDS_MAX)


def strings(count, value_bytes):
    """Keys of 16 bytes."""
    value = b"x" * value_bytes
    return ((b"SET", b"key:%012d" % n, value) for n in range(count))


def small_hashes(count):
    """Five fields each, 66 bytes of payload."""
    return ((b"HSET", b"key:%012d" % n, b"name", b"n%08d" % n, b"age", b"41", b"city", b"Utrecht",
             b"mail", b"m%08d" % n, b"seen", b"1700000000") for n in range(count))


def one_hash(count, together=100):
    """Names and values of 16 bytes."""
    return ((b"HSET", b"hash", *(part for n in range(first, first + together)
                                 for part in (b"field:%010d" % n, b"value:%010d" % (n * 7919))))
            for first in range(0, count, together))


def one_list(count, together=100):
    """Items of 16 bytes."""
    return ((b"RPUSH", b"list", *(b"item:%011d" % n for n in range(first, first + together)))
            for first in range(0, count, together))


def sorted_set(count):
    """One set; members of 16 bytes in an order that has nothing to do with their scores."""
    return ((b"ZADD", b"zset", b"%d" % (n * 7919 % count), b"member:%09d" % n)
            for n in range(count))


def integer_set(count, together=100):
    """One set of integers spread over 32 bits."""
    return ((b"SADD", b"set", *(b"%d" % ((n + i) * 2654435761 % (1 << 32))
                                for i in range(together))) for n in range(0, count, together))
