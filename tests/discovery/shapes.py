"""What a replica tells of its cluster, held against what a replica of a stock cluster tells: two
redis-servers that met, one of which owns all slots. Names, addresses, numbers of clocks and of
messages are taken out, nothing else is.
"""

import re

from harness import paths
from harness.server import Ports, Server
from harness.waiting import wait_for

from shard import Shard
from wire import TypedClient, shown

SLOTS = 16384

ANNOUNCED = ["--cluster-announce-ip", "127.0.0.1"]

# Requests about nobody in particular, and such as name the primary's id.
REQUESTS = """
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER NODES
CLUSTER INFO
CLUSTER MYID
CLUSTER KEYSLOT foo{bar}
CLUSTER COUNTKEYSINSLOT 0
CLUSTER COUNTKEYSINSLOT 16384
CLUSTER COUNTKEYSINSLOT x
CLUSTER GETKEYSINSLOT 0 10
CLUSTER GETKEYSINSLOT 0 -1
CLUSTER GETKEYSINSLOT x 1
CLUSTER REPLICAS PRIMARY
CLUSTER SLAVES PRIMARY
CLUSTER REPLICAS SELF
CLUSTER REPLICAS nobody
CLUSTER COUNT-FAILURE-REPORTS PRIMARY
CLUSTER COUNT-FAILURE-REPORTS nobody
CLUSTER NOSUCH
CLUSTER SLOTS x
ASKING
READONLY
GET foo
SET foo bar
READWRITE
GET foo
SET foo bar
FLUSHALL
""".strip().splitlines()

# Lines of CLUSTER INFO about messages that Kiln's servers do not send.
MESSAGES = re.compile(rb"cluster_stats_messages_\w+_(sent|received):\d+\r\n")

WILD = [
    (re.compile(rb"cluster_(current|my)_epoch:\d+"), rb"cluster_\1_epoch:N"),
    (re.compile(rb"messages_(sent|received):\d+"), rb"messages_\1:N"),
    # Of a node's line: the bus, when it was pinged and answered, its epoch.
    (re.compile(rb"@\d+"), b"@BUS"),
    (re.compile(rb" \d+ \d+ \d+ (?=(dis)?connected)"), b" N N N "),
]


def compare(command, log, report):
    with Stock() as stock, Shard(command, 2, log, ANNOUNCED) as shard:
        primary, replica = shard.primary(), shard.replicas()[0]
        for version in ("2", "3"):
            expected = Teller(stock.replica.port, stock.primary.port, version)
            found = Teller(replica.port, primary.port, version)
            for request in REQUESTS:
                name = f"{request} in RESP{version}"
                report.check(name, lambda: same(expected.ask(request), found.ask(request)))


def same(expected, found):
    assert expected == found, f"stock says {shown(expected)}, here {shown(found)}"


class Stock:
    """A primary that owns all slots, and its replica."""

    def __init__(self):
        self.buses = [Ports(), Ports()]
        self.primary, self.replica = (
            Server(paths.stock_command(), ["--cluster-enabled", "yes", "--save", "", *ANNOUNCED,
                                           "--cluster-port", str(bus.first)])
            for bus in self.buses)

    def __enter__(self):
        for server in (self.primary, self.replica):
            server.start()
        with self.primary.client() as primary, self.replica.client() as replica:
            primary.call("CLUSTER", "ADDSLOTSRANGE", "0", str(SLOTS - 1))
            replica.call("CLUSTER", "MEET", "127.0.0.1", self.primary.port, self.buses[0].first)
            name = primary.call("CLUSTER", "MYID")
            wait_for("they met", lambda: name in replica.call("CLUSTER", "NODES"))
            replica.call("CLUSTER", "REPLICATE", name)
            # Its slots, the primary, and itself: it is listed once it has data.
            wait_for("it is a replica", lambda: [len(it) for it in replica.call("CLUSTER", "SLOTS")] == [4])
            wait_for("all is well", lambda: b"state:ok" in replica.call("CLUSTER", "INFO"))
            wait_for("links stand", lambda: b"disconnected" not in replica.call("CLUSTER", "NODES"))
        return self

    def __exit__(self, *_):
        for each in (self.primary, self.replica, *self.buses):
            each.close()


class Teller:
    """Asks a replica, and takes out of its answers what differs between any two clusters."""

    def __init__(self, port, primary_port, version):
        self.client = TypedClient(port)
        self.client.call("HELLO", version)
        self.ports = {port: b"PORT-OF-REPLICA", primary_port: b"PORT-OF-PRIMARY"}
        with TypedClient(primary_port) as primary:
            self.ids = {self.client.call("CLUSTER", "MYID")[1]: b"SELF",
                        primary.call("CLUSTER", "MYID")[1]: b"PRIMARY"}

    def ask(self, request):
        ids = {name.decode(): one.decode() for one, name in self.ids.items()}
        return self.plain(self.client.call(*(ids.get(word, word) for word in request.split())))

    def plain(self, reply):
        kind, value = reply
        if value is None:
            return reply
        if not isinstance(value, list):
            return kind, self.text(value)
        items = [self.plain(item) for item in value]
        names = [item[1] for item in items]
        if b"replication-offset" in names:
            # Bytes there, records here.
            at = names.index(b"replication-offset") + 1
            items[at] = (items[at][0], b"OFFSET")
        # Nodes come in any order.
        return kind, sorted(items, key=repr) if self.are_nodes(items) else items

    def are_nodes(self, items):
        return all(isinstance(item[1], list) and (b"$", b"health") in item[1] for item in items)

    def text(self, value):
        for one, name in self.ids.items():
            value = value.replace(one, name)
        for port, name in self.ports.items():
            value = re.sub(rb"\b%d\b" % port, name, value)
        value = MESSAGES.sub(b"", value)
        for pattern, plain in WILD:
            value = pattern.sub(plain, value)
        if b" connected" not in value:
            return value
        # Behind what says that it is text, in RESP3, nodes come in any order here too.
        start = len(b"txt:") if value.startswith(b"txt:") else 0
        return value[:start] + b"\n".join(sorted(value[start:].split(b"\n")))
