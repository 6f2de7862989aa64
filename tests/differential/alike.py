"""When two servers' replies count as the same: chance, order and time are taken out, nothing else."""

import re
from collections import Counter

from sorting import Sort

# Redis leaves the order of these open: it is that of a hash table.
UNORDERED = {"SMEMBERS", "SUNION", "SINTER", "SDIFF", "HKEYS", "HVALS", "KEYS"}
PAIRS_UNORDERED = {"HGETALL"}

# What is drawn cannot be the same, its type and number can.
DRAWN = {"SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "SPOP", "RANDOMKEY"}

# Redis 7.2 gave them an option; 7.0 refuses one more argument.
RANKS = {"ZRANK", "ZREVRANK"}
TOO_MANY = b"wrong number of arguments"

# Redis's PFSELFTEST counts elements that it draws, and so fails once in a while.
FAILED_BY_CHANCE = b"TESTFAILED Too big error"

# A scan's cursor is each server's own.
SCANS = {"SCAN", "SSCAN", "HSCAN", "ZSCAN"}

# Milliseconds and seconds by which two servers' clocks may be apart when they are asked.
SECONDS = {"TTL", "EXPIRETIME", "OBJECT", "HTTL", "HEXPIRETIME"}
MILLIS = {"PTTL", "PEXPIRETIME", "HPTTL", "HPEXPIRETIME"}
APART_SECONDS = 20

# What tells of the consumers of streams tells of the clock: how long ago, or when.
STREAM_TIMES = {"XPENDING", "XINFO"}
# Numbers from here on are times, others are counts.
TIMES_MIN = 10**12

SORTS = {"SORT", "SORT_RO"}


def is_sort(request):
    return _text(request[0]).upper() in SORTS and len(request) > 1


def replies(request, expected, got, source=None):
    """`source` is the encoding of what a SORT reads."""
    name = _text(request[0]).upper()
    if name in RANKS and expected[0] == b"-" and TOO_MANY in expected[1]:
        return True
    if name == "PFSELFTEST" and expected[0] == b"-" and FAILED_BY_CHANCE in expected[1]:
        return True
    if expected[0] != got[0]:
        return False
    if expected[0] == b"-":
        return quoted(expected[1]) == quoted(got[1])
    if name in SECONDS | MILLIS:
        return _times(expected, got, APART_SECONDS * (1000 if name in MILLIS else 1))
    if name in STREAM_TIMES:
        return _near_times(expected, got)
    if name in DRAWN:
        return _shape(expected) == _shape(got)
    if name in SCANS:
        return _scans(request, expected, got)
    if is_sort(request) and expected[0] == b"*":
        return _sorts(Sort(request, source), expected[1], got[1])
    if name in UNORDERED:
        return _multiset(expected[1]) == _multiset(got[1])
    if name in PAIRS_UNORDERED:
        return _multiset(_pairs(expected[1])) == _multiset(_pairs(got[1]))
    return expected == got


def events(request, expected, got, source=None):
    if not is_sort(request):
        return expected == got
    sort = Sort(request, source)
    if not sort.lookups_are_chance:
        return expected == got
    if [event for event in expected if not is_miss(event)] != \
            [event for event in got if not is_miss(event)]:
        return False
    # Which elements are within the limit is chance, and with them what GET looks up.
    chooses = sort.order_is_chance and sort.is_limited
    return chooses or Counter(expected) == Counter(got)


def leaves_chance(request, source):
    """Whether what a SORT stores may differ."""
    return is_sort(request) and Sort(request, source).order_is_chance


def destinations(request):
    """The keys that a SORT stores to."""
    return Sort(request, None).destinations if is_sort(request) else []


def is_miss(event):
    channel, payload = event
    return channel.endswith(":keymiss") or payload == "keymiss"


def is_end_of_stranger(event, keys):
    """Whether it tells that a key is gone that is none of these."""
    channel, payload = event
    kind, _, named = channel.partition("__:")
    what, key = (named, payload) if kind.startswith("__keyevent") else (payload, named)
    return what == "del" and key not in keys


def _sorts(sort, expected, got):
    if not sort.order_is_chance:
        return expected == got
    if sort.is_limited:
        return len(expected) == len(got)
    return Counter(sort.rows(expected)) == Counter(sort.rows(got))


def quoted(error):
    """An error as far as it is text: bytes of a request that are none are shown in another way
    (docs/compatibility.md)."""
    return re.split(rb"[^\x01-\x7f]", error, maxsplit=1)[0]


def _times(expected, got, apart):
    """One time, or one for each field."""
    if expected[0] == b"*":
        return len(expected[1]) == len(got[1]) and all(
            _times(one, other, apart) for one, other in zip(expected[1], got[1]))
    return _near(expected, got, apart) if expected[0] == got[0] == b":" else expected == got


def _near(expected, got, apart):
    expected, got = int(expected[1]), int(got[1])
    if min(expected, got) < 0:
        return expected == got
    return abs(expected - got) <= apart


def _near_times(expected, got, is_idle=False):
    """Equal but for times, which may be a little apart."""
    (kind, left), (own_kind, right) = expected, got
    if kind != own_kind:
        return False
    if kind == b":" and (is_idle or min(int(left), int(right)) >= TIMES_MIN):
        return abs(int(left) - int(right)) <= APART_SECONDS * 1000
    if not isinstance(left, list) or not isinstance(right, list):
        return left == right
    if len(left) != len(right):
        return False
    # A row of XPENDING: ID, consumer, how long ago, how often.
    is_row = [item[0] for item in left] == [b"$", b"$", b":", b":"]
    return all(
        _near_times(one, other, (is_row and at == 2) or (at > 0 and left[at - 1][1] == b"idle"))
        for at, (one, other) in enumerate(zip(left, right)))


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
