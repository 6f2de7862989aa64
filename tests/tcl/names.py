"""The files that say which tests count, by their names.

- `denominator/FILE.txt`: what a stock server passes in every one of several runs. A line is the letters
  of the modes (units.py) and the test's name, repeated when a file runs it again. Fixed: it never shrinks
  because a server under test lacks something.
- `flaky.txt`: what stock passed in some runs only, with how often. They do not count.
- `differences.txt`: what Kiln does not pass, in any mode, `file<TAB>test<TAB>why`. Everything else of the
  denominator must pass. First those that need an AOF or a fork, then, behind the line `# others`, at most
  ten more.
- `cold.txt`: likewise, what need not pass where every value is cold: tests in which a client relies on being
  served before another one without waiting for its answer, or on a value being in memory.
"""

import pathlib
from collections import Counter

from harness import judge

HERE = pathlib.Path(__file__).resolve().parent
DENOMINATOR = HERE / "denominator"
FLAKY = HERE / "flaky.txt"
DIFFERENCES = HERE / "differences.txt"
COLD = HERE / "cold.txt"

# The line behind which those stand that need neither an AOF nor a fork, and how many may.
OTHERS, OTHERS_MAX = "# others", 10


def _lines(unit):
    """What the file of this unit says: how often each test must pass, for each letter of a mode."""
    counts = {}
    path = DENOMINATOR / unit.file
    for line in path.read_text().splitlines() if path.exists() else []:
        letters, name = line.split(" ", 1)
        for letter in letters:
            counts.setdefault(letter, Counter())[name] += 1
    return counts


def denominator(unit):
    """How often each test of `unit` must pass in its mode."""
    return _lines(unit).get(unit.mode.letter, Counter())


def write_denominator(unit, names):
    """Puts `names` in the place of what the file said of the unit's mode."""
    counts = {**_lines(unit), unit.mode.letter: names}
    lines = []
    for name in set().union(*counts.values()):
        for nth in range(max(count[name] for count in counts.values())):
            letters = "".join(sorted(letter for letter, count in counts.items() if count[name] > nth))
            lines.append((name, f"{letters} {name}\n"))
    (DENOMINATOR / unit.file).write_text("".join(line for _, line in sorted(lines)))


def differences():
    """The tests that Kiln does not pass, each with its reason, by the names of their files."""
    _, heading, others = DIFFERENCES.read_text().partition(f"\n{OTHERS}\n")
    if not heading or len(others.splitlines()) > OTHERS_MAX:
        raise SystemExit(f"{DIFFERENCES}: at most {OTHERS_MAX} tests may stand behind a line '{OTHERS}'")
    return judge.differences(DIFFERENCES)


def cold_differences():
    """As `differences`, of servers whose values are all cold."""
    return judge.differences(COLD)
