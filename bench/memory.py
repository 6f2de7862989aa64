"""Bytes an item: what the process holds once loaded, less what it held empty, by item.

Resident memory and not the server's own count: an allocator's waste is paid for too. It is looked at once it gets no less:
what the load took for buffers, and a growing table for its old self, is given back after seconds, by some.
"""

import time

import load
import subjects

CONTENTS = {
    "16 B key + 100 B string": (2_000_000, 116, lambda n: load.strings(n, 100)),
    "16 B key + 500 B string": (1_000_000, 516, lambda n: load.strings(n, 500)),
    "hash of 5 fields": (500_000, 66, load.small_hashes),
    "hash, a field": (1_000_000, 32, load.one_hash),
    "list, an item": (2_000_000, 16, load.one_list),
    "sorted set, a member": (1_000_000, 24, load.sorted_set),
    "set of integers, a member": (10_000_000, 8, load.integer_set),
}

SUBJECTS = [subjects.PROFILED, *subjects.WITHOUT_LOG]


# Whoever gave nothing back for so long has done it. A guess; and how long it is waited for at most.
REST_SECONDS = 5
SETTLE_SECONDS_MAX = 60


def settled_bytes(server):
    """Resident memory, once a server saves nothing and its memory has not become less for a while."""
    load.wait_for_upkeep(server)
    least, since = server.resident_bytes(), time.monotonic()
    end = since + SETTLE_SECONDS_MAX
    while time.monotonic() < min(since + REST_SECONDS, end):
        time.sleep(0.2)
        if (now := server.resident_bytes()) < least:
            least, since = now, time.monotonic()
    return least


def run(options, note):
    """Returns {content: {subject: bytes an item}}."""
    found = {}
    for content, (count, payload, make) in CONTENTS.items():
        count = max(10_000, int(count * options.scale))
        row = found.setdefault(content, {"items": count, "payload": payload})
        for subject in subjects.present(SUBJECTS):
            with subject.server() as server:
                empty = settled_bytes(server)
                load.fill(server.port, make(count))
                row[subject.name] = (settled_bytes(server) - empty) / count
            note(f"{content}: {subject.name}: {row[subject.name]:.0f} bytes")
    return found
