"""The servers that are compared, each pinned to core 0. The load runs on core 1."""

import dataclasses
import os
import pathlib
import shlex
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))
from harness import paths  # noqa: E402
from harness.server import Server  # noqa: E402
from harness.tls_server import TlsServer  # noqa: E402

SERVER_CORE = "0"
LOAD_CORE = "1"


@dataclasses.dataclass(frozen=True)
class Subject:
    """A server with one configuration. It keeps its log short now and then: `upkeep` begins that, and
    a snapshot puts it off if `saves_first`."""

    name: str
    command: str
    arguments: tuple = ()
    upkeep: tuple = ()
    saves_first: bool = False

    @property
    def is_there(self):
        """Whether its program is: a peer may be missing."""
        return os.access(self.program, os.X_OK)

    @property
    def program(self):
        return shlex.split(self.command)[0]

    def server(self, authority=None):
        """A server, not yet started. With `authority` it speaks TLS as well, but for the floor."""
        if not self.is_there:
            raise SystemExit(f"{self.program} is missing: what installs or builds it stands in the Makefile")
        wrapper = ["taskset", "-c", SERVER_CORE]
        if self.name == FLOOR_NAME:
            return Floor(self.command, self.arguments, wrapper=wrapper)
        if authority:
            return TlsServer(self.command, authority, *self.arguments, "--tls-auth-clients", "no",
                             wrapper=wrapper)
        return Server(self.command, self.arguments, wrapper=wrapper)


class Floor(Server):
    """The server that does no work knows no option but its port and the length of what it answers."""

    def line(self):
        return [*self.wrapper, *self.command, "--port", str(self.port), *self.arguments]

    def wait_ready(self, seconds=60.0):
        """It answers +OK to PING."""
        for _ in range(200):
            try:
                with self.client(timeout=5.0) as client:
                    client.call("PING")
                    return
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"the floor does not answer: {self.log_tail()}")


RELEASE = paths.ROOT / "target" / "release"
NO_SNAPSHOTS = ("--save", "")

# Where `tests/install peers` puts those that it builds as their makers do: with their jemalloc. The Valkey that the
# suites compare with (`paths.valkey_command`), and `scene.VALKEY` with it, has the system's allocator.
PEERS_FOLDER = paths.CACHE / "peers"
ALWAYS = (*NO_SNAPSHOTS, "--appendonly", "yes", "--appendfsync", "always",
          "--auto-aof-rewrite-percentage", "0")
REWRITE = ("BGREWRITEAOF",)

# The next snapshot falls due by what the log has grown since this one.
KILN = Subject("kiln", f"{RELEASE / 'kiln'} server", upkeep=("BGSAVE",), saves_first=True)
# The same with a profile, which `make build-profiled` makes, and without beside it.
PLAIN = dataclasses.replace(KILN, name="kiln plain")
PROFILED = dataclasses.replace(KILN, command=f"{paths.ROOT / 'target' / 'profiled' / 'release' / 'kiln'} server")
REDIS = Subject("redis", paths.perhaps("redis-server"), NO_SNAPSHOTS)
VALKEY = Subject("valkey", str(PEERS_FOLDER / "valkey-server"), NO_SNAPSHOTS)
REDIS_8 = Subject("redis 8", str(PEERS_FOLDER / "redis-server"), NO_SNAPSHOTS)
REDIS_ALWAYS = Subject("redis always", REDIS.command, ALWAYS, upkeep=REWRITE)
VALKEY_ALWAYS = Subject("valkey always", VALKEY.command, ALWAYS, upkeep=REWRITE)
REDIS_8_ALWAYS = Subject("redis 8 always", REDIS_8.command, ALWAYS, upkeep=REWRITE)

# What Kiln is measured beside: none of them keeps a log, and all of them do.
WITHOUT_LOG = [REDIS, VALKEY, REDIS_8]
WITH_LOG = [REDIS_ALWAYS, VALKEY_ALWAYS, REDIS_8_ALWAYS]

FLOOR_NAME = "floor"


def floor(value_bytes):
    """The server that does no work and answers GET with so many bytes."""
    return Subject(FLOOR_NAME, str(RELEASE / "examples" / "floor"), ("--reply-bytes", str(value_bytes)))


FLOOR = floor(100)


def present(subjects):
    return [subject for subject in subjects if subject.is_there]
