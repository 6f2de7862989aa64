"""What a campaign sends as one: a request alone, in a transaction with others, or made by a script."""

import alike
from generate import KEYS
from pair import Difference, line
from wire import shown

# Commands after which encodings may differ, as docs/compatibility.md says: SORT turns a small sorted
# set into a skiplist, INCRBYFLOAT makes integers that are no `int`, and setting a bit to what it is
# makes a string `raw`. What SPOP leaves was drawn.
OWN_ENCODINGS = {"SORT", "SORT_RO", "INCRBYFLOAT", "SETBIT", "BITFIELD"}
OWN_VALUES = {"SPOP"}

# Scripts that make the request in their arguments: as it is, as one whose error is caught, and as one whose
# reply is in RESP3.
SCRIPTS = ["return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))",
           "redis.setresp(3) return redis.call(unpack(ARGV))"]

# Of all units, how many are transactions, and how many are scripts.
TRANSACTIONS, SCRIPTED = 0.08, 0.12
TRANSACTION_LENGTHS = range(1, 6)


def name_of(request):
    return request[0].decode("latin-1").upper()


def is_plain(request):
    """Whether what it leaves needs no look at it and no removal afterwards."""
    name = name_of(request)
    is_later = name in alike.RANKS and len(request) > 3
    return name not in OWN_ENCODINGS and name not in OWN_VALUES and not is_later


class Unit:
    """Requests that are sent together. `expected` and `got` are their replies."""

    def __init__(self, requests):
        self.requests = requests

    def compare(self, expected, got):
        for request, one, other in zip(self.requests, expected, got):
            same(request, one, other)

    def loosens_events(self):
        return False


class Lone(Unit):
    """A request, with a question before and a removal after it where its outcome may differ."""

    def __init__(self, request):
        self.request = request
        touched = [key for key in KEYS if key.encode() in request]
        before = [[b"OBJECT", b"ENCODING", request[1]]] if alike.is_sort(request) else []
        after = []
        if touched and not is_plain(request):
            after = [[b"DEL", *(key.encode() for key in touched),
                      *(to.encode("latin-1") for to in alike.destinations(request))]]
        super().__init__([*before, request, *after])

    def compare(self, expected, got):
        at = self.requests.index(self.request)
        source = expected[0][1] if at else None
        same(self.request, expected[at], got[at], source)

    def loosens_events(self):
        return alike.is_sort(self.request)


class Transaction(Unit):
    def __init__(self, requests):
        self.inner = requests
        super().__init__([[b"MULTI"], *requests, [b"EXEC"]])

    def compare(self, expected, got):
        for one, other in zip(expected[:-1], got[:-1]):
            same([b"MULTI"], one, other)
        (kind, replies), (own_kind, own_replies) = expected[-1], got[-1]
        if kind != own_kind or kind != b"*" or replies is None or len(replies) != len(own_replies):
            same([b"EXEC"], expected[-1], got[-1])
            return
        # What was refused when it was queued is not among the replies: then there are none at all.
        for request, one, other in zip(self.inner, replies, own_replies):
            same(request, one, other)


class Script(Unit):
    def __init__(self, script, request):
        self.inner = request
        super().__init__([[b"EVAL", script.encode(), b"0", *request]])

    def compare(self, expected, got):
        same(self.inner, expected[0], got[0], of=self.requests[0])


def same(request, expected, got, source=None, of=None):
    if not alike.replies(request, expected, got, source):
        raise Difference(f"{line(of or request)}\n  stock  {shown(expected)}\n  tested {shown(got)}")


def drawn(generator, count, scripts):
    """So many units; none is a script unless `scripts`."""
    return [one(generator, scripts) for _ in range(count)]


def one(generator, scripts):
    kind = generator.random.random()
    if kind < TRANSACTIONS:
        return Transaction([plain(generator) for _ in range(generator.random.choice(TRANSACTION_LENGTHS))])
    if kind < TRANSACTIONS + SCRIPTED and scripts:
        return Script(generator.random.choice(SCRIPTS), plain(generator))
    return Lone(generator.request())


def plain(generator):
    while not is_plain(request := generator.request()):
        pass
    return request
