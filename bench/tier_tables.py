"""Turns what `bench/tiers` measured into Markdown."""

import statistics

import cold_bytes
import masses
import off
import overwrite
import rivals
import slow_memory_tables
import small_replica
import tiered
from tables import shown, table

PAGE = """# Values on a disk, and in slow memory

`bench/tiers` (`make bench-tiers`) measures this. The server has core 0, its threads included, the load has core 1. What
it is about: [tiers.md](../operations/tiers.md), [slow-memory.md](../operations/slow-memory.md).

{measured}
## Goals

A ratio is taken within each turn. Found is the median of the turns, and their range; the median is what counts, but
for what is asked *each time*.

{goals}

*Cold p50 less hot p50*: at half the speed it is the wait for the disk, for a block of which one thread that does nothing
else waits {alone}. At full speed a hundred clients that do not pause keep the loop always busy, so a request waits for
the others; a read whose value comes while others are answered is answered amid them, hence hardly later. *The longest
turn* and *a bystander's slowest answer* are times on a clock, and count what the machine takes from the process: see the
pauses beside them.

"""
RIVALS = """## Beside data in memory, swap and extstore

{keys:,} keys of 16 bytes with values of 500, of which a fifth fits into memory. 100 connections, each with its next
request once the last is answered. Of the requests 10 or 20 in a hundred are for cold keys, evenly; all others are for
the {hot:,} hot ones, evenly. Each row is measured for some seconds in each of {turns} turns, after seconds of the same
load that do not count, and goes from server to server before the next row begins.

- *{in_memory}*: the same build without a tier.
- *{tier}*: `maxmemory` of {maxmemory:.0f} MiB, a `tier-max` of {tier_bytes:.0f} MiB.
- *{swap}*: Redis with no log, and a swap file on the same disk.
- *{extstore}*: `-m {maxmemory:.0f}`, one worker, and `{extstore_options}`. It is asked in its own protocol.

Each of the last three is in a control group whose limit is {group:.0f} MiB. Kiln answers a write once its log has it on
disk, and takes its snapshots between rows; the other two keep no log. *Missed* are GETs of values that are gone; *refused* are errors. *Read of the disk* is
the share of requests for which the server read a value there: some cold keys are in memory by chance.

With 100 clients that do not pause, times are those of a queue: a request waits for the 99 others. So reads are
measured *at half the speed* as well: each server is sent half of what Kiln with a tier answered in that turn, and
times count from when a request was due.

{tables}### The disk by itself

Random blocks of 4 KiB, read past the page cache by so many threads on both cores, in the same turns. *Ceiling* is
min(1, reads a second ÷ (cold share × requests a second with all in memory)), read only: no server that reads each cold
value of this disk can be faster.

{disk}
### Filling

{filled}
![throughput and latency](tiers-rivals.png)
"""
FILLING = """Cold keys first, hot ones last; these are read three times then. memcached is filled with {rate:,} values a
second: it drops some if they come faster.

"""
OFF = """## What tiers cost who has none

This release beside the one of the last commit before tiers, in turn, all in memory: a million keys, values of 100
bytes. Ratios are of requests a second, one for each round.

{table}
"""
OVERWRITE = """## A tier that is overwritten

{keys:,} values of 500 bytes in a tier of {tier_mib:.0f} MiB, of which all but some 8 in a hundred lie there: it was
{fill:.0%} full of what values may take, and 90 % is the most. Then {connections} connections SET random keys until
{rounds:.1f} times the tier's size was moved to it. *Start* and *end* are the medians of the first and the last tenth of
the seconds. The server took snapshots meanwhile, as its log grew: a snapshot holds what the tier would free.

{table}
![overwriting](tiers-overwrite.png)
"""
MASSES = """## Many cold keys that go at once

{keys:,} keys of 500 bytes, and a bystander with {connections} connections, for which a PING or a GET of a key in memory
falls due each millisecond. Its times count from then, so that a server that stops delays all that was due. *DEL* and
*UNLINK*: {batch} keys at a time from {clients} clients. *Expiry*: all at the same millisecond, and nobody asks for them.
Answers are the slowest ones, in ms, and so are turns of the loop, without its waiting. Here the loop has a core for
itself and goes before the system's own threads there (`SCHED_FIFO`), and the server's other threads share the load's. *Of
its core*: the longest that it had that core in one turn (`kiln_eventloop_cpu_max`), which may be another turn; where that
is much less, the hypervisor took the core, or the loop waited for the disk. No
snapshot is under way once a server is filled, but one may fall due later, as the log grows: while keys are told when to
expire, or amid a deed.

{limit}{pauses}{table}
Idle, the tier wrote {written:,} bytes in {seconds:.0f} seconds.
"""
# By whether `masses` could lift it. An older recording does not tell.
FIFO_LIMIT = {
    True: """Linux's limit for `SCHED_FIFO` was lifted (`kernel.sched_rt_runtime_us` = -1). Since Linux 6.12 its fair server gives
others a twentieth of a core in any case, once they have waited for long.

""",
    False: """Linux's limit for `SCHED_FIFO` stood, as it could not be set (`kernel.sched_rt_runtime_us`): the loop may have been
kept from its core for a twentieth of a second at a time, which counts as the server's.

""",
    None: ""}
