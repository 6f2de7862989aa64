"""How long nobody can write: after `kill -9` of the primary, and when it is asked to stop.

A shard of three on all cores, under a steady load. One client writes to the primary without a pause;
another asks the other two to write, again and again. The time without writes is that between the last
acknowledgement of the one and the first of the other.
"""

import os
import random
import signal
import threading
import time

import subjects
from following import save
from harness.resp import Client, Disconnected, Refusal
from steady import Steady

from shard import Shard

MEMBERS = 3
KILLS = 9
HAND_OVERS = 20
KEYS = 20_000

# Load before the primary ends: within these seconds, so that its end meets every phase of a renewal.
LOAD_SECONDS = (0.5, 1.0)

# Between two questions to those who may lead next.
PAUSE_SECONDS = 0.001

OUTAGE_SECONDS_MAX = 60.0


class Writer(threading.Thread):
    """Writes to one server until it is gone, and remembers when it last could."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = Client(server.port)
        self.last = time.monotonic()

    def run(self):
        try:
            while True:
                self.client.call("SET", "probe", "before")
                self.last = time.monotonic()
        except (Disconnected, Refusal):
            self.client.close()  # the fault: `last` is what was wanted


class Seeker:
    """Asks servers to write, until one does."""

    def __init__(self, servers):
        self.clients = {server: Client(server.port) for server in servers}

    def first_write(self):
        """The instant of the first acknowledgement."""
        deadline = time.monotonic() + OUTAGE_SECONDS_MAX
        while time.monotonic() < deadline:
            for server in self.clients:
                if self.writes(server):
                    return time.monotonic()
            time.sleep(PAUSE_SECONDS)
        raise SystemExit("nobody leads")

    def writes(self, server):
        try:
            self.clients[server].call("SET", "probe", "after")
            return True
        except Refusal:
            return False  # a replica still
        except Disconnected:
            self.clients[server] = Client(server.port)  # it began again as something else
            return False


def run(log, name, options, note):
    """Returns {"lease_ms", "kill -9": [ms without writes], "SIGTERM": […]}."""
    found = {"lease_ms": log.lease_ms, "kill -9": [], "SIGTERM": []}
    # The members inherit it, those that are started again as well.
    os.sched_setaffinity(0, range(os.cpu_count()))
    with Shard(subjects.KILN.command, MEMBERS, log.shard(),
               ["--enable-debug-command", "local"]) as shard:
        for ending, number, count in (("SIGTERM", signal.SIGTERM, HAND_OVERS),
                                      ("kill -9", signal.SIGKILL, KILLS)):
            for turn in range(max(2, round(count * min(1.0, options.scale)))):
                found[ending].append(outage(shard, number))
                note(f"{name}: {ending} {turn + 1}: {found[ending][-1]:.0f} ms without writes")
    return found


def outage(shard, number):
    """Ends the primary by this signal; milliseconds without writes. Leaves the shard whole."""
    primary = shard.primary()
    save(primary)
    shard.wait_for_equal_data()
    seeker = Seeker(shard.replicas())
    steady, writer = Steady(primary.port, KEYS), Writer(primary)
    steady.start()
    writer.start()
    time.sleep(random.uniform(*LOAD_SECONDS))
    os.kill(primary.pid, number)
    first = seeker.first_write()
    writer.join()
    steady.stop()
    primary.process.wait()
    primary.start()
    return (first - writer.last) * 1000
