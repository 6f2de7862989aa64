"""A server process of a test: a port and a directory of its own, ended by its pid.

Suites run side by side on one machine, so nothing here has a fixed name. The server gets
PR_SET_PDEATHSIG: a suite that is itself killed leaves no server behind.
"""

import ctypes
import os
import pathlib
import random
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import paths
from .resp import Client, Disconnected, Refusal

PR_SET_PDEATHSIG = 1

# Below Linux's ephemeral range (32768 up), so that no outgoing connection holds the port.
PORTS = range(12000, 32000)

# How long a start may take on a machine that is busy with other things and whose disk is slow.
READY_SECONDS_MAX = 120.0


class Ports:
    """Ports in a row, the first one `first`, which are nobody else's until `close`.

    A socket is bound to each and never listens. One that listens may be bound beside it, as all
    servers are (SO_REUSEADDR), but no other suite gets the port, and no outgoing connection: not
    even while the server that it belongs to is dead.
    """

    def __init__(self, count=1):
        for _ in range(1000):
            self.first = random.choice(PORTS[:-count])
            if self._hold(count):
                return
        raise SystemExit(f"no {count} free ports found among {PORTS}")

    def _hold(self, count):
        self.sockets = []
        for port in range(self.first, self.first + count):
            holder = socket.socket()
            self.sockets.append(holder)
            try:
                # Not yet reusable, so that it is refused where anybody else has the port.
                holder.bind(("127.0.0.1", port))
            except OSError:
                self.close()
                return False
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return True

    def close(self):
        for holder in self.sockets:
            holder.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def die_with_parent():
    """For `preexec_fn`: the child is killed when the process that started it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment():
    """This process's, less the machine's language: redis-server's SORT orders words by it."""
    return {**os.environ, "LC_ALL": "C"}


class Died(Exception):
    """The server ended, or never answered; the message carries the end of its log."""


class Server:
    """`command` is run as redis-server is: `command --port P --dir D arguments…`. It may be a name that
    `paths.server_command` knows.

    `directory` is kept when given; otherwise a fresh one is made in `folder` and removed by `close`.
    `wrapper` goes in front of the command: `["taskset", "-c", "0"]`, `["strace", …]`.
    """

    def __init__(self, command, arguments=(), directory=None, wrapper=(), folder=paths.RUNS):
        named = isinstance(command, str)
        self.command = shlex.split(paths.server_command(command)) if named else list(command)
        self.arguments = list(arguments)
        self.wrapper = list(wrapper)
        self.owns_directory = directory is None
        if directory is None:
            folder.mkdir(parents=True, exist_ok=True)
            directory = tempfile.mkdtemp(prefix="kiln-test-", dir=folder)
        self.directory = pathlib.Path(directory)
        self.log = self.directory / "server.log"
        self.ports = Ports()
        self.port = self.ports.first
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self.process.pid

    def start(self, ready_seconds=READY_SECONDS_MAX):
        """Starts the process and waits until it answers PING."""
        self.launch()
        self.wait_ready(ready_seconds)
        return self

    def launch(self):
        """Starts the process. It is killed when the calling thread ends."""
        (self.directory / "data").mkdir(exist_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.line(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                cwd=self.directory, env=environment(), preexec_fn=die_with_parent)

    def line(self):
        """The command line, as redis-server takes its arguments."""
        return [*self.wrapper, *self.command, "--port", str(self.port),
                "--dir", str(self.directory / "data"), "--bind", "127.0.0.1", *self.arguments]

    def wait_ready(self, seconds=READY_SECONDS_MAX):
        """Returns once PING is answered with PONG; LOADING counts as not yet."""
        deadline = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                raise Died(f"ended with {self.process.returncode} at start\n{self.log_tail()}")
            try:
                with Client(self.port, timeout=min(seconds + 0.1, READY_SECONDS_MAX)) as client:
                    if client.call("PING") == b"PONG":
                        return
            except (OSError, Disconnected, Refusal):
                pass
            if time.monotonic() > deadline:
                self.kill()
                raise Died(f"no PONG within {seconds:.0f} s\n{self.log_tail()}")
            time.sleep(0.02)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL, as a crash is."""
        if self.alive():
            os.kill(self.process.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def stop(self, seconds=120.0):
        """SIGTERM, then SIGKILL for a server that does not go."""
        if self.alive():
            os.kill(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def close(self):
        self.kill()
        self.ports.close()
        if self.owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def client(self, **options):
        return Client(self.port, **options)

    def resident_bytes(self):
        """Memory of the process that is in RAM, from /proc/PID/statm."""
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def resident_peak_bytes(self):
        """The most that ever was in RAM, from /proc/PID/status."""
        lines = pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024

    def cpu_seconds(self):
        """User and system time of all threads since the start, from /proc/PID/stat."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_tail(self, bytes_max=2000):
        text = self.log.read_bytes() if self.log.exists() else b""
        return text[-bytes_max:].decode("utf-8", "replace")
