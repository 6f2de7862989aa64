"""A client that keeps memory short: more values than a small `maxmemory` holds, written and read back all the time.

With a tier, values of everybody leave memory and come back meanwhile, its own and those of the ledgers. What it
reads must be what it wrote: each value names its key and its write, and the rest of it follows from these.
"""

import random
import threading

from harness.resp import Disconnected, Refusal, encode

KEYS = 6000
BYTES_MIN, BYTES_MAX = 200, 4000

# Of its requests those that write, once every key is there.
WRITES = 0.3

# Requests before their replies are read.
DEPTH = 16


class Wrong(Exception):
    """A value is not one that its key may have."""


def value(key, serial):
    draw = random.Random(key * 1_000_003 + serial)
    return b"%d.%d " % (key, serial) + draw.randbytes(draw.randint(BYTES_MIN, BYTES_MAX))


class Pressure:
    """Goes on from crash to crash. `newest` is the last acknowledged write of each key, `asked` the last one at all."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.newest = [0] * KEYS
        self.asked = [0] * KEYS
        self.failure = None

    def load(self, client, stop):
        """Writes and reads until the server goes or `stop` is set."""
        try:
            while not stop.is_set():
                self._batch(client)
        except (Disconnected, OSError):
            pass
        except (Refusal, Wrong) as error:
            self.failure = error

    def thread(self, server, stop):
        client = server.client()
        return threading.Thread(target=self.load, args=(client, stop))

    def check(self, client):
        """Reads all of it.

        Raises `Wrong`, or what `load` was told."""
        if self.failure:
            raise self.failure
        for first in range(0, KEYS, DEPTH):
            self._run(client, [(key, None) for key in range(first, min(first + DEPTH, KEYS))])

    def _batch(self, client):
        missing = [key for key in range(KEYS) if self.asked[key] == 0][:DEPTH]
        if missing:
            return self._run(client, [(key, 1) for key in missing])
        requests, written = [], set()
        for _ in range(DEPTH):
            key = self.random.randrange(KEYS)
            writes = self.random.random() < WRITES and key not in written
            written |= {key} if writes else set()
            requests.append((key, self.asked[key] + 1 if writes else None))
        self._run(client, requests)

    def _run(self, client, requests):
        """Sends requests, each a key and the number of its write or none, and looks at the replies."""
        words = [("GET", b"p%d" % key) if serial is None else ("SET", b"p%d" % key, value(key, serial))
                 for key, serial in requests]
        for key, serial in requests:
            self.asked[key] = serial or self.asked[key]
        client.socket.sendall(b"".join(encode(*request) for request in words))
        for key, serial in requests:
            reply = client.read()
            if isinstance(reply, Refusal):
                raise reply
            if serial is None:
                self._look(key, reply)
            else:
                self.newest[key] = serial

    def _look(self, key, found):
        """Asks that a value is a write between the last acknowledged one and the last one."""
        if found is None and self.newest[key] == 0:
            return
        head = (found or b"").partition(b" ")[0].partition(b".")
        serial = int(head[2]) if head[2].isdigit() else 0
        if not self.newest[key] <= serial <= self.asked[key] or found != value(key, serial):
            raise Wrong(f"p{key} is {(found or b'nil')[:40]!r}, acknowledged {self.newest[key]}, "
                        f"written {self.asked[key]}")
