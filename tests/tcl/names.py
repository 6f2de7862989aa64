"""The files that say which tests count: one test name a line, repeated when a file runs it again.

- `denominator/FILE.txt`: what a stock server passes in every one of several runs. Fixed: it never
  shrinks because a server under test lacks something.
- `flaky.txt`: what stock passed in some runs only, with how often. They do not count.
- `passing.txt`: what Kiln must pass today, `unit/name<TAB>test`. It only grows, until it equals the
  denominator.
"""

import pathlib
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
DENOMINATOR = HERE / "denominator"
FLAKY = HERE / "flaky.txt"
PASSING = HERE / "passing.txt"


def denominator(unit):
    """How often each test of `unit` must pass."""
    return Counter((DENOMINATOR / unit.file).read_text().splitlines())


def write_denominator(unit, names):
    lines = sorted(names.elements())
    (DENOMINATOR / unit.file).write_text("".join(f"{line}\n" for line in lines))


def passing():
    """What must pass today, as a counter of names for each unit's name."""
    required = {}
    if PASSING.exists():
        for line in PASSING.read_text().splitlines():
            unit, _, name = line.partition("\t")
            required.setdefault(unit, Counter())[name] += 1
    return required


def write_passing(required):
    lines = sorted(f"{unit}\t{name}\n" for unit, names in required.items()
                   for name in names.elements())
    PASSING.write_text("".join(lines))
