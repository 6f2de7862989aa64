"""Turns what `slow_memory.py` measured into Markdown."""

import statistics

import slow_memory
from tables import shown, table

PART = """## A second kind of memory

memKeyDB's measurement: {keys:,} keys with values of {value_bytes} bytes, LPUSH to one list, SET and GET of random keys,
from 100 connections. *{dram}* is `memory-alloc-policy only-dram`; the others have `ratio` and `dram-pmem-ratio 1 8`,
with `hashtable-on-dram` yes and no. The slow node is node 0, so values go through everything that slow memory needs, at
the speed of ordinary memory. *{late}*: the build `--features slow-touch` of all three, in which the first touch of a
block in slow memory takes 200 ns more, or what is left of them if it was prefetched. *{alone}*: the same as if nothing
ever was, which no processor does.

{parts}"""

THROUGHPUT_MIN = 0.9
LATENCY_MAX = 1.2

# What counts as a goal. Without prefetch it is a limit of what latency could cost.
GOALS_OF = (slow_memory.PLAIN, slow_memory.LATE)


def goals(all_goals, found):
    """Adds a row for each latency, policy and number: the worst of the cells."""
    for latency in GOALS_OF:
        for policy in (slow_memory.TABLE_IN_DRAM, slow_memory.TABLE_SLOW):
            rows = found["rows"][latency]
            what = f"second memory, {latency}: {policy}:"
            cell, values = worst(rows, policy, "requests_per_second", min)
            all_goals.at_least(f"{what} throughput of {cell}", values, THROUGHPUT_MIN)
            for field in ("p50_ms", "p99_ms"):
                cell, values = worst(rows, policy, field, max)
                all_goals.at_most(f"{what} {field.removesuffix('_ms')} of {cell}", values, LATENCY_MAX)


def worst(rows, policy, field, choose):
    """The cell that is farthest off, and its ratios to all in DRAM."""
    cells = {cell: against_dram(samples, policy, field) for cell, samples in rows.items()}
    cell = choose(cells, key=lambda name: statistics.median(cells[name]))
    return cell, cells[cell]


def against_dram(samples, policy, field):
    """One ratio for each round."""
    return [ours[field] / theirs[field]
            for ours, theirs in zip(samples[policy], samples[slow_memory.DRAM], strict=True)]


def part(found):
    return PART.format(keys=found["keys"], value_bytes=slow_memory.VALUE_BYTES, dram=slow_memory.DRAM,
                       late=slow_memory.LATE, alone=slow_memory.ALONE,
                       parts="\n".join(of_latency(found, latency) for latency in found["rows"]))


def of_latency(found, latency):
    lines = []
    for cell, samples in found["rows"][latency].items():
        for policy in slow_memory.POLICIES:
            ours = samples[policy]
            row = [cell, policy, shown([sample["requests_per_second"] / 1000 for sample in ours], "")]
            row += [shown(against_dram(samples, policy, field), " ×")
                    for field in ("requests_per_second", "p50_ms", "p99_ms")]
            row += [" · ".join(f"{statistics.median(sample[field] for sample in ours):.2f}"
                               for field in ("p50_ms", "p99_ms")),
                    f"{statistics.median(sample['cpu_seconds_per_million'] for sample in ours):.2f}",
                    f"{statistics.median(sample['idle'] for sample in ours):.0%}"]
            lines.append(row)
    shares = ", ".join(f"{policy} {statistics.median(of):.1%}" for policy, of in found["shares"][latency].items())
    return f"### Slow memory {latency}\n\nBytes that were slow after the load: {shares}.\n\n" + table(
        ["connections × pipeline", "", "thousand/s", "against all in DRAM", "p50 against it", "p99 against it",
         "p50 · p99, ms", "CPU-s per million", "load idle"], lines)
