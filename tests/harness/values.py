"""One value of every type and encoding, as requests: what `crates/engine/src/rdb/tests` was recorded
from."""

import re

from . import paths

FILE = paths.ROOT / "crates" / "engine" / "src" / "rdb" / "tests" / "values.txt"


def requests():
    """Each request's words. Some need DEBUG."""
    for line in FILE.read_text().splitlines():
        if not line.startswith("#"):
            yield list(_words(line.removeprefix("! ")))


def _words(line):
    for word in line.split(" "):
        if match := re.fullmatch(r"\{(\d+)\.\.(\d+)\}", word):
            yield from (str(number) for number in range(int(match[1]), int(match[2]) + 1))
        elif match := re.fullmatch(r"\{(\w+)\*(\d+)\}", word):
            yield match[1] * int(match[2])
        else:
            yield word
