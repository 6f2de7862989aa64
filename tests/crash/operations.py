"""Random writes of every family, each with the effect it must have.

One connection owns its keys, so its effects are known without asking the server: an operation is
what to send plus a function that applies the same to a model of the connection's keys. Every value
written is unique, so a lost, repeated or misplaced write shows.
"""

import dataclasses
import random
from typing import Callable

import hyperloglog
from harness.dump import payload_of_set
from harness.resp import encode

# Keys per family and connection: few enough that keys are overwritten, emptied and made again.
KEYS = 12

# Elements after which a collection is more often taken from than added to.
ELEMENTS = 150


@dataclasses.dataclass
class Operation:
    """`replies` of one operation arrive together; it counts as acknowledged with the last one."""

    request: bytes
    apply: Callable
    replies: int = 1
    name: str = ""


class Workload:
    """The endless series of one connection's operations."""

    def __init__(self, connection, families, seed):
        self.connection = connection
        self.random = random.Random(seed)
        self.makers = [maker for family in families for maker in FAMILIES[family]]
        self.serial = 0

    def unique(self):
        """A value that no other write of this run has; now and then a long one."""
        self.serial += 1
        value = b"%d.%d" % (self.connection, self.serial)
        return value + b"x" * self.random.choice((0, 0, 3, 40, 40, 200, 5000))

    def key(self, family):
        return b"c%d:%s:%d" % (self.connection, family, self.random.randrange(KEYS))

    def next(self, model):
        """The next operation. It may look at `model`, the state before it, to choose well."""
        maker = self.random.choice(self.makers)
        operation = maker(self, model)
        operation.name = maker.__name__
        return operation


def _one(apply, *parts):
    return Operation(encode(*parts), apply)


def _drop_if_empty(model, key):
    if not model[key]:
        del model[key]


def set_value(w, model):
    key, value = w.key(b"s"), w.unique()
    return _one(lambda m, _: m.update({key: value}), "SET", key, value)


def set_several(w, model):
    pairs = {w.key(b"s"): w.unique() for _ in range(3)}
    return _one(lambda m, _: m.update(pairs), "MSET", *[x for pair in pairs.items() for x in pair])


def delete(w, model):
    keys = {w.key(b"s"), w.key(b"s")}
    return _one(lambda m, _: [m.pop(key, None) for key in keys], "DEL", *keys)


def append(w, model):
    key, value = w.key(b"a"), w.unique()
    if len(model.get(key, b"")) > 20_000:
        return _one(lambda m, _: m.pop(key, None), "DEL", key)
    return _one(lambda m, _: m.update({key: m.get(key, b"") + value}), "APPEND", key, value)


def increment(w, model):
    key, by = w.key(b"n"), w.random.randrange(-1000, 1000)

    def apply(m, _):
        m[key] = b"%d" % (int(m.get(key, b"0")) + by)
    return _one(apply, "INCRBY", key, by)


def expire(w, model):
    """A value with an expiry far ahead: the absolute time must survive, not a duration."""
    key, value = w.key(b"t"), w.unique()
    at = 4_000_000_000_000 + w.random.randrange(1_000_000_000)
    return _one(lambda m, _: m.update({key: (value, at)}), "SET", key, value, "PXAT", at)


def hash_set(w, model):
    key = w.key(b"h")
    fields = {b"f%d" % w.random.randrange(ELEMENTS): w.unique() for _ in range(2)}
    return _one(lambda m, _: m.setdefault(key, {}).update(fields),
                "HSET", key, *[x for pair in fields.items() for x in pair])


def hash_delete(w, model):
    key, field = w.key(b"h"), b"f%d" % w.random.randrange(ELEMENTS)

    def apply(m, _):
        if key in m:
            m[key].pop(field, None)
            _drop_if_empty(m, key)
    return _one(apply, "HDEL", key, field)


def list_push(w, model):
    key, value = w.key(b"l"), w.unique()
    if len(model.get(key, ())) > ELEMENTS:
        return list_trim(w, model, key)
    if w.random.random() < 0.5:
        return _one(lambda m, _: m.setdefault(key, []).append(value), "RPUSH", key, value)
    return _one(lambda m, _: m.setdefault(key, []).insert(0, value), "LPUSH", key, value)


def list_trim(w, model, key=None):
    key = key or w.key(b"l")

    def apply(m, _):
        if key in m:
            m[key] = m[key][5:]
            _drop_if_empty(m, key)
    return _one(apply, "LTRIM", key, 5, -1)


