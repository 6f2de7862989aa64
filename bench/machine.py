"""What numbers are measured on and with: the machine in one line, and the programs as released."""

import contextlib
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

from harness import paths


# What loads the server or stands beside it, and the crate whose example it is.
EXAMPLES = {"floor": "world", "load": "world", "reads": "world", "bare": "services"}


def build(*examples, features=()):
    """The server and these EXAMPLES; `features` of the server and of its services' clients."""
    cargo("-p", "kiln", features=features)
    build_examples(*examples, features=features)


def build_examples(*names, features=()):
    for name in names:
        cargo("-p", EXAMPLES[name], "--example", name, features=features)


def cargo(*what, features=()):
    more = [word for feature in features for word in ("--features", feature)]
    subprocess.run(["cargo", "build", "-q", "--release", *what, *more], cwd=paths.ROOT, check=True)


def describe():
    """Processor, memory, kernel, and what a sync takes."""
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    memory_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return (f"{os.cpu_count()} cores of {model}, {memory_gib:.0f} GiB, Linux {platform.release()}, "
            f"append of 128 B + fdatasync {sync_microseconds():.0f} µs (median)")


def sync_microseconds():
    """The disk's part of a durable write: the median of 300."""
    paths.RUNS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=paths.RUNS) as file:
        took = []
        for _ in range(300):
            began = time.perf_counter()
            os.write(file.fileno(), b"x" * 128)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


# Asks for the time as fast as it can, and prints the longest time between two answers, in milliseconds, by the clock and
# by the time that it had the core as far as the system knows, to which counts what a hypervisor takes without telling:
# perhaps not the same interval. It rests for nearly a quarter of the time, in which others may have the core: neither
# the limit that `unthrottled` lifts nor Linux's fair server then takes the core from it for their sake, and what it sees
# is the machine's own.
PAUSES = """
import sys, time
now, mine = time.perf_counter, time.thread_time
longest, longest_mine, end = 0.0, 0.0, now() + float(sys.argv[1])
while now() < end:
    last, had = now(), mine()
    rest = last + 0.1
    while last < rest:
        at, has = now(), mine()
        longest, longest_mine = max(longest, at - last), max(longest_mine, has - had)
        last, had = at, has
    time.sleep(0.03)
print(longest * 1000, longest_mine * 1000)
"""


def longest_pauses_ms(core, seconds):
    """How long the machine kept a process from a core that did nothing there but ask for the time, as `go_first` has it:
    by the clock, and by the time that the process had the core, if the system is asked."""
    line = ["chrt", "--fifo", "1", "taskset", "-c", core, sys.executable, "-c", PAUSES, str(seconds)]
    return tuple(map(float, subprocess.run(line, check=True, capture_output=True, text=True).stdout.split()))


# Microseconds of each period, a second by default, that Linux lets threads of SCHED_FIFO run; or -1, for all of them:
# proc_sys_kernel(5).
FIFO_LIMIT_FILE = pathlib.Path("/proc/sys/kernel/sched_rt_runtime_us")


@contextlib.contextmanager
def unthrottled():
    """Until the block ends, who goes first may do so all the time: otherwise it is kept from its core for a twentieth of
    each second, in one piece. Yields whether it is so: not where one may not set it, as in a container whose /proc/sys
    is read-only. A SIGKILL leaves it set.

    It counts for a kernel older than 6.12, or built with CONFIG_RT_GROUP_SCHED. Since 6.12 a fair server gives others
    such a share in any case, once they have waited for a core for long.
    """
    before = fifo_limit("-1")
    try:
        yield before is not None
    finally:
        if before is not None:
            fifo_limit(before)


def fifo_limit(wanted):
    """Sets the limit, and returns what it was before; None where it cannot be set."""
    try:
        before = FIFO_LIMIT_FILE.read_text().strip()
        FIFO_LIMIT_FILE.write_text(wanted)
    except OSError:
        return None
    return before


def go_first(thread):
    """A thread goes before all that the system does on its core but for interrupts."""
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def commit():
    """The commit that is measured."""
    ran = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=paths.ROOT, capture_output=True, text=True)
    return ran.stdout.strip() or "unknown"


def version(command):
    """The first line that a program says of its version."""
    ran = subprocess.run([command, "--version"], capture_output=True, text=True)
    return ran.stdout.splitlines()[0].split(" sha=")[0]


def today():
    return time.strftime("%Y-%m-%d")
