"""Latency by offered rate: what a server shows that is not driven as hard as it can be.

In a closed loop a server that is twice as fast is asked twice as often, and its latency says how many
connections there are. Here requests are due at fixed times, at a share of what the same server did in a closed
loop a moment before.
"""

import contextlib

import load
import subjects
import throughput
from load import Cell
from turns import in_turn

# Per cent of the closed loop's rate.
SHARES = (25, 50, 75, 90)
SECONDS = 2.0
TURNS_MAX = 3

CELLS = [Cell("get", 100, 1, 150_000), Cell("set", 100, 1, 150_000, beside_logs=True)]


def run(options, note):
    """Returns {cell: {subject: [{"closed": the closed loop's rate, each share of it: sample} of each turn]}}."""
    found = {}
    for turn in range(min(TURNS_MAX, options.turns)):
        with contextlib.ExitStack() as stack:
            servers = throughput.start(stack, subjects.present(throughput.SERVERS))
            for number, cell in enumerate(CELLS):
                there = [subject for subject in throughput.asked(cell) if subject in servers]
                for subject in in_turn(there, turn, number):
                    throughput.prepare(servers, subject)
                    seen = one(servers[subject], cell.scaled(options.scale), options.scale)
                    found.setdefault(cell.name, {}).setdefault(subject.name, []).append(seen)
                    note(f"turn {turn + 1}: {cell.name}: {subject.name}: {seen['closed']:,.0f}/s; p99 "
                         + ", ".join(f"{seen[str(part)]['p99_ms']:.2f} ms at {part} %" for part in SHARES))
    return found


def one(server, cell, scale):
    """The names of shares are text, as JSON has them."""
    closed = load.measure(server, cell).requests_per_second
    seconds = max(0.2, SECONDS * scale)
    return {"closed": closed, **{str(part): offered(server, cell, closed * part / 100, seconds) for part in SHARES}}


def offered(server, cell, rate, seconds):
    """A sample of requests that fall due at this rate. `load_idle` is the share of the time in which the load had nothing
    to do."""
    rate = max(1, int(rate))
    seen = load.generate(server.port, "--rate", str(rate), "--seconds", str(seconds), *cell.words)
    return {"rate": rate, "load_idle": seen["idle"],
            **{field: seen[field] for field in ("requests_per_second", "p50_ms", "p99_ms")}}
