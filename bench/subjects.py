"""The servers that are compared, each pinned to core 0. The load runs on core 1."""

import dataclasses
import pathlib
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

    def server(self, authority=None):
        """A server, not yet started. With `authority` it speaks TLS as well, but for the floor."""
        wrapper = ["taskset", "-c", SERVER_CORE]
        if self.name == "floor":
            return Floor(self.command, wrapper=wrapper)
        if authority:
            return TlsServer(self.command, authority, *self.arguments, "--tls-auth-clients", "no",
                             wrapper=wrapper)
        return Server(self.command, self.arguments, wrapper=wrapper)


class Floor(Server):
    """The server that does no work knows no option but its port."""

    def line(self):
        return [*self.wrapper, *self.command, "--port", str(self.port)]

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

# The next snapshot falls due by what the log has grown since this one.
KILN = Subject("kiln", f"{RELEASE / 'kiln'} server", upkeep=("BGSAVE",), saves_first=True)
REDIS = Subject("redis", paths.stock_command(), NO_SNAPSHOTS)
REDIS_ALWAYS = Subject("redis always", paths.stock_command(),
                       (*NO_SNAPSHOTS, "--appendonly", "yes", "--appendfsync", "always",
                        "--auto-aof-rewrite-percentage", "0"),
                       upkeep=("BGREWRITEAOF",))
FLOOR = Subject("floor", str(RELEASE / "examples" / "floor"))
