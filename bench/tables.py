"""Turns what was measured into Markdown: every table says how often and how far it spread."""

import operator
import statistics

import latency
import memory
import subjects
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


# The load had less than this share of its core left: it may have been the limit. A guess, as is the smaller one of
# `paper_load`.
IDLE_MIN = 0.1

# With less of the rate that was asked for, times are those of a queue that grows for as long as one looks.
REACHED_MIN = 0.98

# Stands below the table's title.
IDLE_MEANS = ("A row in which the load's core is full says nothing about who is faster: there the server waits "
              "for the load, and its CPU-seconds per million count. Median, and range; less than a tenth is bold.")

ABSENT = "absent"


def columns(found, absent, among=throughput.SUBJECTS):
    """The subjects of a table: those that were measured, and those that were not there."""
    names = [subject.name for subject in among]
    return [name for name in names if name in absent or any(name in row for row in found.values())]


def asked(cells):
    """{cell: the names of whom it is for}."""
    return {cell.name: [subject.name for subject in throughput.asked(cell)] for cell in cells}


def marks(samples, idle_min=IDLE_MIN):
    """What else was the limit. †: the load's core was full, or nearly so. ‡: the rate was not reached. An older recording
    does not tell."""
    idle = [sample["load_idle"] for sample in samples if "load_idle" in sample]
    reached = [sample["requests_per_second"] / sample["rate"] for sample in samples if "rate" in sample]
    is_full = bool(idle) and statistics.median(idle) < idle_min
    return "†" * is_full + "‡" * (bool(reached) and statistics.median(reached) < REACHED_MIN)


def give_or_take(samples, field, show):
    """A median, and half the range."""
    return f"{show(median(samples, field))} ± {spread(samples, field):.0%}"


def throughput_tables(found, absent):
    names = columns(found, absent)
    meant = asked(throughput.CELLS)

    def missing(name, cell):
        return ABSENT if name in absent and name in meant.get(cell, ()) else "–"

    fields = [("requests_per_second", "Thousand requests a second", lambda v: f"{v / 1000:.0f}"),
              ("cpu_seconds_per_million", "Server CPU-seconds per million", lambda v: f"{v:.2f}"),
              ("p50_ms", "p50, ms", lambda v: f"{v:.2f}"), ("p99_ms", "p99, ms", lambda v: f"{v:.2f}")]
    parts = []
    for field, title, show in fields:
        rows = [[cell, *(give_or_take(samples[name], field, show) if name in samples else missing(name, cell)
                         for name in names)] for cell, samples in found.items()]
        parts.append(f"### {title}\n\n" + table(["connections × pipeline", *names], rows))
    return "\n".join(parts) + "\n" + load_table(found, names)


def load_table(found, names):
    """How far the load was from being the limit. Results of an older load do not tell."""
    rows, full = [], {}
    for cell, samples in found.items():
        shares = {name: [sample["load_idle"] for sample in samples.get(name, ()) if "load_idle" in sample]
                  for name in names}
        if any(shares.values()):
            spent = [sample["load_cpu_seconds_per_million"] for name in names
                     for sample in samples.get(name, ()) if "load_cpu_seconds_per_million" in sample]
            busy = [name for name, idle in shares.items() if idle and statistics.median(idle) < IDLE_MIN]
            for name in busy:
                full.setdefault(name, []).append(cell)
            rows.append([cell, *(f"**{share(idle)}**" if name in busy else share(idle)
                                 for name, idle in shares.items()), f"{statistics.median(spent):.2f}"])
    if not rows:
        return ""
    limits = "; ".join(f"{name}: {', '.join(cells)}" for name, cells in full.items()) or "no row"
    return (f"### Load: share of its core left idle\n\n{IDLE_MEANS}\n\nThe load was the limit in: {limits}.\n\n"
            + table(["connections × pipeline", *names, "load's CPU-seconds per million"], rows))


def share(of):
    return f"{statistics.median(of):.0%} ({min(of):.0%} – {max(of):.0%})" if of else "–"


def memory_table(found, absent):
    names = columns(found, absent, memory.SUBJECTS)
    rows = [[content, f"{row['items']:,}", str(row["payload"]),
             *(f"{row[name]:.0f}" if name in row else ABSENT if name in absent else "–" for name in names)]
            for content, row in found.items()]
    return table(["bytes an item", "items", "payload", *names], rows)


