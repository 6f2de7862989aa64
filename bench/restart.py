"""Keys a second at start: a crash after a snapshot, then the time until PING is answered."""

import time

import load
import subjects

KEYS = 3_000_000
TURNS_MAX = 3


def run(options, note):
    """Returns {subject: [keys per second]}; `kiln log` replays its log without a snapshot."""
    keys = max(10_000, int(KEYS * options.scale))
    found = {"keys": keys}
    for turn in range(min(TURNS_MAX, options.turns)):
        for name, subject, snapshot in (("kiln", subjects.PROFILED, True),
                                        ("kiln log", subjects.PROFILED, False),
                                        ("redis", subjects.REDIS, True)):
            rate = once(subject, keys, snapshot)
            found.setdefault(name, []).append(rate)
            note(f"turn {turn + 1}: {name}: {rate:,.0f} keys/s")
    return found


def once(subject, keys, snapshot):
    with subject.server() as server:
        load.fill(server.port, load.strings(keys, 100))
        if snapshot:
            load.save(server)
        server.kill()
        began = time.monotonic()
        server.start(ready_seconds=600)
        took = time.monotonic() - began
        with server.client() as client:
            if client.call("DBSIZE") != keys:
                raise SystemExit(f"{subject.name} came back with {client.call('DBSIZE')} keys")
    return keys / took
