"""The files that say which tests are asked for, one name a line.

- `denominator/SUITE.txt`: what a stock redis-server passed in every one of several runs.
- `denominator/SUITE-later.txt`: what it does not pass and a Valkey does, likewise.
- `differences.txt`: those that cannot pass here, `SUITE<TAB>test<TAB>reason`. One that passes after all
  counts as a failure, so that no line outlives its reason.
"""

import pathlib

from harness import judge

HERE = pathlib.Path(__file__).resolve().parent
DENOMINATOR = HERE / "denominator"
DIFFERENCES = HERE / "differences.txt"


def denominator(suite, later=False):
    file = DENOMINATOR / f"{suite}{'-later' if later else ''}.txt"
    return set(file.read_text().splitlines()) if file.exists() else set()


def write_denominator(suite, names, later=False):
    file = DENOMINATOR / f"{suite}{'-later' if later else ''}.txt"
    file.parent.mkdir(exist_ok=True)
    if names:
        file.write_text("".join(f"{name}\n" for name in sorted(names)))
    else:
        file.unlink(missing_ok=True)


def differences(suite):
    """Reasons by test."""
    return judge.differences(DIFFERENCES).get(suite, {})
