"""Turns what `bench/paper` measured into Markdown, the paper's own numbers beside it."""

import statistics

import bandwidth
import load
import paper_load
import paper_servers
import processes
from tables import REACHED_MIN, marks, table

PAGE = """# Section 6.1 of the MemoryDB paper, measured here

`bench/paper` (`make bench-paper`) measures what section 6.1 of *Amazon MemoryDB: A Fast and Durable Memory-First Cloud
Database* (SIGMOD 2024) does: GET alone (*read-only*), SET alone (*write-only*) and four GETs for each SET (*mixed*), no
pipeline, values of {value} bytes, random ones of {keys:,} keys, all of which are there.

- *redis* and *valkey* keep no log: a power cut takes what they answered.
- *kiln, file* answers a write once its log has it on the disk (`file:`, one fdatasync for all that wait).
- *kiln, jetstream* answers a write once two of three NATS servers have it on theirs (`jetstream:`).

{measured}
Medians of the turns, and their range in brackets. All servers stay up, and each row goes from one to the next before
the next row begins: only what stands in one row can be compared. A quantile of several load processes is computed from
those that each of them tells.

## Goals

{goals}
At {share:.0%} of saturation means: of what that server answered in that workload and turn in a closed loop, where each
connection sends its next request once the last is answered. †: the load's core was full, or nearly so; ‡: the rate was
not reached.

## What differs from the paper's set-up

{differences}
So the throughput of the paper's larger instances cannot be expected, nor its times: those of a request include a
network, and here a core that the load shares with whoever keeps the log. What can be carried over is one server
beside another in one row.

"""

DIFFERENCES = (
    ("server", "r7g.large to r7g.16xlarge: 2 to 64 cores of Graviton3, for figure 5 the largest", "one core of two"),
    ("threads for clients", "MemoryDB's Enhanced IO, which merges clients' connections; Redis with as many IO threads",
     "none: whoever executes also reads and writes, and all of a server's threads share its core"),
    ("load", "ten machines, on each redis-benchmark with 100 connections",
     "`crates/world/examples/load` on the other core: {processes} × 100 connections (see *Load processes*)"),
    ("network", "between machines of one availability zone", "loopback: no distance, but both cores work for it"),
    ("MemoryDB's log, and Kiln's", "a service over several availability zones",
     "a directory; or three NATS servers on the load's core, which sync to one disk"),
    ("offered load", "not said how it is kept", "requests fall due at a fixed rate, and times count from then"),
    ("engine", "Redis 7.0.7, and MemoryDB of the same version", "see the table above"),
    ("encryption and passwords", "off", "off"),
)

PROCESSES = """## Load processes

So many processes of {connections} connections each, all of them on the load's core; the paper's ten have a machine
each. At saturation: thousand requests a second; at {share:.0%} of that: p50 · p99. Behind it the share of the load's
core that was idle: at 0 the load was the limit, and the row says nothing about the server. The most that leave at least
{least:.0%} of it idle in every row, or 1 if none do, are **{borne}**. JetStream's rows do not count: its servers are on
that core, too.

{tables}"""

THROUGHPUT = """## Throughput at saturation (figure 4)

{processes} × {connections} connections, each with its next request once the last is answered, for {seconds:.0f}
seconds a turn. The paper: read-only 500 thousand a second of MemoryDB and 330 of Redis at most, and up to 200 of either
on instances below 2xlarge; write-only up to 185 and 300. *p50* and *p99* are those of a queue of all connections.

{tables}
![throughput at saturation](paper-throughput.png)
"""

LATENCY = """## Latency against offered load (figure 5)

p50 · p99 in ms; the same connections. A dash: within a tenth of what that server answered at saturation, or beyond.
† the load's core was idle for less than {idle:.0%} of the time: the times are as much the load's as the server's.
‡ less than {reached:.0%} of the rate was answered.

{tables}
![latency against offered load](paper-latency.png)

### Beside the paper's figure 5

The paper: at up to 200 thousand requests a second, on an instance of 64 cores. Here: at {share:.0%} of saturation on
one core. p50 · p99 in ms.

{beside}
"""

