"""Who only connects, and who only watches: neither takes what the log needs, nor writes."""

import contextlib
import pathlib
import socket

from harness.info import info_fields
from harness.resp import encode
from harness.server import Server
from harness.waiting import wait_for

# The limits of open files: what the server is started with, and what it may raise that to.
FILES, FILES_MAX = 96, 160

# More than there are files for what the server connects to.
MIGRATIONS = 70

# What the log and all else but clients have for themselves.
FILES_KEPT = 64

SILENT = 300

# More than the log's first segment holds, so that it must open another file.
WRITTEN_MIB = 24

WATCHING = "ERR Replica can't interact with the keyspace"


def silent_connections(port):
    """As many as connect, most of which are turned away."""
    silent = []
    for _ in range(SILENT):
        try:
            silent.append(socket.create_connection(("127.0.0.1", port), 5))
        except OSError:
            break
    return silent


def migrate_to_nobody(server, author):
    """Nor do the connections that the server asks for: here many to one that never answers."""
    with contextlib.ExitStack() as stack:
        nobody = stack.enter_context(socket.socket())
        nobody.bind(("127.0.0.1", 0))
        nobody.listen(MIGRATIONS)
        asking = [stack.enter_context(server.client()) for _ in range(MIGRATIONS)]
        for number, client in enumerate(asking):
            client.send("MIGRATE", "127.0.0.1", nobody.getsockname()[1], f"key-{number % 20}", number % 2,
                        600_000, "COPY")
        # The log's files are replaced meanwhile.
        for number in range(WRITTEN_MIB):
            assert author.call("SET", f"key-{number}", b"y" * (4 << 20)) == b"OK"


def connections_leave_files_to_the_log(command, durable):
    """Whoever connects, and needs no password for it, takes no file that the log has to open."""
    wrapper = ["prlimit", f"--nofile={FILES}:{FILES_MAX}"]
    with Server(command, durable, wrapper=wrapper) as server:
        limits = pathlib.Path(f"/proc/{server.pid}/limits").read_text()
        (files,) = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
        assert files[3] == str(FILES_MAX), f"the limit was not raised: {files}"
        with server.client() as author:
            def stats():
                return info_fields(author.call("INFO"))

            clients_max = int(stats()["maxclients"])
            assert clients_max <= FILES_MAX - FILES_KEPT, clients_max
            received = int(stats()["total_connections_received"])
            silent = silent_connections(server.port)
            wait_for("as many clients as may be",
                     lambda: int(stats()["connected_clients"]) == clients_max)
            for number in range(WRITTEN_MIB):
                assert author.call("SET", f"key-{number}", b"x" * (1 << 20)) == b"OK"
            fields = stats()
            assert int(fields["rejected_connections"]) > 0
            taken = int(fields["total_connections_received"]) - received
            assert taken == clients_max - 1, f"{taken} connections are said to be received"
            for one in silent:
                one.close()
            wait_for("the end of the silent ones", lambda: stats()["connected_clients"] == "1")
            migrate_to_nobody(server, author)
        server.kill()
        server.start()
        with server.client() as client:
            assert client.call("DBSIZE") == WRITTEN_MIB
        return f"{clients_max} clients, {fields['rejected_connections']} turned away"


def who_watches_does_not_write(command, durable):
    """A connection that said MONITOR or SYNC is stopped by no pause, so it may not touch data."""
    with Server(command, durable) as server:
        with server.client() as monitor:
            monitor.socket.sendall(encode("MONITOR") + encode("SET", "key", "1") + encode("GET", "key"))
            assert monitor.read() == b"OK"
            refusals = [monitor.read(), monitor.read()]
            assert [str(refusal) for refusal in refusals] == [WATCHING] * 2, refusals
        with server.client() as replica:
            replica.socket.sendall(encode("SYNC") + encode("SET", "key", "1"))
            try:
                while replica.socket.recv(1 << 16):
                    pass
            except ConnectionError:
                pass  # it is let go
        with server.client() as client:
            assert client.call("EXISTS", "key") == 0
