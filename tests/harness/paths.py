"""Where things lie. Everything a suite downloads or writes is under `.cache`, which git ignores."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"

# Servers keep their data here rather than under /tmp, which is memory on many machines: a test of
# durability or a benchmark of fdatasync must meet a disk.
RUNS = CACHE / "runs"

# What cargo compiles for tests: one set of packages and features, so that nothing is compiled twice,
# and all features, so that all are tested.
BUILD = ["--workspace", "--features", "etcd", "--profile", "checked"]

# The build that tests use: optimised, every assertion on.
KILN = ROOT / "target" / "checked" / "kiln"
KILN_COMMAND = f"{KILN} server"

REDIS_SOURCE = CACHE / "redis-7.0.15"


# What a suite of semantics may write: thousands of writes one after the other, each synced.
FAST_BYTES_MIN = 2 << 30


def fast_folder():
    """Memory where the machine offers enough of it: for tests that are not about durability.

    Redis's suite writes one request at a time, so on a slow disk it measures little but the disk.
    """
    memory = pathlib.Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= FAST_BYTES_MIN:
        return memory
    RUNS.mkdir(parents=True, exist_ok=True)
    return RUNS


def tool(name):
    """The path of an installed program, or of the one that tests/install put under `.cache/bin`."""
    found = perhaps(name)
    if found == name:
        raise SystemExit(f"{name} is missing: run tests/install")
    return found


def perhaps(name):
    """As `tool`, or the name alone of what is missing."""
    own = CACHE / "bin" / name
    return str(own) if own.exists() else shutil.which(name) or name


def stock_command():
    """Redis 7.0.15 as Debian ships it: the oracle that every suite is checked against."""
    return tool("redis-server")


def valkey_command():
    """Valkey 9.1: the oracle for what Redis 7.0 does not have."""
    return tool("valkey-server")


# Kiln with a tier, by what comes first in `--server-command`: with every value there, and with a part of them.
TIERED = ("all-cold", "part-cold")


def server_command(named):
    """What a suite's `--server-command` means: `stock` and `valkey` are these two, `all-cold` and `part-cold` are
    Kiln with a tier, all else is a command."""
    oracles = {"stock": stock_command, "valkey": valkey_command}
    if named in TIERED:
        return f"{ROOT / 'tests' / 'harness' / named} server"
    return oracles[named]() if named in oracles else named
