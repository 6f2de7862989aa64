"""Throughput at saturation, and latency at rates below it (the MemoryDB paper, figures 4 and 5).

At saturation each connection sends its next request once the last is answered, so times are those of a queue of all
connections. Below it, requests fall due at a fixed rate whether or not the server keeps up, and a time counts from
when its request was due.
"""

import load
import paper_load
import paper_servers
from paper_load import GOAL, GOAL_SHARE, SATURATION, WORKLOADS, Load, told
from turns import in_turn

SECONDS = 5

# Requests a second. The paper offers 20, 50, 100, 150 and 200 thousand to a machine of 64 cores.
RATES = (5_000, 10_000, 20_000, 35_000, 50_000, 65_000, 80_000, 100_000, 150_000, 200_000)

# Nearer to what a server answers at most a queue grows for as long as one looks.
RATE_SHARE_MAX = 0.9


def run(options, note):
    """Returns {"keys", "processes", "seconds", "workloads": {workload: {row: {server: [sample of each turn]}}}}. A row
    is SATURATION, a rate, or GOAL; a server has no sample of a rate too near to what it answered in that turn."""
    keys, seconds = paper_load.keys_of(options), paper_load.seconds_of(options, SECONDS)
    found = {"keys": keys, "processes": options.processes, "seconds": seconds, "workloads": {}}
    with paper_servers.started(options.servers) as servers:
        for server in servers.values():
            load.fill_keys(server.port, keys)
        for turn in range(options.turns):
            for workload in WORKLOADS:
                for row, name, sample in one_turn(turn, workload, servers, options, found):
                    rows = found["workloads"].setdefault(workload, {})
                    rows.setdefault(row, {}).setdefault(name, []).append(sample)
                    note(f"turn {turn + 1}: {workload}, {row}: {name}: {told(sample)}")
    return found


def one_turn(turn, workload, servers, options, found):
    """Each row with what each server showed in it."""
    most = {}
    rows = (SATURATION, *map(str, RATES), GOAL)
    for number, row in enumerate(rows):
        for name in in_turn(options.servers, turn, number):
            rate = rate_of(row, most.get(name))
            if rate is None:
                continue
            seed = (list(WORKLOADS).index(workload) * options.turns + turn) * len(rows) + number + 1
            wanted = Load(workload, options.processes, found["seconds"], found["keys"], seed, rate)
            sample = paper_load.measured(servers, name, wanted)
            if row == SATURATION:
                most[name] = sample["requests_per_second"]
            yield row, name, sample


def rate_of(row, most):
    """Requests a second to offer to a server that answers `most`; 0 for as many as it does, None for no row of its."""
    if row == SATURATION:
        return 0
    if row == GOAL:
        return int(most * GOAL_SHARE)
    return int(row) if int(row) <= most * RATE_SHARE_MAX else None
