"""How many MB/s of values one shard takes, with pipelining and with large values (the MemoryDB paper, section 6.1.2: up
to 100 MB/s).
"""

import dataclasses
import os
import time

import load
import paper_servers
from cost import log_figures
from paper_load import cores_idle, seconds_of
from turns import in_turn

SECONDS = 5

# No sample writes more, and no server holds more: a log on a disk, three times for JetStream, should have room.
WRITTEN_BYTES_MAX = 1 << 30
HELD_BYTES_MAX = 256 << 20


@dataclasses.dataclass(frozen=True)
class Shape:
    """SETs of so many bytes from so many connections, so many ahead on each."""

    value: int
    connections: int
    pipeline: int

    @property
    def name(self):
        size = f"{self.value >> 10} KiB" if self.value >= 1024 else f"{self.value} B"
        return f"{size}, {self.connections} × {self.pipeline}"


# Some 0.2 to 6 MiB are under way: of larger values, fewer. The last two are what the paper's rate is asked of.
SHAPES = (Shape(load.VALUE_BYTES, 100, 16), Shape(1 << 10, 100, 16), Shape(4 << 10, 100, 16), Shape(64 << 10, 20, 4))
GOALS = SHAPES[2:]


def run(options, note):
    """Returns {shape: {server: [sample of each turn]}}."""
    seconds = seconds_of(options, SECONDS)
    found = {}
    with paper_servers.started(options.servers) as servers:
        for turn in range(options.turns):
            for number, shape in enumerate(SHAPES):
                for name in in_turn(options.servers, turn, number):
                    seed = len(SHAPES) * turn + number + 1
                    sample = measured(servers, name, shape, seconds, seed)
                    found.setdefault(shape.name, {}).setdefault(name, []).append(sample)
                    note(f"turn {turn + 1}: {shape.name}: {name}: {sample['mb_per_second']:.1f} MB/s, p50 "
                         f"{sample['p50_ms']:.1f}, p99 {sample['p99_ms']:.1f} ms, load {sample['load_idle']:.0%} idle")
    return found


def measured(servers, name, shape, seconds, seed):
    """MB are 10⁶ bytes of values. Of a Kiln also what went into its log, keys and frames included."""
    settle(servers, name)
    server, is_kiln = servers[name], name in paper_servers.KILNS
    logged = log_figures(server)[1] if is_kiln else 0
    used = server.cpu_seconds()
    with cores_idle() as idle:
        seen = load.generate(
            server.port, "--connections", str(shape.connections), "--pipeline", str(shape.pipeline),
            "--keyspace", str(min(load.KEYS, HELD_BYTES_MAX // shape.value)), "--value", str(shape.value),
            "--seconds", str(seconds), "--requests", str(WRITTEN_BYTES_MAX // shape.value), "--seed", str(seed),
            *load.COMMANDS["set"])
    mb = seen["requests"] * shape.value / 1e6
    logged = (log_figures(server)[1] - logged) / 1e6 if is_kiln else 0.0
    return {"mb_per_second": mb / seen["seconds"], "log_mb_per_second": logged / seen["seconds"],
            "requests_per_second": seen["requests_per_second"], "p50_ms": seen["p50_ms"], "p99_ms": seen["p99_ms"],
            "cpu_seconds_per_million": (server.cpu_seconds() - used) / seen["requests"] * 1e6, **idle}


def settle(servers, name):
    """Nothing of an earlier row goes on, a server begins empty, and the disk has written what it was given."""
    for server in servers.values():
        load.wait_for_upkeep(server)
    with servers[name].client(timeout=load.UPKEEP_SECONDS_MAX) as client:
        client.call("FLUSHALL")
    paper_servers.settle(servers, name)
    os.sync()
    time.sleep(paper_servers.REST_SECONDS)
