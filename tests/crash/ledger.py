"""What one connection knows: which writes were acknowledged, and what the keys must hold.

The server executes one connection's requests in order and its log is a sequence, so after a crash
the connection's keys must be exactly what *some prefix* of its requests makes: a prefix that holds
every acknowledged one. Anything else is a lost write, a half write, or one that came from nowhere.
"""

import copy
import threading

import operations
from harness.resp import Client, Disconnected, Refusal


class Lost(Exception):
    """The keys are not what any allowed prefix makes."""


class Listener(threading.Thread):
    """A subscriber of one connection's messages, until the server goes: what it was told of each key."""

    def __init__(self, port, channel):
        super().__init__()
        self.client = Client(port)
        self.client.call("SUBSCRIBE", channel)
        self.heard = {}

    def run(self):
        try:
            with self.client:
                while True:
                    _, _, message = self.client.read()
                    key, value = message.split(b" ")
                    self.heard[key] = value
        except Disconnected:
            pass


class Ledger:
    """One connection's operations, across crashes."""

    def __init__(self, connection, families, seed, depth):
        self.workload = operations.Workload(connection, families, seed)
        self.letters = sorted({bytes([letter]) for family in families
                               for letter in operations.FAMILY_LETTERS[family]})
        self.connection = connection
        self.depth = depth
        self.acknowledged = {}
        self.sent = []
        self.acknowledged_count = 0
        self.refusals = []
        self.listens = "pubsub" in families
        self.heard = {}

    def load(self, port, stop):
        """Writes, `depth` requests at a time, until the server goes or `stop` is set."""
        listener = None
        try:
            if self.listens:
                listener = Listener(port, operations.channel(self.connection))
                listener.start()
            with Client(port) as client:
                while not stop.is_set():
                    self._batch(client)
        except (Disconnected, OSError):
            pass
        except Exception as error:  # a mistake of the ledger's must not look like a crash
            self.refusals.append(f"the ledger failed: {error!r}")
        if listener is not None:
            listener.join()
            self.heard = listener.heard

    def _batch(self, client):
        ahead = self.acknowledged
        for _ in range(self.workload.random.randint(1, self.depth)):
            self.sent.append(self.workload.next(ahead))
        client.socket.sendall(b"".join(operation.request for operation in self.sent))
        while self.sent:
            operation = self.sent[0]
            replies = [client.read() for _ in range(operation.replies)]
            refused = [reply for reply in replies if isinstance(reply, Refusal)]
            if refused:
                self.refusals.append(f"{operation.name}: {refused[0]}")
            else:
                operation.apply(self.acknowledged, replies[-1])
                self.acknowledged_count += 1
            self.sent.pop(0)

    def check(self, client):
        """Compares the server's keys with every allowed prefix, and goes on from the one it holds."""
        found = self._read(client)
        self._check_heard(found)
        state = self.acknowledged
        if found == state:
            survived = 0
        else:
            state = copy.deepcopy(state)
            for survived, operation in enumerate(self.sent, 1):
                operation.apply(state, None)
                if found == state:
                    break
            else:
                raise Lost(self._difference(found))
        self.acknowledged = found
        self.sent = []
        return survived

    def _check_heard(self, found):
        """A message tells of a write: that one is there, or a later one of the same key."""
        for key, value in self.heard.items():
            if _serial(found.get(key, b"0.-1")) < _serial(value):
                raise Lost(f"connection {self.connection}: a subscriber was told {key.decode()} = "
                           f"{value.decode()}, found {found.get(key)}")
        self.heard = {}

    def _keys(self):
        return [b"c%d:%s:%d" % (self.connection, letter, number)
                for letter in self.letters for number in range(operations.KEYS)]

    def _read(self, client):
        """Every key of this connection that exists, as the model holds it."""
        keys, found = self._keys(), {}
        for key in keys:
            (command, *rest), _ = operations.READS[key.split(b":")[1]]
            client.send(command, key, *rest)
        for key in keys:
            reply = client.read()
            if isinstance(reply, Refusal):
                raise Lost(f"{key}: {reply}")
            value = operations.READS[key.split(b":")[1]][1](reply)
            if value is not None:
                found[key] = value
        for key in [key for key in found if key.split(b":")[1] == b"t"]:
            found[key] = (found[key], client.call("PEXPIRETIME", key))
        return found

    def _difference(self, found):
        """The first key that differs from the acknowledged state, briefly."""
        differing = [key for key in self._keys() if found.get(key) != self.acknowledged.get(key)]
        key = differing[0] if differing else b"?"
        return (f"connection {self.connection}: {len(differing)} keys match no prefix of "
                f"{len(self.sent)} unacknowledged operations; {key.decode()}: "
                f"expected {_brief(self.acknowledged.get(key))}, found {_brief(found.get(key))}")


def _serial(value):
    return int(value.split(b".")[1])


def _brief(value):
    text = repr(value)
    return text if len(text) < 160 else f"{text[:80]} … {text[-60:]} ({len(text)} characters)"
