"""What COMMAND DOCS says of arguments, to be held against redis-server's."""

from pair import Difference
from wire import fields

COUNT = "COUNT is said to name its block, as LIMIT does"
UNSAID = "redis-server says nothing of them"
NO_ONE = "NO ONE stands in the place of host and port"
MAY_BE_NONE = "none is taken, and none is said to be needed"

# Arguments that are told in another way, each with why.
OTHERS = {
    "client|kill": "filters of Valkey", "client|list": "filters of Valkey",
    "cluster|setslot": "is refused whatever it says", "command|getkeys": UNSAID,
    "command|getkeysandflags": UNSAID, "config|get": "no block around one argument", "debug": UNSAID,
    "geohash": MAY_BE_NONE, "geopos": MAY_BE_NONE, "georadius": COUNT, "georadius_ro": COUNT,
    "georadiusbymember": COUNT, "georadiusbymember_ro": COUNT, "geosearch": COUNT, "geosearchstore": COUNT,
    "hscan": "NOVALUES", "migrate": "an empty key is a string", "module|loadex": "no block around ARGS",
    "pfmerge": MAY_BE_NONE, "psubscribe": "no block around one argument",
    "replicaof": NO_ONE, "slaveof": NO_ONE, "set": "IFEQ", "sort": "patterns are counted among its keys",
    "sort_ro": "patterns are counted among its keys", "xadd": "KEEPREF, DELREF, ACKED",
    "xtrim": "KEEPREF, DELREF, ACKED, and no block around all of them",
    "zrank": "WITHSCORE", "zrevrank": "WITHSCORE", "zscan": "NOSCORES",
}


def compare(pair):
    """Raises `Difference` where a command's arguments are described otherwise."""
    stock, tested = by_name(pair.stock.client), by_name(pair.tested.client)
    both = sorted(stock.keys() & tested.keys())
    others = [name for name in both if shape(stock[name]) != shape(tested[name])]
    texts = [f"{name}\n  stock  {shape(stock[name])}\n  tested {shape(tested[name])}"
             for name in others if name not in OTHERS]
    texts += [f"{name} is described in the same way: take it out of OTHERS" for name in OTHERS
              if name in both and name not in others and stock[name] is not tested[name]]
    texts += [f"{name}: {sorted(stock[name].keys() ^ tested[name].keys())} is not in both"
              for name in both if name not in others and facts(stock[name]) != facts(tested[name])]
    if texts:
        raise Difference("\n".join(texts))
    return f"{len(both) - len(others)} commands"


def facts(described):
    """Which fields there are, and how many releases changed it. Not all tell what they cost."""
    return described.keys() - {"complexity"}, len(described.get("history", (b"~", []))[1])


def by_name(client):
    """The documentation of every command and subcommand."""
    found = {}
    collect(fields(client.call("COMMAND", "DOCS")), found)
    return found


def collect(commands, found):
    for name, described in commands.items():
        described = fields(described)
        found[name] = described
        if "subcommands" in described:
            collect(fields(described["subcommands"]), found)


def shape(described):
    """The arguments as text, without the names of groups, which no client says."""
    return " ".join(argument(each) for each in described.get("arguments", (b"*", []))[1])


def argument(reply):
    described = fields(reply)
    kind = described["type"][1].decode()
    token = described["token"][1].decode() if "token" in described else ""
    flags = "".join(sorted({"optional": "?", "multiple": "*", "multiple_token": "+"}[flag.decode()]
                           for _, flag in described.get("flags", (b"~", []))[1]))
    spec = described["key_spec_index"][1].decode() if "key_spec_index" in described else ""
    inner = " ".join(argument(each) for each in described.get("arguments", (b"*", []))[1])
    return f"{kind}{f'({token})' if token else ''}{flags}{spec}" + (f"{{{inner}}}" if inner else "")
