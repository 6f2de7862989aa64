"""The files of Redis's suite that Kiln is judged by, and how each is run."""

import dataclasses

# Tests that need DEBUG or PFDEBUG, and those that take minutes, are left out of most files: what
# remains is what a stock server passes as it comes out of the box.
WITHOUT_DEBUG = "-slow -needs:debug -needs:pfdebug"


@dataclasses.dataclass(frozen=True)
class Unit:
    """One file. `tags` is runtest's filter; `debug` starts the server with DEBUG allowed. With
    `spawn` the suite starts its servers itself, each with a redis.conf of its own. `without` are
    lines that stand outside of every test and ask for what is not there, which would end the file."""

    name: str
    tags: str = WITHOUT_DEBUG
    debug: bool = False
    spawn: bool = False
    seconds_max: int = 1200
    without: tuple = ()

    @property
    def file(self):
        return self.name.removeprefix("unit/").replace("/", "-") + ".txt"


def _plain(*names):
    return [Unit(f"unit/{name}") for name in names]


def _spawning(*names):
    return [Unit(f"unit/{name}", tags="-slow", spawn=True, seconds_max=1800) for name in names]


UNITS = [
    *_plain("type/string", "type/incr", "type/list", "type/list-3", "type/set", "type/zset"),
    *_plain("type/hash", "expire", "keyspace", "scan", "multi", "pubsub", "sort", "bitops"),
    *_plain("bitfield", "protocol", "info-command", "slowlog", "latency-monitor", "lazyfree"),
    *_plain("pause", "quit", "violations"),
    Unit("unit/type/stream", tags="", debug=True),
    *_spawning("type/stream-cgroups"),
    Unit("unit/geo", tags="", debug=True, seconds_max=1800),
    Unit("unit/hyperloglog", tags="", debug=True, seconds_max=1800),
    Unit("unit/querybuf", tags="", debug=True),
    *_spawning("auth", "acl", "acl-v2", "networking", "info", "pubsubshard", "wait"),
    # There is no debugger of scripts.
    Unit("unit/scripting", tags="-slow", spawn=True, seconds_max=1800,
         without=("    r script debug sync",)),
    *_spawning("introspection", "introspection-2", "dump", "tracking"),
]


def find(names):
    """The units of these names (`unit/sort`, `sort`, `type/string`); all when there are none."""
    if not names:
        return UNITS
    by_name = {unit.name: unit for unit in UNITS}
    chosen = []
    for name in names:
        full = name if name.startswith("unit/") else f"unit/{name}"
        if full not in by_name:
            raise SystemExit(f"{name} is not one of: " + " ".join(by_name))
        chosen.append(by_name[full])
    return chosen
