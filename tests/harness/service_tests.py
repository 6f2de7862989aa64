"""Runs the Rust tests of one service that keeps logs, and obeys the orders that they give."""

import argparse
import os
import subprocess

from . import paths
from .control import Control
from .server import die_with_parent


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--faults", type=int, default=0, metavar="N",
                        help="so many faults under load in a row, beside the short ones")
    parser.add_argument("only", nargs="*", help="parts of the names of tests; all when none is named")
    return parser.parse_args()


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
