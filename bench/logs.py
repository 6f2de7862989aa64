"""What keeps the log of a measured shard: a directory, three servers of NATS or etcd, a gateway for S3.

Whatever is started here runs on the load's core, because it inherits it from who starts it.
"""

import itertools
import os
import shutil
import tempfile

import subjects  # noqa: F401  (finds the harness)
from harness import etcd, nats, paths, s3


class Log:
    """Logs of one kind. A shard's servers get `arguments`; the bare client gets `bare`."""

    # The lease of a shard's primary, in milliseconds.
    lease_ms = 2000
    # Appends under way at a time: as many as Kiln has.
    window = 1
    # Others than the server under test keep it, on the load's core.
    is_service = True

    def __init__(self):
        self.numbers = itertools.count()

    def shard(self):
        """A new log: what makes its servers' arguments, as `tests/failover/shard.py` wants it."""
        url = self.url(f"shard-{next(self.numbers)}")

        def arguments(folder, _):
            return ["--transaction-log", url, "--transaction-log-lease", str(self.lease_ms),
                    "--snapshot-store", f"file:{folder / 'snapshots'}"]
        return arguments

    def bare(self):
        """Where a bare client appends, apart from every shard."""
        return self.url(f"bare-{next(self.numbers)}")


class Directory(Log):
    """One write and one fdatasync; on the same disk as everything else."""

    is_service = False

    def __enter__(self):
        paths.RUNS.mkdir(parents=True, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix="kiln-bench-", dir=paths.RUNS)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, name):
        os.makedirs(f"{self.folder}/{name}", exist_ok=True)
        return f"file:{self.folder}/{name}"


class JetStream(Log):
    """Three servers, each of which syncs before it acknowledges, on one disk and one core."""

    # Short, so that a dead primary is replaced soon: docs/operations/jetstream.md.
    lease_ms = 5000
    window = 8

    def __enter__(self):
        self.cluster = nats.Cluster()
        self.cluster.__enter__()
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def url(self, name):
        return self.cluster.url(name)


class Etcd(Log):
    """Three members, each of which syncs before it acknowledges, on one disk and one core."""

    def __enter__(self):
        # As `tests/failover/logs.py` has it: what a campaign leaves counts against the quota.
        self.cluster = etcd.Cluster(arguments=["--quota-backend-bytes", str(4 << 30)])
        self.cluster.__enter__()
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def url(self, name):
        return self.cluster.url(name)


class Bucket(Log):
    """Versity's gateway over a directory: what S3's protocol costs, not what S3 does."""

    def __enter__(self):
        os.environ.update(s3.CREDENTIALS)
        self.gateway = s3.VersityGateway()
        self.gateway.__enter__()
        return self

    def __exit__(self, *_):
        self.gateway.__exit__()

    def url(self, name):
        endpoint = self.gateway.endpoint
        return f"s3://{s3.BUCKET}/{name}?endpoint={endpoint}&region=us-east-1&allow_http=true"


LOGS = {"directory": Directory, "jetstream": JetStream, "etcd": Etcd, "s3": Bucket}
