"""Random requests, valid and not, from what the stock server says of its commands' arguments.

COMMAND DOCS describes each command's arguments as a tree; a walk through it gives a request that is
mostly valid. One in some is then damaged: a word changed, added, taken away or said twice.
"""

import random

from wire import fields

GROUPS = {"generic", "string", "list", "set", "sorted-set", "hash", "hyperloglog", "geo", "bitmap"}

# What speaks to other servers, waits for them, or tells of the process and not of the data.
LEFT_OUT = {"migrate", "wait", "object|help", "restore", "dump", "object|freq", "object|refcount",
            "randomkey", "xgroup|help", "xinfo|help"}

KEYS = [f"k{number}" for number in range(6)]
MEMBERS = ["a", "b", "c", "1", "2", "-7", "30000", "hello", "", "x" * 70, "Palermo", "\xff\x00z"]
INTEGERS = ["0", "1", "2", "3", "-1", "-2", "10", "100", "7", "5000"]
ODD_INTEGERS = ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "x", "", "1.0",
                "+1", " 1", "01", "4294967296"]
DOUBLES = ["0", "1", "-1.5", "3.25", "10", "inf", "-inf", "1e3", "0.1"]
ODD_DOUBLES = ["nan", "x", "", "1e400", "0x10", " 1", "1 "]
PATTERNS = ["*", "k*", "k[1-3]", "w_*", "nosort", "#", "k0->a", "*->a", "a*", "?"]
TIMEOUTS = ["0.01", "0.02", "-1", "x", "nan", "1e400"]
ODD_TIMES = ["-1", "x", "9223372036854775807"]
WHEN = {"unix-time-seconds": ["99999999999", "1", *ODD_TIMES],
        "unix-time-milliseconds": ["99999999999000", "1", *ODD_TIMES]}
# Durations, in units of each argument: none is drawn twice in a round, and they lie further apart than
# a round takes. So which of two ends comes first (GT, LT) is no matter of when which server was asked,
# and nothing ends by itself.
DURATIONS = {"seconds": 1, "milliseconds": 1000}
DURATIONS_SECONDS = range(100_000, 10_000_000, 1000)
BOUNDS = ["-inf", "+inf", "(1", "1", "3", "-", "+", "[a", "(b", "[hello", "0", "-1", "(x", "x"]
# Offsets and counts that would ask for gigabytes stay away.
NAMED = {
    "offset": ["0", "1", "7", "100", "-1", "#1", "x", "4294967296", "9223372036854775807"],
    "encoding": ["u8", "i16", "u1", "i64", "u63", "u64", "i65", "x8", "u0"],
    "encoding_offset": ["u8", "i16"],
    "numkeys": ["1", "2", "3", "0", "-1", "x"], "numfields": ["1", "2", "3", "0", "-1", "x"],
    "destination-db": ["0", "1", "2", "99", "-1", "x"], "db": ["0", "1", "2", "99", "-1", "x"],
    "min": BOUNDS, "max": BOUNDS, "start": [*BOUNDS, *INTEGERS], "stop": [*BOUNDS, *INTEGERS],
    "longitude": ["1", "13.361389", "-180", "181", "x"], "latitude": ["1", "38.1", "86", "-85", "x"],
    "unit": ["m", "km", "ft", "mi", "x"], "radius": ["0", "100", "20000", "-1", "x", "5e6"],
    "cursor": ["0", "0", "0", "7", "x", "-1"], "bit": ["0", "1", "2"], "timeout": TIMEOUTS,
    "type": ["string", "list", "set", "zset", "hash", "stream", "x"],
}
# Streams have rounds of their own: among values of other types their commands would mostly be refused.
STREAM_GROUPS = {"stream"}
BESIDE_STREAMS = {"del", "rename", "copy", "set"}
STREAM_IDS = ["0", "0-0", "1-1", "2-1", "3-2", "4-0", "5", "7-1", "-", "+", "$", ">", "(2-1", "(5", "x", "",
              "18446744073709551615-18446744073709551615", "18446744073709551615-1", "1-2-3", "10-*"]
# XREAD takes `+` since Redis 7.4.
READ_IDS = [name for name in STREAM_IDS if name != "+"]
STREAM_NAMED = {
    "threshold": ["0", "1", "3", "5", "2-1", "5-0", "9", "-1", "x"],
    "group": ["g", "g", "g", "h"], "groupname": ["g", "g", "g", "h"],
    "consumer": ["alice", "bob"], "consumername": ["alice", "bob"],
    # Nothing has been idle for so long, and nothing may depend on which server is asked first.
    "min-idle-time": ["0", "0", "0", "9999999999999", "-1", "x"],
    "start": ["-", "-", "0", "(2-1", "3-2", "x"], "end": ["+", "+", "(5", "7-1", "2", "x"],
    "entries_added": ["3", "10", "50", "-1", "x"], "ms": ["0", "5000", "-1", "x"],
    "unix-time-milliseconds": ["1", "1700000000000", "99999999999000", "-1", "x"],
    "milliseconds": ["1", "2", "-1", "x"],
}
STREAM_ID_NAMES = {"id", "last-id", "max_deleted_entry_id", "new_id"}

