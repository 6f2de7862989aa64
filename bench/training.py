"""The load that a build with a profile is made by: some of each row of throughput, and what a server does beside."""

import contextlib

import load
import throughput
import tiered
from harness.authority import TestAuthority
from harness.server import Server
from harness.tls_server import TlsServer
from harness.waiting import wait_for
from subjects import SERVER_CORE

# Of a row's requests: what prepares the rows sends about as many, and without more of their own they would all count as
# seldom used. A build that counts is half as fast: the whole takes three minutes or so.
SHARE = 0.3

# For what is no row: keys of a server, values that do not fit into memory, and requests.
KEYS, COLD_KEYS, MEMORY_SHARE, REQUESTS = 200_000, 100_000, 0.3, 100_000

PINNED = ["taskset", "-c", SERVER_CORE]
SECONDS_MAX = 300


def run(program, note):
    """Has servers of this program do all of it. Each is ended by SIGTERM, which is when it writes what it counted."""
    command = f"{program} server"
    note("training: the rows of throughput")
    rows(command)
    note("training: a snapshot, a restart, a replica")
    followed(command)
    note("training: a tier")
    with_tier(command)


@contextlib.contextmanager
def ending(server):
    """Starts a server, and ends it in the way in which it writes what it counted."""
    with server:
        yield server
        stop(server)


def stop(server):
    server.stop()
    if server.process.returncode != 0:
        raise SystemExit(f"what a server counted is lost, it ended with {server.process.returncode}:\n{server.log_tail()}")


def rows(command):
    with TestAuthority() as authority:
        authority.issue("server")
        with ending(TlsServer(command, authority, "--tls-auth-clients", "no", wrapper=PINNED)) as server:
            load.fill_keys(server.port, load.KEYS)
            prepared = set()
            for cell in throughput.CELLS:
                if cell.before and cell.before not in prepared:
                    cell.before(server.port)
                    prepared.add(cell.before)
                load.measure(server, cell.scaled(SHARE))


def followed(command):
    """A primary that starts anew from a snapshot and a log, and then has a replica."""
    with ending(Server(command, wrapper=PINNED)) as primary:
        load.fill_keys(primary.port, KEYS)
        load.save(primary)
        changes(primary)
        stop(primary)
        primary.start(ready_seconds=SECONDS_MAX)
        data = primary.directory / "data"
        with ending(Server(command, ["--transaction-log", f"file:{data / 'log'}", "--snapshot-store",
                                     f"file:{data / 'snapshots'}"], wrapper=PINNED)) as replica:
            changes(primary)
            wait_for("a replica that has all keys", lambda: size(replica) == size(primary), SECONDS_MAX)


def with_tier(command):
    """Values that are written to a tier, read from there, changed there and deleted."""
    maxmemory = tiered.maxmemory_for(COLD_KEYS, MEMORY_SHARE)
    with ending(tiered.with_tier(maxmemory, tiered.tier_bytes_for(COLD_KEYS), command=command)) as server:
        tiered.fill(server, 0, COLD_KEYS)
        tiered.settle(server)
        changes(server, COLD_KEYS)
        load.save(server)
        load.generate(server.port, "--connections", "50", "--requests", str(COLD_KEYS // 100), "--ascending", "0", "DEL",
                      *["key:__rand_int__"] * 50)


def changes(server, keys=KEYS):
    """Reads and writes of these keys, a few of each kind."""
    load.generate(server.port, "--connections", "50", "--pipeline", "4", "--requests", str(REQUESTS), "--keyspace",
                  str(keys), "--value", str(load.VALUE_BYTES),
                  *load.mix({"get": 40, "set": 30, "incr": 5, "lpush": 5, "hset": 10, "sadd": 5, "zadd": 5}))


def size(server):
    with server.client() as client:
        return client.call("DBSIZE")