MASSES_PAUSES = """No turn can be shorter than the machine's own pauses. A process that did nothing but ask for the time, on the
loop's core before the turns, with the same precedence, was kept from it for up to {pauses} ms within {seconds} seconds.
By the process's own time the longest were {pauses_cpu} ms: what a hypervisor takes without telling. What the loop
itself does in a turn: [turns.md](turns.md).

"""
SCARCE = """## Little memory

{keys:,} keys of 500 bytes, five times `maxmemory`, in a control group of {group:.0f} MiB, a quarter more than `maxmemory`.
Each row has the most there had been by then: `used_memory` before anything left for its sake (`used_memory_peak`), and
what was resident, which counts the program's own pages, some MiB; the group does not. A replica has its own group.
SETs are random but for the load. The server, at the end: **{outcome}**.

{table}
"""
REPLICA = """## A replica with little memory

{keys:,} keys, half strings of 500 bytes and half hashes of as much, all in the primary's memory. {asked:,} APPEND and HSET
a second go to any of them. The replica has a tier, and of memory {share:.0%} of what the primary uses.

{table}
"""

BYTES = """## Memory of a cold key

`used_memory` with cold keys alone, less what it is with none, by key, less the name. The table grows segment by segment, so its part is nearly the same for each number of keys.

{table}"""

MIB = 1 << 20

# Goals: of throughput by the share of cold requests, the rest by what they say.
THROUGHPUT_MIN = {10: 0.5, 20: 0.35}
COLD_WAIT_MS_MAX = 0.15
HOT_P99_MAX = 2.0
OFF_MIN = 0.98
AMPLIFICATION_MAX = 6.0
END_MIN = 0.5
WORST_MS_MAX = 50.0
TURN_MS_MAX = 2.0
USED_MAX = 1.01
# How far behind its primary a small replica may be, and what of the rate the load must have reached.
BEHIND_SECONDS_MAX = 2.0
RATE_REACHED = 0.98
COLD_KEY_BYTES_MAX = 40


def page(results):
    parts = [PAGE.format(measured=measured(results), goals=goals(results), alone=alone(results))]
    parts += [made(results[name]["found"]) for name, made in PARTS.items() if results.get(name, {}).get("found")]
    return "\n".join(parts)


def measured(results):
    """When and on what each part was measured."""
    lines = []
    for name in PARTS:
        if name not in results:
            lines.append([name, *["**not measured**"] * 4])
            continue
        result = results[name]
        lines.append([name, str(result["scale"]), result["machine"], result["date"], result["commit"]])
    return table(["part", "of the full size", "machine", "date", "commit"], lines)


def alone(results):
    """How long a block of the disk takes where nothing else is read."""
    turns = results.get("rivals", {}).get("found", {}).get("disk", ())
    return f"{statistics.median(turn['1']['p50_ms'] for turn in turns):.2f} ms (p50)" if turns else "–"


