"""Who reads and writes while a shard is harmed, beside the ledgers, and notices what must not be."""

import threading
import time

from harness.resp import Client, Disconnected, Refusal
from harness.waiting import Stuck


class Watcher(threading.Thread):
    """Reads a counter from one member, again and again: it never goes back on one connection."""

    def __init__(self, member, stop):
        super().__init__()
        self.member, self.stop = member, stop
        self.reads, self.wrong = 0, None

    def run(self):
        while not self.stop.is_set() and self.wrong is None:
            try:
                with Client(self.member.port, timeout=5.0) as client:
                    client.call("READONLY")
                    self._watch(client)
            except (Disconnected, Refusal, OSError):
                time.sleep(0.05)  # the member is dead, stopped or loading: nothing was told

    def _watch(self, client):
        last = 0
        while not self.stop.is_set():
            found = int(client.call("GET", "counter") or 0)
            if found < last:
                self.wrong = f"{self.member.directory.name} answered {found} after {last}"
                return
            last = found
            self.reads += 1
            time.sleep(0.002)


class Counter(threading.Thread):
    """Counts on the primary, whoever it is; what was acknowledged is never taken back."""

    def __init__(self, shard, stop):
        super().__init__()
        self.shard, self.stop = shard, stop
        self.acknowledged, self.wrong = 0, None

    def run(self):
        while not self.stop.is_set() and self.wrong is None:
            try:
                with Client(self.shard.primary(5.0).port, timeout=2.0) as client:
                    self._count(client)
            except (Disconnected, Refusal, Stuck, OSError):
                time.sleep(0.02)  # nobody leads, or not this one: it was not counted, or nobody knows

    def _count(self, client):
        while not self.stop.is_set():
            found = client.call("INCR", "counter")
            if found <= self.acknowledged:
                self.wrong = f"INCR answered {found} after {self.acknowledged}"
                return
            self.acknowledged = found
