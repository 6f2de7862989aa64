#!/usr/bin/env python3
"""The page of all commands, docs/commands.md: those of Redis 7.0, Redis 8 and Valkey 9.1, and which of them the
server has. `tests/introspection/commands.py` writes it, from a server that it starts; `run` compares.

What Redis 7.0.15 has is recorded where the server's unit tests read it. `later.tsv` has what came later, and why
what is missing is missing; for commands of Redis 7.0 that says docs/compatibility.md.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import paths  # noqa: E402
from harness.server import Server  # noqa: E402

REDIS_7 = paths.ROOT / "crates/node/src/command/commands/redis-7.0.15.tsv"
LATER = pathlib.Path(__file__).resolve().parent / "later.tsv"
PAGE = paths.ROOT / "docs/commands.md"
WRITER = "tests/introspection/commands.py"

# Sentinel's container, and what only a server of this kind answers.
OWN = {"sentinel": "of Redis Sentinel: what its clients ask", "client|reads": "Kiln's own", "object|tier": "Kiln's own"}


def rows(file):
    lines = file.read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


class Untold(Exception):
    """A command is missing without a reason, or there although there is one."""


def page(client):
    """The page's text. Raises `Untold`."""
    here = {name.decode() for name in client.call("COMMAND", "LIST")}
    of_7 = {row[0] for row in rows(REDIS_7)}
    later = {name: rest for name, *rest in rows(LATER)}
    wrong, lines = [], []
    for name in sorted(of_7 | later.keys() | here):
        redis, valkey, *reason = later.get(name, ["7.0", "7.0"] if name in of_7 else ["", ""])
        reason = reason[0] if reason else ""
        if name in here and reason:
            wrong.append(f"{name} is there; later.tsv says why not")
        elif name not in here and not reason:
            reason = "[compatibility](compatibility.md#commands-that-are-not-there)" if name in of_7 else ""
            if not reason:
                wrong.append(f"{name} is not there; later.tsv must say why")
        own = "" if name in of_7 or name in later else OWN.get(name, OWN.get(name.split("|")[0]))
        if own is None:
            wrong.append(f"{name} is of nobody: later.tsv must name it")
        shown = f"`{name.replace('|', ' ').upper()}`"
        lines.append("| " + " | ".join([shown, cell(redis), cell(valkey), "yes" if name in here else "–",
                                        reason or own or ""]) + " |")
    if wrong:
        raise Untold("\n".join(wrong))
    count = len(here - {name for name in here if name.split("|")[0] in OWN or name in OWN})
    return f"""# Commands

Every command of Redis 7.0, Redis 8 and Valkey 9.1, without the modules that come with Redis 8 (JSON, search, time
series, filters): since which release each has it, and whether Kiln has it. {count} are there. Where one answers
differently is said in [compatibility.md](compatibility.md). `{WRITER}` writes this page from what a server
has, and `tests/introspection/run` compares it.

| command | Redis | Valkey | Kiln | |
|---|---|---|---|---|
""" + "\n".join(lines) + "\n"


def cell(release):
    return {"-": "–", "": "–", "7.0": "≤ 7.0"}.get(release, release)


def compare(client):
    """Raises if the page is not what the server has."""
    if page(client) != PAGE.read_text():
        raise AssertionError(f"docs/commands.md is not what the server has: {WRITER} writes it anew")


def main():
    with Server(paths.KILN_COMMAND) as server, server.client() as client:
        try:
            PAGE.write_text(page(client))
        except Untold as untold:
            raise SystemExit(str(untold)) from None


if __name__ == "__main__":
    main()
