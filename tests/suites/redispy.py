"""redis-py's own tests, from the source distribution that it publishes.

They run in parts, each against a server of its own, because every test empties the one it has. Left out are
those for clusters of many shards, for Sentinel's own processes and for modules, and those of logins at
clouds, which need no server.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import paths  # noqa: E402
from harness.authority import TestAuthority  # noqa: E402
from harness.server import Server, die_with_parent, environment  # noqa: E402
from harness.tls_server import TlsServer  # noqa: E402

VERSION = "5.3.1"
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = paths.CACHE / "suites" / "redis-py"
SOURCE = FOLDER / f"redis-{VERSION}"
VENV = FOLDER / "venv"
REQUIREMENTS = HERE / "python" / "requirements.txt"

# Parts that run at a time. Beginning costs each 5 seconds of a processor.
PARTS = 2

SECONDS_MAX = 900

# Of pytest: all passed, some failed, none was chosen. A test that takes too long ends it with 1.
GOOD_EXITS = {0, 1, 5}

# How often tests may end the process by their timeouts: on a very slow machine.
DEATHS_MAX = 20

# Theirs: the server, a replica, and the server by TLS. A server here is its own replica's master: what the
# tests ask of a replica is SYNC and PSYNC.
PLAIN, REPLICA, TLS = 6379, 6380, 6666

LEFT_OUT = ["--ignore=tests/test_auth", "--ignore=tests/test_graph_utils", *(
    f"--ignore-glob=*test_{name}.py"
    for name in "search json bloom timeseries graph sentinel sentinel_managed_connection cluster".split())]

# The version that a server is said to have where tests of what came after Redis 7.0 are asked for.
LATER = "8.0.0"


class RedisPy:
    """The suite under one version of the protocol."""

    # What came after Redis 7.0 is tested in a run of its own.
    asks_version = True

    def __init__(self, protocol):
        self.name = f"redis-py-resp{protocol}"
        self.protocol = protocol

    def prepare(self):
        prepare()

    def outcomes(self, command, asked=None, later=False):
        """Whether each test passed, of all or of those that are asked for; `later`: as with Redis 8."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-suite-", dir=paths.fast_folder()))
        try:
            with TestAuthority() as authority, ThreadPoolExecutor(PARTS) as pool:
                lay_out(folder, authority)
                if asked is not None:
                    (folder / "asked").write_text("".join(f"{name}\n" for name in asked))
                parts = [pool.submit(self.part, command, folder, authority, number, asked is not None, later)
                         for number in range(PARTS)]
                return {name: passed for part in parts for name, passed in part.result().items()}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def part(self, command, folder, authority, number, is_chosen, later):
        with new_server(command, authority, later) as server:
            written = folder / f"outcomes-{number}"
            ports = {PLAIN: server.port, REPLICA: server.port}
            if not later:
                ports[TLS] = server.tls_port
            order = {"ports": ports, "told": LATER if later else None,
                     "asked": str(folder / "asked") if is_chosen else None,
                     "part": number, "parts": PARTS, "outcomes": str(written)}
            printed = self.pytest(folder, order, written)
            (paths.RUNS / f"{self.name}-{number}.log").write_text(printed)
            # The last line about a test is what came of it; one that only began has ended the process.
            rows = (line.split("\t", 1) for line in written.read_text().splitlines())
            return {name: outcome == "passed" for outcome, name in rows}

    def pytest(self, folder, order, written):
        """What pytest prints, started again behind each test that ends the process."""
        printed = ""
        for _ in range(DEATHS_MAX):
            ran = subprocess.run(
                [str(VENV / "bin" / "python"), "-m", "pytest", "-c", str(HERE / "python" / "pytest.ini"),
                 "--rootdir", ".", "-p", "kiln_suite", "-p", "no:cacheprovider", "-q", "--tb=short",
                 "-m", "not onlycluster and not redismod", "--protocol", str(self.protocol), *LEFT_OUT,
                 "tests"],
                cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, preexec_fn=die_with_parent,
                env={**environment(), "PYTHONPATH": str(HERE / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                     "KILN_SUITE": json.dumps(order)})
            text = ran.stdout + ran.stderr
            printed += text
            if "Timeout +++" not in text:
                break
        # A part of few tests may have none of them.
        if not written.exists() or ran.returncode not in GOOD_EXITS:
            raise RuntimeError(f"pytest ended with {ran.returncode}: {printed[-2000:]}")
        return printed


def new_server(command, authority, later):
    """One that speaks TLS, but for later tests: none of them is about it, and the Valkey at hand has none."""
    folder = paths.fast_folder()
    if later:
        return Server(command, folder=folder)
    return TlsServer(command, authority, "--tls-auth-clients", "optional", name="redis", folder=folder)


def lay_out(folder, authority):
    """The tests and the library, and certificates where the tests look for them."""
    for name in ("tests", "redis"):
        shutil.copytree(SOURCE / name, folder / name)
    authority.issue("redis", rsa=True)
    authority.issue("client", rsa=True)
    certificates = folder / "dockers" / "standalone" / "tls"
    certificates.mkdir(parents=True)
    for name in ("ca.crt", "redis.crt", "redis.key", "client.crt", "client.key"):
        shutil.copy(authority.file(name), certificates)


def prepare():
    """Fetches the source distribution, and makes a virtual environment."""
    stamp = FOLDER / "requirements.txt"
    if SOURCE.is_dir() and stamp.exists() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    pip = [VENV / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", "-r", REQUIREMENTS], check=True)
    subprocess.run([*pip, "download", "--no-deps", "--no-binary", ":all:", f"redis=={VERSION}", "-d", FOLDER],
                   check=True)
    # The library itself is used from beside its tests.
    subprocess.run(["tar", "-xzf", FOLDER / f"redis-{VERSION}.tar.gz", "-C", FOLDER], check=True)
    shutil.copy(REQUIREMENTS, stamp)