def latency_table(found, absent):
    """p50 and p99 by the offered share of what the same subject did in the closed loop just before."""
    rows, meant = [], asked(latency.CELLS)
    for cell, samples in found.items():
        for name in columns(found, absent):
            if name in samples:
                rows.append([cell, name, *latency_row(samples[name])])
            elif name in absent and name in meant.get(cell, ()):
                rows.append([cell, name, ABSENT, *["–"] * (len(latency.SHARES) + 1)])
    return table(["connections × pipeline", "server", "turns", "closed loop, thousand a second",
                  *(f"{part} %, ms" for part in latency.SHARES)], rows)


def latency_row(turns_of):
    shares = [[turn[str(part)] for turn in turns_of] for part in latency.SHARES]
    times = [" / ".join(give_or_take(samples, field, "{:.2f}".format) for field in ("p50_ms", "p99_ms"))
             for samples in shares]
    return [str(len(turns_of)), give_or_take(turns_of, "closed", lambda rate: f"{rate / 1000:.1f}"),
            *(f"{text} {marks(samples)}".rstrip() for text, samples in zip(times, shares, strict=True))]


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


def best(samples, peers, field="requests_per_second"):
    """The name of the peer that is best by its median, or None where none was measured. The best of each turn
    would be whichever noise favours."""
    better = min if field == "cpu_seconds_per_million" else max
    there = [peer.name for peer in peers if peer.name in samples]
    return better(there, key=lambda name: median(samples[name], field), default=None)


def shown(values, unit):
    """A median, and the extremes."""
    return f"{statistics.median(values):.2f}{unit} ({min(values):.2f} – {max(values):.2f})"


# Tests that write, by the first word of a row.
WRITES = {"SET", "INCR", "MSET", "LPUSH", "HSET", "SADD", "ZADD", "BRPOP", "EVAL", "XADD", "XREADGROUP"}
LOOKUPS = {"GET", "HGET"}


# The goals are what we ask of ourselves; their margins are chosen, and derived from nothing. Kiln answers a write only once
# a disk has it, and with a pipeline it is to be ahead of the best peer that keeps no log all the same: in lookups by more
# than in writes, and elsewhere, over TLS and beside a snapshot level at least. Without a pipeline, where the kernel has
# most of the time, it may take as much of a processor's time as that peer, and for a GET a little more than who does no
# work. Peers that sync a log before they answer it is to leave far behind with a pipeline, as a batch shares a sync.


def least(cell):
    """How many times as fast as the best peer without a log Kiln is to be in a row with a pipeline."""
    test = cell.split()[0]
    if "over TLS" in cell or "snapshot" in cell:
        return 1.0
    return 1.2 if test in WRITES else 1.5 if test in LOOKUPS else 1.0


# Times as fast as the best peer that syncs its log before it answers.
BESIDE_LOGS = {"SET 100 × 16": 4.0, "SET 1 × 1": 1.3}


def speed_goals(found):
    """(text, asked, found, whether it is met) of each row of throughput."""
    def ratio(cell, peer, goal, text, field="requests_per_second"):
        seen = paired(found, cell, peer, operator.truediv, field)
        is_most = field == "cpu_seconds_per_million"
        middle = statistics.median(seen)
        sign, is_met = ("≤", middle <= goal) if is_most else ("≥", middle >= goal)
        return f"{cell}: {text} {peer}", f"{sign} {goal:.2f} ×", shown(seen, " ×"), is_met

    for cell, samples in found.items():
        pipeline = int(cell.split(" × ")[1].split()[0].rstrip(","))
        if "kiln" not in samples:
            continue
        if pipeline > 1:
            if peer := best(samples, subjects.WITHOUT_LOG):
                yield ratio(cell, peer, least(cell), "speed against")
        else:
            if peer := best(samples, subjects.WITHOUT_LOG, "cpu_seconds_per_million"):
                yield ratio(cell, peer, 1.0, "CPU-seconds against", "cpu_seconds_per_million")
            if cell.split()[0] == "GET" and "floor" in samples:
                yield ratio(cell, "floor", 1.15, "CPU-seconds against", "cpu_seconds_per_million")
        if (goal := BESIDE_LOGS.get(cell)) and (peer := best(samples, subjects.WITH_LOG)):
            yield ratio(cell, peer, goal, "speed against")


# Bytes an item, at most: a number, or a peer's where we know none that is low enough to be worth asking for.
MEMORY_GOALS = {"16 B key + 100 B string": 140, "16 B key + 500 B string": 560, "set of integers, a member": 12,
                "sorted set, a member": 50, "hash of 5 fields": "valkey", "hash, a field": "valkey",
                "list, an item": "valkey"}


def memory_goals(found):
    """Likewise. Whether one is met is not known where the peer that it names is absent."""
    for content, most in MEMORY_GOALS.items():
        row = found.get(content, {})
        if "kiln" not in row:
            continue
        bound, text = most, f"bytes: {content}"
        if isinstance(most, str):
            bound, text = row.get(most), f"{text}, beside {most}"
        is_met = None if bound is None else row["kiln"] <= bound
        yield text, f"≤ {most}'s" if bound is None else f"≤ {bound:.0f}", f"{row['kiln']:.0f}", is_met


