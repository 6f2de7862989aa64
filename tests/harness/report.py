"""Counts what passed and what failed, and ends as every suite must: one plain closing line."""

import sys
import traceback


class Report:
    """One suite's outcome. `check` runs one named claim; `close` prints the line and exits.

    A `quiet` one prints nothing: for a run that is meant to fail.
    """

    def __init__(self, quiet=False):
        self.passed = 0
        self.failed = []
        self.quiet = quiet

    def add(self, name, passed, detail=""):
        if passed:
            self.passed += 1
        else:
            self.failed.append(name)
        if not self.quiet:
            mark = "ok  " if passed else "FAIL"
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
