"""A plugin of pytest: leads redis-py's tests to a server of ours, and writes down what came of each.

The tests name servers by redis-py's own ports, and one of them listens at a port of its own, which other
parts of the suite do at the same time. Connections there are led to the ports in KILN_SUITE, and to where
that one listens really. KILN_SUITE is a JSON object: `ports` (theirs to ours), `told` (the server's version
as the tests shall know it, or null), `asked` (a file of the tests to run, one a line, or null for all),
`part` and `parts` (of those, every `parts`-th), and `outcomes` (the file to write: `begun`, `passed`,
`failed` or `skipped`, a tab, and the test).

Some tests end the whole process when they take too long. Whoever starts it again finds in `outcomes` what
has begun, and goes on behind it.
"""

import json
import os
import pathlib
import socket

import pytest

ORDER = json.loads(os.environ["KILN_SUITE"])
OUTCOMES = pathlib.Path(ORDER["outcomes"])
PORTS = {int(theirs): ours for theirs, ours in ORDER["ports"].items()}
# Where tests/test_asyncio/test_cwe_404.py has its proxy.
PROXY = 5380
connect_really, bind_really = socket.socket.connect, socket.socket.bind


def connect(self, address):
    if isinstance(address, tuple) and address[1] in PORTS:
        address = (address[0], PORTS[address[1]], *address[2:])
    return connect_really(self, address)


def bind(self, address):
    if isinstance(address, tuple) and address[1] == PROXY:
        bind_really(self, (address[0], 0, *address[2:]))
        PORTS[PROXY] = self.getsockname()[1]
    else:
        bind_really(self, address)


socket.socket.connect, socket.socket.bind = connect, bind


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """After redis-py's own, which has asked the server."""
    if ORDER["told"]:
        session.config.REDIS_INFO["version"] = ORDER["told"]


def pytest_collection_modifyitems(items):
    if ORDER["asked"]:
        asked = set(pathlib.Path(ORDER["asked"]).read_text().splitlines())
        items[:] = [item for item in items if item.nodeid in asked]
    items[:] = items[ORDER["part"] :: ORDER["parts"]]
    if OUTCOMES.exists():
        begun = {line.split("\t", 1)[1] for line in OUTCOMES.read_text().splitlines()}
        items[:] = [item for item in items if item.nodeid not in begun]
    # Also where nothing is left to run: that the tests were read shows by the file.
    OUTCOMES.touch()


def note(outcome, test):
    with OUTCOMES.open("a") as file:
        file.write(f"{outcome}\t{test}\n")


def pytest_runtest_logstart(nodeid):
    note("begun", nodeid)


outcomes = {}


def pytest_runtest_logreport(report):
    """A test failed if any of its phases did; one that was skipped has no other phase."""
    if report.when == "call" or report.outcome != "passed":
        if outcomes.get(report.nodeid) != "failed":
            outcomes[report.nodeid] = report.outcome


def pytest_runtest_logfinish(nodeid):
    note(outcomes.get(nodeid, "failed"), nodeid)
