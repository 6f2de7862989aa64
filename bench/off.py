"""What a tier costs a server that has none: this release beside the one of the last commit before tiers, with everything
in memory.
"""

import contextlib
import os
import subprocess

import load
import subjects
from harness import paths
from load import Cell

# The last commit before the entries of the keyspace could hold a value that is not in memory.
BEFORE = "23238f1"
BUILD_SECONDS_MAX = 3600

CELLS = [Cell("get", 100, 1, 60_000), Cell("set", 100, 1, 60_000), Cell("get", 100, 16, 500_000),
         Cell("set", 100, 16, 500_000)]

# A hundredth is to be told from the noise of a tenth or two, so each turn asks often.
ROUNDS = 20
NOW, THEN = "with tiers", "before tiers"


def run(options, note):
    """Returns {cell: {subject: [sample of each round]}}."""
    found, then = {}, built()
    made = {NOW: subjects.KILN, THEN: subjects.Subject(THEN, f"{then} server")}
    for turn in range(options.turns):
        with contextlib.ExitStack() as stack:
            # Whoever begins first has other memory.
            begins = list(made) if turn % 2 else list(reversed(made))
            servers = {name: stack.enter_context(made[name].server()) for name in begins}
            for server in servers.values():
                load.fill(server.port, load.strings(load.KEYS, load.VALUE_BYTES))
            for round_number in range(ROUNDS * len(CELLS)):
                cell = CELLS[round_number % len(CELLS)]
                order = list(servers) if (turn + round_number // len(CELLS)) % 2 else list(reversed(servers))
                for name in order:
                    if cell.test == "set":
                        load.save(servers[name])
                    sample = load.measure(servers[name], cell.scaled(options.scale))
                    found.setdefault(cell.name, {}).setdefault(name, []).append(vars(sample))
        for cell, samples in found.items():
            pairs = zip(samples[NOW], samples[THEN], strict=True)
            ratios = sorted(now["requests_per_second"] / then["requests_per_second"] for now, then in pairs)
            note(f"turn {turn + 1}: {cell}: {ratios[len(ratios) // 2]:.3f} of the speed before tiers")
    return found


def built():
    """The release of that commit. It is built once, apart from this one."""
    folder = paths.CACHE / f"before-{BEFORE}"
    made = folder / "target" / "release" / "kiln"
    if not made.exists():
        source = folder / "source"
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", BEFORE], cwd=paths.ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
        subprocess.run(["cargo", "build", "-q", "--release", "-p", "kiln"], cwd=source, check=True,
                       timeout=BUILD_SECONDS_MAX, env={**os.environ, "CARGO_TARGET_DIR": str(folder / "target")})
    return made
