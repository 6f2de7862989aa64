"""Turns the evaluations into Markdown."""

import statistics

import beside
import moments
import offbox
from tables import shown, table

PHASES = ("before", "during", "after")
PAGE = """# Snapshots, forks and moments

`bench/evaluations` (`make bench-evaluations`) measures this: {machines}. On two cores: the server has core 0, the
load core 1 and the first right to it; a forked child or a snapshot worker has what the load leaves of core 1.

## Goals

{goals}
"""
OFFBOX = """## What clients feel of a snapshot

{keys:,} keys of 500 bytes, {gib:.1f} GiB without any overhead, 100 connections that GET and 20 that SET random keys, each its next
request once the last is answered, as in section 6.2 of the MemoryDB paper. *redis* and *valkey* keep no log and
fork for BGSAVE; *kiln* answers a SET once its log has it on disk, and takes its own snapshot by BGSAVE, or
(*off-box*) a worker takes it, proof included: it reads the log where it
is, and its archive, which has one snapshot before each run and stands for another machine's, is in memory. *Slowest* is a second's slowest answer: the median of the seconds, and the worst of them. Memory is
the server's, with what its child has for itself.

{table}
![average, slowest answer, throughput and memory](evaluation-offbox.png)
"""
BESIDE = """## A worker, or any process on that core

{keys:,} keys of 500 bytes, and the same load. In turn a worker takes a snapshot on the load's core, a redis-server
loads a file with the same keys there, again and again, and something only computes there (`sha256sum`), each
behind the load. Two cores of one machine share its memory and a cache, so whoever fills memory on one is felt on
the other; a worker on another machine shares nothing.

{table}"""
SCARCE = """## With little memory to spare

{keys:,} keys of 500 bytes, in a control group whose limit is {share:.2f} × what the server takes when it is loaded; 50
connections rewrite random keys. The machine has no swap.

{table}
![throughput](evaluation-scarce.png)
"""
FORKS = """## What a fork costs

20 connections rewrite random keys. *fork* is `latest_fork_usec`; *longest wait* is a client's, in the twenty seconds
before and during the snapshot, which the server takes itself. Sizes are resident memory, in GB of 2³⁰ bytes.

{table}
![fork and waits](evaluation-forks.png)
"""
MOMENTS = """## Back to the moment before a FLUSHALL

{keys:,} keys of 500 bytes and a bank of {accounts:,} accounts, whose transfers go on until just before FLUSHALL; then `kiln
restore --to` that moment, or `kiln branch`, and a server is started on the new log. Every key is there, and no
money is lost.

{table}"""


def page(results):
    machines = {}
    for name, result in results.items():
        scale = f" (at {result['scale']} of its size)" if result["scale"] != 1.0 else ""
        machines.setdefault(result["machine"], []).append(name + scale)
    parts = [PAGE.format(machines="; ".join(f"{', '.join(names)} on {on}" for on, names in machines.items()),
                         goals=goals(results))]
    made = {"offbox": offbox_part, "beside": beside_part, "scarce": scarce_part, "forks": forks_part, "moments": moments_part}
    parts += [make(results[name]["found"]) for name, make in made.items() if results.get(name, {}).get("found")]
    return "\n".join(parts)


def of(run, phase, field, choose=statistics.median):
    """One number of a run's seconds of a phase."""
    return choose(row[field] for row in run[phase])


def ratio(runs, field, choose=statistics.median, inverse=False):
    """During over before, of each run."""
    found = [of(run, "during", field, choose) / of(run, "before", field, choose) for run in runs]
    return [1 / one for one in found] if inverse else found


