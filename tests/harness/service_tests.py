"""Runs the Rust tests of one service that keeps logs, and obeys the orders that they give."""

import argparse
import os
import subprocess
import sys
import time

from . import paths
from .control import Control
from .resp import Refusal
from .server import READY_SECONDS_MAX, Server, die_with_parent


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--faults", type=int, default=0, metavar="N",
                        help="so many faults under load in a row, beside the short ones")
    parser.add_argument("only", nargs="*", help="parts of the names of tests; all when none is named")
    return parser.parse_args()


def inspect(log):
    """Whether `kiln log inspect` shows what a server writes to the log at this URL, beside it."""
    subprocess.run(["cargo", "build", "-q", *paths.BUILD, "--bin", "kiln"], cwd=paths.ROOT, check=True)
    program = str(paths.KILN)
    absent = subprocess.run([program, "log", "inspect", log], capture_output=True, text=True)
    with Server(paths.KILN_COMMAND, ["--transaction-log", log]) as server, server.client() as client:
        write(client, "ZADD", "inspected", "1.5", "member")
        done = subprocess.run([program, "log", "inspect", log], capture_output=True, text=True)
    is_shown = ' db 0 "inspected" sorted-add 1.5 "member"\n' in done.stdout
    passes = absent.returncode == 1 and done.returncode == 0 and is_shown
    if not passes:
        print(absent, done, sep="\n", file=sys.stderr)
    print(f"{int(passes)} passed, {int(not passes)} failed", flush=True)
    return passes


def write(client, *command):
    """Has a server write that may have to lead first."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            return client.call(*command)
        except Refusal:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def run(service, environment, chosen, obey):
    """Exit status of the tests in the module `service` of crates/services/tests/logs."""
    control = Control()
    environment = {**os.environ, **environment, "KILN_TEST_CONTROL": control.address}
    if chosen.faults:
        environment["KILN_TEST_FAULTS"] = str(chosen.faults)
    names = chosen.only or [f"{service}::"]
    # One at a time: a test that kills a server would disturb the others.
    line = ["cargo", "test", *paths.BUILD, "--test", "logs", "--", "--test-threads=1", *names]
    process = subprocess.Popen(line, cwd=paths.ROOT, env=environment, preexec_fn=die_with_parent)
    return control.obey_until(process, obey)
