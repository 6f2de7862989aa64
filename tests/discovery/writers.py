"""Clients that write on and on: programs of their own, which nobody tells who leads."""

import queue
import re
import subprocess
import threading
import time

from harness import paths
from harness.server import die_with_parent

# How long a client may take to write again on a busy machine: a lease, a start, and its own patience.
FOLLOW_SECONDS_MAX = 120.0

# How long redis-cli waits before it tries again.
AGAIN_SECONDS = 0.05


class Lost(Exception):
    """A client does not find the primary; says what it met."""


class Writer:
    """A program that writes `name`:1, `name`:2, … and prints each number once it is acknowledged."""

    # Whether it can follow although nobody is left at the address where it wrote last.
    follows_at_once = True

    def __init__(self, name, command, **options):
        self.name, self.acknowledged, self.error = name, 0, None
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, bufsize=1, preexec_fn=die_with_parent, **options)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.acknowledged = int(line)
            else:
                self.error = line.strip()

    def say(self, word):
        self.process.stdin.write(word + "\n")

    def wait_for_more(self, count=20):
        """Until `count` more writes are acknowledged."""
        wanted = self.acknowledged + count
        deadline = time.monotonic() + FOLLOW_SECONDS_MAX
        while self.acknowledged < wanted:
            if time.monotonic() > deadline or not self.reader.is_alive():
                raise Lost(f"stands at {self.acknowledged}, last met: {self.error}")
            time.sleep(0.01)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.reader.join()


class CommandLine(Writer):
    """`redis-cli -c`, which is told of one server only, and stays where it was redirected to."""

    follows_at_once = False

    def __init__(self, name, port):
        self.goes, self.ends = threading.Event(), threading.Event()
        self.goes.set()
        self.answers = queue.Queue()
        command = [paths.tool("redis-cli"), "-c", "-p", str(port)]
        super().__init__(name, command)
        self.pump = threading.Thread(target=self._write)
        self.pump.start()

    def _read(self):
        for line in self.process.stdout:
            if line.strip() and not line.startswith("-> Redirected"):
                self.answers.put(line.strip())
        self.ends.set()

    def _write(self):
        while not self.ends.is_set():
            self.goes.wait()
            number = self.acknowledged + 1
            try:
                self.process.stdin.write(f"SET {self.name}:{number} {number}\n")
                answer = self.answers.get(timeout=FOLLOW_SECONDS_MAX)
            except (OSError, ValueError, queue.Empty) as error:
                self.error = repr(error)
                return
            if re.fullmatch(r'"?OK"?', answer):
                self.acknowledged = number
            else:
                self.error = answer
                time.sleep(AGAIN_SECONDS)
                # It says more than one line of a lost connection.
                while not self.answers.empty():
                    self.answers.get()

    def say(self, word):
        (self.goes.set if word == "go" else self.goes.clear)()

    def close(self):
        self.ends.set()
        self.goes.set()
        self.pump.join()
        super().close()
