"""Rounds of one shard: load, a fault, the end of the load, and what everybody must hold then."""

import random
import threading
import time

import operations
from faults import Stale
from harness.resp import Disconnected, Refusal
from harness.server import Died
from harness.waiting import Stuck, wait_for
from histories import Histories, NoHistories
from ledger import Ledger, Lost
from load import Counter, Watcher
from shard import Shard

MEMBERS = 3

# Load before and after the fault of a round, at most.
LOAD_SECONDS = 0.7

# The families that only ask for the primary; a subscriber of one server hears nobody else.
FAMILIES = [family for family in operations.FAMILIES if family != "pubsub"]

# What a round may end with.
FAILURES = (Lost, Stale, Stuck, Died, Disconnected, Refusal)


class Trial:
    """A shard, who loads it, and who judges it."""

    def __init__(self, shard, log, chosen):
        self.shard, self.log = shard, log
        self.draw = random.Random(chosen.seed)
        self.ledgers = [Ledger(number, FAMILIES, self.draw.random(),
                               depth=self.draw.choice((1, 4, 32)))
                        for number in range(chosen.connections)]
        self.histories = Histories(shard, chosen.seed) if chosen.histories else NoHistories()

    def acknowledged(self):
        return sum(ledger.acknowledged_count for ledger in self.ledgers)

    def play(self, fault):
        """Load, a fault, the end of the load, and what everybody must hold then."""
        stop = threading.Event()
        port = self.shard.primary().port
        loads = [threading.Thread(target=ledger.load, args=(port, stop)) for ledger in self.ledgers]
        counter = Counter(self.shard, stop)
        watchers = [Watcher(member, stop) for member in self.shard.members]
        before = self.acknowledged()
        threads = [*loads, counter, *watchers]
        for thread in threads:
            thread.start()
        try:
            self.histories.work()
            wait_for("an acknowledgement",
                     lambda: self.acknowledged() > before and counter.acknowledged)
            time.sleep(self.draw.uniform(0.0, LOAD_SECONDS))
            fault(self.shard, self.log, self.draw)
            time.sleep(self.draw.uniform(0.0, LOAD_SECONDS))
            self.histories.rest()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        for thread in [counter, *watchers]:
            if thread.wrong:
                raise Stale(thread.wrong)
        self.check(counter)
        return f"{self.acknowledged() - before} acknowledged, counted to {counter.acknowledged}"

    def check(self, counter):
        refusals = [text for ledger in self.ledgers for text in ledger.refusals
                    if not is_of_fault(text)]
        if refusals:
            raise Stuck(f"{len(refusals)} refused, first: {refusals[0]}")
        with self.shard.primary().client() as client:
            for ledger in self.ledgers:
                ledger.refusals.clear()
                ledger.check(client)
            found = int(client.call("GET", "counter") or 0)
        if found < counter.acknowledged:
            raise Lost(f"the counter stands at {found}, {counter.acknowledged} was acknowledged")
        self.shard.wait_for_equal_data()

    def judge(self, report):
        """Adds what the histories so far are; whether they are fine."""
        lines = self.histories.judge()
        for line in lines:
            mark, _, text = line.partition(" ")
            if mark in ("ok", "FAIL"):
                report.add(text.strip(), mark == "ok")
            elif not report.quiet:
                print(f"     {line}", flush=True)
        return not any(line.startswith("FAIL") for line in lines)


def is_of_fault(text):
    """What a primary that ends may say to who is still there."""
    return any(word in text for word in ("READONLY", "LOADING", "MOVED", "MISCONF", "CLUSTERDOWN"))


def run(chosen, log, plays, report):
    """Plays all rounds, or until one fails: then returns what it failed with."""
    arguments = ["--enable-debug-command", "local"]
    with log, Shard(chosen.server_command, MEMBERS, log.arguments, arguments) as shard:
        trial = Trial(shard, log, chosen)
        try:
            failure = campaign(trial, plays, report)
        finally:
            shard.keeps_folder = bool(report.failed) and not report.quiet
            trial.histories.close()
        if shard.keeps_folder:
            print(f"     see {shard.folder}", flush=True)
    return failure


def campaign(trial, plays, report):
    for number, fault in enumerate(plays, 1):
        name = f"{number}: {fault.__name__.replace('_', ' ')}"
        began = time.monotonic()
        try:
            told = trial.play(fault)
            report.add(name, True, f"{told}, {time.monotonic() - began:.0f} s")
            if (number == len(plays) or trial.histories.is_due()) and not trial.judge(report):
                return Stale("a history has no order")
        except FAILURES as error:
            report.add(name, False, f"{type(error).__name__}: {error}")
            return error
    return None
