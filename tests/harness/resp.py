"""A small RESP2 client over a blocking socket. It knows nothing of commands.

A reply is bytes, int, None, list or `Refusal`. Numbers of the protocol are not checked beyond what
is needed to read it: the server under test is the one on trial, and its clients have suites of
their own.
"""

import socket


# How long a living server may take to answer: a shared disk has been seen to take many seconds for one
# sync. What waits longer waits for ever.
REPLY_SECONDS_MAX = 120.0


class Refusal(Exception):
    """An error reply. Returned inside arrays, raised at the top by `Client.call`."""


class Disconnected(Exception):
    """The connection ended: what was sent and not answered has an unknown outcome."""


def encode(*parts):
    """One request as an array of bulk strings."""
    out = [b"*%d\r\n" % len(parts)]
    for part in parts:
        if isinstance(part, str):
            part = part.encode()
        elif isinstance(part, (int, float)):
            part = str(part).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(part), part))
    return b"".join(out)


class Client:
    """One connection. `send` and `read` may be used apart, for pipelines. With `tls`, a context of
    Python's ssl, it is encrypted."""

    def __init__(self, port, host="127.0.0.1", timeout=REPLY_SECONDS_MAX, tls=None):
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.buffer = bytearray()
        self.start = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, *parts):
        try:
            self.socket.sendall(encode(*parts))
        except OSError as error:
            raise Disconnected(str(error)) from error

    def call(self, *parts):
        """Sends one request and returns its reply; an error reply is raised as `Refusal`."""
        self.send(*parts)
        reply = self.read()
        if isinstance(reply, Refusal):
            raise reply
        return reply

    def refusal(self, *parts):
        """Sends one request that must be refused; the text of its error."""
        self.send(*parts)
        reply = self.read()
        assert isinstance(reply, Refusal), f"{parts} was answered {reply!r}"
        return str(reply)

    def read(self):
        """The next reply, waiting for it up to the socket's timeout."""
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return bytes(rest)
        if kind == b"-":
            return Refusal(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise Disconnected(f"not a reply: {line[:80]!r}")

    def _fill(self):
        try:
            chunk = self.socket.recv(1 << 16)
        except OSError as error:
            raise Disconnected(str(error)) from error
        if not chunk:
            raise Disconnected("closed by the server")
        if self.start > 1 << 16:
            del self.buffer[: self.start]
            self.start = 0
        self.buffer += chunk

    def _line(self):
        searched = self.start
        while (end := self.buffer.find(b"\r\n", searched)) < 0:
            searched = max(self.start, len(self.buffer) - 1)
            before = self.start
            self._fill()
            searched -= before - self.start
        line = self.buffer[self.start : end]
        self.start = end + 2
        return line

    def _bytes(self, length):
        while len(self.buffer) - self.start < length + 2:
            self._fill()
        value = bytes(self.buffer[self.start : self.start + length])
        self.start += length + 2
        return value
