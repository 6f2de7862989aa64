"""Builds the release once more, with a profile: which ways through the code are taken often is counted under a load first,
and the compiler then lays out, inlines and optimises by that. Makes target/profiled/release/kiln; words behind this
script's name go to cargo, for both builds (`--features etcd`).

The load is a part of each row of `make bench` and, so that what those do not touch does not count as never used, a
snapshot, a restart, a replica and a tier. Two builds of a release and a minute or two of load: 20 minutes.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from subjects import PROFILED
from harness import paths

import machine
import training

# The build that counts, what it counted, and the build that is made of it.
TARGET = paths.ROOT / "target"
COUNTING, COUNTS, MERGED = TARGET / "counting", TARGET / "counting" / "counts", TARGET / "counting" / "kiln.profdata"
USING = TARGET / "profiled"

# rustup's name for LLVM's programs of the compiler's own version: an older one cannot read what it writes.
COMPONENT = "llvm-tools"


def build(*arguments):
    """Makes it, with these words for cargo."""
    merge = llvm_profdata()
    machine.build_examples("load")
    release(COUNTING, f"-Cprofile-generate={COUNTS}", arguments)
    # Programs that ran for the build have counted too.
    shutil.rmtree(COUNTS, ignore_errors=True)
    training.run(COUNTING / "release" / "kiln", say)
    subprocess.run([merge, "merge", "-o", MERGED, COUNTS], check=True)
    # What no load reached has no counts, and there is a warning for each.
    release(USING, f"-Cprofile-use={MERGED} -Cllvm-args=-pgo-warn-missing-function=false", arguments)
    say(f"built {PROFILED.program}")


def say(text):
    print(text, flush=True)


def release(target, flags, arguments):
    """Builds with these flags of the compiler, which do not reach C."""
    say(f"builds a release with {flags.split('=')[0]}")
    subprocess.run(["cargo", "build", "--release", "-p", "kiln", "--target-dir", target, *arguments], cwd=paths.ROOT,
                   env={**os.environ, "RUSTFLAGS": flags}, check=True)


def llvm_profdata():
    """The program that merges counts, installed by rustup if it is not there."""
    sysroot = pathlib.Path(subprocess.run(["rustc", "--print", "sysroot"], cwd=paths.ROOT, capture_output=True, text=True,
                                          check=True).stdout.strip())

    def found():
        return next(sysroot.glob("lib/rustlib/*/bin/llvm-profdata"), None)

    if found() is None:
        if shutil.which("rustup") is None:
            raise SystemExit(f"a build with a profile needs LLVM's programs beside {sysroot}, which rustup installs as "
                             f"{COMPONENT}: there is no rustup")
        subprocess.run(["rustup", "component", "add", COMPONENT], cwd=paths.ROOT, check=True)
    if found() is None:
        raise SystemExit(f"rustup's {COMPONENT} for {sysroot} has no llvm-profdata")
    return found()


if __name__ == "__main__":
    sys.exit(build(*sys.argv[1:]))
