"""What keeps the log of a shard: how members are told of it, and how it is cut off from one of them.

Where servers keep it, each member reaches each of them by a line of its own (harness/lines.py), which
is the only way that it knows of.
"""

import contextlib
import os
import time

from harness import etcd, nats, s3
from harness.lines import Lines
from shard import shared_log

# How long a log in objects must have known a record before it may trim it: short, so that the floor
# rises in every round, and an answer is trusted for a quarter of that only.
TRIM_AGE_MS = 1000

# How long a log's servers may take to elect, or to start.
SERVICE_SECONDS_MAX = 120.0


def snapshots(folder):
    return ["--snapshot-store", f"file:{folder / 'snapshots'}"]


class Directory:
    """Segments in a directory that all members share."""

    # Milliseconds, as `transaction-log-lease` has it where it is not told.
    lease_ms = 2000
    # Calls of a member in which it may be stopped while it appends.
    append_calls = ["pwrite64", "fdatasync"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def arguments(self, folder, number):
        return shared_log(folder, number)


class OwnDirectory(Directory):
    """What a shard must not have, a log for each member: used to see that it is noticed."""

    def arguments(self, folder, number):
        return ["--transaction-log", f"file:{folder / f'log-{number}'}",
                "--snapshot-store", f"file:{folder / f'snapshots-{number}'}"]


class Objects(Directory):
    """Objects that are files in a directory that all members share."""

    append_calls = ["write", "fsync", "linkat"]

    def arguments(self, folder, _):
        url = f"file-object:{folder / 'objects'}?trim_age_ms={TRIM_AGE_MS}"
        return ["--transaction-log", url, *snapshots(folder)]


class Served:
    """A log that servers keep, each member with lines of its own to each of their ports."""

    lease_ms = 2000

    def __init__(self, members):
        self.members = members
        self.stack = contextlib.ExitStack()

    def __exit__(self, *_):
        self.stack.close()

    def lead(self, targets):
        """Makes the lines to the servers' ports."""
        self.targets = list(targets)
        self.lines = self.stack.enter_context(Lines(self.targets * self.members))

    def _lines_of(self, number):
        first = number * len(self.targets)
        return range(first, first + len(self.targets))

    def ports(self, number):
        return [self.lines.ports[line] for line in self._lines_of(number)]

    def silence(self, number):
        """The member's packets are lost, both ways."""
        self.lines.silence(self._lines_of(number))

    def refuse(self, number):
        """The member's connections end, and new ones are refused."""
        self.lines.refuse(self._lines_of(number))

    def heal(self, number):
        self.lines.open(self._lines_of(number))


class Bucket(Served):
    """Objects in a bucket, behind a gateway that can be killed and started again."""

    def __enter__(self):
        # The servers inherit them.
        os.environ.update(s3.CREDENTIALS)
        self.gateway = self.stack.enter_context(s3.VersityGateway())
        self.lead([self.gateway.ports.first])
        return self

    def arguments(self, folder, number):
        endpoint = f"http://127.0.0.1:{self.ports(number)[0]}"
        url = (f"s3://{s3.BUCKET}/shard?endpoint={endpoint}&allow_http=true"
               f"&trim_age_ms={TRIM_AGE_MS}")
        return ["--transaction-log", url, *snapshots(folder)]

    def kill(self, _):
        self.gateway.kill()

    def revive(self):
        self.gateway.start()

    def newest(self):
        """The highest number of a record."""
        return self._highest("log")

    def floor(self):
        return self._highest("floor")

    def _highest(self, kind):
        # Objects are files, and names of numbers have one length.
        found = (self.gateway.root / s3.BUCKET / "shard").glob(f"*/{kind}/*")
        return max((int(path.name) for path in found if path.name.isdigit()), default=0)


class Stream(Served):
    """A stream in a NATS cluster of three that can be killed, stopped and cut off from each other."""

    # Its elections take 4 to 9 s.
    lease_ms = 5000

    def __enter__(self):
        self.cluster = self.stack.enter_context(nats.Cluster(can_be_cut=True))
        nodes = self.cluster.nodes
        self.lead([*(node.port for node in nodes), *(node.monitor for node in nodes)])
        return self

    def arguments(self, folder, number):
        ports = self.ports(number)
        half = len(ports) // 2
        url = self.cluster.url("shard", servers=ports[:half], monitors=ports[half:])
        return ["--transaction-log", url, "--transaction-log-lease", str(self.lease_ms),
                *snapshots(folder)]

    def leader(self):
        """The server that leads the stream."""
        deadline = time.monotonic() + SERVICE_SECONDS_MAX
        while (leader := self.cluster.leader("kiln-shard")) is None:
            if time.monotonic() > deadline:
                raise SystemExit("the stream has no leader")
            time.sleep(0.1)
        return leader

    def lead_only_to(self, number, nodes):
        """The member's connections to the other servers end, and new ones are refused."""
        lines = self._lines_of(number)
        for line, node in zip(lines, self.cluster.nodes):
            (self.lines.open if node in nodes else self.lines.refuse)([line])

    def node(self, draw):
        """The stream's leader as often as any other."""
        return self.leader() if draw.random() < 0.5 else draw.choice(self.cluster.nodes)

    def kill(self, draw):
        """Two of three, so that nothing can be written."""
        for node in draw.sample(self.cluster.nodes, 2):
            node.kill()

    def revive(self):
        self.cluster.start()


class Etcd(Served):
    """Keys in an etcd cluster of three."""

    def __enter__(self):
        self.cluster = self.stack.enter_context(etcd.Cluster())
        self.lead(int(member.address.split(":")[1]) for member in self.cluster.members)
        return self

    def arguments(self, folder, number):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports(number))
        return ["--transaction-log", f"etcd://{hosts}/shard", *snapshots(folder)]

    def leader(self):
        return self.cluster.leader()

    def kill(self, draw):
        """Two of three, so that nothing can be written."""
        for member in draw.sample(self.cluster.members, 2):
            member.kill()

    def revive(self):
        self.cluster.start()


LOGS = {"directory": lambda _: Directory(), "objects": lambda _: Objects(), "s3": Bucket,
        "etcd": Etcd, "jetstream": Stream}
