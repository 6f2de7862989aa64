"""Clients that want to be taken for somebody else: web pages, and names that forge lines."""

import socket

from harness.resp import Refusal, encode

# What the log says of a web page, by Redis as well.
ATTACK_SAID = b"Possible SECURITY ATTACK detected"


def web_page(server):
    """A page in a browser posts a request whose body is commands: nothing of it is executed, and the
    log says so once, with the address."""
    said = server.log.read_bytes().count(ATTACK_SAID)
    page = (b"%s / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nContent-Type: text/plain\r\n"
            b"Content-Length: 14\r\n\r\nSET pwned 1\r\n")
    attempts = [page % b"POST", page % b"GET", page % b"put", page % b"OPTIONS",
                b"hOsT: x\r\nSET pwned 1\r\n", encode("post") + encode("SET", "pwned", 1),
                encode("MULTI") + encode("HOST:", "x") + encode("SET", "pwned", 1) + encode("EXEC"),
                encode("SUBSCRIBE", "x") + page % b"POST",
                # Its first line in a packet of its own.
                (page % b"POST")[:17], b"SET before 1\r\n" + page % b"POST"]
    for attempt in attempts * 5:
        with socket.create_connection(("127.0.0.1", server.port), 120) as link:
            link.settimeout(120)
            link.sendall(attempt)
            try:
                while link.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    with server.client() as client:
        assert client.call("EXISTS", "pwned") == 0, "a web page wrote"
        # What lies before the line of HTTP is a client's.
        assert client.call("GET", "before") == b"1"
        # No word of these is a command's name here.
        client.call("SET", "POST", "Host:")
    said = server.log.read_bytes().count(ATTACK_SAID) - said
    assert said <= 1, f"told {said} times"
    assert ATTACK_SAID in server.log.read_bytes(), "not told"
    return None


def forged_lines(server):
    """Names with line ends, blanks and control characters make no line of their own anywhere."""
    forged = "x\r\nforged:1\x1b[2J"
    with server.client() as client:
        for request in (["CLIENT", "SETNAME", forged], ["CLIENT", "SETINFO", "LIB-NAME", forged],
                        ["CLIENT", "SETINFO", "LIB-VER", forged], ["HELLO", 2, "SETNAME", forged],
                        ["ACL", "SETUSER", forged, "on"], ["REPLICAOF", forged, 1],
                        ["CONFIG", "SET", "dir", forged], ["CONFIG", "SET", "dbfilename", "a/b"],
                        ["CONFIG", "SET", "cluster-announce-hostname", forged],
                        ["CONFIG", "SET", "aclfile", forged], ["CONFIG", "SET", "logfile", forged],
                        ["CONFIG", "SET", forged, 1], [forged], ["CLIENT", forged], ["AUTH", forged],
                        ["DEBUG", "SLEEP", forged], ["AUTH", forged, forged], ["GET", forged, 1],
                        ["CLIENT", "KILL", "TYPE", forged], ["MIGRATE", forged, 1, "k", 0, 1]):
            try:
                client.call(*request)
                assert request[0] == "MIGRATE", f"{request} was taken"
            except Refusal as refusal:
                assert "\n" not in str(refusal) and "\r" not in str(refusal), refusal
        for request in (["CLIENT", "SETNAME"], ["CLIENT", "SETINFO", "LIB-NAME"]):
            refusal = client.refusal(*request, "x" * 5000)
            assert "longer than 4096" in refusal, refusal
        client.refusal("EVAL", "error({err=ARGV[1] .. ' why'})", 0, forged)
        client.send("REPLCONF", "ip-address", forged, "listening-port", 7)
        client.read()
        # Whatever it is told, the file is rewritten with each value on its line.
        for name in ("cluster-announce-ip", "replica-announce-ip"):
            try:
                client.call("CONFIG", "SET", name, forged)
            except Refusal:
                pass
        for request in ("INFO everything", "CLIENT LIST", "ACL LIST", "CLUSTER NODES"):
            for line in flat(client.call(*request.split())).split(b"\n"):
                assert not line.startswith(b"forged"), (request, line)
        told = [dict(zip(entry[::2], entry[1::2])) for entry in client.call("ACL", "LOG")]
        assert told and all(b"\n" not in entry[b"client-info"] for entry in told), told
        client.call("CONFIG", "SET", "cluster-announce-ip", "", "replica-announce-ip", "")
    log = server.log.read_bytes()
    assert b"\nforged" not in log and b"\x1b" not in log, "a line of the log is forged"


def flat(reply):
    """Everything in a reply, as one text."""
    if isinstance(reply, list):
        return b"\n".join(flat(part) for part in reply)
    return reply if isinstance(reply, bytes) else str(reply).encode()
