"""What servers that are not Kiln have in common: a process, a folder and ports of their own."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from . import paths
from .server import Ports, die_with_parent

# How long a service may take to get ready, on a machine that is busy. An election takes 4 to 9 s.
READY_SECONDS_MAX = 120.0


class Process:
    """One server: started, killed, stopped and let go on by its pid. What it says goes to `log`."""

    def __init__(self, line, log, environment=None):
        self.line = line
        self.log = log
        self.environment = environment or {}
        self.process = None

    def start(self):
        """Starts it, or lets it go on."""
        if self.alive():
            self.resume()
            return
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.line, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment}, preexec_fn=die_with_parent)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL, as a crash is."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        if self.alive():
            self.process.send_signal(signal.SIGCONT)


class Service:
    """Some servers, their folder and their ports, given back in the end."""

    def __init__(self, name, ports, folder=paths.RUNS):
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"kiln-{name}-", dir=folder))
        self.ports = Ports(ports)

    def processes(self):
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.ports.close()
        if not os.environ.get("KILN_KEEP_RUNS"):
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        """Starts whoever does not run, lets go on who is stopped, and waits until all serve."""
        for process in self.processes():
            process.start()
        self.wait_until(self.is_ready)

    def wait_until(self, is_so):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not is_so():
            if time.monotonic() > deadline:
                tails = "\n".join(process.log.read_text()[-2000:] for process in self.processes())
                raise SystemExit(f"{self.name} did not get ready:\n{tails}")
            time.sleep(0.05)

    def kill(self):
        for process in self.processes():
            process.kill()
