"""Fields of hashes that expire, compared with a Valkey: no field expires in Redis 7.0.

Where Kiln does as Redis 8 and not as Valkey (docs/compatibility.md), the answer is translated.
"""

import re

import alike
from generate import KEYS, MEMBERS, WHEN, Generator, trees
from pair import Difference, line
from wire import shown

EXPIRING = {"hexpire", "hpexpire", "hexpireat", "hpexpireat", "httl", "hpttl", "hexpiretime", "hpexpiretime",
            "hpersist", "hsetex", "hgetex", "hgetdel"}
OTHERS = {"hset", "hdel", "hget", "hgetall", "hincrby", "hincrbyfloat", "hlen", "hexists", "hsetnx",
          "hmget", "hkeys", "hvals", "hstrlen", "hrandfield", "rename", "del", "exists", "persist", "type"}

# Later commands and options of other types. Beside them nothing is drawn whose errors are in other words in
# Valkey.
OTHER_TYPES = {"set", "get", "delifeq", "msetex", "incr", "append", "zadd", "zrank", "zrevrank", "copy"}

# Words that a damaged request has where its key should be.
OPTIONS = {b"FIELDS", b"NX", b"XX", b"FNX", b"FXX", b"EX", b"PX", b"EXAT", b"PXAT", b"KEEPTTL", b"PERSIST"}

# An error within a script names it in Redis 7.0, and in Valkey no more.
FROM_SCRIPT = rb" script: [0-9a-f]{40}, on "

# Scores that both write alike, or refuse: Valkey writes the shortest number that is the same, and refuses
# hexadecimal ones.
SCORES = ["0", "1", "-2", "3.25", "10", "inf", "-inf", "1e3", "nan", "x", ""]

# Of a request that announces how many fields follow, one in so many says another number.
WRONG_NUMBER = 8

# What a time that has come does to a field is told as a deletion here.
EXPIRED, DELETED = "hexpired", "hdel"

# What an error says in Redis and here, and in Valkey.
WORDS = {b"Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified": b"syntax error",
         b"calling Redis command from script": b"calling command from script"}


class Later(Generator):
    """Draws commands about fields that expire, and others that meet such fields."""

    def __init__(self, seed, described):
        super().__init__(seed, described)
        self.names = [name for name in self.names if name not in EXPIRING] + sorted(EXPIRING) * 2

    def request(self):
        # A damaged one may have no key: Valkey takes an option in its place for both.
        while (words := super().request())[0].decode() in EXPIRING and is_without_key(words):
            pass
        if b"FIELDS" in words and self.random.randrange(WRONG_NUMBER) > 0:
            at = words.index(b"FIELDS")
            number = (len(words) - at - 2) // (2 if self.name == "hsetex" else 1)
            if at + 1 < len(words):
                words[at + 1] = str(number).encode()
        return words

    def word(self, kind, name):
        if kind == "double":
            return self.random.choice(SCORES)
        if name in WHEN and self.name in OTHER_TYPES:
            # None that has passed: there a value is told as if it had been there, here and in Redis.
            return WHEN[name][0]
        return super().word(kind, name)


def is_without_key(words):
    return len(words) > 1 and words[1].upper() in OPTIONS


def described(client, names=EXPIRING | OTHERS):
    """The arguments of these commands, as the server describes them."""
    return {name: arguments for name, arguments in trees(client).items() if name in names}


def drawn(pair, arguments, seed, protocol, requests):
    """One round of random requests."""
    generator = Later(seed, arguments)
    pair.both("HELLO", protocol)
    pair.both("FLUSHALL")
    for _ in range(requests):
        request = generator.request()
        ask(pair, request)
        for key in KEYS:
            if key.encode() in request:
                ask(pair, ["HGETALL", key])
                ask(pair, ["HPEXPIRETIME", key, "FIELDS", str(len(MEMBERS)), *MEMBERS])
                pair.ask("PTTL", key)


def ask(pair, request):
    """Raises `Difference` where the servers do not do the same."""
    (expected, expected_events), (got, got_events) = pair.both(*request)
    got = translated(got)
    if not alike.replies(request, expected, got):
        raise Difference(f"{line(request)}\n  valkey {shown(expected)}\n  tested {shown(got)}")
    if told(expected_events) != told(got_events):
        raise Difference(f"{line(request)}: events\n  valkey {expected_events}\n  tested {got_events}")


def translated(reply):
    """What a reply would be in Valkey's words."""
    kind, value = reply
    if isinstance(value, list):
        return kind, [translated(item) for item in value]
    if kind != b"-":
        return reply
    value = re.sub(FROM_SCRIPT, b" script: on ", value)
    for own, theirs in WORDS.items():
        value = value.replace(own, theirs)
    return kind, value


def told(events):
    """The events of a request, by Redis's names. What a time that has come deletes at once was
    neither new nor expiring."""
    found = [tuple(DELETED if part == EXPIRED else part.replace(f":{EXPIRED}", f":{DELETED}")
                   for part in event) for event in events]
    names = [part for event in found for part in event]
    if DELETED in names and "hset" in names:
        found = [event for event in found
                 if not any(part.split(":")[-1] in ("hexpire", "new") for part in event)]
    return found
