"""Two servers that are sent the same requests: a stock redis-server, and the one under test."""

from harness.server import Server

import alike
from wire import TypedClient, shown

# Every class of keyspace events, those included that `A` leaves out.
EVENTS = "KEAnm"

# With a limit on memory that is never met and a policy that looks at times of use, redis-server gives
# every key a value of its own. Otherwise all small integers are one, as old as the process.
UNSHARED = ["--maxmemory", "1024gb", "--maxmemory-policy", "allkeys-lru"]

ARGUMENTS = ["--notify-keyspace-events", EVENTS, "--enable-debug-command", "yes", *UNSHARED]

# Small, so that random requests meet every encoding.
SMALL_ENCODINGS = ["--hash-max-listpack-entries", "6", "--zset-max-listpack-entries", "6",
                   "--set-max-intset-entries", "5", "--list-max-listpack-size", "4",
                   "--stream-node-max-entries", "4", "--rdbcompression", "no"]

# The channel of messages that say: so far, these are the events.
MARK = "mark"


class Difference(Exception):
    """The servers did not do the same."""


class Side:
    """One server, a client that asks it, one that listens to its keyspace events, and one that rings
    when there are no more of them."""

    def __init__(self, command, arguments, folder):
        self.server = Server(command, [*ARGUMENTS, *arguments], folder=folder)
        try:
            self.server.start()
            self.client = TypedClient(self.server.port)
            self.listener = TypedClient(self.server.port)
            self.listener.call("PSUBSCRIBE", "*")
            self.bell = TypedClient(self.server.port)
            # Keys past their time go when they are asked for, and not whenever a clock ticks.
            self.client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        except BaseException:
            self.server.close()
            raise

    def ask(self, request):
        """The reply, and the events that came before it ended."""
        return self.client.call(*request), self.heard()

    def heard(self):
        """The events that came since this was asked last."""
        self.bell.call("PUBLISH", MARK, "")
        return self.until_mark()

    def until_mark(self):
        """The events before the next message that a client sent to `MARK`."""
        events = []
        while True:
            _, [_, _, (_, channel), (_, payload)] = self.listener.read()
            if channel == MARK.encode():
                return events
            # The event and its key, as both kinds of channel tell it.
            events.append((channel.decode("latin-1"), payload.decode("latin-1")))

    def close(self):
        self.server.close()


class Pair:
    """`ask` asks both and raises `Difference` where they disagree."""

    def __init__(self, stock, command, folder, arguments=()):
        self.stock = Side(stock, arguments, folder)
        try:
            self.tested = Side(command, arguments, folder)
        except BaseException:
            self.stock.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stock.close()
        self.tested.close()

    def both(self, *request):
        """Asks both without comparing."""
        return self.stock.ask(request), self.tested.ask(request)

    def source(self, request):
        """The encoding of what a SORT reads, by which `alike` knows what is chance."""
        if not alike.is_sort(request):
            return None
        (reply, _), _ = self.both("OBJECT", "ENCODING", request[1])
        return reply[1] or None

    def ask(self, *request):
        source = self.source(request)
        (expected, expected_events), (got, got_events) = self.both(*request)
        if not alike.replies(request, expected, got, source):
            raise Difference(f"{line(request)}\n  stock  {shown(expected)}\n  tested {shown(got)}")
        if not alike.events(request, expected_events, got_events, source):
            raise Difference(f"{line(request)}: events\n  stock  {expected_events}\n"
                             f"  tested {got_events}")
        return expected


def line(request):
    """A request as one line."""
    words = (part if isinstance(part, str) else part.decode("latin-1") for part in request)
    return " ".join(word if word.isprintable() and word and " " not in word else repr(word)
                    for word in words)
