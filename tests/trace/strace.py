"""Reads strace's output as a sequence of system calls with a begin and an end.

A call of one thread that others interrupt is printed twice, `<unfinished …>` and `resumed`. Its begin
and its end are the numbers of those two lines: what was printed in between happened meanwhile.
"""

import dataclasses
import re
import subprocess
import time

LINE = re.compile(r"^(\d+) +(.*)$")
CALL = re.compile(r"^(\w+)\((.*)$", re.DOTALL)
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$", re.DOTALL)
RETURNED = re.compile(r"\) += (-?\d+|\?)[^=]*$")
# -yy prints what a descriptor is: 7</path/of/file>, 8<TCP:[127.0.0.1:1->127.0.0.1:2]>.
DESCRIPTOR = re.compile(r"^\d+<(.*?)>(?:,|\)|$)")

READS = {"read", "readv", "recvfrom", "recvmsg"}
WRITES = {"write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg"}
SYNCS = {"fsync", "fdatasync"}
TRACED = ",".join(sorted(READS | WRITES | SYNCS))


@dataclasses.dataclass
class Call:
    """`text` holds the arguments and, once ended, the result as strace prints them."""

    name: str
    text: str
    begin: int
    end: int = -1
    result: int = -1

    @property
    def target(self):
        match = DESCRIPTOR.match(self.text)
        return match[1] if match else ""


def wrapper(output):
    """The command to put in front of a server. -D keeps the server the direct child."""
    return ["strace", "-D", "-f", "-yy", "-s", "200000", "-o", str(output), "-e", f"trace={TRACED}"]


def check_allowed():
    """Ends the suite with the reason where processes may not be traced."""
    done = subprocess.run(["strace", "-D", "-f", "-o", "/dev/null", "true"], capture_output=True,
                          text=True)
    if done.returncode != 0 or "ptrace" in done.stderr.lower():
        raise SystemExit(f"strace cannot trace here: {done.stderr.strip()}\nIn a container it needs "
                         "the capability SYS_PTRACE; see also /proc/sys/kernel/yama/ptrace_scope")


def wait_for_end(path, pid, seconds=120.0):
    """Until all that the process did is written: strace notes its end last."""
    ended = re.compile(rf"^{pid} +\+\+\+ (exited|killed)", re.MULTILINE)
    deadline = time.monotonic() + seconds
    while not ended.search(_tail(path)):
        if time.monotonic() > deadline:
            raise AssertionError(f"strace has not noted the end of {pid} in {path}")
        time.sleep(0.02)


def _tail(path, bytes_max=1 << 16):
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - bytes_max))
        return file.read().decode("utf-8", "replace")


def calls(path):
    """All calls that ended, in the order of their begin."""
    done, open_calls = [], {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines):
            if not (match := LINE.match(line.rstrip("\n"))):
                continue
            thread, text = match[1], match[2]
            if resumed := RESUMED.match(text):
                call = open_calls.pop(thread, None)
                if call is None:
                    continue
                call.text += resumed[2]
            elif started := CALL.match(text):
                call = Call(started[1], started[2].removesuffix(" <unfinished ...>"), number)
                if text.endswith("<unfinished ...>"):
                    open_calls[thread] = call
                    continue
            else:
                continue
            call.end = number
            if returned := RETURNED.search(call.text):
                call.result = -1 if returned[1] == "?" else int(returned[1])
            done.append(call)
    return sorted(done, key=lambda call: call.begin)
