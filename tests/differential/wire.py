"""Replies with their types, of RESP2 and RESP3 alike, so that two servers' can be compared.

A reply is a pair of its type's byte and its value: bytes of a line or a string, or a list of replies
(for a map: names and values in turn).
"""

import sys

from harness.resp import Client, Disconnected

# A script may answer thousands of lists, one within the other; each takes two calls here, and comparing
# or showing them one.
sys.setrecursionlimit(50_000)

AGGREGATES = (b"*", b"~", b"%", b">")
STRINGS = (b"$", b"=")


class TypedClient(Client):
    """A client whose `call` returns typed replies, errors included."""

    def call(self, *parts):
        self.send(*parts)
        return self.read()

    def read(self):
        line = self._line()
        kind, rest = bytes(line[:1]), bytes(line[1:])
        if kind in STRINGS:
            return kind, None if rest == b"-1" else self._bytes(int(rest))
        if kind in AGGREGATES:
            count = int(rest)
            if count < 0:
                return kind, None
            return kind, [self.read() for _ in range(count * (2 if kind == b"%" else 1))]
        if kind in (b"+", b"-", b":", b",", b"_", b"#", b"("):
            return kind, rest
        raise Disconnected(f"not a reply: {line[:80]!r}")


def fields(reply):
    """What a map holds, or an array of names and values in turn, by its names."""
    items = reply[1]
    return {items[at][1].decode(): items[at + 1] for at in range(0, len(items), 2)}


def shown(reply, bytes_max=300):
    """A reply as one line."""
    kind, value = reply
    text = kind.decode()
    if isinstance(value, list):
        text += "[" + " ".join(shown(item, 60) for item in value) + "]"
    else:
        text += "nil" if value is None else value.decode("latin-1").__repr__()[1:-1]
    return text if len(text) <= bytes_max else text[:bytes_max] + "…"