MET = {True: "yes", False: "**no**", None: ABSENT}


def ratios(results):
    """The goals that speak of ratios, each with what was found: the median of the turns' ratios."""
    goals = [*speed_goals(results.get("throughput", {})), *memory_goals(results.get("memory", {}))]

    def at_least(text, found, goal):
        if found:
            is_met = statistics.median(found) >= goal
            goals.append((text, f"≥ {goal:.1f} ×", shown(found, " ×"), is_met))

    start = results.get("restart", {})
    if "kiln" in start and "redis" in start:
        at_least("restart against redis",
                 [ours / theirs for ours, theirs in zip(start["kiln"], start["redis"], strict=True)], 4.0)
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
                 [[text, wanted, got, MET[is_met]] for text, wanted, got, is_met in goals])


def earlier(results):
    """What was not measured together with the rest, and on what; and the rows of throughput that were measured alone."""
    measured, apart = results.get("measured", {}), {}
    for name in ("throughput", "latency", "memory", "restart", "restore", "snapshot"):
        machine = measured.get(name, "an unknown machine")
        if name in results and machine.rstrip(".") != results["machine"].rstrip("."):
            apart[name] = machine
    names = {}
    for name, machine in [*apart.items(), *results.get("rows_measured", {}).items()]:
        names.setdefault(machine.rstrip("."), []).append(name)
    known = "; ".join(f"{', '.join(which)} on {machine}" for machine, which in names.items())
    return f"Measured apart from the rest: {known}.\n" if known else ""


def turns(results):
    """How often each thing was measured; for each of those with rows, from the fewest to the most."""
    parts = {"throughput": results.get("throughput", {}).values(), "latency": results.get("latency", {}).values(),
             "restart": [results.get("restart", {})], "snapshot": [results.get("snapshot", {})]}
    counts = {name: sorted({len(row["kiln"]) for row in rows if "kiln" in row}) for name, rows in parts.items()}
    return ", ".join(f"{name} {' to '.join(map(str, dict.fromkeys((of[0], of[-1]))))} times"
                     for name, of in counts.items() if of)


def page(results, command):
    machine = results["machine"]
    absent = results.get("absent", {})
    parts = [f"# Kiln beside Redis and Valkey\n\n{machine}\n\n`{command}`, in turns: {turns(results)}; "
             "memory once. *Goals*: a peer is the best of its kind in the row by its median, a ratio is taken "
             "within each turn, found is the turns' median and their range. "
             "*Speed*: medians, ± half the range. Server on core 0, load on core 1, values of "
             "100 bytes and a million keys, or a hundred thousand of another size where a row names it. *kiln* is what "
             "`make build-profiled` makes, *kiln plain* what `make build` does, which is *kiln* too where no commit is "
             "told. Both answer a write after fdatasync, and so do those named *always*, with an AOF; *redis* is Redis "
             "7.0, "
             "which with *valkey*, a Valkey 9, and *redis 8* keeps no log; *floor* answers and does no work. "
             "Snapshots of *kiln* and rewrites of the AOF are put off until after a row, but for the row named so, "
             "which begins with one. The load of *Speed* is "
             "`crates/world/examples/load`, that of a snapshot redis-benchmark.\n",
             *filter(None, [earlier(results)]),
             "## Goals\n\n" + ratios(results)]
    if "throughput" in results:
        parts.append("## Speed\n\nMIXED is 80 % GET and 20 % SET; MSET is of ten keys; LRANGE and ZRANGE return a "
                     "hundred elements, HGETALL ten fields.\n\n"
                     + throughput_tables(results["throughput"], absent.get("throughput", ()))
                     + "\n![throughput](bench-throughput.png)\n")
    if "latency" in results:
        parts.append("## Latency by offered rate\n\nRequests are due at fixed times, at so many per cent of what the "
                     "same server did in a closed loop of as many connections just before, and their latency counts "
                     "from then: p50 / p99, medians of the turns, ± half the range. † the load's core was idle for less "
                     f"than {IDLE_MIN:.0%} of the time: the times are as much the load's as the server's. ‡ less than "
                     f"{REACHED_MIN:.0%} of the rate was answered.\n\n"
                     + latency_table(results["latency"], absent.get("latency", ())))
    if "memory" in results:
        parts.append("## Memory\n\nResident, loaded less empty.\n\n"
                     + memory_table(results["memory"], absent.get("memory", ()))
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
