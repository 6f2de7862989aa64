"""Throughput, latency and processor time, every subject in turn.

Turns are interleaved and each turn starts with another subject: this kind of machine drifts by
15–30 %, so only what was measured side by side can be compared.
"""

import load
import subjects
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
]

SUBJECTS = [subjects.KILN, subjects.REDIS, subjects.REDIS_ALWAYS, subjects.FLOOR]

# What does no work is the same for every command, so two stand for all.
FLOOR_TESTS = {"get", "set"}


def measured(subject, cell):
    return subject is not subjects.FLOOR or cell.test in FLOOR_TESTS


def run(options, note):
    """Returns {cell: {subject: [sample of each turn]}} as plain data."""
    found = {}
    for turn in range(options.turns):
        first = turn % len(SUBJECTS)
        for subject in SUBJECTS[first:] + SUBJECTS[:first]:
            with subject.server() as server:
                if subject is not subjects.FLOOR:
                    load.fill(server.port, load.strings(load.KEYS, load.VALUE_BYTES))
                for cell in CELLS:
                    if measured(subject, cell):
                        sized = Cell(cell.test, cell.connections, cell.pipeline,
                                     max(2000, int(cell.requests * options.scale)))
                        sample = load.measure(server, sized)
                        found.setdefault(cell.name, {}).setdefault(subject.name, []).append(
                            vars(sample))
                        note(f"turn {turn + 1}: {subject.name}: {cell.name}: "
                             f"{sample.requests_per_second:,.0f}/s, "
                             f"{sample.cpu_seconds_per_million:.2f} CPU-s per million")
    return found
