"""Turns what was measured into Markdown: every table says how often and how far it spread."""

import operator
import statistics

import throughput


def median(samples, field):
    return statistics.median(sample[field] for sample in samples)


def spread(samples, field):
    """Half of what lies between the extremes, as a share of the median."""
    values = [sample[field] for sample in samples]
    middle = statistics.median(values)
    return (max(values) - min(values)) / 2 / middle if middle else 0.0


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


# Stands below the table's title.
IDLE_MEANS = ("A row in which the load's core is full says nothing about who is faster: there the server waits "
              "for the load, and its CPU-seconds per million count. Median, and range.")


def throughput_tables(found):
    names = [subject.name for subject in throughput.SUBJECTS]
    fields = [("requests_per_second", "Thousand requests a second", lambda v: f"{v / 1000:.0f}"),
              ("cpu_seconds_per_million", "Server CPU-seconds per million", lambda v: f"{v:.2f}"),
              ("p50_ms", "p50, ms", lambda v: f"{v:.2f}"), ("p99_ms", "p99, ms", lambda v: f"{v:.2f}")]
    parts = []
    for field, title, show in fields:
        rows = []
        for cell, samples in found.items():
            rows.append([cell] + [
                f"{show(median(samples[name], field))} ± {spread(samples[name], field):.0%}"
                if name in samples else "–" for name in names])
        parts.append(f"### {title}\n\n" + table(["connections × pipeline", *names], rows))
    return "\n".join(parts) + "\n" + load_table(found, names)


def load_table(found, names):
    """How far the load was from being the limit. Results of an older load do not tell."""
    rows = []
    for cell, samples in found.items():
        shares = {name: [sample["load_idle"] for sample in samples.get(name, ()) if "load_idle" in sample]
                  for name in names}
        if any(shares.values()):
            spent = [sample["load_cpu_seconds_per_million"] for name in names
                     for sample in samples.get(name, ()) if "load_cpu_seconds_per_million" in sample]
            rows.append([cell, *map(share, shares.values()), f"{statistics.median(spent):.2f}"])
    if not rows:
        return ""
    return (f"### Load: share of its core left idle\n\n{IDLE_MEANS}\n\n"
            + table(["connections × pipeline", *names, "load's CPU-seconds per million"], rows))


def share(of):
    return f"{statistics.median(of):.0%} ({min(of):.0%} – {max(of):.0%})" if of else "–"


def memory_table(found):
    rows = [[content, f"{row['items']:,}", str(row["payload"]), f"{row['kiln']:.0f}",
             f"{row['redis']:.0f}"] for content, row in found.items()]
    return table(["bytes an item", "items", "payload", "kiln", "redis"], rows)


def restart_table(found):
    rows = [[name, f"{statistics.median(rates):,.0f}", f"{min(rates):,.0f} – {max(rates):,.0f}"]
            for name, rates in found.items() if name != "keys"]
    return table(["start", f"keys/s of {found['keys']:,}", "range"], rows)


# Each way, and what it is held against.
RESTORES = (("kiln parts", "redis RDB", 3.0), ("kiln log", "redis AOF", 1.5))


def restore_table(found):
    ways = [way for pair in RESTORES for way in pair[:2]]
    rows = [[content, f"{rates['keys']:,}",
             *(f"{statistics.median(rates[way]) / 1e6:.2f} ({min(rates[way]) / 1e6:.2f} – "
               f"{max(rates[way]) / 1e6:.2f})" for way in ways)] for content, rates in found.items()]
    return table(["million keys/s", "keys", *ways], rows)


def snapshot_table(found):
    rows = []
    for name, runs in found.items():
        if name != "keys":
            for number, run in enumerate(runs, 1):
                rows.append([f"{name}, run {number}", f"{statistics.median(run['before_ms']):.1f}",
                             f"{statistics.median(run['during_ms']):.1f}",
                             f"{max(run['during_ms']):.1f}", f"{run['growth']:.1%}"])
    return table([f"{found['keys']:,} keys of 500 B", "slowest of a second, median before, ms",
                  "during", "worst second during", "memory"], rows)


def paired(found, cell, peer, relate, field="requests_per_second"):
    """Kiln beside a peer in each turn. Whatever slowed a turn slowed both, so the turns' ratios agree far
    better than the turns do."""
    ours, theirs = (found.get(cell, {}).get(name, ()) for name in ("kiln", peer))
    return [relate(one[field], other[field]) for one, other in zip(ours, theirs, strict=True)]


def shown(values, unit):
    """A median, and the extremes."""
    return f"{statistics.median(values):.2f}{unit} ({min(values):.2f} – {max(values):.2f})"


