"""Fields of hashes that expire, compared with a Valkey: no field expires in Redis 7.0.

Where Kiln does as Redis 8 and not as Valkey (docs/compatibility.md), the answer is translated.
"""

import alike
from generate import KEYS, MEMBERS, Generator, trees
from pair import Difference, line

EXPIRING = {"hexpire", "hpexpire", "hexpireat", "hpexpireat", "httl", "hpttl", "hexpiretime", "hpexpiretime",
            "hpersist", "hsetex", "hgetex", "hgetdel"}
OTHERS = {"hset", "hdel", "hget", "hgetall", "hincrby", "hincrbyfloat", "hlen", "hexists", "hsetnx",
          "hmget", "hkeys", "hvals", "hstrlen", "hrandfield", "rename", "del", "exists", "persist", "type"}

# Of a request that announces how many fields follow, one in so many says another number.
WRONG_NUMBER = 8

# What a time that has come does to a field is told as a deletion here.
EXPIRED, DELETED = "hexpired", "hdel"

ONE_EXPIRY = b"ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"


class Later(Generator):
    """Draws commands about fields that expire, and others that meet such fields."""

    def __init__(self, seed, described):
        super().__init__(seed, described)
        self.names = [name for name in self.names if name in OTHERS] + sorted(EXPIRING) * 2

    def request(self):
        words = super().request()
        if b"FIELDS" in words and self.random.randrange(WRONG_NUMBER) > 0:
            at = words.index(b"FIELDS")
            number = (len(words) - at - 2) // (2 if self.name == "hsetex" else 1)
            if at + 1 < len(words):
                words[at + 1] = str(number).encode()
        return words


def described(client):
    """The arguments of these commands, as the server describes them."""
    return {name: arguments for name, arguments in trees(client).items() if name in EXPIRING | OTHERS}


def drawn(pair, arguments, seed, protocol, requests):
    """One round of random requests."""
    generator = Later(seed, arguments)
    pair.both("HELLO", protocol)
    pair.both("FLUSHALL")
    for _ in range(requests):
        request = generator.request()
        if [word.upper() for word in request[1:2]] == [b"FIELDS"]:
            continue  # a damaged one: Valkey takes its key for the word as well
        ask(pair, request)
        for key in KEYS:
            if key.encode() in request:
                ask(pair, ["HGETALL", key])
                ask(pair, ["HPEXPIRETIME", key, "FIELDS", str(len(MEMBERS)), *MEMBERS])
                pair.ask("PTTL", key)


def ask(pair, request):
    """Raises `Difference` where the servers do not do the same."""
    (expected, expected_events), (got, got_events) = pair.both(*request)
    if got == (b"-", ONE_EXPIRY):
        got = (b"-", b"ERR syntax error")
    if not alike.replies(request, expected, got):
        raise Difference(f"{line(request)}\n  valkey {expected}\n  tested {got}")
    if told(expected_events) != told(got_events):
        raise Difference(f"{line(request)}: events\n  valkey {expected_events}\n  tested {got_events}")


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