def list_pop(w, model):
    key = w.key(b"l")

    def apply(m, _):
        if key in m:
            m[key].pop(0)
            _drop_if_empty(m, key)
    return _one(apply, "LPOP", key)


def list_move(w, model):
    source, target = w.key(b"l"), w.key(b"l")

    def apply(m, _):
        if source in m:
            m.setdefault(target, []).append(m[source].pop(0))
            _drop_if_empty(m, source)
    return _one(apply, "LMOVE", source, target, "LEFT", "RIGHT")


def set_add(w, model):
    key = w.key(b"u")
    member = w.unique() if w.random.random() < 0.5 else b"%d" % w.random.randrange(10**6)
    if len(model.get(key, ())) > ELEMENTS:
        return _one(lambda m, _: m.pop(key, None), "DEL", key)
    return _one(lambda m, _: m.setdefault(key, set()).add(member), "SADD", key, member)


def set_remove(w, model):
    key = w.key(b"u")
    members = sorted(model.get(key, ())) or [b"nothing"]
    member = w.random.choice(members)

    def apply(m, _):
        if key in m:
            m[key].discard(member)
            _drop_if_empty(m, key)
    return _one(apply, "SREM", key, member)


def set_restore(w, model):
    """A value of several elements takes the place of another at once."""
    key, members = w.key(b"u"), [w.unique() for _ in range(3)]
    return _one(lambda m, _: m.update({key: set(members)}),
                "RESTORE", key, "0", payload_of_set(members), "REPLACE")


def sorted_set_add(w, model):
    key, score = w.key(b"z"), w.random.randrange(-10**6, 10**6) / 4
    member = b"m%d" % w.random.randrange(ELEMENTS)
    return _one(lambda m, _: m.setdefault(key, {}).update({member: score}),
                "ZADD", key, repr(score), member)


def sorted_set_increment(w, model):
    key, by = w.key(b"z"), w.random.randrange(-1000, 1000) / 4
    member = b"m%d" % w.random.randrange(ELEMENTS)

    def apply(m, _):
        scores = m.setdefault(key, {})
        scores[member] = scores.get(member, 0.0) + by
    return _one(apply, "ZINCRBY", key, repr(by), member)


def sorted_set_pop(w, model):
    key = w.key(b"z")

    def apply(m, _):
        if key in m:
            del m[key][min(m[key], key=lambda member: (m[key][member], member))]
            _drop_if_empty(m, key)
    return _one(apply, "ZPOPMIN", key)


def bit_set(w, model):
    key, offset, bit = w.key(b"b"), w.random.randrange(4000), w.random.randrange(2)

    def apply(m, _):
        at = offset // 8
        value = bytearray(m.get(key, b"").ljust(at + 1, b"\0"))
        mask = 0x80 >> offset % 8
        value[at] = value[at] | mask if bit else value[at] & ~mask
        m[key] = bytes(value)
    return _one(apply, "SETBIT", key, offset, bit)


def bit_field(w, model):
    """Two bytes of a serial number, so that what was written last shows."""
    key, at = w.key(b"b"), w.random.randrange(200)
    w.serial += 1
    number = (w.serial % (1 << 16)).to_bytes(2, "big")

    def apply(m, _):
        value = m.get(key, b"").ljust(2 * at + 2, b"\0")
        m[key] = value[:2 * at] + number + value[2 * at + 2:]
    return _one(apply, "BITFIELD", key, "SET", "u16", f"#{at}", int.from_bytes(number, "big"))


def bit_combine(w, model):
    target, one, other = w.key(b"b"), w.key(b"b"), w.key(b"b")

    def apply(m, _):
        values = [m.get(key, b"") for key in (one, other)]
        length = max(map(len, values))
        value = bytes(a ^ b for a, b in zip(*[value.ljust(length, b"\0") for value in values]))
        m.pop(target, None)
        if value:
            m[target] = value
    return _one(apply, "BITOP", "XOR", target, one, other)


def geo_add(w, model):
    key, member = w.key(b"g"), b"m%d" % w.random.randrange(ELEMENTS)
    longitude, latitude = w.random.uniform(-180, 180), w.random.uniform(-85, 85)
    score = float(_geohash(longitude, latitude))
    return _one(lambda m, _: m.setdefault(key, {}).update({member: score}),
                "GEOADD", key, repr(longitude), repr(latitude), member)


