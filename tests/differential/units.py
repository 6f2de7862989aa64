"""What a campaign sends as one: a request alone, in a transaction with others, or made by a script."""

import re

import alike
import scripts
from generate import KEYS
from pair import Difference, line
from wire import shown

# Commands after which encodings may differ, as docs/compatibility.md says: SORT turns a small sorted
# set into a skiplist, INCRBYFLOAT makes integers that are no `int`, and setting a bit to what it is
# makes a string `raw`. What SPOP leaves was drawn.
OWN_ENCODINGS = {"SORT", "SORT_RO", "INCRBYFLOAT", "SETBIT", "BITFIELD"}
OWN_VALUES = {"SPOP"}

# What a SORT of an unordered source looks up comes in another order. KEYS tells of the keys past their time
# that it meets, because their absence must be in the log before it is told; redis-server leaves them where they
# are. SCAN with TYPE looks each key up, and tells of those that are gone meanwhile.
LOOSE = {"SORT", "SORT_RO", "KEYS", "SCAN"}

# What compares members of a sorted set and not their scores. Where scores differ Redis leaves open what that
# gives, so the set is made anew before.
BY_LEX = {"ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZLEXCOUNT", "ZREMRANGEBYLEX"}
MAY_BE_BY_LEX = {"ZRANGE", "ZRANGESTORE"}
MADE_ANEW = [[b"ZADD", b"0", b"a", b"0", b"b", b"0", b"c", b"0", b"hello", b"0", b""],
             [b"ZADD", b"7", b"a", b"7", b"x" * 70, b"7", b"-7", b"7", b"b", b"7", b"c", b"7", b"1"],
             [b"SET", b"no set"], [b"EXISTS"]]

# Scripts that make the request in their arguments: as it is, as one whose error is caught, and as one whose
# reply is in RESP3.
SCRIPTS = ["return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))",
           "redis.setresp(3) return redis.call(unpack(ARGV))"]

# Of all units, how many are transactions, how many are such scripts, how many are drawn whole (`scripts.py`),
# and how many are about functions.
SHARES = (0.08, 0.08, 0.06, 0.02)
SHARES_WITHOUT_OWN_SCRIPTS = (0.08, 0.08, 0, 0)
TRANSACTION_LENGTHS = range(1, 6)

# Longer words are texts of scripts.
NAME_BYTES_MAX = 100


def name_of(request):
    return request[0].decode("latin-1").upper()


def is_plain(request):
    """Whether what it leaves needs no look at it and no removal afterwards."""
    name = name_of(request)
    is_later = name in alike.RANKS and len(request) > 3
    return name not in OWN_ENCODINGS and name not in OWN_VALUES and not is_later and not is_by_lex(request)


def is_by_lex(request):
    name = name_of(request)
    has_word = name in MAY_BE_BY_LEX and any(word.upper() == b"BYLEX" for word in request)
    return (name in BY_LEX or has_word) and len(request) > 2


def made_anew(request):
    """Requests that make the sorted set which the request is about; which ones, its own bytes say."""
    key = request[2 if name_of(request) == "ZRANGESTORE" else 1]
    first, *rest = MADE_ANEW[sum(map(sum, request)) % len(MADE_ANEW)]
    return [[b"DEL", key], [first, key, *rest]]


class Unit:
    """Requests that are sent together. `expected` and `got` are their replies."""

    def __init__(self, requests):
        self.requests = requests

    def compare(self, expected, got):
        for request, one, other in zip(self.requests, expected, got):
            same(request, one, other)

    def loosens_events(self):
        """Whether its events may come in another order, and what it looks up for itself goes untold."""
        return any(name_of(request) in LOOSE for request in self.requests)


class Look(Unit):
    """Looks at every key that requests may have named: of those past their time nothing is left then."""

    def __init__(self, asked):
        words = {word for unit in asked for request in unit.requests for word in request}
        super().__init__([[b"EXISTS", *sorted(word for word in words if len(word) <= NAME_BYTES_MAX)]])

    def loosens_events(self):
        return True


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
        if is_by_lex(request):
            before = made_anew(request)
        super().__init__([*before, request, *after])

    def compare(self, expected, got):
        at = self.requests.index(self.request)
        source = expected[0][1] if alike.is_sort(self.request) else None
        same(self.request, expected[at], got[at], source)


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

    def loosens_events(self):
        return name_of(self.inner) in LOOSE

    def compare(self, expected, got):
        same(self.inner, expected[0], got[0], of=self.requests[0])


class Written(Unit):
    """Requests about a script or a library that is drawn whole."""

    def compare(self, expected, got):
        for request, one, other in zip(self.requests, expected, got):
            if [word.upper() for word in request[:2]] == [b"FUNCTION", b"LIST"]:
                one, other = in_order(one), in_order(other)
            if one != other and not both_say(one, other) and as_said(one) != as_said(other):
                raise Difference(f"{line(request)}\n  stock  {shown(one)}\n  tested {shown(other)}")


# Lists within lists that both servers answer.
NESTED_ALIKE = 3900


def in_order(reply):
    """A reply whose arrays are sorted: libraries and functions come in the order of hash tables."""
    kind, value = reply
    return (kind, sorted(map(in_order, value), key=repr)) if isinstance(value, list) else reply


def as_said(reply, depth=NESTED_ALIKE):
    """A reply whose strings are text: a script may answer with an error that it caught, in which bytes of a
    request that are no UTF-8 are shown in another way. And a table that contains itself is answered to a depth
    that differs (docs/compatibility.md)."""
    kind, value = reply
    if isinstance(value, list):
        return kind, [as_said(item, depth - 1) for item in value] if depth else None
    return kind, value.decode("utf-8", "replace") if isinstance(value, bytes) else value


# Of several functions that are there already, a hash table says which is named.
TAKEN = rb"Function \w+ already exists"


def both_say(one, other):
    """Whether these are errors that are alike as far as they are text."""
    if not one[0] == other[0] == b"-":
        return False
    one, other = (re.sub(TAKEN, b"", alike.quoted(error)) for _, error in (one, other))
    return one == other


def same(request, expected, got, source=None, of=None):
    if not alike.replies(request, expected, got, source):
        raise Difference(f"{line(of or request)}\n  stock  {shown(expected)}\n  tested {shown(got)}")


def drawn(generator, count, shares):
    """So many units, of each kind as large a share."""
    return [one(generator, shares) for _ in range(count)]


def one(generator, shares):
    kinds = [transaction, script, written, of_functions, lone]
    (kind,) = generator.random.choices(kinds, [*shares, 1 - sum(shares)])
    return kind(generator)


def lone(generator):
    return Lone(generator.request())


def transaction(generator):
    return Transaction([plain(generator) for _ in range(generator.random.choice(TRANSACTION_LENGTHS))])


def script(generator):
    return Script(generator.random.choice(SCRIPTS), plain(generator))


def written(generator):
    return Written(scripts.requests(scripts.Writer(generator.random, lambda: plain(generator))))


def of_functions(generator):
    return Written(scripts.of_functions(scripts.Writer(generator.random, lambda: plain(generator))))


def plain(generator):
    while not is_plain(request := generator.request()):
        pass
    return request
