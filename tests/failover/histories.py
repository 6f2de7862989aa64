"""Histories of a shard under faults, recorded and judged by tests/porcupine (members.go)."""

import subprocess
import time

from harness import paths
from harness.server import die_with_parent
from harness.waiting import Stuck

# Answers in seconds tell which expiry time they mean only for so long (timeStepSeconds in draw.go), and
# judging takes its part. What was recorded is judged before more is.
HISTORY_SECONDS_MAX = 90.0


class Histories:
    """Clients on few hot keys, from `work` to `rest`; what they saw is judged now and then."""

    def __init__(self, shard, seed):
        ports = ",".join(str(member.port) for member in shard.members)
        self.process = subprocess.Popen(
            [str(paths.ROOT / "tests/porcupine/run"), "-members", ports, "-seed", str(seed)],
            text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            preexec_fn=die_with_parent)
        self.lines = []
        self.began = None
        self._read_answer()

    def work(self):
        if self.began is None:
            self.began = time.monotonic()
        self._order("work")

    def rest(self):
        self._order("rest")

    def is_due(self):
        return self.began is not None and time.monotonic() - self.began > HISTORY_SECONDS_MAX

    def judge(self):
        """What it has to say of everything since the last time."""
        self._order("judge")
        self.began = None
        lines, self.lines = self.lines, []
        return lines

    def close(self):
        """It ends with its input, and its servers with it."""
        self.process.stdin.close()
        self.process.wait()

    def _order(self, verb):
        self.process.stdin.write(f"{verb}\n")
        self.process.stdin.flush()
        answer = self._read_answer()
        if answer != "done":
            raise Stuck(f"histories, asked to {verb}: {answer}")

    def _read_answer(self):
        for line in self.process.stdout:
            if line.startswith("= "):
                return line[2:].strip()
            self.lines.append(line.rstrip())
        raise Stuck("the recorder of histories has ended: " + "\n".join(self.lines))


class NoHistories:
    """In their place where nobody records any."""

    def work(self):
        pass

    def rest(self):
        pass

    def is_due(self):
        return False

    def judge(self):
        return []

    def close(self):
        pass