BANDWIDTH = """## MB/s of one shard's writes

SETs with several requests ahead on each connection (connections × pipeline), of one load process; MB are 10⁶ bytes of
values alone. *log*: what Kiln handed to its log, keys and frames included. The paper: up to {asked} MB/s of a shard,
with more clients, pipelining or larger values. What JetStream bears by itself here, with its three servers on one core
and one disk, is in [shard.md](shard.md#what-a-set-costs-over-its-log).

{tables}
![MB/s of writes](paper-bandwidth.png)
"""

P50_MS_MAX, P99_MS_MAX = 1.0, 2.0
MB_MIN = 100

# p50 and p99 in ms, of Redis and of MemoryDB.
PAPER = {"read-only": ("< 1 · < 2", "< 1 · < 2"), "write-only": ("< 1 · ≤ 3", "3 · ≤ 6"),
         "mixed": ("< 1 · ≤ 2", "< 1 · ≤ 4")}


def page(results):
    found = {name: result["found"] for name, result in results.items()}
    used = found.get("offered", {})
    count = used.get("processes", min(paper_load.COUNTS))
    parts = [PAGE.format(value=load.VALUE_BYTES, keys=used.get("keys", load.KEYS), measured=measured(results),
                         goals=goals(found), share=paper_load.GOAL_SHARE, differences=differences(count))]
    if "processes" in found:
        parts.append(processes_part(found["processes"]))
    if used:
        parts += [throughput_part(used), latency_part(used)]
    if "bandwidth" in found:
        parts.append(bandwidth_part(found["bandwidth"]))
    return "\n".join(parts)


def measured(results):
    """When and on what each part was measured."""
    rows = []
    for name in ("processes", "offered", "bandwidth"):
        if name not in results:
            rows.append([name, *["**not measured**"] * 6])
            continue
        result = results[name]
        # An older recording does not tell.
        absent = ", ".join(result["absent"]) or "none" if "absent" in result else "–"
        rows.append([name, *(str(result[field]) for field in ("turns", "scale", "machine", "date", "commit")), absent])
    return table(["part", "turns", "of the full size", "machine", "date", "commit", "absent"], rows)


def differences(count):
    return table(["", "the paper", "here"], [[cell.format(processes=count) for cell in row] for row in DIFFERENCES])


def goals(found):
    rows = []

    def add(text, asked, values, unit, is_met, mark=""):
        met = "yes" if is_met(statistics.median(values)) else "**no**"
        rows.append([text, asked, f"{ranged(values, '.2f')} {unit} {mark}".rstrip(), met])

    reads = found.get("offered", {}).get("workloads", {}).get("read-only", {}).get(paper_load.GOAL, {})
    for name in paper_servers.KILNS:
        for field, most in (("p50_ms", P50_MS_MAX), ("p99_ms", P99_MS_MAX)):
            if name in reads:
                add(f"{name}: {field[:3]} of reads at {paper_load.GOAL}", f"< {most:.0f} ms", of(reads[name], field),
                    "ms", lambda middle, most=most: middle < most, marks(reads[name], paper_load.IDLE_MIN))
    for shape in bandwidth.GOALS:
        row = found.get("bandwidth", {}).get(shape.name, {})
        for name in paper_servers.KILNS:
            if name in row:
                add(f"{name}: writes of {shape.name}", f"≥ {MB_MIN} MB/s", of(row[name], "mb_per_second"), "MB/s",
                    lambda middle: middle >= MB_MIN)
    return table(["goal", "asked", "found", "met"], rows)


def of(samples, field):
    return [sample[field] for sample in samples]


def rates(samples):
    """Thousand requests a second."""
    return [rate / 1000 for rate in of(samples, "requests_per_second")]


def idle(samples):
    """The share of the load's core."""
    return f"{statistics.median(of(samples, 'load_idle')):.0%}"


def ranged(values, form):
    """The median, and the extremes if there are several."""
    middle, least, most = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} – {most})" if len(values) > 1 else middle


