#!/usr/bin/env python3
"""Records what a stock redis-server answers to the scripts of recorded.jsonl.

    record.py FILE

FILE is recorded.jsonl. A server is started for it and ended. Each script of the file is called again, and
the replies are written in place of those in the file. To add a script, add a line with any reply.
"""
import hashlib, json, pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "tests"))
from harness import paths  # noqa: E402
from harness.server import Server  # noqa: E402


def whole_reply(stream):
    """The bytes of one reply, whatever it consists of."""
    line = stream.readline()
    kind, rest = line[:1], line[1:-2]
    if kind in b"$=" and rest != b"-1":
        return line + stream.read(int(rest) + 2)
    if kind in b"*~>%" and rest != b"-1":
        count = int(rest) * (2 if kind == b"%" else 1)
        return line + b"".join(whole_reply(stream) for _ in range(count))
    return line


def call(client, stream, *words):
    client.send(*words)
    return whole_reply(stream)


file = pathlib.Path(sys.argv[1])
lines = file.read_text().splitlines()
prelude = json.loads(lines[0])[2]
with Server(paths.stock_command(), []) as server:
    client = server.client()
    stream = client.socket.makefile("rb")
    for number, line in enumerate(lines[1:], 1):
        protocol, has_prelude, script, _ = json.loads(line)
        body = ((prelude if has_prelude else "") + script).encode("latin-1")
        call(client, stream, "HELLO", protocol)
        reply = call(client, stream, "EVAL", body, 2, "k1", "k2", "a1", "a2")
        reply = reply.replace(hashlib.sha1(body).hexdigest().encode(), b"SHA")
        lines[number] = json.dumps([protocol, has_prelude, script, reply.decode("latin-1")])
file.write_text("\n".join(lines) + "\n")
