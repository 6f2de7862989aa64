"""A tier that is nearly as full as it may become, overwritten at random ten times over: how much is written for each
byte that is moved, what that costs in time, and whether the file keeps its bound.
"""

import contextlib
import time
import urllib.request

import load
import scene
import tiered
from harness.server import Ports

TIER_BYTES = 1 << 30
ROUNDS = 10
CONNECTIONS = 50

# Cleaning keeps this much free; of the rest values fill `FILL` at most (docs/operations/tiers.md).
SEGMENT_BYTES = 8 << 20
FREE_SEGMENTS_MIN = 4
FREE_PERCENT = 5
FILL = 0.9

# Of the keys, so many have their value in memory. What the others take is nearly what may be taken: a hundredth of
# the room is left, so that no write is refused.
MEMORY_SHARE = 0.08
ROOM = 0.99

# Speed at the start and at the end: the median of so large a part of the seconds.
END_SHARE = 0.1
WAIT_SECONDS_MAX = 3600


def run(options, note):
    """Returns {"keys", "tier_bytes", "rounds", "rows": [{"second", "requests", "refused", "saving", "file",
    "fill", "put", "written"} of each second]}, where the last two are bytes since the overwriting began."""
    tier_bytes = tiered.scaled(TIER_BYTES, options.scale, tiered.TIER_BYTES_MIN)
    keys = int(usable_bytes(tier_bytes) * FILL * ROOM / (4096 / 7) / (1 - MEMORY_SHARE))
    with Ports() as metrics:
        with tiered.with_tier(tiered.maxmemory_for(keys, MEMORY_SHARE), tier_bytes, ["--metrics-port", str(metrics.first)]) as server:
            seen = tiered.fill(server, 0, keys)
            tiered.tighten(server, MEMORY_SHARE)
            note(f"filled: {keys:,} keys, {seen['refused']} refused, fill {fill(figures(metrics.first)):.1%}")
            rounds = ROUNDS * min(1.0, max(0.1, 5 * options.scale))
            rows = overwritten(server, metrics.first, keys, rounds * tier_bytes)
    found = {"keys": keys, "tier_bytes": tier_bytes, "rounds": rounds, "rows": rows}
    start, end = speeds(found)
    note(f"overwritten: {rows[-1]['put'] / tier_bytes:.1f} times, amplification {amplification(found):.2f}, "
         f"{start:,.0f} → {end:,.0f}/s, file {max(row['file'] for row in rows) / tier_bytes:.1%} at most, "
         f"{sum(row['refused'] for row in rows)} refused")
    return found


def overwritten(server, port, keys, wanted_bytes):
    """What each second showed until so much was put."""
    before, seen = figures(port), {}
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    with scene.Loads(server, keys, gets=0, sets=CONNECTIONS, how=("--go-on",)) as loads:
        while time.monotonic() < deadline:
            time.sleep(0.5)
            now = figures(port)
            now["saving"] = tiered.fields(server, "persistence")["rdb_bgsave_in_progress"] == "1"
            seen[int(time.monotonic())] = now
            if not loads.alive():
                raise SystemExit(f"the load ended: {server.log_tail()}")
            if now["put_bytes_total"] - before["put_bytes_total"] >= wanted_bytes:
                break
    rows = []
    for row in loads.rows():
        now = seen.get(row["second"])
        if now:
            rows.append({"second": row["second"], "requests": row["requests"] - row["refused"],
                         "refused": row["refused"], "saving": now["saving"], "file": now["file_bytes"], "fill": fill(now),
                         "put": now["put_bytes_total"] - before["put_bytes_total"],
                         "written": now["bytes_written_to_disk_total"] - before["bytes_written_to_disk_total"]})
    return rows[1:-1]  # whole seconds


def usable_bytes(tier_bytes):
    """Without the segments that cleaning keeps free."""
    segments = tier_bytes // SEGMENT_BYTES
    return (segments - max(FREE_SEGMENTS_MIN, -(-segments * FREE_PERCENT // 100))) * SEGMENT_BYTES


def fill(now):
    """How much of what values may lie in is taken."""
    return now["occupied_bytes"] / usable_bytes(now["capacity_bytes"])


def figures(port):
    """The metrics of the tier, without their prefix."""
    told = {}
    with contextlib.closing(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60)) as reply:
        for line in reply.read().decode().splitlines():
            if line.startswith("kiln_tier_"):
                name, _, value = line.removeprefix("kiln_tier_").partition(" ")
                told[name] = float(value)
    return told


def speeds(found):
    """Requests a second at the start and at the end."""
    rates = [row["requests"] for row in found["rows"]]
    count = max(1, int(len(rates) * END_SHARE))
    return middle(rates[:count]), middle(rates[-count:])


def middle(values):
    return sorted(values)[len(values) // 2]


def amplification(found):
    """Bytes written for each one that was put, cleaning included."""
    last = found["rows"][-1]
    return last["written"] / max(1, last["put"])