def ratios(results):
    """The goals that speak of ratios, each with what was found: the median of the turns' ratios."""
    goals = []
    speed = results.get("throughput", {})

    def at_least(text, found, goal):
        if found:
            is_met = statistics.median(found) >= goal
            goals.append((text, f"≥ {goal:.1f} ×", shown(found, " ×"), is_met))

    def faster(text, cell, peer, goal):
        at_least(text, paired(speed, cell, peer, operator.truediv), goal)

    over = paired(speed, "GET 100 × 1", "floor", operator.sub, "cpu_seconds_per_million")
    if over:
        goals.append(("GET 100 × 1: CPU-seconds per million over the floor", "≤ 1.0",
                      shown(over, ""), statistics.median(over) <= 1.0))
    faster("GET × 16 against redis", "GET 100 × 16", "redis", 2.0)
    faster("durable SET × 16 against redis without AOF", "SET 100 × 16", "redis", 1.2)
    faster("durable SET × 16 against redis always", "SET 100 × 16", "redis always", 2.0)
    faster("SET with 1 connection against redis always", "SET 1 × 1", "redis always", 1.2)
    faster("durable SET × 16 with a snapshot beside against redis without AOF",
           "SET 100 × 16, a snapshot beside", "redis", 1.0)
    for test in ("INCR", "LPUSH", "HSET", "ZADD", "HGETALL", "ZRANGE", "BRPOP", "EVAL", "XADD", "XREADGROUP"):
        faster(f"{test} × 16 against redis without AOF", f"{test} 100 × 16", "redis", 1.0)
    for cell in ("GET 100 × 1 over TLS", "GET 100 × 16 over TLS", "SET 100 × 16 over TLS",
                 "SET 100 × 16 of 1000 B over TLS"):
        faster(f"{cell.replace(' 100 ×', ' ×')} against redis without AOF", cell, "redis", 1.0)
    for content, most in (("16 B key + 100 B string", 150), ("set of integers, a member", 20),
                          ("sorted set, a member", 70)):
        row = results.get("memory", {}).get(content)
        if row:
            goals.append((f"bytes: {content}", f"≤ {most}", f"{row['kiln']:.0f}", row["kiln"] <= most))
    start = results.get("restart", {})
    if "kiln" in start and "redis" in start:
        at_least("restart against redis",
                 [ours / theirs for ours, theirs in zip(start["kiln"], start["redis"], strict=True)], 2.0)
    for content, rates in results.get("restore", {}).items():
        for ours, theirs, goal in RESTORES:
            at_least(f"{ours} against {theirs}: {content}",
                     [one / other for one, other in zip(rates[ours], rates[theirs], strict=True)], goal)
    for number, run in enumerate(results.get("snapshot", {}).get("kiln", []), 1):
        ratio = statistics.median(run["during_ms"]) / statistics.median(run["before_ms"])
        goals.append((f"snapshot {number}: slowest answers, during over before", "≤ 2.0 ×",
                      f"{ratio:.2f} ×", ratio <= 2.0))
        goals.append((f"snapshot {number}: worst second, ms", "≤ 50", f"{max(run['during_ms']):.1f}",
                      max(run["during_ms"]) <= 50))
        goals.append((f"snapshot {number}: memory", "≤ 5 %", f"{run['growth']:.1%}",
                      run["growth"] <= 0.05))
    return table(["goal", "asked", "found", "met"],
                 [[text, asked, got, "yes" if met else "**no**"] for text, asked, got, met in goals])


def earlier(results):
    """What was not measured together with the rest, and on what."""
    measured = results.get("measured", {})
    names = {}
    for name in ("throughput", "memory", "restart", "restore", "snapshot"):
        machine = measured.get(name, "an unknown machine").rstrip(".")
        if name in results and machine != results["machine"].rstrip("."):
            names.setdefault(machine, []).append(name)
    known = "; ".join(f"{', '.join(which)} on {machine}" for machine, which in names.items())
    return f"Measured apart from the rest: {known}.\n" if known else ""


def turns(results):
    """How often each thing was measured."""
    samples = {"throughput": next(iter(results.get("throughput", {}).values()), {}),
               "restart": results.get("restart", {}),
               "snapshot": results.get("snapshot", {})}
    return ", ".join(f"{name} {len(found['kiln'])} times" for name, found in samples.items() if "kiln" in found)


def page(results, command):
    machine = results["machine"]
    parts = [f"# Kiln beside redis-server\n\n{machine}\n\n`{command}`, in turns: {turns(results)}; "
             "memory once. *Goals*: a ratio is taken within each turn, found is the turns' median and their range. "
             "*Speed*: medians, ± half the range. Server on core 0, load on core 1, values of "
             "100 bytes, a million keys. *kiln* and *redis always* answer a write after fdatasync; "
             "*redis* keeps no log; *floor* answers and does no work. "
             "Snapshots of *kiln* and rewrites of the AOF are put off until after a row, but for the row named so, "
             "which begins with one. The load of *Speed* is "
             "`crates/world/examples/load`, that of a snapshot redis-benchmark.\n",
             *filter(None, [earlier(results)]),
             "## Goals\n\n" + ratios(results)]
    if "throughput" in results:
        parts.append("## Speed\n\n" + throughput_tables(results["throughput"])
                     + "\n![throughput](bench-throughput.png)\n")
    if "memory" in results:
        parts.append("## Memory\n\nResident, loaded less empty.\n\n" + memory_table(results["memory"])
                     + "\n![memory](bench-memory.png)\n")
    if "restart" in results:
        parts.append("## Restart\n\nFrom exec to the first PONG, on one core.\n\n"
                     + restart_table(results["restart"]))
    if "restore" in results:
        parts.append("## Restore\n\nFrom exec to the first PONG, less what a start without data takes, on all "
                     "cores: *parts* of a snapshot and the *log* without one, beside redis-server's RDB file and its "
                     "AOF of commands. Median, and range.\n\n" + restore_table(results["restore"]))
    if "snapshot" in results:
        parts.append("## During a snapshot\n\n100 connections of GET, 20 of SET, and a probe.\n\n"
                     + snapshot_table(results["snapshot"]) + "\n![snapshot](bench-snapshot.png)\n")
    return "\n".join(parts)
