"""How long it takes to undo a FLUSHALL: a bank of transfers beside much data, everything flushed at a known
time, and a restore to the moment before, or a branch of it.
"""

import datetime
import random
import shutil
import subprocess
import time

import load
import scene
from harness.server import Server, die_with_parent

PAYLOAD_BYTES = 4 << 30
ACCOUNTS, BALANCE = 1000, 1000
BANK_SECONDS = 20
GOAL_SECONDS = 60


def run(options, note):
    """Returns [{"keys", "transfers", "restore": {"made_seconds", "served_seconds"}, "branch": likewise}]."""
    keys = max(20_000, int(scene.keys_of(PAYLOAD_BYTES) * options.scale))
    found = []
    for turn in range(min(3, options.turns)):
        with Server(scene.KILN.command) as server:
            scene.fill(server, 0, keys)
            load.save(server)
            transfers = bank(server, BANK_SECONDS * min(1.0, options.scale))
            moment = datetime.datetime.now(datetime.timezone.utc)
            time.sleep(0.1)
            with server.client(timeout=600) as client:
                client.call("FLUSHALL")
            row = {"keys": keys, "transfers": transfers}
            for command in ("restore", "branch"):
                row[command] = undone(server, command, moment, keys)
            with server.client() as client:
                if client.call("DBSIZE") != 0:
                    raise SystemExit("the parent has changed")
        found.append(row)
        note(f"turn {turn + 1}: {transfers:,} transfers; " + "; ".join(
            f"{command}: made in {row[command]['made_seconds']:.1f} s, served after "
            f"{row[command]['served_seconds']:.1f} s more" for command in ("restore", "branch")))
    return found


def bank(server, seconds):
    """Transfers, each a transaction; how many."""
    chance, transfers = random.Random(1), 0
    with server.client() as client:
        for account in range(ACCOUNTS):
            client.call("SET", f"account:{account}", BALANCE)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            source, target = chance.sample(range(ACCOUNTS), 2)
            client.call("MULTI")
            client.call("DECRBY", f"account:{source}", 7)
            client.call("INCRBY", f"account:{target}", 7)
            client.call("EXEC")
            transfers += 1
    return transfers


def undone(server, command, moment, keys):
    """Seconds until there is a log of the moment, and until a server has loaded it. Its data is checked."""
    made = server.directory / command
    to = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = [str(scene.RELEASE / "kiln"), command, "--to", to, "--into", str(made / "log"),
            "--dir", str(server.directory / "data")]
    began = time.monotonic()
    done = subprocess.run(line, capture_output=True, text=True, preexec_fn=die_with_parent)
    made_seconds = time.monotonic() - began
    if done.returncode != 0:
        raise SystemExit(f"{command} failed: {done.stderr[-2000:]}")
    began = time.monotonic()
    with Server(scene.KILN.command, ["--dir", str(made)]) as other:
        served_seconds = time.monotonic() - began
        with other.client(timeout=600) as client:
            have = sum(int(client.call("GET", f"account:{account}")) for account in range(ACCOUNTS))
            if (have, client.call("DBSIZE")) != (ACCOUNTS * BALANCE, keys + ACCOUNTS):
                raise SystemExit(f"{command} made {have} in accounts, {client.call('DBSIZE')} keys")
            client.call("SET", "only", "here")
    shutil.rmtree(made)
    return {"made_seconds": made_seconds, "served_seconds": served_seconds}
