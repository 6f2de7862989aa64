"""A cluster of etcd members, on loopback: started, killed and stopped by their pids."""

import json
import ssl
import urllib.request

from . import paths
from .service import READY_SECONDS_MAX, Process, Service

# Who may use the keys of logs where users are demanded.
USER, PASSWORD = "me", "p@ss"


class Member(Process):
    """One server."""

    def __init__(self, directory, number, count, ports, tls, arguments):
        self.name = f"e{number}"
        self.address = f"127.0.0.1:{ports + number}"
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self.trust = ssl.create_default_context(cafile=tls.certificate) if tls else None
        peers = [f"http://127.0.0.1:{ports + count + other}" for other in range(count)]
        cluster = ",".join(f"e{other}={peer}" for other, peer in enumerate(peers))
        line = [paths.tool("etcd"), "--name", self.name, "--data-dir", str(directory / self.name),
                     "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                     "--listen-peer-urls", peers[number],
                     "--initial-advertise-peer-urls", peers[number],
                     "--initial-cluster", cluster, *arguments]
        if tls:
            line += ["--cert-file", str(tls.certificate), "--key-file", str(tls.key)]
        super().__init__(line, directory / f"{self.name}.log")

    def ask(self, path, question=None, timeout=1):
        """The answer of etcd's HTTP interface, or None if there is none."""
        data = json.dumps(question or {}).encode()
        request = urllib.request.Request(f"{self.url}/v3/{path}", data=data)
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self.trust) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def status(self):
        return self.ask("maintenance/status") or {}


class Cluster(Service):
    """`count` members. `tls` is a certificate, or None for plain text."""

    def __init__(self, count=3, tls=None, arguments=(), folder=paths.RUNS):
        super().__init__("etcd", 2 * count, folder)
        self.members = [Member(self.directory, number, count, self.ports.first, tls, arguments)
                        for number in range(count)]

    def processes(self):
        return self.members

    def is_ready(self):
        """All agree on a leader."""
        leaders = {member.status().get("leader", "0") for member in self.members}
        return len(leaders) == 1 and leaders != {"0"}

    def leader(self):
        """The member that leads, as it says itself."""
        found = []

        def is_found():
            for member in self.members:
                status = member.status() if member.alive() else {}
                own = status.get("header", {}).get("member_id")
                if own and own == status.get("leader"):
                    found.append(member)
                    return True
            return False

        self.wait_until(is_found)
        return found[0]

    def move_leader(self):
        """Has the leader hand over to another member."""
        leader = self.leader()
        other = next(member for member in self.members if member is not leader)
        target = other.status().get("header", {}).get("member_id")
        leader.ask("maintenance/transfer-leadership", {"targetID": target})

    def demand_users(self):
        """From now on only `USER` may use the keys of logs, and a root everything."""
        keys = {"key": "bG9ncy8=", "range_end": "bG9nczA="}  # everything that begins with logs/
        questions = [
            ("auth/user/add", {"name": "root", "password": "root"}),
            ("auth/user/grant", {"user": "root", "role": "root"}),
            ("auth/role/add", {"name": "logs"}),
            ("auth/role/grant", {"name": "logs", "perm": {"permType": "READWRITE", **keys}}),
            ("auth/user/add", {"name": USER, "password": PASSWORD}),
            ("auth/user/grant", {"user": USER, "role": "logs"}),
            ("auth/enable", {}),
        ]
        for path, question in questions:
            if self.members[0].ask(path, question, timeout=READY_SECONDS_MAX) is None:
                raise SystemExit(f"etcd refused {path} {question}")

    def addresses(self):
        return ",".join(member.address for member in self.members)

    def url(self, prefix):
        """A log's URL for Kiln."""
        return f"etcd://{self.addresses()}/{prefix}"
