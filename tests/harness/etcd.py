"""A cluster of etcd members, on loopback: started, killed and stopped by their pids."""

import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.request

from . import paths
from .server import Ports, die_with_parent

# How long a cluster may take to elect its leader, on a machine that is busy.
READY_SECONDS_MAX = 120.0

# Who may use the keys of logs where users are demanded.
USER, PASSWORD = "me", "p@ss"


class Member:
    """One server."""

    def __init__(self, directory, number, count, ports, tls, arguments):
        self.name = f"e{number}"
        self.address = f"127.0.0.1:{ports + number}"
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self.trust = ssl.create_default_context(cafile=tls.certificate) if tls else None
        peers = [f"http://127.0.0.1:{ports + count + other}" for other in range(count)]
        cluster = ",".join(f"e{other}={peer}" for other, peer in enumerate(peers))
        self.line = ["--name", self.name, "--data-dir", str(directory / self.name),
                     "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                     "--listen-peer-urls", peers[number],
                     "--initial-advertise-peer-urls", peers[number],
                     "--initial-cluster", cluster, *arguments]
        if tls:
            self.line += ["--cert-file", str(tls.certificate), "--key-file", str(tls.key)]
        self.log = directory / f"{self.name}.log"
        self.process = None

    def start(self):
        """Starts it, or lets it go on."""
        if self.alive():
            self.process.send_signal(signal.SIGCONT)
            return
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([paths.tool("etcd"), *self.line], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL, as a crash is."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

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


class Cluster:
    """`count` members. `tls` is a certificate, or None for plain text."""

    def __init__(self, count=3, tls=None, arguments=(), folder=paths.RUNS):
        folder.mkdir(parents=True, exist_ok=True)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="kiln-etcd-", dir=folder))
        self.ports = Ports(2 * count)
        self.members = [Member(self.directory, number, count, self.ports.first, tls, arguments)
                        for number in range(count)]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.ports.close()
        if not os.environ.get("KILN_KEEP_RUNS"):
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        """Starts whoever does not run, and waits until all agree on a leader."""
        for member in self.members:
            member.start()
        self._wait(self._is_ready)

    def _wait(self, is_so):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not is_so():
            if time.monotonic() > deadline:
                tails = "\n".join(member.log.read_text()[-2000:] for member in self.members)
                raise SystemExit(f"the etcd cluster did not get ready:\n{tails}")
            time.sleep(0.05)

    def _is_ready(self):
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

        self._wait(is_found)
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

    def kill(self):
        for member in self.members:
            member.kill()
