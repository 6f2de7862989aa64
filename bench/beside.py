"""Whether it is the snapshot that clients feel, or that the neighbouring core works: the same server in turn beside
a snapshot worker, beside a redis-server that loads the same keys from its file, and beside what only computes, each
on the load's core and behind the load.

Two cores of one machine share its memory and a cache: whoever fills memory on one is felt on the other. A worker on
another machine shares nothing.
"""

import contextlib
import subprocess
import time

import load
import offbox
import scene
import subjects
from harness.server import die_with_parent

PAYLOAD_BYTES = 1_100_000_000
TURNS = 3
BUSY_SECONDS = 30
LOADING, COMPUTING = "redis that loads", "what computes"
SUBJECTS = (offbox.OFF_BOX, LOADING, COMPUTING)


def run(options, note):
    """Returns {"keys": n, one of `SUBJECTS`: [one result a turn]}, each as `scene.watched` tells it."""
    keys = max(20_000, int(scene.keys_of(PAYLOAD_BYTES) * options.scale))
    found = {"keys": keys, **{name: [] for name in SUBJECTS}}
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(contextlib.closing(saved(keys)))
        server = stack.enter_context(offbox.served(offbox.OFF_BOX, scene.KILN))
        scene.fill(server, 0, keys)
        load.wait_for_upkeep(server)
        work = {offbox.OFF_BOX: lambda: offbox.worker(server), LOADING: lambda: loads(redis), COMPUTING: compute}
        for turn in range(min(TURNS, options.turns)):
            for name in SUBJECTS:
                seen = scene.watched(server, keys, work[name])
                offbox.forget_older(server)
                found[name].append(seen)
                note(f"beside {name}, turn {turn + 1}: {offbox.told(seen)}")
    return found


def saved(keys):
    """A redis-server that has ended, whose file has these keys, and that starts on the load's core."""
    server = scene.REDIS.server()
    server.start()
    scene.fill(server, 0, keys)
    scene.bgsave(server)
    server.kill()
    server.wrapper = [*scene.LAST, "taskset", "-c", subjects.LOAD_CORE]
    return server


def loads(redis):
    """Lets it load its file again and again."""
    until = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < until:
        redis.start(ready_seconds=scene.SNAPSHOT_SECONDS_MAX)
        redis.kill()


def compute():
    """Keeps the core busy with what needs no memory."""
    line = [*scene.LAST, "taskset", "-c", subjects.LOAD_CORE, "sha256sum", "/dev/zero"]
    busy = subprocess.Popen(line, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
    time.sleep(BUSY_SECONDS)
    if busy.poll() is not None:
        raise SystemExit("what was to compute has ended")
    busy.kill()
    busy.wait()