class Goals:
    """Rows of the first table."""

    def __init__(self):
        self.rows = []

    def at_least(self, text, found, least, unit=" ×"):
        self.add(text, f"≥ {least}{unit}", shown(found, unit), statistics.median(found) >= least)

    def at_most(self, text, found, most, unit=" ×"):
        self.add(text, f"≤ {most}{unit}", shown(found, unit), statistics.median(found) <= most)

    def never_above(self, text, found, most, unit=" ×"):
        """As `at_most`, of what must hold each time."""
        self.add(text, f"≤ {most}{unit} each time", shown(found, unit), max(found) <= most)

    def add(self, text, asked, found, is_met):
        self.rows.append([text, asked, found, "yes" if is_met else "**no**"])


def goals(results):
    found = {name: result["found"] for name, result in results.items() if result.get("found")}
    all_goals = Goals()
    for name, adds in (("rivals", rival_goals), ("off", off_goals), ("overwrite", overwrite_goals),
                       ("masses", masses_goals), ("scarce", scarce_goals), ("bytes", bytes_goals),
                       ("replica", replica_goals), ("slow", slow_memory_tables.goals)):
        if name in found:
            adds(all_goals, found[name])
    return table(["goal", "asked", "found", "met"], all_goals.rows)


def rival_goals(all_goals, found):
    for row in rivals.ROWS:
        ours, memory = (found["rows"][row.name][name] for name in (rivals.TIER, rivals.IN_MEMORY))
        if not row.is_steady:
            all_goals.at_least(f"throughput against all in memory: {row.name}", ratios(ours, memory),
                               THROUGHPUT_MIN[row.cold])
        if row.load == rivals.READ_ONLY:
            waits = [sample["cold"]["p50_ms"] - sample["hot"]["p50_ms"] for sample in ours]
            all_goals.at_most(f"cold p50 less hot p50: {row.name}", waits, COLD_WAIT_MS_MAX, " ms")
        slower = [one["hot"]["p99_ms"] / other["p99_ms"] for one, other in zip(ours, memory, strict=True)]
        all_goals.at_most(f"hot p99 against p99 of all in memory: {row.name}", slower, HOT_P99_MAX)


def off_goals(all_goals, found):
    for cell, samples in found.items():
        all_goals.at_least(f"off, against the release before tiers: {cell}", ratios(samples[off.NOW], samples[off.THEN]),
                           OFF_MIN)


def overwrite_goals(all_goals, found):
    start, end = overwrite.speeds(found)
    all_goals.at_most("overwritten: bytes written for each one moved", [overwrite.amplification(found)],
                      AMPLIFICATION_MAX, "")
    all_goals.at_least("overwritten: throughput at the end against the start", [end / start], END_MIN)
    all_goals.never_above("overwritten: the file against tier-max", files(found), 1.0)


def masses_goals(all_goals, found):
    for deed, runs in found["deeds"].items():
        worst = [max(run["during"] + run["after"]) for run in runs]
        keys = f"{runs[0]['cold']:,} cold keys go by {deed}"
        all_goals.never_above(f"{keys}: a bystander's slowest answer", worst, WORST_MS_MAX, " ms")
        all_goals.never_above(f"{keys}: the longest turn of the loop", [run["turn"] for run in runs], TURN_MS_MAX, " ms")
        all_goals.never_above(f"{keys}: the same, by the time that the loop had its core",
                              [run["turn_cpu"] for run in runs], TURN_MS_MAX, " ms")
    all_goals.add("idle: bytes written", "0", f"{found['idle']['written']:,}", found["idle"]["written"] == 0)


def scarce_goals(all_goals, found):
    used = [row["used"] / found["maxmemory"] for row in found["phases"].values()]
    all_goals.add("little memory: used_memory against maxmemory, at most", f"≤ {USED_MAX} ×", f"{max(used):.3f} ×",
                  max(used) <= USED_MAX)
    all_goals.add("little memory: the server outlives it", "alive", found["outcome"], found["outcome"] == "alive")


def bytes_goals(all_goals, found):
    all_goals.at_most("memory of a cold key over its name", [cold_bytes.over_name(row) for row in found],
                      COLD_KEY_BYTES_MAX, " bytes")


def replica_goals(all_goals, found):
    rows = found["turns"]
    reached = [row["changes_per_second"] / found["asked"] for row in rows]
    all_goals.at_least("a small replica: changes, against those asked for", reached, RATE_REACHED)
    all_goals.never_above("a small replica: behind", [max(row["behind_seconds"]) for row in rows], BEHIND_SECONDS_MAX,
                          " s")
    is_equal = all(row["equal"] for row in rows)
    all_goals.add("a small replica: its data in the end", "equal", "equal" if is_equal else "different", is_equal)


