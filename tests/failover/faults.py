"""Faults: each takes a shard that is under load, and leaves it with a primary and all its members.

Whoever is deposed is asked for a key that the next primary has overwritten first: it must not answer
with what was there before.
"""

import subprocess
import time

from harness.resp import Client, Disconnected, Refusal
from harness.waiting import PATIENCE_SECONDS, Stuck, wait_for
from ledger import Lost
from shard import pause, resume


class Stale(Exception):
    """Somebody was told what had been overwritten before they asked."""


# --- of members ---

def kill_primary(shard, _, draw):
    primary = shard.primary()
    if draw.random() < 0.3:
        ask(primary, "BGSAVE")
    primary.kill()
    shard.primary(but=[primary])
    time.sleep(draw.uniform(0.0, 0.5))
    primary.start()


def pause_primary(shard, _, draw):
    depose(shard, pause, resume, draw)


def hand_over(shard, _, __):
    primary = shard.primary()
    primary.stop()
    shard.primary(but=[primary])
    primary.start()


def kill_replica(shard, _, draw):
    replica = draw.choice(shard.replicas())
    replica.kill()
    time.sleep(draw.uniform(0.0, 0.5))
    replica.start()


def pause_replica(shard, _, draw):
    """It sleeps while the log is snapshotted and trimmed, and may have to begin anew."""
    replica = draw.choice(shard.replicas())
    pause(replica)
    try:
        for _ in range(3):
            ask(shard.primary(but=[replica]), "SAVE")
    finally:
        resume(replica)


def kill_all(shard, _, __):
    for member in shard.members:
        member.kill()
    for member in shard.members:
        member.start()


def pause_primary_and_restart_replicas(shard, _, draw):
    """Those who are to take over begin anew themselves."""
    def stop(primary):
        pause(primary)
        for replica in shard.others(primary):
            if draw.random() < 0.7:
                replica.kill()
                replica.start()
    depose(shard, stop, resume, draw)


def stop_inside_append(shard, log, draw):
    """The primary is stopped in the very call that writes to its log, or that syncs it."""
    call = draw.choice(log.append_calls)
    trace = shard.folder / "strace"

    def stop(primary):
        trace.unlink(missing_ok=True)
        which = f"inject={call}:signal=SIGSTOP:when={draw.randint(1, 30)}"
        tracer = subprocess.Popen(["strace", "-f", "-o", str(trace), "-p", str(primary.pid),
                                   "-e", f"trace={call}", "-e", which], stderr=subprocess.DEVNULL)
        try:
            wait_for(f"a call of {call} on the primary",
                     lambda: trace.exists() and "stopped by SIGSTOP" in trace.read_text())
        finally:
            tracer.terminate()  # the member stays stopped
            tracer.wait()
    depose(shard, stop, resume, draw)


# --- between members and their log ---

def cut_primary(shard, log, draw):
    """It goes on, hears nothing of its log, and is heard by its clients."""
    depose(shard, lambda primary: log.silence(shard.number(primary)),
           lambda primary: log.heal(shard.number(primary)), draw)


def refuse_primary(shard, log, draw):
    depose(shard, lambda primary: log.refuse(shard.number(primary)),
           lambda primary: log.heal(shard.number(primary)), draw)


def cut_replica(shard, log, draw):
    number = shard.number(draw.choice(shard.replicas()))
    log.silence(number)
    try:
        write(shard)
        time.sleep(draw.uniform(0.0, 2.0))
    finally:
        log.heal(number)


def cut_primary_and_kill_replica(shard, log, draw):
    """One of the two that might take over is just starting."""
    def stop(primary):
        log.silence(shard.number(primary))
        replica = draw.choice(shard.others(primary))
        replica.kill()
        replica.start()
    depose(shard, stop, lambda primary: log.heal(shard.number(primary)), draw)


