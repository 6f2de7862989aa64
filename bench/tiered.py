"""Servers that have less memory than data: Kiln with a tier and without, redis-server with swap, and memcached with
its extstore. Each has core 0; those with little memory have a control group for it.
"""

import contextlib
import math
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import load
import scarce
import scene
import subjects
from harness import paths
from harness.info import info_fields
from harness.server import Server

KEY_BYTES, VALUE_BYTES = scene.KEY_BYTES, scene.VALUE_BYTES

# What a key takes in Kiln, its name included: with its value on the tier (docs/operations/tiers.md), and in memory
# (docs/measurements/bench.md).
COLD_KEY_BYTES = 40 + KEY_BYTES
WARM_KEY_BYTES = 671
BUFFER_BYTES = 16 << 20

# A fifth of the values fits into memory. A group may have a quarter more than `maxmemory`, for what is not data; a
# process that has next to none still needs some.
MEMORY_SHARE = 0.2
GROUP_SHARE = 1.25
GROUP_BYTES_MIN = 96 << 20

# Of a tier: one and a half times its values, of which seven lie in a block of 4 KiB.
TIER_SHARE = 1.5
TIER_BYTES_MIN = 256 << 20

# What a disk at rest may still do within a second, and how long it is waited for.
DISK_REST_SECTORS = 4096
DISK_REST_SECONDS_MAX = 20

# extstore has pages of 64 MiB, and wants some that are free.
EXTSTORE_BYTES_MIN = 1 << 30

# As many threads as Kiln reads with. A value that is read twice comes back into memory each time, as with Kiln: by
# default one in 2000 does. What stays of a value in memory is of another size, for which pages must be freed: it looks
# for them as often as it may. Even so it drops values if it is filled faster than this, on the machine of
# docs/measurements/tiers.md.
EXTSTORE_OPTIONS = "ext_threads=16,ext_recache_rate=1,slab_automove_window=3"
EXTSTORE_FILL_RATE = 12_000

SWAP_SECONDS_MAX = 600


def maxmemory_for(keys, share=MEMORY_SHARE):
    """Bytes for so many keys of which a share has its value in memory."""
    return int(keys * (COLD_KEY_BYTES + share * (WARM_KEY_BYTES - COLD_KEY_BYTES)) + BUFFER_BYTES)


def group_bytes_for(maxmemory):
    return max(GROUP_BYTES_MIN, int(maxmemory * GROUP_SHARE))


def tier_bytes_for(keys):
    return max(TIER_BYTES_MIN, int(keys * 4096 / 7 * TIER_SHARE))


def kiln(arguments=(), command=subjects.KILN.command):
    """A Kiln that is not yet started."""
    return Server(command, arguments, wrapper=["taskset", "-c", subjects.SERVER_CORE])


def with_tier(maxmemory, tier_bytes, arguments=(), command=subjects.KILN.command):
    """A Kiln that is not yet started, with a tier beside its log."""
    server = kiln(["--maxmemory", str(maxmemory), "--tier-max", str(tier_bytes), *arguments], command)
    folder = server.directory / "tier"
    folder.mkdir()
    server.arguments += ["--tier", f"file:{folder}"]
    return server


@contextlib.contextmanager
def limited(server, limit_bytes, name=""):
    """Starts a server in a control group for memory; yields the group."""
    group = scarce.Group(name)
    with contextlib.closing(group), contextlib.closing(server):
        server.launch()
        group.take(server.pid)
        group.allow(limit_bytes)
        server.wait_ready()
        yield group


