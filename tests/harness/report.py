"""Counts what passed and what failed, and ends as every suite must: one plain closing line."""

import pathlib
import sys
import traceback

# Claims that the server does not meet yet, one a line: shown, not counted as failed, so that the
# suites can stand in CI while the server grows. It only shrinks.
PENDING = pathlib.Path(__file__).resolve().parents[1] / "pending.txt"


class Report:
    """One suite's outcome. `check` runs one named claim; `close` prints the line and exits.

    A `quiet` one prints nothing: for a run that is meant to fail.
    """

    def __init__(self, quiet=False):
        self.passed = 0
        self.failed = []
        self.quiet = quiet
        self.pending = set(PENDING.read_text().splitlines()) if PENDING.exists() else set()

    def add(self, name, passed, detail=""):
        mark = "ok  " if passed else "FAIL"
        if passed:
            self.passed += 1
            if name in self.pending:
                detail = "no longer pending: take it out of tests/pending.txt"
        elif name in self.pending and not self.quiet:
            mark = "not yet"
        else:
            self.failed.append(name)
        if self.quiet:
            return
        print(f"{mark} {name}" + (f": {detail}" if detail else ""), flush=True)

    def check(self, name, claim):
        """Runs `claim`; it fails by raising. What it returns is printed as a detail."""
        try:
            detail = claim()
        except Exception as error:  # the suite must go on to the next claim
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.add(name, False, f"{type(error).__name__}: {error} ({where.name}:{where.lineno})")
        else:
            self.add(name, True, "" if detail is None else str(detail))

    def close(self):
        print(f"{self.passed} passed, {len(self.failed)} failed", flush=True)
        sys.exit(1 if self.failed else 0)
