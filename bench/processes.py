"""How many load processes one core bears: the MemoryDB paper's ten have a machine each."""

import itertools
import statistics

import load
import paper_servers
from paper_load import COUNTS, GOAL, GOAL_SHARE, IDLE_MIN, SATURATION, Load, keys_of, measured, seconds_of, told
from turns import in_turn

SECONDS = 3


def run(options, note):
    """Returns {workload: {SATURATION or GOAL: {processes: {server: [sample of each turn]}}}}."""
    keys, seconds = keys_of(options), seconds_of(options, SECONDS)
    found = {}
    rows = [(workload, count) for workload in ("read-only", "write-only") for count in COUNTS]
    with paper_servers.started(options.servers) as servers:
        for server in servers.values():
            load.fill_keys(server.port, keys)
        for turn in range(options.turns):
            for number, (workload, count) in enumerate(rows):
                most = {}
                for kind in (SATURATION, GOAL):
                    seed = 2 * (len(rows) * turn + number) + (kind == GOAL)
                    for name in in_turn(options.servers, turn, number):
                        wanted = Load(workload, count, seconds, keys, seed, int(most.get(name, 0) * GOAL_SHARE))
                        sample = measured(servers, name, wanted)
                        if kind == SATURATION:
                            most[name] = sample["requests_per_second"]
                        kinds = found.setdefault(workload, {}).setdefault(kind, {})
                        kinds.setdefault(str(count), {}).setdefault(name, []).append(sample)
                        note(f"turn {turn + 1}: {workload}, {count} processes, {kind}: {name}: {told(sample)}")
    return found


def borne(found):
    """The most processes that leave the load's core idle now and then, whoever is asked, but for KILN_JETSTREAM: its
    log is kept on that core, too. The fewest, where nobody else was asked."""
    def is_borne(count):
        shares = [statistics.median(sample["load_idle"] for sample in samples)
                  for kinds in found.values() for counts in kinds.values()
                  for name, samples in counts[str(count)].items() if name != paper_servers.KILN_JETSTREAM]
        return bool(shares) and min(shares) >= IDLE_MIN

    return max(itertools.takewhile(is_borne, COUNTS), default=min(COUNTS))
