"""A cluster of NATS servers with JetStream, on loopback: started, killed and stopped by their pids.

Every server syncs before it acknowledges, as a log needs it. Directories lie on a disk.

Where servers are to be cut off from each other, each reaches each other one by a line of its own. None
tells others or clients of ways around: `no_advertise`, and an address for others that leads nowhere.
"""

import json
import urllib.request

from . import paths
from .lines import Lines
from .service import Process, Service

CONFIGURATION = """
server_name: {name}
listen: "127.0.0.1:{port}"
http: "127.0.0.1:{monitor}"
jetstream {{ store_dir: "{directory}", {sync}max_file_store: 8GB, max_memory_store: 64MB }}
{cluster}
{more}
"""

CLUSTER = 'cluster {{ name: kiln, listen: "127.0.0.1:{port}", routes: [{routes}]{quiet} }}'

# Port 1 is nobody's. A server that is told of a route there tries it once and goes on.
QUIET = ', no_advertise: true, advertise: "127.0.0.1:1"'


class Node(Process):
    """One server. `sync` is what its configuration says of it, `more` what it says beside."""

    def __init__(self, directory, number, count, ports, sync, more, routes):
        self.name = f"n{number}"
        folder = directory / self.name
        folder.mkdir()
        self.port, self.monitor = ports + number, ports + count + number
        self.listens = ports + 2 * count + number
        quiet = QUIET if routes else ""
        routes = routes or [ports + 2 * count + other for other in range(count)]
        configuration = folder / "nats.conf"
        cluster = ""
        if count > 1:
            listed = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
            cluster = CLUSTER.format(port=self.listens, routes=listed, quiet=quiet)
        configuration.write_text(CONFIGURATION.format(
            name=self.name, port=self.port, monitor=self.monitor, cluster=cluster, more=more,
            directory=folder / "data", sync=f"sync_interval: {sync}, " if sync else ""))
        super().__init__([paths.tool("nats-server"), "-c", str(configuration)], folder / "server.log")

    def page(self, name):
        """A page of the monitoring port, or None if the server does not answer."""
        try:
            url = f"http://127.0.0.1:{self.monitor}/{name}"
            with urllib.request.urlopen(url, timeout=1) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None


class Cluster(Service):
    """`count` servers, or one that stands alone. `sync` may be None: NATS's own default. Servers that
    `can_be_cut` off from each other reach each other by lines."""

    def __init__(self, count=3, sync="always", more="", folder=paths.RUNS, can_be_cut=False):
        super().__init__("nats", 3 * count, folder)
        # Which line leads from whom to whom.
        self.pairs = [(one, other) for one in range(count) for other in range(count)
                      if can_be_cut and one != other]
        self.lines = None
        if self.pairs:
            self.lines = Lines(self.ports.first + 2 * count + other for _, other in self.pairs)
        self.nodes = [Node(self.directory, number, count, self.ports.first, sync, more,
                           self._routes(number)) for number in range(count)]

    def _routes(self, number):
        return [port for (one, _), port in zip(self.pairs, self.lines.ports if self.lines else [])
                if one == number]

    def processes(self):
        return self.nodes

    def is_ready(self):
        """It can make streams."""
        return all(self._is_ready(node) for node in self.nodes)

    def __enter__(self):
        if self.lines:
            self.lines.__enter__()
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        if self.lines:
            self.lines.__exit__()

    def cut(self, node):
        """The server hears nothing of the others any more, nor they of it; its clients do."""
        self.lines.silence(self._lines_of(node))

    def heal(self, node):
        self.lines.open(self._lines_of(node))

    def _lines_of(self, node):
        number = self.nodes.index(node)
        return [line for line, pair in enumerate(self.pairs) if number in pair]

    def _is_ready(self, node):
        page = node.page("jsz")
        if page is None:
            return False
        if len(self.nodes) == 1:
            return True
        meta = page.get("meta_cluster", {})
        return bool(meta.get("leader")) and meta.get("cluster_size") == len(self.nodes)

    def leader(self, stream):
        """The server that leads a stream, as the others see it; None while there is none."""
        for node in self.nodes:
            page = node.page("jsz?accounts=true&streams=true") if node.alive() else None
            for account in (page or {}).get("account_details", []):
                for detail in account.get("stream_detail", []):
                    leader = detail.get("cluster", {}).get("leader")
                    if detail["name"] == stream and leader:
                        return next(node for node in self.nodes if node.name == leader)
        return None

    def url(self, name, options="", servers=None, monitors=None):
        """A log's URL for Kiln; `servers` and `monitors` are ports that lead to the servers'."""
        servers = servers or [node.port for node in self.nodes]
        monitors = monitors or [node.monitor for node in self.nodes]
        servers = ",".join(f"127.0.0.1:{port}" for port in servers)
        monitors = ",".join(f"127.0.0.1:{port}" for port in monitors)
        return f"jetstream://{servers}/{name}?monitor={monitors}{options}"