def end_in_silence(shard, log, _):
    """A primary that is told to end, and cannot say so in its log, ends all the same."""
    primary = shard.primary()
    number = shard.number(primary)
    log.silence(number)
    try:
        primary.process.terminate()
        wait_for(f"the end of {primary.directory.name} while its log is silent",
                 lambda: not primary.alive())
    finally:
        log.heal(number)
    primary.start()


# --- of the log's servers ---

def restart_log(shard, log, draw):
    """What keeps the log dies under load, or so much of it that nothing can be written."""
    log.kill(draw)
    time.sleep(draw.uniform(0.0, 2.0 * log.lease_ms / 1000.0))
    log.revive()
    write(shard)


def restart_log_and_kill_primary(shard, log, draw):
    primary = shard.primary()
    log.kill(draw)
    time.sleep(draw.uniform(0.0, 1.0))
    primary.kill()
    log.revive()
    write(shard)
    primary.start()


def kill_log_leader(shard, log, draw):
    leader = log.leader()
    leader.kill()
    write(shard)
    time.sleep(draw.uniform(0.0, 1.0))
    log.revive()


def pause_log_leader(shard, log, draw):
    leader = log.leader()
    leader.pause()
    try:
        write(shard)
        time.sleep(draw.uniform(0.0, 1.0))
    finally:
        leader.resume()


def cut_log_node(shard, log, draw):
    """One server is cut off from the others, and goes on to answer its clients: from the past."""
    cut(shard, log, log.node(draw), draw)


def cut_log_node_of_all(shard, log, draw):
    """All members are its clients, and must find out that it is of no use."""
    node = log.node(draw)
    for number in range(len(shard.members)):
        log.lead_only_to(number, [node])
    write(shard)
    for number in range(len(shard.members)):
        log.heal(number)
    cut(shard, log, node, draw)


def cut(shard, log, node, draw):
    log.cluster.cut(node)
    try:
        write(shard)
        time.sleep(draw.uniform(0.0, 3.0))
    finally:
        log.cluster.heal(node)


def send_replica_to_the_past(shard, log, draw):
    """A replica has read on, and comes to a server that was cut off while it led the stream, does not know
    that it was deposed, and says that the log ends earlier."""
    node, replica = log.leader(), draw.choice(shard.replicas())
    rest = [other for other in log.cluster.nodes if other is not node]
    try:
        for number in range(len(shard.members)):
            log.lead_only_to(number, rest)
        write(shard)
        log.cluster.cut(node)
        mark = str(draw.random()).encode()
        wait_for("a write that is taken", lambda: ask(shard.primary(), "SET", "mark", mark) == b"OK")
        wait_for("the write on the replica", lambda: look(replica, "mark") == mark)
        log.lead_only_to(shard.number(replica), [node])
        time.sleep(draw.uniform(4.0, 8.0))
        if not replica.alive():
            raise Stuck(f"{replica.directory.name} believed the past and ended: {replica.log_tail()}")
    finally:
        log.cluster.heal(node)
        for number in range(len(shard.members)):
            log.heal(number)


def kill_primary_without_log_node(shard, log, draw):
    node = log.node(draw)
    primary = shard.primary()
    node.kill()
    time.sleep(draw.uniform(0.0, 3.0))
    primary.kill()
    write(shard)
    log.revive()
    primary.start()


def trim_during_pause(shard, log, _):
    """A put of the primary lies on its way while the primary stands still, its place is taken by the
    next one, and that record is trimmed. Then the store takes the put, as it does not know better."""
    primary = shard.primary()
    number = shard.number(primary)
    with Client(primary.port) as writer:
        place = log.newest()
        value = b"after %d" % place
        log.silence(number)
        writer.send("SET", "late", value)
        time.sleep(0.3)
        pause(primary)
        try:
            trim_past(shard, log, primary, place)
        finally:
            log.heal(number)
            time.sleep(0.5)
            resume(primary)
        told = answer(writer)
    if told == b"OK" and ask(shard.primary(but=[primary]), "GET", "late") != value:
        raise Lost(f"a put behind record {place} that slept through a trimming was acknowledged")


