"""Runs one file of Redis's Tcl suite against a fresh server and reads each test's outcome.

Most files are given the one server that runs. Those that are about configuration files start
servers themselves, as `src/redis-server FILE`: there they find a script that starts the server under test.

The suite keeps its temporary files in `tests/tmp` of its own folder and clears that folder when it
starts, so each run gets a folder of links with a `tests/tmp` of its own, and a range of ports.
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter

from harness import paths
from harness.authority import TestAuthority
from harness.server import Died, Ports, Server, die_with_parent, environment

PASSED = re.compile(r"^\[ok\]: (.*) \(\d+ ms\)$")
FAILED = re.compile(r"^\[err\]: (.*) in tests/\S+\.tcl$")
DONE = re.compile(r"^\[\d+/\d+ done\]: ")

# How long one test may take: the slowest takes 15 s on a busy machine with a stock server. A server
# that hangs is found all the same, only later.
QUIET_SECONDS_MAX = 300

# Names that hold what the run measured or drew: the name without it is the test's identity.
VARYING = [re.compile(r"(?<=\()\d+(?= (?:ms|usec)\))")]


@dataclasses.dataclass
class Outcome:
    """What one file did. Names are counted: some files run the same test for several encodings."""

    passed: Counter
    failed: Counter
    # What the suite says of tests that failed.
    messages: dict
    output: str
    reason: str = ""
    seconds: float = 0


# What the suite waits for in the output of a server that it started: its process's id, which it
# reads to know that it runs at all.
STARTER = """#!/bin/sh
echo " PID: $$"
exec {command} "$@" 2>&1
"""


def run(unit, command):
    """Runs `unit` against servers started by `command`; they are ended in every case."""
    began = time.monotonic()
    outcome = (_run_spawning if unit.mode.spawn else _run_given)(unit, command)
    outcome.seconds = time.monotonic() - began
    return outcome


def _run_given(unit, command):
    """Runs a file against the one server that it is given."""
    server = Server(command, unit.mode.server, folder=paths.fast_folder())
    suite = _suite_folder(server.directory, unit)
    try:
        server.start()
        if "--cluster-mode" in unit.mode.flags:
            _own_all_slots(server)
        target = ["--host", "127.0.0.1", "--port", str(server.port)]
        output, reason = _runtest(unit, target, suite)
        if not server.alive():
            reason = f"the server ended with {server.process.returncode}\n{server.log_tail()}"
    except Died as death:
        output, reason = "", str(death)
    finally:
        server.close()
    return _parse(output, reason)


def _own_all_slots(server):
    """Gives all slots to a server of a cluster that has none yet."""
    with server.client() as client:
        if b"cluster_state:ok" in client.call("CLUSTER", "INFO"):
            return
        client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        for _ in range(300):
            if b"cluster_state:ok" in client.call("CLUSTER", "INFO"):
                return
            time.sleep(0.1)
    raise Died("the cluster is not ok though its server has all slots")


def _run_spawning(unit, command):
    """Runs a file that starts its servers itself, in the folder of the suite."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="kiln-suite-", dir=paths.fast_folder()))
    try:
        suite = _suite_folder(directory, unit)
        starter = suite / "src" / "redis-server"
        words = command if isinstance(command, list) else shlex.split(command)
        starter.write_text(STARTER.format(command=shlex.join(map(str, words))))
        starter.chmod(0o755)
        output, reason = _runtest(unit, [], suite)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return _parse(output, reason)


def _suite_folder(directory, unit):
    """A folder that looks like Redis's source to runtest, writable where runtest writes, with the
    unit's file as it is to be run."""
    suite = directory / "suite"
    (suite / "tests").mkdir(parents=True)
    source = paths.REDIS_SOURCE
    if not (source / "runtest").exists():
        raise SystemExit("Redis's suite is missing: run tests/install")
    (suite / "runtest").symlink_to(source / "runtest")
    for entry in (source / "tests").iterdir():
        if entry.name != "tmp":
            (suite / "tests" / entry.name).symlink_to(entry)
    if unit.without:
        _leave_out(suite / "tests" / "unit", unit)
    if "--tls" in unit.mode.flags:
        _certificates(suite / "tests" / "tls")
    (suite / "src").mkdir()
    for name in ("redis-cli", "redis-benchmark"):
        (suite / "src" / name).symlink_to(paths.tool(name))
    return suite


def _certificates(folder):
    """What `utils/gen-test-certs.sh` makes, under the names that the suite knows."""
    folder.mkdir()
    with TestAuthority() as authority:
        shutil.copy(authority.file("ca.crt"), folder)
        for name in ("server", "client", "redis"):
            for file in authority.issue(name, rsa=True):
                shutil.copy(file, folder)
    line = [paths.tool("openssl"), "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048"]
    subprocess.run([*line, "-out", folder / "redis.dh"], check=True, capture_output=True)


def _leave_out(folder, unit):
    """Puts a folder of links in the place of a link to the folder of tests, but for one file."""
    source = folder.resolve()
    folder.unlink()
    folder.mkdir()
    for entry in source.iterdir():
        (folder / entry.name).symlink_to(entry)
    file = folder / (unit.name.removeprefix("unit/") + ".tcl")
    lines = file.read_text().splitlines(keepends=True)
    file.unlink()
    file.write_text("".join(line for line in lines if line.rstrip("\n") not in unit.without))


def _runtest(unit, target, suite):
    """Returns runtest's output and, when it had to be ended, why. `target` names a running server;
    with none the suite starts its own."""
    # The suite's two processes meet at a port of the 32 below those that its servers take.
    ports = Ports(32 + 64)
    line = ["./runtest", *target, "--durable", "--single", unit.name, "--clients", "1", "--baseport",
            str(ports.first + 32), "--portcount", "64", "--timeout", str(QUIET_SECONDS_MAX)]
    line += unit.mode.flags
    if unit.mode.tags:
        line += ["--tags", unit.mode.tags]
    settings = {**environment(), "TERM": "dumb"}
    with open(suite / "output", "wb") as output:
        process = subprocess.Popen(
            line, cwd=suite, stdout=output, stderr=subprocess.STDOUT, env=settings,
            stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent)
        try:
            process.wait(unit.seconds_max)
            reason = ""
        except subprocess.TimeoutExpired:
            reason = f"not finished within {unit.seconds_max} s"
        finally:
            _end_group(process)
            ports.close()
    return (suite / "output").read_text("utf-8", "replace"), reason


def _end_group(process):
    """runtest is a shell over two Tcl processes: all of them are of the session it was given."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _parse(output, reason):
    passed, failed, messages, finished = Counter(), Counter(), {}, False
    said = []
    for line in output.splitlines():
        if match := PASSED.match(line):
            passed[_identity(match[1])] += 1
            said = []
        elif match := FAILED.match(line):
            failed[_identity(match[1])] += 1
            said = messages.setdefault(_identity(match[1]), [])
        elif DONE.match(line):
            finished = True
            said = []
        else:
            said.append(line)
    if not finished and not reason:
        reason = "the file was aborted:\n" + "\n".join(output.splitlines()[-12:])
    return Outcome(passed, failed, messages, output, reason)


def _identity(name):
    for pattern in VARYING:
        name = pattern.sub("N", name)
    return name.strip()