def goals(results):
    rows = []

    def at_most(text, found, most, unit=" ×"):
        rows.append([text, f"≤ {most}{unit}", shown(found, unit),
                     "yes" if statistics.median(found) <= most else "**no**"])

    runs = (results.get("offbox", {}).get("found") or {}).get(offbox.OFF_BOX)
    if runs:
        at_most("off-box snapshot: a second's slowest answer, during over before", ratio(runs, "max_ms"), 1.1)
        at_most("off-box snapshot: throughput, before over during",
                ratio(runs, "requests", inverse=True), 1.1)
        at_most("off-box snapshot: memory, during over before", ratio(runs, "memory", max), 1.05)
    shared = results.get("beside", {}).get("found")
    if shared:
        worker, loading = shared[offbox.OFF_BOX], shared[beside.LOADING]
        for text, field, inverse in (("a second's slowest answer", "max_ms", False), ("throughput", "requests", True)):
            felt = zip(ratio(worker, field, inverse=inverse), ratio(loading, field, inverse=inverse))
            at_most(f"{text}: what a worker costs over what a redis-server that loads costs there",
                    [one / other for one, other in felt], 1.1)
    undone = results.get("moments", {}).get("found") or []
    for command in ("restore", "branch"):
        if undone:
            at_most(f"{command} of {undone[0]['keys']:,} keys of 500 bytes, served",
                    [sum(row[command].values()) for row in undone], moments.GOAL_SECONDS, " s")
    return table(["goal", "asked", "found (median and range)", "met"], rows)


def beside_part(found):
    return BESIDE.format(keys=found["keys"], table=felt(found, beside.SUBJECTS))


def felt(found, names):
    """What clients felt in each run beside what these names mean."""
    rows = []
    for name in names:
        for number, run in enumerate(found.get(name, []), 1):
            rows.append([f"{name}, run {number}", f"{run['took_seconds']:.0f}",
                         *(" → ".join(f"{of(run, phase, field) * factor:{digits}}" for phase in PHASES)
                           for field, factor, digits in
                           (("mean_ms", 1, ".2f"), ("max_ms", 1, ".1f"))),
                         " → ".join(f"{of(run, phase, 'max_ms', max):.0f}" for phase in PHASES),
                         " → ".join(f"{of(run, phase, 'requests') / 1000:.1f}" for phase in PHASES),
                         f"{min(row['requests'] for row in run['during']) / 1000:.1f}",
                         f"{of(run, 'during', 'memory', max) / of(run, 'before', 'memory', max):.2f} ×"])
    return table(["before → during → after", "took, s", "average, ms", "slowest, ms", "worst, ms",
                  "thousand/s", "worst second's", "memory"], rows)


def offbox_part(found):
    gib = found["keys"] * 516 / (1 << 30)
    return OFFBOX.format(keys=found["keys"], gib=gib, table=felt(found, offbox.SUBJECTS))


def scarce_part(found):
    rows = []
    for name in offbox.SUBJECTS:
        run = found.get(name)
        if run:
            rates = {phase: [row["requests"] for row in run[phase]] for phase in PHASES}
            shown_rates = " → ".join(f"{statistics.median(rates[phase]) / 1000:.1f}" if rates[phase] else "–"
                                     for phase in PHASES)
            rows.append([name, run["outcome"], f"{run['took_seconds']:.0f}", shown_rates])
    return SCARCE.format(keys=found["keys"], share=found["share"],
                         table=table(["server", "outcome", "after, s", "thousand SETs/s"], rows))


def forks_part(found):
    rows = []
    for name, sizes in found.items():
        for row in sizes:
            fork = row["fork_ms"]
            rows.append([name, f"{row['gb']:.1f}", f"{fork:.0f}" if fork else "–",
                         f"{fork / row['gb']:.0f}" if fork else "–", f"{row['before_ms']:.0f}",
                         f"{row['during_ms']:.0f}", f"{row['memory'] / row['gb']:.2f} ×"])
    return FORKS.format(table=table(["server", "GB", "fork, ms", "a GB", "longest wait before, ms", "during",
                                     "memory at most"], rows))


def moments_part(found):
    rows = []
    for command in ("restore", "branch"):
        parts = [[row[command][field] for row in found] for field in ("made_seconds", "served_seconds")]
        together = [sum(both) for both in zip(*parts, strict=True)]
        rows.append([f"kiln {command}", *(shown(values, " s") for values in (*parts, together))])
    return MOMENTS.format(keys=found[0]["keys"], accounts=moments.ACCOUNTS,
                          table=table(["", "the new log is there", "a server has loaded it", "together"], rows))