def processes_part(found):
    tables = []
    for workload, kinds in found.items():
        most, below = (kinds[kind] for kind in (paper_load.SATURATION, paper_load.GOAL))
        names = names_of(most)
        lines = []
        for count in most:
            lines.append([f"{count}, {paper_load.SATURATION}", *(
                f"{ranged(rates(most[count][name]), '.1f')}; {idle(most[count][name])}" for name in names)])
            lines.append([f"{count}, {paper_load.GOAL}", *(
                f"{quantiles(below[count][name])} ms; {idle(below[count][name])}" for name in names)])
        tables.append(f"### {workload}\n\n" + table(["processes", *names], lines))
    return PROCESSES.format(connections=paper_load.CONNECTIONS, borne=processes.borne(found), least=paper_load.IDLE_MIN,
                            share=paper_load.GOAL_SHARE, tables="\n".join(tables))


def names_of(rows):
    """The servers that were measured, in their order."""
    return [name for name in paper_servers.NAMES if any(name in row for row in rows.values())]


def throughput_part(found):
    tables = []
    for workload, rows in found["workloads"].items():
        row = rows[paper_load.SATURATION]
        lines = []
        for name in names_of(rows):
            samples = row[name]
            lines.append([name, ranged(rates(samples), ".1f"), against(samples, row.get(paper_servers.REDIS)),
                          *(ranged(of(samples, field), ".1f")
                            for field in ("p50_ms", "p99_ms", "cpu_seconds_per_million")), idle(samples)])
        tables.append(f"### {workload}\n\n" + table(
            ["", "thousand/s", "against redis", "p50, ms", "p99, ms", "server's CPU-s per million",
             "load's core idle"], lines))
    return THROUGHPUT.format(processes=found["processes"], connections=paper_load.CONNECTIONS, seconds=found["seconds"],
                             tables="\n".join(tables))


def against(samples, peers):
    """The ratio within each turn; a dash where there is no such peer."""
    if not peers:
        return "–"
    return ranged([one / other for one, other in zip(rates(samples), rates(peers), strict=True)], ".2f")


def latency_part(found):
    tables = []
    for workload, rows in found["workloads"].items():
        names = names_of(rows)
        lines = [[f"{int(row):,}" if row.isdigit() else row, *(times(samples.get(name)) for name in names)]
                 for row, samples in ordered(rows)]
        tables.append(f"### {workload}\n\n" + table(["requests/s offered", *names], lines))
    return LATENCY.format(idle=paper_load.IDLE_MIN, reached=REACHED_MIN, share=paper_load.GOAL_SHARE,
                          tables="\n".join(tables), beside=beside(found["workloads"]))


def ordered(rows):
    """Rates in their order, then the share of each one's own saturation."""
    fixed = sorted((row for row in rows if row.isdigit()), key=int)
    return [(row, rows[row]) for row in [*fixed, paper_load.GOAL] if row in rows]


def times(samples):
    if not samples:
        return "–"
    return f"{quantiles(samples)} {marks(samples, paper_load.IDLE_MIN)}".rstrip()


def quantiles(samples):
    return " · ".join(f"{statistics.median(of(samples, field)):.2f}" for field in ("p50_ms", "p99_ms"))


def beside(workloads):
    names = [name for name in paper_servers.NAMES if any(name in rows[paper_load.GOAL] for rows in workloads.values())]
    lines = [[workload, *PAPER[workload], *(times(rows[paper_load.GOAL].get(name)) for name in names)]
             for workload, rows in workloads.items()]
    return table(["", "the paper: redis", "the paper: MemoryDB", *names], lines)


def bandwidth_part(found):
    lines = []
    for shape, row in found.items():
        for name in names_of({shape: row}):
            samples = row[name]
            logged = of(samples, "log_mb_per_second")
            lines.append([shape, name, ranged(of(samples, "mb_per_second"), ".1f"),
                          f"{statistics.median(logged):.1f}" if any(logged) else "–",
                          f"{statistics.median(rates(samples)):.1f}",
                          *(f"{statistics.median(of(samples, field)):.1f}" for field in ("p50_ms", "p99_ms")),
                          idle(samples)])
    return BANDWIDTH.format(asked=MB_MIN, tables=table(
        ["value, connections × pipeline", "", "MB/s", "log, MB/s", "thousand/s", "p50, ms", "p99, ms",
         "load's core idle"], lines))
