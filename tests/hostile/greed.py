"""Clients that want the server to keep more for them than their limits allow."""

import pathlib
import time

from harness.resp import Client, Disconnected, encode

MIB = 1 << 20


def queues_without_end(server):
    """A transaction that queues 1 GiB, names that are watched and subscribed to without end: all
    that is kept for a client counts, and beyond client-query-buffer-limit it is disconnected."""
    peak, value = 0, b"x" * 100_000
    with server.client() as client:
        client.call("CONFIG", "SET", "client-query-buffer-limit", 8 * MIB)
        before = limit_disconnections(client)
        requests = {"SET": [("SET", f"queued:{n}", value) for n in range(10_000)],
                    "PING": [("PING",)] * 2_000_000,
                    "WATCH": [("WATCH", b"%d" % n + value) for n in range(10_000)],
                    "SUBSCRIBE": [("SUBSCRIBE", b"%d" % n + value) for n in range(10_000)]}
        for name, sent in requests.items():
            link = Client(server.port)
            if name in ("SET", "PING"):
                link.call("MULTI")
            count = send_until_closed(link, sent)
            peak = max(peak, server.resident_bytes())
            assert count < len(sent), f"{name}: {count} were taken"
            link.close()
        if before is not None:
            assert limit_disconnections(client) == before + len(requests)
        # What fits is queued, and executed.
        client.call("MULTI")
        for _ in range(40):
            client.call("SET", "queued", value)
        line = client.call("CLIENT", "INFO")  # is queued, too
        assert line == b"QUEUED" and client.call("EXEC")[:40] == [b"OK"] * 40
        client.call("CONFIG", "SET", "client-query-buffer-limit", "1gb")
        found = client.call("EXISTS", *(f"queued:{number}" for number in range(100)))
        assert found == 0, f"{found} keys of a transaction that was cut off"
    return peak


def limit_disconnections(client):
    """How many clients INFO says reached their limit of input; `None` if it does not say."""
    for line in client.call("INFO", "stats").splitlines():
        if line.startswith(b"kiln_client_input_limit_disconnections:"):
            return int(line.partition(b":")[2])
    return None


def send_until_closed(link, requests):
    """Sends requests, some at a time, and reads what is answered; how many were sent."""
    link.socket.settimeout(120)
    sent, at_once = 0, 1 if len(requests[0][-1]) > 1000 else 10_000
    try:
        while sent < len(requests):
            part = requests[sent:sent + at_once]
            link.socket.sendall(b"".join(encode(*request) for request in part))
            for _ in part:
                link.read()
            sent += len(part)
    except (OSError, Disconnected):
        pass
    return sent


def replies_without_end(server):
    """Replies far beyond the limit: what would exceed it is not made, so that others do not wait and
    no memory is taken; the client is disconnected, and what it wrote has happened as a whole."""
    peak = [0]
    with server.client() as client:
        client.call("SADD", "members", "1", "2", "3")
        client.call("SET", "large", b"x" * MIB)
        client.call("RPUSH", "elements", *range(10_000))
        client.call("HSET", "fields", "f", b"x" * MIB)
        client.call("SADD", "many", *(b"%d" % n + b"x" * 1000 for n in range(20_000)))
        client.call("CONFIG", "SET", "client-output-buffer-limit", f"normal {10 * MIB} 0 0")
        requests = [["SRANDMEMBER", "members", -4_000_000], ["MGET"] + ["large"] * 100_000,
                    ["HRANDFIELD", "fields", -1_000_000, "WITHVALUES"],
                    ["HMGET", "fields"] + ["f"] * 100_000,
                    ["SORT", "elements", "BY", "nosort"] + ["GET", "large*"] * 2
                    + ["GET", "fields*->f"] * 1000 + ["GET", "#"] * 1000,
                    ["SMEMBERS", "many"], ["SUNION", "many", "members"],
                    ["COMMAND", "INFO"] + ["get"] * 100_000, ["SPOP", "many", 15_000]]
        for request in requests:
            closed_by(server, [request], peak)
        # EXEC is whole, although nobody hears of it.
        closed_by(server, [["MULTI"], ["SET", "first", 1], *[["GET", "large"]] * 200,
                           ["SET", "last", 1], ["EXEC"]], peak)
        assert client.call("MGET", "first", "last") == [b"1", b"1"], "a half of a transaction"
        assert client.call("SCARD", "many") == 5000, "SPOP was not whole"
        # What is not answered at all has no length.
        with server.client() as silent:
            silent.send("CLIENT", "REPLY", "OFF")
            silent.send("SMEMBERS", "members")
            silent.send("MGET", *["large"] * 1000)
            silent.send("SET", "after", 1)
            silent.send("CLIENT", "REPLY", "ON")
            assert silent.read() == b"OK"
        assert client.call("GET", "after") == b"1"
        # Without a limit there is one all the same.
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
        before = server.resident_bytes()
        closed_by(server, [["MGET"] + ["large"] * 1_000_000], None)
        deadline = time.monotonic() + 120
        while server.resident_bytes() > before + 64 * MIB:
            assert time.monotonic() < deadline, "what was dropped is still there"
            time.sleep(0.1)
        for command in ("SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER"):
            key = {"S": "members", "H": "fields", "Z": "sorted"}[command[0]]
            client.call("ZADD", "sorted", 1, "member")
            refusal = client.refusal(command, key, -2_000_000_000)
            assert "out of range" in refusal, refusal
        client.call("DEL", "large", "many", "fields")
    return peak[0]


