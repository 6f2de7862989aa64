"""Judging by tests that others wrote: what a stock server passes must pass, less the differences that are
named.

`differences.txt` of such a suite has lines of a group of tests, a test, and why it does not pass here, with tabs
between. Lines that begin with `#` are for readers.
"""

import typing
from collections import Counter


class Verdict(typing.NamedTuple):
    """How many of the tests asked for passed, and the names of others. A name is there as often as its test."""

    passed: int
    failed: list
    # Failed, and named as differences.
    differing: list
    # Named, and passed all the same: the line has outlived its reason.
    outlived: list
    # Named, and not asked for.
    unknown: list


def differences(file):
    """The reason of each test that is named, by group and test."""
    named = {}
    for line in file.read_text().splitlines():
        if not line.startswith("#"):
            group, test, reason = line.split("\t")
            named.setdefault(group, {})[test] = reason
    return named


def judge(asked, passed, named):
    """`asked` and `passed` are names, or count them where a test runs several times."""
    asked, passed = Counter(asked), Counter(passed)
    missing = asked - passed
    return Verdict(
        passed=(asked - missing).total(),
        failed=sorted(name for name in missing.elements() if name not in named),
        differing=sorted(name for name in missing.elements() if name in named),
        outlived=sorted(name for name in named if asked[name] and not missing[name]),
        unknown=sorted(name for name in named if not asked[name]))
