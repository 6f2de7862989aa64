"""Where things lie. Everything a suite downloads or writes is under `.cache`, which git ignores."""

import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"

# Servers keep their data here rather than under /tmp, which is memory on many machines: a test of
# durability or a benchmark of fdatasync must meet a disk.
RUNS = CACHE / "runs"

# The build that tests use: optimised, every assertion on.
KILN = ROOT / "target" / "checked" / "kiln"
KILN_COMMAND = f"{KILN} server"

REDIS_SOURCE = CACHE / "redis-7.0.15"


def tool(name):
    """The path of an installed program, or of the one that tests/install put under `.cache/bin`."""
    own = CACHE / "bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is missing: run tests/install")
    return found


def stock_command():
    """Redis 7.0.15 as Debian ships it: the oracle that every suite is checked against."""
    return tool("redis-server")
