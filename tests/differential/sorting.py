"""What of a SORT is chance in a stock server, whose sets and sorted sets are hash tables with a seed
of their own for each process.

The elements of such a source come in the table's order. It shows in the order in which the keys of BY
are looked up, in that of elements which compare as equal, and where nothing is compared at all.
"""

# What `OBJECT ENCODING` says of a source with an order of its own, or of none. A sorted set is copied
# into a hash table to be sorted, whatever it was; an intset is in order.
ORDERED = {None, b"quicklist", b"intset"}


class Sort:
    """One request, and what its source is encoded as."""

    def __init__(self, request, encoding):
        words = [word.decode("latin-1") if isinstance(word, bytes) else word for word in request]
        self.gets, self.destinations, patterns, self.is_limited, is_alphabetic = 0, [], [], False, False
        at = 2
        while at < len(words):
            name, operands = words[at].upper(), words[at + 1:]
            at += 1
            if name == "ALPHA":
                is_alphabetic = True
            elif name == "LIMIT":
                self.is_limited = True
                at += 2
            elif name in ("BY", "GET", "STORE") and operands:
                self.gets += name == "GET"
                patterns += operands[:1] if name == "BY" else []
                self.destinations += operands[:1] if name == "STORE" else []
                at += 1
        is_kept = any("*" not in pattern for pattern in patterns)
        is_table = encoding not in ORDERED
        # A set that is stored unsorted is sorted all the same; a sorted set has its own order.
        keeps_chance = is_kept and encoding == b"hashtable" and not self.destinations
        has_ties = is_alphabetic and bool(patterns) and not is_kept
        # A limit sorts by parts, which leaves no order of equals standing: not even a list's.
        self.order_is_chance = keeps_chance or has_ties and (is_table or self.is_limited)
        self.lookups_are_chance = self.order_is_chance or is_table and bool(patterns) and not is_kept

    def rows(self, items):
        """What the reply holds for each element."""
        width = max(self.gets, 1)
        return [tuple(map(repr, items[at:at + width])) for at in range(0, len(items), width)]
