"""SETs at a fixed rate, whatever the server does: what it then costs can be compared.

A closed loop would offer more to whoever is faster. Here a batch falls due at each tick, on every
connection, and a tick that comes late is made up for.
"""

import random
import selectors
import socket
import threading
import time

import load
from harness.resp import encode

CONNECTIONS = 10
PIPELINE = 16
TICK_SECONDS = 0.005

# Batches encoded beforehand and sent again and again.
BATCHES = 400


class Steady(threading.Thread):
    """Offers `CONNECTIONS × PIPELINE` SETs each tick until `stop`, or until the server hangs up."""

    rate = CONNECTIONS * PIPELINE / TICK_SECONDS

    def __init__(self, port, keys):
        super().__init__(daemon=True)
        draw, value = random.Random(1), b"x" * load.VALUE_BYTES
        self.batches = [
            b"".join(encode(b"SET", b"key:%012d" % draw.randrange(keys), value)
                     for _ in range(PIPELINE)) for _ in range(BATCHES)]
        self.links = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(CONNECTIONS)]
        self.stopping = threading.Event()
        self.sent, self.answered = 0, 0

    def run(self):
        selector = selectors.DefaultSelector()
        for link in self.links:
            selector.register(link, selectors.EVENT_READ)
        due, number = time.monotonic(), 0
        try:
            while not self.stopping.is_set():
                wait = due - time.monotonic()
                for key, _ in selector.select(max(0.0, wait)):
                    self.take(key.fileobj)
                if time.monotonic() >= due:
                    due += TICK_SECONDS
                    for link in self.links:
                        link.sendall(self.batches[number % BATCHES])
                        self.sent += PIPELINE
                        number += 1
        except OSError:
            pass  # the server is gone
        finally:
            for link in self.links:
                link.close()

    def take(self, link):
        """Replies are `+OK` each; anything else is counted by its line as well."""
        chunk = link.recv(1 << 16)
        if not chunk:
            raise OSError("hung up")
        self.answered += chunk.count(b"\n")

    def stop(self):
        self.stopping.set()
        self.join()