def ratios(ours, theirs):
    return [one["requests_per_second"] / other["requests_per_second"]
            for one, other in zip(ours, theirs, strict=True)]


def rivals_part(found):
    return RIVALS.format(
        keys=found["keys"], hot=found["hot"], turns=len(found["disk"]), in_memory=rivals.IN_MEMORY, tier=rivals.TIER,
        swap=rivals.SWAP, extstore=rivals.EXTSTORE, extstore_options=tiered.EXTSTORE_OPTIONS,
        maxmemory=found["maxmemory"] / MIB, tier_bytes=found["tier_bytes"] / MIB, group=found["group_bytes"] / MIB,
        tables="".join(f"### {row}\n\n{rival_table(samples)}\n" for row, samples in found["rows"].items()),
        disk=disk_table(found), filled=filled_table(found))


def rival_table(row):
    lines = []
    for name, samples in row.items():
        lines.append([
            name, ranged([sample["requests_per_second"] / 1000 for sample in samples], ".1f"),
            ranged(ratios(samples, row[rivals.IN_MEMORY]), ".2f"),
            *(" · ".join(f"{statistics.median(sample[kind][field] for sample in samples):.2f}"
                         for field in ("p50_ms", "p99_ms", "p999_ms")) for kind in ("hot", "cold")),
            f"{statistics.median(sample['cpu_seconds_per_million'] for sample in samples):.1f}",
            percent(samples, lambda sample: sample["disk_read_share"]),
            percent(samples, lambda sample: sample["missed"] / sample["requests"]),
            percent(samples, lambda sample: sample["refused"] / sample["requests"]),
            percent(samples, lambda sample: sample["idle"])])
    return table(["", "thousand/s", "against all in memory", "hot p50 · p99 · p99.9, ms", "cold, ms",
                  "CPU-s per million", "read of the disk", "missed", "refused", "load idle"], lines)


def ranged(values, form):
    """The median, and the extremes."""
    middle, least, most = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({least} – {most})"


def percent(samples, of):
    values = [of(sample) for sample in samples]
    return "–" if None in values else f"{statistics.median(values):.1%}"


def disk_table(found):
    lines = []
    for threads in found["disk"][0]:
        samples = [turn[threads] for turn in found["disk"]]
        rates = [sample["reads_per_second"] for sample in samples]
        lines.append([threads, ranged([rate / 1000 for rate in rates], ".1f"),
                      *(f"{statistics.median(sample[field] for sample in samples):.3f}"
                        for field in ("p50_ms", "p99_ms")),
                      *(f"{ceiling(found, cold, statistics.median(rates)):.2f}" for cold in rivals.COLD_PERCENTS)])
    return table(["threads", "thousand reads/s", "p50, ms", "p99, ms",
                  *(f"ceiling of {100 - cold}/{cold}" for cold in rivals.COLD_PERCENTS)], lines)


def ceiling(found, cold, reads):
    """The share of the speed in memory that the disk allows."""
    samples = found["rows"][f"{100 - cold}/{cold}, read only"][rivals.IN_MEMORY]
    base = statistics.median(sample["requests_per_second"] for sample in samples)
    return min(1.0, reads / (cold / 100 * base))


def filled_table(found):
    lines = []
    for name in rivals.SUBJECTS:
        runs = [turn[name] for turn in found["filled"]]
        lines.append([name, ranged([run["seconds"] for run in runs], ".0f"), f"{max(run['refused'] for run in runs):,}",
                      f"{max(run['gone'] for run in runs):,}", percent(runs, lambda run: run["cold_share"])])
    return FILLING.format(rate=tiered.EXTSTORE_FILL_RATE) + table(
        ["", "took, s", "refused, at most", "dropped, at most", "values not in memory"], lines)


def off_part(found):
    lines = []
    for cell, samples in found.items():
        now, then = samples[off.NOW], samples[off.THEN]
        lines.append([cell, *(ranged([sample["requests_per_second"] / 1000 for sample in of], ".1f")
                              for of in (then, now)), ranged(ratios(now, then), ".3f"), str(len(now))])
    return OFF.format(table=table(["connections × pipeline", "before tiers, thousand/s", "now", "ratio", "rounds"], lines))


