"""When two servers' replies count as the same: chance, order and time are taken out, nothing else."""

from collections import Counter

# Redis leaves the order of these open: it is that of a hash table.
UNORDERED = {"SMEMBERS", "SUNION", "SINTER", "SDIFF", "HKEYS", "HVALS", "KEYS"}
PAIRS_UNORDERED = {"HGETALL"}

# What is drawn cannot be the same, its type and number can.
DRAWN = {"SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "SPOP", "RANDOMKEY"}

# A scan's cursor is each server's own.
SCANS = {"SCAN", "SSCAN", "HSCAN", "ZSCAN"}

# Milliseconds and seconds by which two servers' clocks may be apart when they are asked.
SECONDS = {"TTL", "EXPIRETIME", "OBJECT"}
MILLIS = {"PTTL", "PEXPIRETIME"}
APART_SECONDS = 20


def replies(request, expected, got):
    name = _text(request[0]).upper()
    if expected[0] != got[0]:
        return False
    if expected[0] == b"-":
        return expected == got
    if name in SECONDS and expected[0] == b":":
        return _near(expected, got, APART_SECONDS)
    if name in MILLIS and expected[0] == b":":
        return _near(expected, got, APART_SECONDS * 1000)
    if name in DRAWN:
        return _shape(expected) == _shape(got)
    if name in SCANS:
        return _scans(request, expected, got)
    if name in UNORDERED or name in ("SORT", "SORT_RO"):
        # SORT of a set by nothing has the set's order; with a limit even its members.
        if name.startswith("SORT") and _is_unsorted(request):
            return _shape(expected) == _shape(got)
        return name.startswith("SORT") and expected == got or (
            not name.startswith("SORT") and _multiset(expected[1]) == _multiset(got[1]))
    if name in PAIRS_UNORDERED:
        return _multiset(_pairs(expected[1])) == _multiset(_pairs(got[1]))
    return expected == got


def events(request, expected, got):
    return expected == got


def _is_unsorted(request):
    words = [_text(word).upper() for word in request]
    return any(word == "BY" and "*" not in _text(request[at + 1])
               for at, word in enumerate(words[:-1]))


def _near(expected, got, apart):
    expected, got = int(expected[1]), int(got[1])
    if min(expected, got) < 0:
        return expected == got
    return abs(expected - got) <= apart


def _shape(reply):
    kind, value = reply
    if isinstance(value, list):
        return kind, [_shape(item) for item in value]
    return kind, value is None


def _scans(request, expected, got):
    """Only a scan that is over in one step answers with everything."""
    (_, cursor), (_, items) = expected[1]
    (_, own_cursor), (_, own_items) = got[1]
    begins = _text(request[1 if _text(request[0]).upper() == "SCAN" else 2]) == "0"
    if not begins or cursor != b"0" or own_cursor != b"0":
        return True
    return _multiset(items) == _multiset(own_items)


def _multiset(items):
    return Counter(repr(item) for item in items or [])


def _pairs(items):
    return list(zip(items[::2], items[1::2]))


def _text(word):
    return word if isinstance(word, str) else word.decode("latin-1")
