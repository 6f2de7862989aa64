"""Turns what `bench/shard` measured into Markdown, with what was asked for beside what was found."""

import statistics

import following
from steady import Steady
from tables import table

# What a SET may take beyond its log's own append, with one connection.
SERIAL_MS_MAX = 0.3


def middle(samples, field):
    return statistics.median(sample[field] for sample in samples)


def shown(values, digits=2, unit=""):
    """A median, and the extremes."""
    text = f"{statistics.median(values):.{digits}f}{unit}"
    if len(values) > 1:
        text += f" ({min(values):.{digits}f} – {max(values):.{digits}f})"
    return text


def ratios(row, field="mb_per_second"):
    """Kiln over the bare client, turn by turn."""
    return [kiln[field] / bare[field] for kiln, bare in zip(row["kiln"], row["bare"])]


def extra_ms(row):
    """What Kiln adds to a serial append, turn by turn."""
    return [kiln["p50_ms"] - bare["p50_ms"] for kiln, bare in zip(row["kiln"], row["bare"])]


def goals(results):
    found = []

    def add(text, asked, got, is_met):
        found.append((text, asked, got, "yes" if is_met else "**no**"))

    for log, shapes in results.get("cost", {}).items():
        more = extra_ms(shapes["serial"])
        add(f"{log}: SET p50 with 1 connection over the log's own", f"+ {SERIAL_MS_MAX} ms",
            shown(more, 2, " ms"), statistics.median(more) <= SERIAL_MS_MAX)
    jetstream = results.get("cost", {}).get("jetstream", {})
    for shape, least in (("× 16", 0.7), ("× 16, 1 KiB", 0.7), ("512 KiB", 0.9)):
        if shape in jetstream:
            share = ratios(jetstream[shape])
            add(f"jetstream: MB/s of SET {shape} against a bare client", f"≥ {least:.0%}",
                shown([100 * value for value in share], 0, " %"),
                statistics.median(share) >= least)
    for log, samples in results.get("apply", {}).items():
        share = [sample["ratio"] for sample in samples]
        add(f"{log}: CPU of a replica over its primary's, SET × 16", "≤ 0.33", shown(share),
            statistics.median(share) <= 1 / 3)
    for log, row in results.get("rate", {}).items():
        without, among = row["0"], row[str(following.REPLICAS)]
        more = statistics.median(among) / statistics.median(without) - 1
        is_within = min(without) <= statistics.median(among) <= max(without)
        add(f"{log}: the primary's CPU with {following.REPLICAS} replicas over that with none",
            "≤ + 5 %, or within the spread", f"{more:+.1%}", more <= 0.05 or is_within)
    for log, row in results.get("failover", {}).items():
        most = 1.5 * row["lease_ms"]
        killed = row["kill -9"]
        add(f"{log}: without writes after kill -9, p50", f"≤ {most:.0f} ms (1.5 × lease)",
            shown(killed, 0, " ms"), statistics.median(killed) <= most)
        handed = row["SIGTERM"]
        add(f"{log}: without writes at a hand-over, worst of {len(handed)}", "≤ 200 ms",
            f"{max(handed):.0f} ms (p50 {statistics.median(handed):.0f})", max(handed) <= 200)
    return table(["goal", "asked", "found", "met"], found)


def cost_table(found):
    rows = []
    for log, shapes in found.items():
        for shape, row in shapes.items():
            share = [100 * value for value in ratios(row)]
            rows.append([
                f"{log}: {shape}", f"{middle(row['kiln'], 'record_bytes'):,.0f}",
                str(row["bare"][0]["window"]),
                *(shown([sample[field] for sample in row[client]], digits)
                  for field, digits in (("p50_ms", 2), ("mb_per_second", 1))
                  for client in ("kiln", "bare")), shown(share, 0, " %"),
                shown([sample["mb_per_second"] for sample in row["redis"]], 1)])
    return table(["log: load", "bytes of a record", "under way", "SET p50, ms", "append p50, ms",
                  "kiln MB/s", "bare MB/s", "kiln of bare", "redis without a log"], rows)


def apply_table(found):
    rows = [[log, *(shown([sample[field] for sample in samples], digits) for field, digits in
                    (("primary", 2), ("replica", 2), ("ratio", 2), ("requests_per_second", 0),
                     ("behind_ms", 0)))] for log, samples in found.items()]
    return table(["log", "primary, CPU-s per million", "replica", "ratio", "SETs/s",
                  "ms until the replica has all"], rows)


def rate_table(found):
    rows = [[log, shown(row["0"], 3), shown(row[str(following.REPLICAS)], 3)]
            for log, row in found.items()]
    return table(["log", "no replica, CPU-s per million", f"{following.REPLICAS} replicas"], rows)


def failover_table(found):
    rows = [[log, str(row["lease_ms"]), str(len(row["kill -9"])), shown(row["kill -9"], 0),
             str(len(row["SIGTERM"])), shown(row["SIGTERM"], 0)] for log, row in found.items()]
    return table(["log", "lease, ms", "kills", "ms without writes", "hand-overs",
                  "ms without writes"], rows)


INTRODUCTION = """# A shard over its log

{machine}

`make bench-shard`, {turns} interleaved turns; medians, and the extremes in brackets. Everything runs on
one machine and one disk: the primary on core 0, replicas and whatever keeps the log on core 1. So three NATS
servers share one core, and one disk syncs for all three; on machines of their own they would be faster, and
a ratio is what can be carried over.
"""

COST = """## What a SET costs over its log

The bare client appends records as large as Kiln's were in the same turn, with as many under way, through
the same client library, from the same core (`crates/services/examples/bare.rs`). *serial*: 1 connection.
*× 16*: 100 connections with 16 requests ahead, values of 100 bytes unless the name says otherwise.
*512 KiB*: values of that size from 16 connections.
A SET's time is redis-benchmark's, so it includes the way over loopback.
Servers that keep the log have core 1 for themselves in both cases; redis-benchmark shares core 0 with Kiln,
and where the log is a directory it has core 1.

*redis without a log* is stock Redis in Kiln's place, under the same load from the same core, with no
persistence and nothing to wait for: its SETs, in the bytes that Kiln's take in a record. That is what such a
load and a server together reach on the processor that they have here. Where it is less than the goal's share
of the bare client, the goal asks for more than a server without a log does: with values of 100 bytes it is
the processor that is short, not the log. No pacing of records, and no smaller or larger window, has changed
that by more than a sixth.
"""

APPLY = """## What a replica costs

SET × 16 from 100 connections on a million keys, values of 100 bytes. In each half of a turn one of the
two has core 0 for itself, and its processor time is counted; the other shares core 1 with load and log. A
replica that is behind in the end catches up, which is counted as well. SETs/s and what a replica is behind
are those of the primary's half.
"""

RATE = """## What replicas cost their primary

{rate:,.0f} SETs a second are offered, whatever the server does. Replicas are started and killed between
turns.
"""

FAILOVER = """## How long nobody can write

A shard of three on both cores, {rate:,.0f} SETs a second offered, and two clients that write one after the
other: the time from the last acknowledgement of the old primary to the first of the new one.
"""


def page(results):
    parts = [INTRODUCTION.format(**results), "## Goals\n\n" + goals(results)]
    for name, text, make in (("cost", COST, cost_table), ("apply", APPLY, apply_table),
                             ("rate", RATE, rate_table), ("failover", FAILOVER, failover_table)):
        if name in results:
            parts.append(text.format(rate=Steady.rate) + "\n" + make(results[name])
                         + (f"\n![{name}](shard-{name}.png)\n" if name != "rate" else ""))
    return "\n".join(parts)
