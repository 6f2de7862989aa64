"""Builds the release once more, with a profile: which ways through the code are taken often is counted under a load first,
and the compiler then lays out, inlines and optimises by that. Makes target/profiled/release/kiln.

The load is a part of each row of `make bench` and, so that what those do not touch does not count as never used, a
snapshot, a restart, a replica and a tier. Two builds of a release and two minutes of load: 20 minutes.
"""

import argparse
import os
import pathlib
import shutil
import subprocess

from subjects import LOAD_CORE, PLAIN, PROFILED, SERVER_CORE
from harness import paths

import machine
import training

# The build that counts, what it counted, and the build that is made of it.
TARGET = paths.ROOT / "target"
COUNTING, COUNTS, MERGED = TARGET / "counting", TARGET / "counting" / "counts", TARGET / "counting" / "kiln.profdata"
USING = TARGET / "profiled"

# Between flags in CARGO_ENCODED_RUSTFLAGS, which may have spaces.
SEPARATOR = "\x1f"

# rustup's name for LLVM's programs of the compiler's own version: an older one cannot read what it writes.
COMPONENT = "llvm-tools"


def build(features=()):
    """Makes it, with these features. What was counted is counted anew only once the program or its training is another."""
    check_machine()
    merge = llvm_profdata()
    machine.build_examples("load")
    counting = release(COUNTING, [f"-Cprofile-generate={COUNTS}"], features)
    newest = max(file.stat().st_mtime for file in (counting, pathlib.Path(training.__file__)))
    if not MERGED.exists() or MERGED.stat().st_mtime < newest:
        # Programs that ran for the build have counted too.
        shutil.rmtree(COUNTS, ignore_errors=True)
        training.run(counting, say)
        subprocess.run([merge, "merge", "-o", MERGED, COUNTS], check=True)
    # What no load reached has no counts, and there is a warning for each.
    flags = [f"-Cprofile-use={MERGED}", "-Cllvm-args=-pgo-warn-missing-function=false"]
    say(f"built {release(USING, flags, features)}")


def check():
    """Refuses to go on where this build, or the plain one, is missing, or where this was made before that: it may be of
    older code. (Of the same code either may be the older one: whoever builds does not ask.)"""
    for subject in (PROFILED, PLAIN):
        if not subject.is_there:
            raise SystemExit(f"{subject.program} is missing: without --no-build it is built")
    if os.stat(PROFILED.program).st_mtime < os.stat(PLAIN.program).st_mtime:
        raise SystemExit(f"{PROFILED.program} is older than {PLAIN.program}: without --no-build both are built")


def check_machine():
    """Before minutes of compiling: what the training needs."""
    for name in ("openssl", "taskset"):
        paths.tool(name)
    if missing := {int(SERVER_CORE), int(LOAD_CORE)} - os.sched_getaffinity(0):
        raise SystemExit(f"the training needs cores {SERVER_CORE} and {LOAD_CORE}, and may not use {missing}")


def say(text):
    print(text, flush=True)


def release(target, flags, features):
    """Builds with these flags of the compiler beside those that are set, which do not reach C. Returns the program."""
    say(f"builds a release with {flags[0].split('=')[0]}")
    # As cargo looks for them: the first of these that is there, and only that.
    set_already = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    words = set_already.split(SEPARATOR) if set_already else os.environ.get("RUSTFLAGS", "").split()
    subprocess.run(["cargo", "build", "--release", "-p", "kiln", "--target-dir", target,
                    *(word for feature in features for word in ("--features", feature))], cwd=paths.ROOT, check=True,
                   env={**os.environ, "CARGO_ENCODED_RUSTFLAGS": SEPARATOR.join([*words, *flags])})
    return target / "release" / "kiln"


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", nargs="+", default=[], help="of the server, as cargo knows them")
    build(parser.parse_args().features)
