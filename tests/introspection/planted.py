"""Secrets planted everywhere, and everything looked through that anybody could see.

A secret is a word that begins with `MARKER`. What an operator asks for by its name is shown, as by
redis-server: CONFIG GET of the directives in `TOLD`, and the configuration file that CONFIG REWRITE
writes.
"""

import contextlib
import pathlib
import subprocess
import urllib.request

from harness.resp import Disconnected, Refusal
from harness.server import Ports, Server, environment
from harness.waiting import PATIENCE_SECONDS, wait_for

MARKER = b"MARKER"

# Redis shows these to whoever may ask for the configuration, and clients rely on it.
TOLD = {b"requirepass", b"masterauth", b"masteruser", b"tls-key-file-pass",
        b"tls-client-key-file-pass"}

CONFIGURATION = """
requirepass MARKERfile
masterauth MARKERfile
masteruser MARKERfile
tls-key-file-pass MARKERfile
user alice on >MARKERfile ~* &* +@all
user bob on >MARKERfile ~* +get
slowlog-log-slower-than 0
slowlog-max-len 100000
acllog-max-len 1000
"""


def outcome(client, *request):
    """A reply, or the text of an error: both are looked through."""
    try:
        return client.call(*request)
    except Refusal as refusal:
        return str(refusal)


def flat(reply):
    """Everything in a reply, as one text."""
    if isinstance(reply, list):
        return b"\n".join(flat(part) for part in reply)
    return reply if isinstance(reply, bytes) else str(reply).encode()


def plant(client, port, gone):
    """Names a secret in every way that a request can; what was answered."""
    yield outcome(client, "AUTH", "MARKERwrong")
    yield outcome(client, "AUTH", "default", "MARKERwrong")
    yield outcome(client, "AUTH", "default", "MARKERwrong", "MARKERtoomuch")
    yield outcome(client, "AUTH", "MARKERfile")
    pair, wrong = ["AUTH", "default", "MARKERfile"], ["AUTH", "default", "MARKERwrong"]
    yield outcome(client, "HELLO", 2, *pair, *pair, "SETNAME", "x")
    yield outcome(client, "HELLO", 2, *wrong, *pair)
    yield outcome(client, "HELLO", 2, *pair, *wrong)
    yield outcome(client, "HELLO", 2, "SETNAME", "AUTH", *pair)
    yield outcome(client, "HELLO", 9, *pair)
    yield outcome(client, "HELLO", 2, "AUTH", "MARKERshort")
    yield outcome(client, "ACL", "SETUSER", "carol", "on", ">MARKERacl", "<MARKERacl", ">MARKERacl")
    yield outcome(client, "CONFIG", "SET", "masterauth", "MARKERset", "masteruser", "MARKERset",
                  "tls-key-file-pass", "MARKERset", "tls-client-key-file-pass", "MARKERset",
                  "requirepass", "MARKERfile")
    yield outcome(client, "CONFIG", "SET", "hz", "masterauth", "MARKERodd")
    yield outcome(client, "CONFIG", "SET", "hz", "no number", "masterauth", "MARKERrefused")
    yield outcome(client, "CONFIG", "SET", "transaction-log", "etcd://user:MARKERurl@host/x")
    yield outcome(client, "CONFIG", "SET", "snapshot-store", "s3://user:MARKERurl@host/x")
    yield outcome(client, "ACL", "DRYRUN", "alice", "AUTH", "MARKERdry")
    yield outcome(client, "COMMAND", "GETKEYS", "MIGRATE", "host", 1, "key", 0, 1, "AUTH", "MARKERkeys")
    client.call("SET", "moved", "value")
    for login in (["AUTH", "MARKERmove"], ["AUTH2", "MARKERuser", "MARKERmove"],
                  ["COPY", "AUTH2", "default", "MARKERmove", "KEYS", "moved"]):
        key = "" if "KEYS" in login else "moved"
        yield outcome(client, "MIGRATE", "127.0.0.1", port, key, 0, 1000, *login)
        yield outcome(client, "MIGRATE", "127.0.0.1", gone, key, 0, 1000, *login)
    client.call("MULTI")
    client.call("AUTH", "MARKERfile")
    client.call("HELLO", 2, *wrong, *pair)
    client.call("ACL", "SETUSER", "carol", ">MARKERagain")
    client.call("CONFIG", "SET", "masterauth", "MARKERset")
    yield outcome(client, "EXEC")
    client.socket.sendall(b"AUTH MARKERinline\r\nAUTH \"MARKERfile\"\r\n")
    yield client.read()
    yield client.read()


def look(client, server, monitored):
    """Everything that can be seen, each with a name for it."""
    for request in ("INFO everything", "CLIENT LIST", "CLIENT INFO", "SLOWLOG GET -1", "ACL LOG",
                    "ACL LIST", "ACL USERS", "ACL GETUSER carol", "ACL GETUSER default", "ROLE",
                    "LATENCY LATEST", "LATENCY HISTOGRAM", "LATENCY DOCTOR", "MEMORY DOCTOR",
                    "MEMORY STATS", "CLUSTER NODES", "CLUSTER INFO", "SENTINEL MASTERS"):
        yield request, flat(outcome(client, *request.split()))
    settings = client.call("CONFIG", "GET", "*")
    for name, value in zip(settings[::2], settings[1::2]):
        if name not in TOLD:
            yield f"CONFIG GET {name.decode()}", value
    yield "MONITOR", monitored
    yield "the log", server.log.read_bytes()
    arguments = pathlib.Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert b"--masterauth" in arguments and b"*" * 16 in arguments, arguments
    yield "ps", arguments
    url = f"http://127.0.0.1:{server.metrics_port}/metrics"
    yield "metrics", urllib.request.urlopen(url, timeout=PATIENCE_SECONDS).read()


