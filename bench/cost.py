"""What a SET costs over what its log costs: Kiln and a bare client of the same log, in turn.
Redis without a log takes Kiln's place for a third turn: what the load and a server reach there at all.

The bare client (`crates/services/examples/bare.rs`) appends records as large as Kiln's were, of such keys
and values, as many at a time, through the same client library. Both sit on the server's core. Servers
that keep the log have the load's core for themselves, whoever appends, as they have machines of their
own elsewhere: redis-benchmark then sits beside Kiln.
"""

import dataclasses
import json
import os
import subprocess
import time

import load
import subjects
from harness.info import info_fields
from harness.resp import Refusal
from harness.server import Server


@dataclasses.dataclass(frozen=True)
class Shape:
    """A load: what redis-benchmark is told, and how many SETs on each log, some two seconds of them."""

    arguments: tuple
    requests: dict
    # Whether several records may be under way, as far as the log takes them.
    is_windowed: bool = True
    value_bytes: int = load.VALUE_BYTES


SHAPES = {
    "serial": Shape(("-c", "1", "-P", "1"),
                    {"directory": 15_000, "jetstream": 800, "etcd": 800, "s3": 400}, is_windowed=False),
    "× 16": Shape(("-c", "100", "-P", "16"),
                  {"directory": 1_000_000, "jetstream": 200_000, "etcd": 50_000, "s3": 100_000}),
    "× 16, 1 KiB": Shape(("-c", "100", "-P", "16", "-d", "1024", "-r", "200000"),
                         {"directory": 300_000, "jetstream": 150_000, "etcd": 30_000, "s3": 100_000},
                         value_bytes=1024),
    # One SET is one record: half a MiB is what a turn of the loop gathers at most.
    "512 KiB": Shape(("-c", "16", "-P", "1", "-d", str(512 << 10), "-r", "200"),
                     {"directory": 800, "jetstream": 320, "etcd": 160, "s3": 240}, value_bytes=512 << 10),
}

# How long the bare client appends.
BARE_SECONDS = 2.0


def run(log, name, options, note):
    """Returns {shape: {"kiln": [sample of each turn], "bare": […], "redis": […]}}."""
    found = {shape: {"kiln": [], "bare": [], "redis": []} for shape in SHAPES}
    server = Server(subjects.KILN.command, wrapper=["taskset", "-c", subjects.SERVER_CORE])
    server.arguments = log.shard()(server.directory, 0)
    core = subjects.SERVER_CORE if log.is_service else subjects.LOAD_CORE
    with server, subjects.REDIS.server() as redis:
        wait_until_writable(server)
        for turn in range(options.turns):
            for shape_name, shape in SHAPES.items():
                settle(server)
                row = found[shape_name]
                # Whoever is second finds a disk that the first has used: they take turns in that too.
                for client in ("kiln", "bare") if turn % 2 == 0 else ("bare", "kiln"):
                    row[client].append(
                        through_kiln(server, shape, name, options, core) if client == "kiln" else
                        through_bare(log, shape, row["kiln"], options))
                row["redis"].append(through_redis(redis, shape, name, row["kiln"], options, core))
                note(f"turn {turn + 1}: {name}: {shape_name}: kiln {told(row['kiln'][-1])}; "
                     f"bare {told(row['bare'][-1])}; "
                     f"redis {row['redis'][-1]['mb_per_second']:.1f} MB/s in none")
    return found


def wait_until_writable(server):
    """A new log's first server leads once a lease has passed in which nobody else did."""
    deadline = time.monotonic() + 60
    with server.client() as client:
        while time.monotonic() < deadline:
            try:
                client.call("SET", "ready", "1")
                return
            except Refusal:
                time.sleep(0.05)  # it does not lead yet
    raise SystemExit(f"the server does not lead: {server.log_tail()}")


def settle(server):
    """Takes the snapshot that might otherwise come due, and lets the disk finish what it has begun."""
    with server.client() as client:
        client.call("FLUSHALL")
        client.call("SAVE")
    os.sync()


def through_kiln(server, shape, name, options, core):
    requests = requests_of(shape, name, options)
    records, written = log_figures(server)
    row = load.benchmark(server.port, "-t", "set", "-n", requests, *shape.arguments, core=core)
    records_after, written_after = log_figures(server)
    seconds = int(requests) / float(row["rps"])
    records, written = records_after - records, written_after - written
    return {"p50_ms": float(row["p50_latency_ms"]), "p99_ms": float(row["p99_latency_ms"]),
            "requests_per_second": float(row["rps"]), "record_bytes": written / records,
            "records_per_second": records / seconds, "mb_per_second": written / seconds / 1e6}


def through_redis(redis, shape, name, of_kiln, options, core):
    """SETs as fast as Kiln's core takes them with nothing to wait for, in Kiln's bytes for a SET."""
    with redis.client() as client:
        client.call("FLUSHALL")
    row = load.benchmark(redis.port, "-t", "set", "-n", requests_of(shape, name, options),
                         *shape.arguments, core=core)
    bytes_per_set = of_kiln[-1]["mb_per_second"] / of_kiln[-1]["requests_per_second"]
    return {"p50_ms": float(row["p50_latency_ms"]), "p99_ms": float(row["p99_latency_ms"]),
            "requests_per_second": float(row["rps"]),
            "mb_per_second": float(row["rps"]) * bytes_per_set}


def requests_of(shape, name, options):
    return str(max(50, int(shape.requests[name] * options.scale)))


def log_figures(server):
    """Records and bytes that the server has handed to its log."""
    with server.client() as client:
        shown = info_fields(client.call("INFO", "persistence"))
    return int(shown["kiln_log_records_appended"]), int(shown["kiln_log_bytes_appended"])


def through_bare(log, shape, of_kiln, options):
    """Appends records of the size that Kiln's had last."""
    record_bytes = round(of_kiln[-1]["record_bytes"])
    window = log.window if shape.is_windowed else 1
    line = ["taskset", "-c", subjects.SERVER_CORE, str(subjects.RELEASE / "examples" / "bare"),
            log.bare(), str(record_bytes), str(shape.value_bytes), str(window),
            str(max(0.3, BARE_SECONDS * options.scale))]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=120)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(line)} failed: {ran.stderr}")
    seen = json.loads(ran.stdout)
    rate = seen["records"] / seen["seconds"]
    return {"p50_ms": seen["p50_ms"], "p99_ms": seen["p99_ms"], "record_bytes": record_bytes,
            "window": window, "records_per_second": rate,
            "mb_per_second": rate * record_bytes / 1e6}


def told(sample):
    return (f"{sample['mb_per_second']:.1f} MB/s in records of {sample['record_bytes']:,.0f} B, "
            f"p50 {sample['p50_ms']:.2f} ms")
