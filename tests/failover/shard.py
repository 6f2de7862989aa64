"""Several servers on one transaction log, and faults for them."""

import os
import pathlib
import shutil
import signal
import tempfile
import time

from harness import paths
from harness.resp import Client, Disconnected, Refusal
from harness.server import Server
from harness.waiting import PATIENCE_SECONDS, Stuck, wait_for

def shared_log(folder, _):
    """The arguments of a member whose log lies in the shared folder."""
    return ["--transaction-log", f"file:{folder / 'log'}",
            "--snapshot-store", f"file:{folder / 'snapshots'}"]


class Shard:
    """`count` servers; `log` makes a member's arguments that name its log, from the shared folder and
    the member's number. With `first_leads` the others are started once the first is the primary; else any may
    become it."""

    def __init__(self, command, count, log, arguments=(), first_leads=False):
        paths.RUNS.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-shard-", dir=paths.RUNS))
        # What is to be looked at after a failure.
        self.keeps_folder = False
        self.first_leads = first_leads
        self.members = [
            Server(command, [*log(self.folder, number), *arguments],
                   directory=self._member_folder(number))
            for number in range(count)]

    def _member_folder(self, number):
        folder = self.folder / f"member-{number}"
        folder.mkdir()
        return folder

    def __enter__(self):
        for member in self.members:
            member.start()
            if self.first_leads and member is self.members[0]:
                self.primary()
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.close()
        if not self.keeps_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def primary(self, seconds=PATIENCE_SECONDS, but=()):
        """The member that leads and answers a read, which it does only under its lease."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for member in self.members:
                if member not in but and member.alive() and _leads(member):
                    return member
            time.sleep(0.01)
        tails = "\n".join(f"{member.directory.name}: {member.log_tail()}" for member in self.members)
        raise Stuck(f"no primary within {seconds:.0f} s\n{tails}")

    def number(self, member):
        return self.members.index(member)

    def others(self, one):
        return [member for member in self.members if member is not one]

    def replicas(self):
        primary = self.primary()
        return [member for member in self.members if member is not primary and member.alive()]

    def wait_for_equal_data(self):
        """Until every member holds what the primary holds; nobody may be writing."""
        wanted = digest(self.primary())
        for replica in self.replicas():
            wait_for(lambda: f"{wanted}, the primary's data, but {_digest_or_none(replica)} on "
                             f"{replica.directory.name}",
                     lambda: _digest_or_none(replica) == wanted)


def _leads(member):
    try:
        with Client(member.port, timeout=1.0) as client:
            role = client.call("ROLE")
            return role[0] == b"master" and not isinstance(client.call("EXISTS", "k"), Refusal)
    except (Disconnected, Refusal, OSError):
        return False  # whoever does not answer under its lease does not lead


def digest(member):
    with member.client() as client:
        client.call("READONLY")
        return client.call("DEBUG", "DIGEST")


def _digest_or_none(member):
    try:
        return digest(member)
    except (Disconnected, Refusal, OSError):
        return None  # it is loading, or begins anew: it is asked again until the time is up


def pause(member):
    os.kill(member.pid, signal.SIGSTOP)


def resume(member):
    os.kill(member.pid, signal.SIGCONT)
