"""What the campaign compares with, and how: redis-server 7.0.15 in all that it knows, and a Valkey 9.1 in
commands that came later."""

import later
import units
from generate import BESIDE_STREAMS, GROUPS, KEYS, MEMBERS, STREAM_GROUPS, Generator, trees
from harness import paths

# Commands that take a second.
SLOW = {"pfselftest"}

# Where streams lie, and what is asked of them: no digest holds groups, nor what was deleted.
STREAM_KEYS = KEYS[:3]

# One chunk in so many is about streams alone: among values of other types their commands are mostly refused.
STREAMS_EVERY = 4


def in_bytes(*requests):
    return [[word.encode("latin-1") for word in request] for request in requests]


class Redis:
    """Every type, scripts and functions."""

    command = staticmethod(paths.stock_command)

    # What is asked after a pipeline.
    questions = in_bytes(
        *([*question, key] for key in KEYS for question in (["TYPE"], ["PTTL"], ["OBJECT", "ENCODING"])),
        *(["XINFO", "STREAM", key, "FULL", "COUNT", "0"] for key in STREAM_KEYS),
        ["DEBUG", "DIGEST-VALUE", *KEYS],
    )
    # What is asked in the end.
    final = in_bytes(["DEBUG", "DIGEST"])
    # What a replica must answer as its primary does.
    of_twin = in_bytes(
        ["DEBUG", "DIGEST"], ["FUNCTION", "LIST", "WITHCODE"],
        *(["XINFO", "STREAM", key, "FULL", "COUNT", "0"] for key in STREAM_KEYS),
    )

    shares = units.SHARES

    def __init__(self, client):
        self.described = without_slow(trees(client, GROUPS | STREAM_GROUPS))
        self.of_streams = without_slow(trees(client, STREAM_GROUPS, BESIDE_STREAMS))

    def generator(self, seed):
        return Generator(seed, self.described if seed % STREAMS_EVERY else self.of_streams)

    @staticmethod
    def translated(reply):
        """What a reply of the server under test would be, said as the oracle says it."""
        return reply

    @staticmethod
    def told(events):
        """A key past its time that a command with a destination puts nothing into is `del` in
        redis-server."""
        return [tuple(word.replace("expired", "del") for word in event) for event in events]


class Valkey:
    """Fields of hashes that expire, and what else came after Redis 7.0."""

    command = staticmethod(paths.valkey_command)

    questions = in_bytes(
        *([*question, key] for key in KEYS for question in (["TYPE"], ["PTTL"], ["GET"], ["HGETALL"])),
        *(["HPEXPIRETIME", key, "FIELDS", str(len(MEMBERS)), *MEMBERS] for key in KEYS),
        *(["ZRANGE", key, "0", "-1", "WITHSCORES"] for key in KEYS),
    )
    final = questions
    of_twin = in_bytes(["DEBUG", "DIGEST"], *(["HPEXPIRETIME", key, "FIELDS", str(len(MEMBERS)), *MEMBERS]
                                              for key in KEYS))
    shares = units.SHARES_WITHOUT_OWN_SCRIPTS

    def __init__(self, client):
        self.described = later.described(client, later.EXPIRING | later.OTHERS | later.OTHER_TYPES)

    def generator(self, seed):
        return later.Later(seed, self.described)

    @staticmethod
    def translated(reply):
        return later.translated(reply)

    @staticmethod
    def told(events):
        return later.told(events)


def without_slow(described):
    return {name: tree for name, tree in described.items() if name not in SLOW}
