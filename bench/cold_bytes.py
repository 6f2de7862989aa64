"""Memory of a key whose value is on the tier, over its name: what the server uses with nothing but such keys, less what
it uses with none, by key.

The table grows segment by segment, but its part of a key need not be the same for each number of keys: several of
these are measured.
"""

import tiered

KEYS = (700_000, 1_000_000, 1_300_000, 1_700_000)
MEMORY_SHARE = 0.06
BATCH = 1000


def run(options, note):
    """Returns [{"keys": cold ones, "in_memory": others that were left, "used": bytes over none, "buffered": bytes of
    it that wait to be written}]."""
    found = []
    for count in KEYS:
        keys = tiered.scaled(count, options.scale, 100_000)
        server = tiered.with_tier(tiered.maxmemory_for(keys, MEMORY_SHARE), tiered.tier_bytes_for(keys))
        with server:
            tiered.fill(server, 0, keys)
            tiered.tighten(server, MEMORY_SHARE)
            with server.client(timeout=600) as client:
                for first in range(0, keys, BATCH):
                    forget_those_in_memory(client, range(first, min(keys, first + BATCH)))
                tiered.settle(server)
                row = told(server)
                client.call("FLUSHALL")
            tiered.settle(server)
            row["used"] -= told(server)["used"]
        found.append(row)
        note(f"{row['keys']:,} cold keys: {over_name(row):.1f} bytes each over the name, {row['in_memory']} in memory, "
             f"{row['buffered']:,} bytes buffered")
    return found


def forget_those_in_memory(client, numbers):
    """Deletes those of these keys whose value is in memory."""
    names = [b"key:%012d" % number for number in numbers]
    for name in names:
        client.send("OBJECT", "TIER", name)
    places = [client.read() for _ in names]
    warm = [name for name, place in zip(names, places, strict=True) if place == b"memory"]
    if warm:
        client.call("DEL", *warm)


def told(server):
    tier = tiered.fields(server)
    return {"keys": int(tier["curr_items_ssd"]), "in_memory": int(tier["curr_items_memory"]),
            "buffered": int(tier["tier_buffered_bytes"]), "used": int(tiered.fields(server, "memory")["used_memory"])}


def over_name(row):
    """Bytes a key, less its name."""
    return row["used"] / max(1, row["keys"]) - tiered.KEY_BYTES
