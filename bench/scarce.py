"""A snapshot with little memory to spare: each server may have a third more than its data takes. Redis's
child then holds copies that the kernel finds no room for.

It needs a control group for memory; without the right to make one nothing is measured.
"""

import contextlib
import os
import pathlib

import load
import offbox
import scene
from harness.resp import Disconnected, Refusal

PAYLOAD_BYTES = 2 << 30
SHARE = 1.35
NAME = f"kiln-bench-{os.getpid()}"

# Of control groups' first and second version: the parent, and what a group's limit is called.
KINDS = ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
         (pathlib.Path("/sys/fs/cgroup"), "memory.max"))


class Group:
    """A control group of its own; None of it stays. Several at a time need a `name` each."""

    def __init__(self, name=""):
        for parent, limit in KINDS:
            with contextlib.suppress(OSError):
                made = parent / f"{NAME}{name}"
                made.mkdir()
                if (made / limit).exists():
                    self.folder, self.limit = made, made / limit
                    return
                made.rmdir()
        raise PermissionError("no control group for memory can be made")

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid))

    def allow(self, count):
        self.limit.write_text(str(int(count)))

    def close(self):
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def run(options, note):
    """Returns {"share": of its data that each may have, subject: as `scene.watched` tells it and "survived"}."""
    keys = max(20_000, int(scene.keys_of(PAYLOAD_BYTES) * options.scale))
    found = {"keys": keys, "share": SHARE}
    for name, subject in offbox.SUBJECTS.items():
        try:
            group = Group()
        except PermissionError as refused:
            note(f"not measured: {refused}")
            return None
        with contextlib.ExitStack() as stack:
            stack.callback(group.close)
            # The archive lies on the disk: in memory it would count as the server's.
            server = stack.enter_context(subject.server())
            group.take(server.pid)
            scene.fill(server, 0, keys)
            load.wait_for_upkeep(server)
            group.allow(server.resident_bytes() * SHARE)
            found[name] = tried(server, keys, lambda: offbox.snapshot(name, server))
            note(f"{name}: {found[name]['outcome']}")
    return found


def tried(server, keys, take):
    """What became of the snapshot, of the server and of its clients. Keys are all rewritten meanwhile."""
    failed = []

    def attempt():
        try:
            take()
        except (SystemExit, OSError, Disconnected, Refusal) as error:
            failed.append(str(error))

    seen = scene.watched(server, keys, attempt, may_end=True, gets=0, sets=50)
    outcome = ("the server was killed" if not server.alive()
               else "the snapshot failed" if failed else "the snapshot was taken")
    return {**seen, "outcome": outcome}