def follow(client, other, wanted):
    """Follows a master that refuses its password, until it is told why not."""
    client.call("REPLICAOF", "127.0.0.1", other.port)
    wait_for(wanted, lambda: wanted in client.call("INFO", "replication"))
    text = client.call("INFO", "replication")
    client.call("REPLICAOF", "NO", "ONE")
    return text


def read_lines(monitor):
    """What MONITOR has shown, up to a line that was sent last."""
    lines = b""
    while b"the last line" not in lines:
        line = monitor.read()
        lines += line + b"\n"
    return lines


def nothing_shows_a_secret(command):
    """Plants and looks; what was looked at, as a count."""
    # Servers that are closed at the end, and begun by hand: they refuse PING.
    other = Server(command, ["--requirepass", "MARKERother"])
    with Ports(2) as ports, contextlib.closing(other):
        start(other, "MARKERother")
        with contextlib.closing(Server(command)) as server:
            file = server.directory / "redis.conf"
            file.write_text(CONFIGURATION)
            server.command = [*server.command, str(file)]
            server.arguments = ["--metrics-port", str(ports.first), "--masterauth",
                                "MARKERcommandline"]
            server.metrics_port = ports.first
            start(server, "MARKERfile")
            with server.client() as client, server.client() as monitor:
                monitor.call("AUTH", "MARKERfile")
                monitor.call("MONITOR")
                answers = list(plant(client, other.port, ports.first + 1))
                for number, answer in enumerate(answers):
                    shown = flat(answer)
                    assert MARKER not in shown, f"answer {number}: {shown[:300]}"
                answer = follow(client, other, b"kiln_link_error:Unable to AUTH to MASTER")
                assert MARKER not in answer, answer
                client.call("CONFIG", "REWRITE")
                client.call("PING", "the last line")
                seen = list(look(client, server, read_lines(monitor)))
            text = file.read_text()
            assert "masterauth \"MARKERset\"" in text and "requirepass \"MARKERfile\"" in text, text
            comments = [line for line in text.splitlines() if line.startswith("#")]
            assert "MARKER" not in "".join(comments), comments
    redacted = 0
    for name, shown in seen:
        at = shown.find(MARKER)
        assert at < 0, f"{name} shows …{shown[max(0, at - 200):at + 40]}"
        redacted += shown.count(b"(redacted)")
    assert redacted > 40, f"only {redacted} secrets were hidden: they were not planted"
    return f"{len(seen)} places, {redacted} secrets hidden"


def start(server, password):
    """`Server.start` waits for PONG, which a server with a password never says to a stranger."""
    def is_ready():
        assert server.alive(), server.log_tail()
        try:
            with server.client() as client:
                client.call("AUTH", password)
                return client.call("PING") == b"PONG"
        except (OSError, Disconnected, Refusal):
            return False  # it starts, or loads

    server.launch()
    wait_for("a PONG", is_ready)


WRONG_STARTS = [
    ["--transaction-log", "etcd://user:MARKER@127.0.0.1:1"],
    ["--transaction-log", "etcd://user:MAR/MARKER@127.0.0.1:1/x"],
    ["--transaction-log", "jetstream://user:MARKER@127.0.0.1:1/not.a.name"],
    ["--transaction-log", "jetstream://user:a/MARKER@127.0.0.1:1"],
    ["--transaction-log", "jetstream://user:a?MARKER@127.0.0.1:1/x"],
    ["--transaction-log", "jetstream://user:MARKER@127.0.0.1:1/x?wrong=1"],
    ["--transaction-log", "s3://user:MARKER@bucket/prefix"],
    ["--transaction-log", "nats://user:MARKER@127.0.0.1:1/x"],
    ["--transaction-log", "etcd://user:MARKER@127.0.0.1:1/x", "too much"],
    ["--requirepass", "MARKER", "MARKER"],
    ["--tls-key-file-pass", "MARKER", "MARKER"],
    ["--user", "alice", "MARKER"],
    ["--user", "alice", "#MARKER"],
]


def a_failed_start_shows_none(command):
    """A start that fails says why without the secret that stands beside the mistake."""
    with contextlib.closing(Server(command)) as server:
        (server.directory / "data").mkdir()
        for arguments in WRONG_STARTS:
            line = [*server.line(), *arguments]
            done = subprocess.run(line, capture_output=True, timeout=PATIENCE_SECONDS,
                                  env=environment())
            said = done.stdout + done.stderr
            assert done.returncode == 1, (arguments, said)
            assert b"the log" in said or b">>> '" + arguments[0][2:].encode() in said, said
            assert MARKER not in said, (arguments, said)
