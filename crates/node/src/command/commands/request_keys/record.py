#!/usr/bin/env python3
"""Records which arguments a stock redis-server takes for keys, and what becomes of them.

    record.py PORT > redis-7.0.15.txt

PORT is a scratch server on loopback. A line is a request, a tab, and what COMMAND GETKEYSANDFLAGS
answers: `key:flag+flag`, in order; nothing if it finds none. Requests with a number of arguments that
the command does not take are left out: they are refused before.
"""
import random, sys, pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[6] / "tests"))
from harness.resp import Client, Refusal  # noqa: E402

random.seed(7)
NUMBERS = ["0", "1", "2", "3", "-1", "9", "2x", "+2", "x", "01", "1.5"]
PLAIN = ["k1", "k2", "k3", "k4"]
# Words that a request of the command may hold anywhere.
COUNTED = ["zunion", "zinter", "zdiff", "zunionstore", "zinterstore", "zdiffstore", "zintercard",
           "sintercard", "lmpop", "zmpop", "blmpop", "bzmpop"]
WORDS = {
    "sort": ["STORE", "store", "BY", "GET", "LIMIT", "ASC", "ALPHA", "0"],
    "sort_ro": ["STORE", "BY", "GET", "LIMIT", "0"],
    "set": ["GET", "get", "EX", "NX", "10", "gets"],
    "bitfield": ["GET", "SET", "INCRBY", "OVERFLOW", "SAT", "u8", "0", "7"],
    "georadius": ["STORE", "STOREDIST", "storedist", "COUNT", "1", "m"],
    "georadiusbymember": ["STORE", "STOREDIST", "COUNT", "1", "m"],
    "mset": ["1"], "msetnx": ["1"], "del": [], "bitop": ["AND"], "pfcount": [], "pfmerge": [],
    "blpop": ["0"], "bzpopmin": ["0"], "smove": [], "copy": ["REPLACE", "DB"], "rename": [],
    "lmove": ["LEFT"], "geosearchstore": ["BYRADIUS"], "zrangestore": ["BYSCORE"], "get": [],
    "sinterstore": [], "watch": [], "touch": [], "ping": [], "spublish": [], "ssubscribe": [],
    "migrate": ["KEYS", "keys", "AUTH", "AUTH2", "COPY", "REPLACE", "0"],
}


def requests():
    for name in COUNTED:
        for _ in range(60):
            words = random.choices(PLAIN, k=random.randint(1, 5))
            words += random.choices(["WEIGHTS", "LIMIT", "LEFT", "WITHSCORES", "1"], k=random.randint(0, 2))
            at = 1 if name.endswith("store") or name[0] == "b" else 0
            words.insert(at, random.choice(NUMBERS))
            yield [name, *words]
    for name, own in WORDS.items():
        for _ in range(120 if name in ("sort", "bitfield", "migrate") or "radius" in name else 25):
            yield [name, *random.choices(PLAIN[:2] + own, k=random.randint(1, 9))]


def main():
    client = Client(int(sys.argv[1]))
    print("# Recorded from redis-server 7.0.15 by record.py.")
    seen = set()
    for request in requests():
        if " ".join(request) in seen:
            continue
        seen.add(" ".join(request))
        try:
            keys = client.call("COMMAND", "GETKEYSANDFLAGS", *request)
        except Refusal as refusal:
            if "number of arguments" in str(refusal) or "subcommand" in str(refusal):
                continue
            keys = []
        shown = [f"{key.decode()}:{'+'.join(flag.decode() for flag in flags)}" for key, flags in keys]
        print(" ".join(request) + "\t" + " ".join(shown))


main()
