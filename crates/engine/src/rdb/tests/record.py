#!/usr/bin/env python3
"""Records how a stock redis-server writes the values of values.txt.

    record.py DIRECTORY

DIRECTORY is that of this file. A server is started for it and ended. What it makes:

- redis-7.0.15-values.rdb: all of them in one file, strings compressed, as Redis does by default
- redis-7.0.15-dumps.txt: a line for each key: its database, its name, the SHA-1 of what DUMP gave
  without compression (`-`: the order of a hash table or the form of a node is each server's own), and
  what it gave with compression. In hexadecimal.
"""
import hashlib, pathlib, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[5] / "tests"))
from harness import paths, values  # noqa: E402
from harness.server import Server  # noqa: E402

here = pathlib.Path(sys.argv[1])

with tempfile.TemporaryDirectory() as folder:
    with Server(paths.stock_command(), ["--enable-debug-command", "yes"], directory=folder) as server:
        client = server.client()
        for request in values.requests():
            client.call(*request)
        client.call("SAVE")
        rdb = (pathlib.Path(folder) / "data" / "dump.rdb").read_bytes()
        (here / "redis-7.0.15-values.rdb").write_bytes(rdb)
        lines = ["# Recorded from redis-server 7.0.15 by record.py."]
        for database in (0, 5):
            client.call("SELECT", database)
            for key in sorted(client.call("KEYS", "*")):
                is_own = (client.call("OBJECT", "ENCODING", key) == b"hashtable"
                          or key == b"list:plain")
                client.call("CONFIG", "SET", "rdbcompression", "no")
                plain = hashlib.sha1(client.call("DUMP", key)).hexdigest()
                client.call("CONFIG", "SET", "rdbcompression", "yes")
                compressed = client.call("DUMP", key).hex()
                lines.append(f"{database} {key.hex()} {'-' if is_own else plain} {compressed}")
        (here / "redis-7.0.15-dumps.txt").write_text("\n".join(lines) + "\n")