DRAWN = {"srandmember", "hrandfield", "zrandmember", "spop"}


class Generator:
    """Draws requests from a seed."""

    def __init__(self, seed, trees):
        self.random = random.Random(seed)
        self.trees = trees
        self.names = sorted(trees)
        self.clock = 0
        self.durations = self.random.sample(DURATIONS_SECONDS, len(DURATIONS_SECONDS))

    def request(self):
        name = self.random.choice(self.names)
        self.name = name
        words = name.split("|")
        for argument in self.trees[name]:
            words += self.argument(argument)
        if self.random.random() < 0.12:
            words = self.damage(words)
        return [word.encode("latin-1") for word in words]

    def argument(self, argument):
        flags = argument["flags"]
        if "optional" in flags and self.random.random() < 0.6:
            return []
        times = self.random.choice([1, 1, 2, 3]) if "multiple" in flags else 1
        words = []
        for turn in range(times):
            token = argument.get("token")
            if token == "*":
                # The time of the server: it is drawn, so that both have the same.
                words.append(self.next_id())
            elif token is not None and (turn == 0 or "multiple_token" in flags):
                words.append(self.random.choice([token, token, token.lower()]))
            words += self.value(argument)
        return words

    def value(self, argument):
        kind = argument["type"]
        if kind == "pure-token":
            return []
        if kind == "oneof":
            return self.argument({**self.random.choice(argument["arguments"])})
        if kind == "block" and argument["name"] == "streams":
            keys = self.random.choice([1, 1, 2])
            return ([self.random.choice(KEYS) for _ in range(keys)]
                    + [self.random.choice(["0", ">", ">", "$", *READ_IDS]) for _ in range(keys)])
        if kind == "block":
            return [word for inner in argument["arguments"] for word in self.argument(inner)]
        return [self.word(kind, argument["name"])]

    def word(self, kind, name):
        draw = self.random.choice
        odd = self.random.random() < 0.05
        if kind == "key":
            return draw(KEYS[:3] if name != "source" and self.is_of_streams() else KEYS)
        if self.is_of_streams():
            if name in STREAM_ID_NAMES:
                return self.next_id() if self.name == "xadd" and not odd else draw(STREAM_IDS)
            if name in STREAM_NAMED:
                return draw(STREAM_NAMED[name])
        if name in WHEN:
            return draw(WHEN[name])
        if name in DURATIONS:
            duration = str(self.durations.pop() * DURATIONS[name])
            return draw([duration, duration, *ODD_TIMES, "0"])
        if name in NAMED:
            return draw(NAMED[name])
        if kind == "integer" and self.name in DRAWN:
            return draw(INTEGERS[:-3])
        if kind in ("integer", "unix-time"):
            return draw(ODD_INTEGERS if odd else INTEGERS)
        if kind == "double":
            return draw(ODD_DOUBLES if odd else DOUBLES)
        if kind == "pattern":
            return draw(PATTERNS)
        return draw(MEMBERS)

    def is_of_streams(self):
        return self.name.startswith("x")

    def next_id(self):
        """An ID behind those before it."""
        self.clock += 1
        return f"{self.clock // 3}-{self.clock % 3 + 1}"

    def damage(self, words):
        at = self.random.randrange(1, len(words) + 1)
        options = ["GET", "COUNT", "LIMIT", "STORE", "NX", "XX", "CH", "WITHSCORES", "KEEPTTL", *KEYS]
        # A number could be how long to wait.
        waits = self.name in ("xread", "xreadgroup") or any(
            argument["name"] == "timeout" for argument in self.trees[self.name])
        any_word = self.random.choice([*PATTERNS, *options] if waits else
                                      [*MEMBERS, *PATTERNS, *options, "0", "-1"])
        if self.name == "xadd" and any_word == "*":
            any_word = "?"  # no ID by the server's clock
        harmless = words[0] not in DRAWN
        return self.random.choice([
            words[:at] + [any_word] + words[at:],
            words[:at],
            words[: at - 1] + words[at:] if at > 1 and harmless else words,
            words + words[-1:],
        ])


def trees(client, groups=GROUPS, beside=frozenset()):
    """The arguments of every command of these groups that is compared, by name, and of some others."""
    found = {}
    for name, docs in fields(client.call("COMMAND", "DOCS")).items():
        docs = fields(docs)
        if docs["group"][1].decode() not in groups and name not in beside:
            continue
        inner = {name: docs}
        if "subcommands" in docs:
            inner = {key: fields(value) for key, value in fields(docs["subcommands"]).items()}
        for command, described in inner.items():
            if command not in LEFT_OUT:
                listed = described.get("arguments", (b"*", []))[1]
                found[command] = [_argument(argument) for argument in listed]
    return found


def _argument(reply):
    described = fields(reply)
    argument = {key: value[1].decode() for key, value in described.items() if key not in ("flags", "arguments")}
    argument["flags"] = {flag.decode() for _, flag in described.get("flags", (b"*", []))[1]}
    argument["arguments"] = [_argument(inner) for inner in described.get("arguments", (b"*", []))[1]]
    return argument
