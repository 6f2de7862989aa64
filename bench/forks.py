"""What a fork costs as data grows, under random rewriting of all keys: `latest_fork_usec` of Redis and Valkey,
and beside it the longest that a client waits during each server's snapshot, Kiln's too.
"""

import load
import scene

PAYLOADS_GB = (0.5, 1, 2, 4, 8)
SUBJECTS = (scene.REDIS, scene.VALKEY, scene.KILN)


def run(options, note):
    """Returns {subject: [{"gb": resident, "fork_ms" (None of who does not fork), "before_ms", "during_ms"}]},
    where the last two are the longest that a client waited in so many seconds."""
    found = {}
    for subject in SUBJECTS:
        with subject.server() as server:
            filled = 0
            for payload in PAYLOADS_GB:
                keys = max(10_000, int(scene.keys_of(payload * (1 << 30)) * options.scale))
                scene.fill(server, filled, keys - filled)
                filled = keys
                load.wait_for_upkeep(server)
                gb = server.resident_bytes() / (1 << 30)
                seen = scene.watched(server, keys, lambda: scene.bgsave(server), gets=0)
                row = {"gb": gb, "fork_ms": fork_ms(server),
                       "before_ms": max(row["max_ms"] for row in seen["before"]),
                       "during_ms": max(row["max_ms"] for row in seen["during"]),
                       "memory": max(row["memory"] for row in seen["during"]) / (1 << 30)}
                found.setdefault(subject.name, []).append(row)
                fork = f"fork {row['fork_ms']:.0f} ms ({row['fork_ms'] / gb:.0f} a GB), " if row["fork_ms"] else ""
                note(f"{subject.name}, {gb:.1f} GB: {fork}longest wait {row['before_ms']:.0f} → "
                     f"{row['during_ms']:.0f} ms")
    return found


def fork_ms(server):
    """Milliseconds of the last fork; None of who does not."""
    return float(scene.info(server, "stats", "latest_fork_usec")) / 1000 or None
