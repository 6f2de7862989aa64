"""The servers that are measured as section 6.1 of the MemoryDB paper does: Redis and Valkey, which keep no log, and
Kiln over a directory and over JetStream. All of a turn stay up, idle but for the one that is asked.
"""

import contextlib
import os

import load
import subjects
from cost import wait_until_writable
from logs import LOGS

REDIS, VALKEY, KILN_FILE, KILN_JETSTREAM = subjects.REDIS.name, subjects.VALKEY.name, "kiln, file", "kiln, jetstream"
PEERS = {subject.name: subject for subject in (subjects.REDIS, subjects.VALKEY)}
KILNS = {KILN_FILE: "directory", KILN_JETSTREAM: "jetstream"}
NAMES = (*PEERS, *KILNS)
ABSENT = [name for name, subject in PEERS.items() if not subject.is_there]

# After a row a server still works for itself for a moment, and so does the kernel. A guess.
REST_SECONDS = 0.5


@contextlib.contextmanager
def started(names):
    """{name: server}, all of them started. NATS's servers run on the load's core, which they inherit from this thread."""
    with contextlib.ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, {int(subjects.LOAD_CORE)})
        yield {name: stack.enter_context(served(name)) for name in names}


def served(name):
    """One of them, to be started by `with`."""
    return kiln(KILNS[name]) if name in KILNS else PEERS[name].server()


@contextlib.contextmanager
def kiln(log_name):
    """A primary that leads a new log."""
    with LOGS[log_name]() as log:
        server = subjects.PROFILED.server()
        server.arguments += log.shard()(server.directory, 0)
        with server:
            wait_until_writable(server)
            yield server


def settle(servers, name):
    """Has a Kiln take a snapshot before a row that writes: by itself it takes none within a minute of its last, so
    none falls into that row."""
    if name in KILNS:
        load.save(servers[name])