def overwrite_part(found):
    rows = found["rows"]
    start, end = overwrite.speeds(found)
    saving = [row for row in rows if row["saving"]]
    lines = [[f"{overwrite.amplification(found):.2f}", f"{start / 1000:.1f}", f"{end / 1000:.1f}",
              f"{max(files(found)):.1%}", refused_share(saving), refused_share([row for row in rows if not row["saving"]]),
              f"{min(row['requests'] for row in rows) / 1000:.1f}", f"{len(rows):,}"]]
    return OVERWRITE.format(
        keys=found["keys"], tier_mib=found["tier_bytes"] / MIB, connections=overwrite.CONNECTIONS,
        rounds=rows[-1]["put"] / found["tier_bytes"], fill=statistics.median(row["fill"] for row in rows),
        table=table(["bytes written for each one moved", "start, thousand/s", "end", "file at most, of tier-max",
                     "SETs refused amid snapshots", "and otherwise", "worst second, thousand/s", "seconds"], lines))


def refused_share(rows):
    """Of all SETs of these seconds."""
    refused = sum(row["refused"] for row in rows)
    sent = refused + sum(row["requests"] for row in rows)
    return f"{refused / max(1, sent):.1%} of {sent:,}"


def files(found):
    """The file against `tier-max`, of each second."""
    return [row["file"] / found["tier_bytes"] for row in found["rows"]]


def masses_part(found):
    lines = []
    for deed, runs in found["deeds"].items():
        lines.append([deed, f"{statistics.median(run['cold'] for run in runs):,.0f}",
                      ranged([run["took_seconds"] for run in runs], ".1f"),
                      *(ranged([max(run[phase], default=0.0) for run in runs], ".1f")
                        for phase in ("before", "during", "after")),
                      *(ranged([run[turn] for run in runs], ".1f")
                        for turn in ("turn_before", "turn_before_cpu", "turn", "turn_cpu"))])
    pauses = MASSES_PAUSES.format(
        seconds=masses.PAUSE_SECONDS, **{name: ", ".join(f"{pause:.1f}" for pause in found[name])
                                         for name in ("pauses", "pauses_cpu")})
    header = ["", "cold keys", "took, s", "slowest before", "during", "after", "longest turn before", "of its core",
              "during and after", "of its core"]
    return MASSES.format(keys=found["keys"], limit=FIFO_LIMIT[found.get("unthrottled")], pauses=pauses,
                         connections=masses.BYSTANDER_CONNECTIONS, batch=masses.BATCH, clients=masses.CONNECTIONS,
                         table=table(header, lines), **found["idle"])


def scarce_part(found):
    lines = [[phase, f"{row['took_seconds']:.0f}", f"{row['used'] / found['maxmemory']:.1%}",
              f"{row['resident'] / found['group_bytes']:.1%}", f"{row['requests']:,}", f"{row['refused']:,}"]
             for phase, row in found["phases"].items()]
    return SCARCE.format(keys=found["keys"], group=found["group_bytes"] / MIB, outcome=found["outcome"], table=table(
        ["", "took, s", "used_memory, of maxmemory", "resident, of the group's", "SETs", "refused"], lines))


def bytes_part(found):
    lines = [[f"{row['keys']:,}", f"{cold_bytes.over_name(row):.1f}", f"{row['in_memory']:,}", f"{row['buffered']:,}"]
             for row in found]
    return BYTES.format(table=table(["cold keys", "bytes each", "others", "bytes in buffers"], lines))


def replica_part(found):
    lines = [[str(turn), f"{row['changes_per_second']:,.0f}", f"{max(row['behind_seconds']):.2f}", f"{row['fetched']:,}"]
             for turn, row in enumerate(found["turns"], 1)]
    return REPLICA.format(keys=found["keys"], asked=found["asked"], share=small_replica.MEMORY_SHARE, table=table(
        ["turn", "changes a second", "behind at most, s", "values fetched"], lines))


PARTS = {"rivals": rivals_part, "off": off_part, "overwrite": overwrite_part, "masses": masses_part,
         "scarce": scarce_part, "bytes": bytes_part, "replica": replica_part,
         "slow": slow_memory_tables.part}