# More records than a member that goes on may put before it looks: each of them would stand where one
# was trimmed.
RECORDS_TRIMMED_MIN = 50


def trim_past(shard, log, primary, place):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while log.floor() < place + RECORDS_TRIMMED_MIN:
        if time.monotonic() > deadline:
            raise Stuck(f"the floor stays at {log.floor()}, below {place + RECORDS_TRIMMED_MIN}")
        other = shard.primary(but=[primary])
        for number in range(RECORDS_TRIMMED_MIN):
            ask(other, "SET", "filler", number)
        ask(other, "SAVE")


# --- words of the faults ---

def depose(shard, stop, restore, draw):
    """Stops the primary, lets another one overwrite a key, and asks the first for it meanwhile."""
    primary, early, late = witness(shard)
    with early, late:
        stop(primary)
        try:
            other = shard.primary(but=[primary])
            overwritten = ask(other, "SET", "witness", "new") == b"OK"
            late.send("GET", "witness")
            time.sleep(draw.uniform(0.0, 0.5))
        finally:
            restore(primary)
        told = answer(late)
    if overwritten and told == b"old":
        raise Stale(f"{primary.directory.name} answered a read with what had been overwritten")


def witness(shard):
    """The primary, which has just taken a write, and two connections to it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        primary = shard.primary()
        early, late = Client(primary.port), Client(primary.port)
        try:
            early.call("SET", "witness", "old")
            return primary, early, late
        except (Refusal, Disconnected):
            early.close()  # it has lost its place by itself: the next one is asked
            late.close()
    raise Stuck("no primary takes a write")


def write(shard):
    """Until the shard takes a write."""
    wait_for("a write that is taken",
             lambda: ask(shard.primary(), "SET", "witness", "written") == b"OK")


def ask(member, *request):
    """The answer; `None` for a refusal or a lost connection, of which nothing follows."""
    try:
        with member.client() as client:
            return client.call(*request)
    except (Refusal, Disconnected, OSError):
        return None  # see above


def look(replica, key):
    """What a replica holds; `None` while it does not answer."""
    try:
        with replica.client() as client:
            client.call("READONLY")
            return client.call("GET", key)
    except (Refusal, Disconnected, OSError):
        return None  # see above


def answer(client):
    """What comes, or `None` when the connection ends instead, as a member ends it that was deposed."""
    try:
        return client.read()
    except (Disconnected, OSError):
        return None  # see above


# --- which faults a log is for, the most telling ones first: a short run is their beginning ---

FAULTS = {
    "directory": [
        kill_primary, pause_primary, hand_over, stop_inside_append, kill_replica, pause_replica,
        kill_all, pause_primary_and_restart_replicas],
    "objects": [
        kill_primary, pause_primary, hand_over, stop_inside_append, kill_replica, pause_replica,
        kill_all, pause_primary_and_restart_replicas],
    "s3": [
        kill_primary, trim_during_pause, cut_primary, restart_log, hand_over, pause_primary,
        kill_all, refuse_primary, cut_replica, cut_primary_and_kill_replica,
        restart_log_and_kill_primary, pause_replica, kill_replica,
        pause_primary_and_restart_replicas, end_in_silence],
    "etcd": [
        kill_primary, cut_primary, kill_log_leader, hand_over, restart_log, pause_primary, kill_all,
        refuse_primary, cut_replica, cut_primary_and_kill_replica, restart_log_and_kill_primary,
        pause_replica, kill_replica, pause_primary_and_restart_replicas, end_in_silence],
    "jetstream": [
        kill_primary, cut_primary, cut_log_node_of_all, hand_over, restart_log, pause_primary,
        kill_all, cut_log_node, refuse_primary, cut_replica, cut_primary_and_kill_replica,
        restart_log_and_kill_primary, kill_log_leader, pause_log_leader,
        kill_primary_without_log_node, pause_replica, kill_replica,
        pause_primary_and_restart_replicas, end_in_silence, send_replica_to_the_past],
}
NAMES = sorted({fault.__name__ for faults in FAULTS.values() for fault in faults})