def closed_by(server, requests, peak):
    """Sends requests, reads nothing, and waits until the server has closed the connection."""
    with server.client() as link:
        link.socket.settimeout(120)
        link.socket.sendall(b"".join(encode(*request) for request in requests))
        received = 0
        try:
            while piece := link.socket.recv(MIB):
                received += len(piece)
                if peak is not None:
                    peak[0] = max(peak[0], server.resident_bytes())
        except ConnectionResetError:
            pass
        assert received < 12 * MIB, f"{requests[0][0]} was answered: {received} bytes"


def evicted(server):
    """maxmemory-clients: whoever takes most goes first, and nobody who takes little."""
    peak = 0
    with server.client() as client, server.client() as kept:
        kept.call("CLIENT", "NO-EVICT", "ON")
        kept.call("MULTI")
        for _ in range(4):
            kept.call("SET", "queued", b"x" * MIB)
        before = clients_evicted(client)
        client.call("CONFIG", "SET", "maxmemory-clients", 30 * MIB)
        greedy = [server.client() for _ in range(40)]
        for number, link in enumerate(greedy):
            try:
                link.call("MULTI")
                for _ in range(5):
                    link.call("SET", f"greedy:{number}", b"x" * MIB)
            except Disconnected:
                pass
            peak = max(peak, server.resident_bytes())
        gone = clients_evicted(client) - before
        assert 30 <= gone < 40, f"{gone} were evicted"
        assert kept.call("EXEC") == [b"OK"] * 4
        # One that sends a request without end, one that reads nothing, a subscriber with many names.
        def swells(link):
            link.socket.sendall(b"*1\r\n$100000000\r\n" + b"x" * 40 * MIB)
        def reads_nothing(link):
            link.socket.sendall(encode("GET", "large") * 60)
        def subscribes(link):
            for number in range(40):
                link.send("SUBSCRIBE", b"%d" % number + b"x" * MIB)
        client.call("SET", "large", b"x" * MIB)
        for swell in (swells, reads_nothing, subscribes):
            before = clients_evicted(client)
            with server.client() as link:
                try:
                    swell(link)
                except (OSError, Disconnected):
                    pass
                deadline = time.monotonic() + 120
                while clients_evicted(client) == before:
                    assert time.monotonic() < deadline, f"{swell.__name__} was not evicted"
                    time.sleep(0.02)
            peak = max(peak, server.resident_bytes())
        client.call("CONFIG", "SET", "maxmemory-clients", 0)
        for link in greedy:
            link.close()
        client.call("DEL", "large", "queued")
    return peak


def messages_without_end(server):
    """A transaction that publishes, to a client whose patterns all match, far more than that client's
    limit: it is disconnected, and others are told everything. A key that many watch is changed by one
    command as often as it has elements. Neither takes memory for each pair."""
    # Linux counts the peak anew from here.
    pathlib.Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    with server.client() as client, server.client() as listener, server.client() as greedy:
        listener.call("SUBSCRIBE", "news")
        greedy.send("PSUBSCRIBE", *("n" + "*" * number for number in range(1, 900)))
        for _ in range(1, 900):
            greedy.read()
        client.call("MULTI")
        for number in range(4000):
            client.call("PUBLISH", "news", number)
        assert client.call("EXEC") == [1 + 899] * 4000
        told = [listener.read()[2] for _ in range(4000)]
        assert told == [b"%d" % number for number in range(4000)]
        received = 0
        greedy.socket.settimeout(120)
        try:
            while piece := greedy.socket.recv(MIB):
                received += len(piece)
        except ConnectionResetError:
            pass
        assert received < 36 * MIB, f"the listener of many patterns was sent {received} bytes"
    watchers = [server.client() for _ in range(300)]
    for watcher in watchers:
        watcher.call("WATCH", "watched")
    with server.client() as client:
        client.call("RPUSH", "watched", *["x"] * 100_000)
        client.call("DEL", "watched")
    for watcher in watchers:
        watcher.call("MULTI")
        assert watcher.call("EXEC") is None, "a watched key has changed"
        watcher.close()
    leaves_in_the_midst(server)
    return peak_bytes(server)


def leaves_in_the_midst(server):
    """Who is told more than its limit by a transaction of its own, in which it unsubscribes, has no
    limit of a subscriber's any more when the messages come. Some were dropped, so it must not stay."""
    with server.client() as client:
        client.send("HELLO", "3")
        client.send("SUBSCRIBE", "own")
        client.send("MULTI")
        for _ in range(3500):
            client.send("PUBLISH", "own", b"x" * 10_000)
        client.send("UNSUBSCRIBE", "own")
        client.send("EXEC")
        client.send("ECHO", "it goes on")
        client.socket.settimeout(120)
        end = b""
        try:
            while piece := client.socket.recv(MIB):
                end = (end + piece)[-100:]
                assert b"it goes on" not in end, "it missed messages, and was not disconnected"
        except ConnectionError:
            pass


def peak_bytes(server):
    """The most memory that the process has had in RAM at a time."""
    for line in pathlib.Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the system does not say the peak")


def clients_evicted(client):
    for line in client.call("INFO", "stats").splitlines():
        if line.startswith(b"evicted_clients:"):
            return int(line.partition(b":")[2])
    raise AssertionError("INFO lacks evicted_clients")