def _geohash(longitude, latitude):
    """The 52 bits under which Redis's documentation of GEOADD says that a place is stored."""
    columns = int((longitude + 180) / 360 * (1 << 26))
    rows = int((latitude + 85.05112878) / (2 * 85.05112878) * (1 << 26))
    return sum((columns >> bit & 1) << 2 * bit + 1 | (rows >> bit & 1) << 2 * bit
               for bit in range(26))


# A circle of this radius around any place holds the earth.
EARTH_KM = 20_040


def geo_store(w, model):
    source, target = w.key(b"g"), w.key(b"g")

    def apply(m, _):
        places = dict(m.get(source, {}))
        m.pop(target, None)
        if places:
            m[target] = places
    return _one(apply, "GEOSEARCHSTORE", target, source, "FROMLONLAT", 0, 0,
                "BYRADIUS", EARTH_KM, "KM")


def geo_remove(w, model):
    key, member = w.key(b"g"), b"m%d" % w.random.randrange(ELEMENTS)

    def apply(m, _):
        if key in m:
            m[key].pop(member, None)
            _drop_if_empty(m, key)
    return _one(apply, "ZREM", key, member)


def hll_add(w, model):
    key, elements = w.key(b"p"), [w.unique() for _ in range(w.random.randint(1, 3))]
    if len(model.get(key, ())) > ELEMENTS:
        return _one(lambda m, _: m.pop(key, None), "DEL", key)
    return _one(lambda m, _: hyperloglog.add(m.setdefault(key, {}), elements),
                "PFADD", key, *elements)


def hll_merge(w, model):
    target, source = w.key(b"p"), w.key(b"p")

    def apply(m, _):
        hyperloglog.merge(m.setdefault(target, {}), m.get(source, {}))
    return _one(apply, "PFMERGE", target, source)


def published(w, model):
    """A write and a message about it: whoever hears the message may rely on the write."""
    key, value = w.key(b"m"), b"%d.%d" % (w.connection, w.serial)
    w.serial += 1
    request = (encode("MULTI") + encode("SET", key, value)
               + encode("PUBLISH", channel(w.connection), key + b" " + value) + encode("EXEC"))
    return Operation(request, lambda m, _: m.update({key: value}), replies=4)


def channel(connection):
    return b"channel%d" % connection


def transaction(w, model):
    """Three writes that must be there together or not at all."""
    parts = [maker(w, model) for maker in w.random.choices(
        (set_value, list_push, hash_set, increment, sorted_set_add), k=3)]

    def apply(m, _):
        for part in parts:
            part.apply(m, None)
    request = encode("MULTI") + b"".join(part.request for part in parts) + encode("EXEC")
    return Operation(request, apply, replies=2 + len(parts))


# `string` first: a server that can do nothing else can already be tried.
FAMILIES = {
    "string": [set_value, delete],
    "number": [set_several, append, increment],
    "expiry": [expire],
    "hash": [hash_set, hash_delete],
    "list": [list_push, list_pop, list_trim, list_move],
    "set": [set_add, set_remove, set_restore],
    "zset": [sorted_set_add, sorted_set_increment, sorted_set_pop],
    "bitmap": [bit_set, bit_field, bit_combine],
    "geo": [geo_add, geo_store, geo_remove],
    "hyperloglog": [hll_add, hll_merge],
    "pubsub": [published],
    "multi": [transaction],
}

# How a key is read back, by the letter in its name, and how the reply becomes the model's value.
READS = {
    b"s": (("GET",), lambda reply: reply),
    b"a": (("GET",), lambda reply: reply),
    b"n": (("GET",), lambda reply: reply),
    b"t": (("GET",), lambda reply: reply),
    b"b": (("GET",), lambda reply: reply),
    b"m": (("GET",), lambda reply: reply),
    b"p": (("GET",), lambda reply: None if reply is None else hyperloglog.registers(reply)),
    b"h": (("HGETALL",), lambda reply: dict(zip(reply[::2], reply[1::2])) or None),
    b"l": (("LRANGE", 0, -1), lambda reply: reply or None),
    b"u": (("SMEMBERS",), lambda reply: set(reply) or None),
    **dict.fromkeys((b"z", b"g"), (
        ("ZRANGE", 0, -1, "WITHSCORES"),
        lambda reply: dict(zip(reply[::2], map(float, reply[1::2]))) or None)),
}
FAMILY_LETTERS = {"string": b"s", "number": b"an", "expiry": b"t", "hash": b"h", "list": b"l",
                  "set": b"u", "zset": b"z", "bitmap": b"b", "geo": b"g", "hyperloglog": b"p",
                  "pubsub": b"m", "multi": b"slhnz"}
