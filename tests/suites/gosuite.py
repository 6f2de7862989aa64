"""Go libraries' own tests, from the modules that they publish, which hold them.

The sources are copied beside `.cache/suites`, compiled there once, and changed in one thing: ports, which
they fix, are asked from `go/ports.go` at run time. No test is changed.
"""

import collections
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import paths  # noqa: E402
from harness.server import Ports, Server, die_with_parent, environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = paths.CACHE / "suites"
PORTS_FILE = HERE / "go" / "ports.go"

SECONDS_MAX = 900

# The port at which tests expect the server; at the others they start servers themselves.
SERVER_PORT = 6379

# A test's line, or that of a part of one.
OUTCOME = re.compile(r"^ *--- (PASS|FAIL|SKIP): (.*) \([0-9.]+s\)$", re.MULTILINE)
BEGUN = re.compile(r"^=== RUN +([^/\s]+)$", re.MULTILINE)

# How often a program that a panic ended is started again, without what it had come to.
PANICS_MAX = 30

# A server as the tests start them. It ends with the tests, whatever becomes of them.
WRAPPER = """#!/bin/sh
exec setpriv --pdeathsig KILL {command} "$@"
"""


def ginkgo_name(spec):
    return " / ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])


class GoSuite:
    """A module's tests. `packages` are folders with tests; `patches` are pairs, what is found in which
    files (a glob) and what stands there instead. `theirs` are the ports that the tests fix."""

    # The tests do not ask who the server is: what came after Redis 7.0 is tested beside the rest.
    asks_version = False

    def __init__(self, name, module, version, packages, patches=(), theirs=(SERVER_PORT,), ginkgo_skip=None):
        self.name, self.module, self.version, self.packages = name, module, version, packages
        self.patches, self.theirs = patches, list(theirs)
        self.ginkgo_skip = ginkgo_skip
        self.source = FOLDER / name

    def program(self, package):
        return self.source / (package.replace("/", "-").replace(".", "root") + ".test")

    def prepare(self):
        stamp = self.source / "kiln-stamp"
        want = repr((self.version, self.packages, self.patches, self.theirs, PORTS_FILE.read_text()))
        if stamp.exists() and stamp.read_text() == want:
            return
        # Outside of any module, so that none has to name it.
        with tempfile.TemporaryDirectory() as nowhere:
            told = subprocess.run(["go", "mod", "download", "-json", f"{self.module}@{self.version}"],
                                  cwd=nowhere, check=True, stdout=subprocess.PIPE, text=True).stdout
        shutil.rmtree(self.source, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.copytree(json.loads(told)["Dir"], self.source, copy_function=shutil.copyfile)
        subprocess.run(["chmod", "-R", "u+w", self.source], check=True)
        for files, found, instead in self.patches:
            for file in sorted(self.source.glob(files)):
                text = file.read_text()
                file.write_text(re.sub(found, instead, text))
        for package in self.packages:
            folder = self.source / package
            for name in packages_that_ask(folder):
                (folder / f"kiln_ports_{name}_test.go").write_text(
                    PORTS_FILE.read_text().replace("package ports", f"package {name}"))
            subprocess.run(["go", "test", "-c", "-o", self.program(package), "."], cwd=folder, check=True)
        stamp.write_text(want)

    def outcomes(self, command, asked=None, later=False):
        """Whether each test passed. What is asked for is a part of what runs."""
        found = {}
        for package in self.packages:
            found |= Run(self, package, command).outcomes()
        return found


def packages_that_ask(folder):
    """The names of the packages in a folder whose tests ask for a port: one may test from inside, one from
    outside."""
    texts = [file.read_text() for file in folder.glob("*_test.go")]
    return {re.search(r"^package (\w+)$", text, re.MULTILINE)[1] for text in texts if "kilnPort(" in text}


class Run:
    """One package's tests, with a server on the first of its ports."""

    def __init__(self, suite, package, command):
        self.suite, self.package, self.command = suite, package, command
        self.prefix = "" if package == "." else f"{package}: "

    def outcomes(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-suite-", dir=paths.fast_folder()))
        try:
            with Ports(len(self.suite.theirs)) as ports, \
                    Server(self.command, folder=paths.fast_folder()) as server:
                return self.run(folder, ports, server)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, folder, ports, server):
        self.folder = folder
        programs = self.lay_out(server.command)
        numbers = {theirs: ports.first + at for at, theirs in enumerate(self.suite.theirs)}
        numbers[SERVER_PORT] = server.port
        surroundings = {**environment(), "KILN_PORTS": " ".join(f"{a}={b}" for a, b in numbers.items()),
                        "PATH": f"{programs}:{os.environ['PATH']}", "RUN_MONITOR_TEST": "true"}
        found = {**self.tests(surroundings), **self.specs()}
        return {self.prefix + name: passed for name, passed in found.items()}

    def lay_out(self, command):
        """The files that the tests look for beside them, a redis-server among them; the folder of that."""
        source = self.suite.source / self.package
        for name in ("testdata", "scripts"):
            if (source / name).is_dir():
                shutil.copytree(source / name, self.folder / name)
        programs = self.folder / "testdata" / "redis" / "src"
        programs.mkdir(parents=True)
        (self.folder / "testdata" / "redis" / "redis.conf").touch()
        wrapper = programs / "redis-server"
        wrapper.write_text(WRAPPER.format(command=shlex.join(command)))
        wrapper.chmod(0o755)
        return programs

    def tests(self, surroundings):
        """What came of each test of Go: the program is started again behind one that ended it."""
        found, output = {}, ""
        for _ in range(PANICS_MAX):
            ended = sorted({name.split("/")[0] for name in found})
            printed = self.go(surroundings, ended)
            output += printed
            found |= {name: state == "PASS" for state, name in OUTCOME.findall(printed)}
            begun = [name for name in BEGUN.findall(printed) if name not in found]
            if not begun or "panic: " not in printed and "fatal error: " not in printed:
                break
            found[begun[-1]] = False
        (paths.RUNS / f"{self.suite.name}-{self.suite.program(self.package).stem}.log").write_text(output)
        return found

    def go(self, surroundings, ended):
        """What the program prints that runs everything but what has `ended`."""
        line = [self.suite.program(self.package), "-test.v", f"-test.timeout={SECONDS_MAX}s"]
        if ended:
            line.append(f"-test.skip=^({'|'.join(map(re.escape, ended))})$")
        if self.suite.ginkgo_skip and "TestGinkgoSuite" not in ended and self.package == ".":
            line += ["-ginkgo.no-color", f"-ginkgo.skip={self.suite.ginkgo_skip}", "-ginkgo.seed=1",
                     f"-ginkgo.json-report={self.folder / 'ginkgo.json'}"]
        process = subprocess.Popen(line, cwd=self.folder, env=surroundings, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace",
                                   preexec_fn=die_with_parent, start_new_session=True)
        try:
            return process.communicate(timeout=SECONDS_MAX + 60)[0]
        finally:
            # Whatever servers a panic has left.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def specs(self):
        """Ginkgo's. Some have the name of others: all of them must pass."""
        file = self.folder / "ginkgo.json"
        if not file.exists():
            return {}
        states = collections.defaultdict(set)
        for spec in json.loads(file.read_text())[0]["SpecReports"]:
            if spec["LeafNodeType"] == "It" and spec["State"] not in ("skipped", "pending"):
                states[f"TestGinkgoSuite / {ginkgo_name(spec)}"].add(spec["State"])
        return {name: state == {"passed"} for name, state in states.items()}
