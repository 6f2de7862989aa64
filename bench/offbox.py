"""What clients feel of a snapshot (the MemoryDB paper, section 6.2): average, slowest answer, throughput and
memory, second by second, before, during and after it. Redis and Valkey fork, Kiln takes its own, or a worker
beside it does.
"""

import contextlib
import pathlib
import shutil
import subprocess
import tempfile

import load
import scene
from harness import paths
from harness.server import die_with_parent

# More than 4 GB in memory, of each server.
PAYLOAD_BYTES = 3_300_000_000
RUNS = 3

# Of few seconds the median is as noisy as what is to be told.
QUIET_SECONDS = 40
OFF_BOX = "kiln off-box"
SUBJECTS = {"redis": scene.REDIS, "valkey": scene.VALKEY, "kiln": scene.KILN, OFF_BOX: scene.KILN}


def run(options, note):
    """Returns {"keys": n, subject: [one result a run]}, each as `scene.watched` tells it."""
    keys = max(20_000, int(scene.keys_of(PAYLOAD_BYTES) * options.scale))
    found = {"keys": keys}
    for name, subject in SUBJECTS.items():
        with served(name, subject) as server:
            scene.fill(server, 0, keys)
            load.wait_for_upkeep(server)
            for number in range(min(RUNS, options.turns)):
                seen = scene.watched(server, keys, lambda: snapshot(name, server), before_seconds=QUIET_SECONDS)
                forget_older(server)
                found.setdefault(name, []).append(seen)
                note(f"{name}, run {number + 1}: {told(seen)}")
    return found


@contextlib.contextmanager
def served(name, subject):
    """A server. The archive of the worker beside it is not on its disk: it stands for other machines."""
    server = subject.server()
    with contextlib.ExitStack() as stack:
        if name == OFF_BOX:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-archive-", dir=paths.fast_folder()))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            server.arguments += ["--snapshot-store", f"file:{folder / 'snapshots'}"]
        yield stack.enter_context(server)


def forget_older(server):
    """Leaves one snapshot in a worker's archive: it is in memory, and for three of them there is not enough."""
    if "--snapshot-store" in server.arguments:
        store = pathlib.Path(server.arguments[server.arguments.index("--snapshot-store") + 1].removeprefix("file:"))
        for older in sorted(store.glob("snapshot-*/manifest.json"))[:-1]:
            older.unlink()  # first, so that nobody takes it for a whole one
            shutil.rmtree(older.parent)


def snapshot(name, server):
    """Takes one, in the way of this subject."""
    if name == OFF_BOX:
        worker(server)
    else:
        scene.bgsave(server)


def worker(server):
    """Has a worker take one snapshot, on the load's core and behind it."""
    line = [*scene.LAST, "taskset", "-c", scene.LOAD_CORE, str(scene.RELEASE / "kiln"), "snapshot", "--once",
            "--dir", str(server.directory / "data"), *server.arguments]
    done = subprocess.run(line, cwd=server.directory, capture_output=True, text=True,
                          timeout=scene.SNAPSHOT_SECONDS_MAX, preexec_fn=die_with_parent)
    if done.returncode != 0 or "snapshot published, proven" not in done.stderr:
        raise SystemExit(f"the worker published nothing: {done.stderr[-2000:]}")


def told(seen):
    """The medians of a run in one line."""
    slow = {phase: sorted(row["max_ms"] for row in seen[phase]) for phase in ("before", "during")}
    rate = {phase: sorted(row["requests"] for row in seen[phase]) for phase in ("before", "during")}
    middle = {phase: values[len(values) // 2] for phase, values in slow.items()}
    speed = {phase: values[len(values) // 2] for phase, values in rate.items()}
    memory = max(row["memory"] for row in seen["during"]) / max(row["memory"] for row in seen["before"])
    return (f"{seen['took_seconds']:.0f} s; a second's slowest {middle['before']:.1f} → {middle['during']:.1f} ms "
            f"(worst {slow['during'][-1]:.1f}), {speed['before']:,} → {speed['during']:,}/s, memory × {memory:.2f}")
