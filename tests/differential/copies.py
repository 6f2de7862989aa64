"""Values of every encoding between two servers: by DUMP and RESTORE, and by the file that one saves
and the other loads."""

import pathlib
import shutil
import tempfile

from harness import paths, values
from harness.server import Server

from pair import Difference
from wire import TypedClient, shown


def fill(pair):
    """Makes the values in both servers; the keys of database 0."""
    pair.both("SELECT", "0")
    pair.both("FLUSHALL")
    for request in values.requests():
        for side in (pair.stock, pair.tested):
            kind, text = side.client.call(*request)
            if kind == b"-":
                raise Difference(f"{request[:3]}: {text}")
    pair.both("SELECT", "0")
    return [key for _, key in pair.stock.client.call("KEYS", "*")[1]]


def payloads(pair):
    """Each server restores what the other dumped."""
    keys = fill(pair)
    for key in keys:
        pair.both("PERSIST", key)
    sides = [(pair.stock, pair.tested), (pair.tested, pair.stock)]
    for giver, taker in sides:
        for key in keys:
            payload = giver.client.call("DUMP", key)[1]
            reply = taker.client.call("RESTORE", b"copy:" + key, "0", payload)
            if reply != (b"+", b"OK"):
                raise Difference(f"RESTORE of {key}: {shown(reply)}")
        same(pair, [b"copy:" + key for key in keys], giver)
        for side in (pair.stock, pair.tested):
            side.client.call("DEL", *[b"copy:" + key for key in keys])
    return f"{len(keys)} values each way"


def same(pair, copies, giver):
    """What was restored on the one side is what was dumped on the other."""
    other = pair.tested if giver is pair.stock else pair.stock
    for copy in copies:
        original = copy.removeprefix(b"copy:")
        for question in (["DEBUG", "DIGEST-VALUE"], ["TYPE"], ["OBJECT", "ENCODING"]):
            expected = giver.client.call(*question, original)
            got = other.client.call(*question, copy)
            # What is changed in place keeps room to grow, what is restored does not.
            strings = [(b"$", b"raw"), (b"$", b"embstr"), (b"$", b"int")]
            if expected != got and not (expected in strings and got in strings):
                raise Difference(f"{copy} {question}\n  dumped   {shown(expected)}\n"
                                 f"  restored {shown(got)}")


def file(pair):
    """A stock server loads what the server under test saved."""
    fill(pair)
    reply = pair.tested.client.call("SAVE")
    if reply != (b"+", b"OK"):
        raise Difference(f"SAVE: {shown(reply)}")
    files = sorted(pathlib.Path(pair.tested.server.directory).rglob("*.rdb"),
                   key=lambda path: path.stat().st_mtime_ns)
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        data.mkdir()
        shutil.copy(files[-1], data / "dump.rdb")
        with Server(paths.stock_command(), ["--enable-debug-command", "yes"],
                    directory=folder) as loaded:
            got = TypedClient(loaded.port).call("DEBUG", "DIGEST")
    expected = pair.stock.client.call("DEBUG", "DIGEST")
    if expected != got:
        raise Difference(f"the file {files[-1].name}\n  made   {shown(expected)}\n"
                         f"  loaded {shown(got)}")
    return f"{files[-1].stat().st_size} bytes"