class Memcached(Server):
    """memcached with its extstore. It is started and asked in its own words."""

    def __init__(self, memory_bytes, extstore_bytes):
        super().__init__(paths.tool("memcached"),
                         wrapper=["taskset", "-c", subjects.SERVER_CORE])
        file, mib = self.directory / "extstore", extstore_bytes >> 20
        self.arguments = ["-u", "root", "-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", str(memory_bytes >> 20),
                          "-o", f"ext_path={file}:{mib}m,{EXTSTORE_OPTIONS}"]

    def line(self):
        return [*self.wrapper, *self.command, "-p", str(self.port), *self.arguments]

    def wait_ready(self, seconds=60.0):
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError):
                self.statistics()
                return
            if time.monotonic() > deadline or not self.alive():
                raise SystemExit(f"memcached does not answer: {self.log_tail()}")
            time.sleep(0.05)

    def statistics(self):
        """What it says of itself, by name."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as link, link.makefile("rwb") as lines:
            lines.write(b"stats\r\n")
            lines.flush()
            told = {}
            while (line := lines.readline().split()) and line[0] == b"STAT":
                told[line[1].decode()] = line[2].decode()
            return told


class Swap:
    """A file that the kernel may swap to; none of it stays."""

    def __init__(self, count):
        paths.RUNS.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix="kiln-swap-", dir=paths.RUNS, delete=False) as file:
            self.file = pathlib.Path(file.name)
        try:
            self.file.chmod(0o600)
            for line in (["fallocate", "-l", str(count)], ["mkswap", "-q"], ["swapon"]):
                subprocess.run([*line, self.file], check=True, timeout=SWAP_SECONDS_MAX)
        except BaseException:
            self.close()
            raise

    def close(self):
        """What was swapped out of others comes back, so its server must have ended."""
        subprocess.run(["swapoff", self.file], check=False, capture_output=True, timeout=SWAP_SECONDS_MAX)
        self.file.unlink(missing_ok=True)


def fields(server, section="tier"):
    """INFO of a section, by name."""
    with server.client(timeout=scene.SNAPSHOT_SECONDS_MAX) as client:
        return info_fields(client.call("INFO", section))


def fill(server, first, keys, *how, pipeline=16):
    """Keys from number `first` on. Returns what the load saw."""
    return load.generate(server.port, "--connections", "20", "--pipeline", str(pipeline), "--requests", str(keys),
                         "--value", str(VALUE_BYTES), "--ascending", str(first), "--go-on", *how,
                         *load.COMMANDS["set"])


def cold_share(server):
    """The share of keys whose value is not in memory."""
    told = fields(server)
    cold = int(told["curr_items_ssd"])
    return cold / max(1, cold + int(told["curr_items_memory"]))


def tighten(server, share):
    """Changes `maxmemory` so that this share of the keys has its value in memory, and waits until it is so."""
    for _ in range(2):
        settle(server)
        told = fields(server)
        warm, cold = int(told["curr_items_memory"]), int(told["curr_items_ssd"])
        excess = int((warm - share * (warm + cold)) * (WARM_KEY_BYTES - COLD_KEY_BYTES))
        with server.client(timeout=60) as client:
            client.call("CONFIG", "SET", "maxmemory", int(fields(server, "memory")["used_memory"]) - excess)
    settle(server)


def settle(server):
    """Waits until a server neither saves nor moves values. An eighth of a second without a move is taken for rest."""
    load.wait_for_upkeep(server)
    before, deadline = None, time.monotonic() + load.UPKEEP_SECONDS_MAX
    while (now := fields(server)["tier_spilled"]) != before:
        if time.monotonic() > deadline:
            raise SystemExit("a server moves values for ever")
        before = now
        time.sleep(0.125)


def wait_for_disk():
    """Waits until the machine's disks rest: what one server still writes should not be what the next one waits for.
    They may never rest, where others use them as well."""
    deadline = time.monotonic() + DISK_REST_SECONDS_MAX
    before = disk_sectors()
    while time.monotonic() < deadline:
        time.sleep(1)
        if (now := disk_sectors()) - before <= DISK_REST_SECTORS:
            return
        before = now


def disk_sectors():
    """Sectors of 512 bytes that all disks have read and written."""
    # https://docs.kernel.org/admin-guide/iostats.html: behind the name, the third field and the seventh.
    lines = [line.split() for line in open("/proc/diskstats", encoding="ascii")]
    return sum(int(line[5]) + int(line[9]) for line in lines)


def scaled(number, scale, least):
    return max(least, math.ceil(number * scale))


def free_bytes():
    """What the disk of the servers has left."""
    paths.RUNS.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(paths.RUNS).free
