"""The files of Redis's suite that Kiln is judged by, and how each is run."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mode:
    """One way to run a file: what runtest and the server are told. `letter` marks its tests in
    `denominator/`. With `spawn` the suite starts its servers itself, each with a redis.conf of its
    own, in which DEBUG is allowed; else it is given one that runs."""

    name: str
    letter: str
    tags: str = ""
    spawn: bool = False
    flags: tuple = ()
    server: tuple = ()


DEBUG = ("--enable-debug-command", "yes")

# A server as it comes out of the box, without DEBUG; the same with it; one that speaks to clients of a
# cluster; servers that the suite starts itself, which reaches every file; and those over TLS.
PLAIN = Mode("plain", "p", "-slow -needs:debug -needs:pfdebug")
WITH_DEBUG = Mode("debug", "d", server=DEBUG)
CLUSTER = Mode("cluster", "c", "-slow", flags=("--cluster-mode",),
               server=(*DEBUG, "--cluster-enabled", "yes"))
SPAWN = Mode("spawn", "s", "-slow", spawn=True)
TLS = Mode("tls", "t", "-slow", spawn=True, flags=("--tls",))
MODES = {mode.name: mode for mode in (PLAIN, WITH_DEBUG, CLUSTER, SPAWN, TLS)}


@dataclasses.dataclass(frozen=True)
class Unit:
    """One file in one mode. `long` keeps it for the long form of the tests. `without` are lines that
    stand outside of every test and ask for what is not there, which would end the file."""

    name: str
    mode: Mode
    long: bool = False
    seconds_max: int = 1800
    without: tuple = ()

    @property
    def key(self):
        return f"{self.name} {self.mode.name}"

    @property
    def file(self):
        return self.name.removeprefix("unit/").replace("/", "-") + ".txt"


# Files that a running server can be given.
EXTERNAL = """
    type/string type/incr type/list type/list-2 type/list-3 type/set type/zset type/hash type/stream
    type/stream-cgroups expire keyspace scan info-command quit pubsub slowlog latency-monitor lazyfree
    pause violations sort bitops bitfield geo hyperloglog multi protocol introspection introspection-2
    dump tracking scripting functions other querybuf replybufsize
""".split()

# Files whose every test needs servers that the suite starts. The others of Redis's make no sense here:
# - aofrw, integration/aof*: they read files of an AOF.
# - memefficiency, integration/dismiss-mem: they look at what jemalloc and a fork do.
# - shutdown, integration/shutdown: they wait for a fork, or for replicas that were told nothing.
# - oom-score-adj: the score is left to the service manager.
# - integration/rdb, corrupt-dump*, convert-*, logging: they put a file in the place of the server's own data,
#   or crash it by DEBUG.
# - integration/replication*, psync2*, block-repl, failover: a replica of Redis hands its master's stream on,
#   or is one's partner in a partial synchronisation; replicas are of the log here.
# - cluster, cluster-scripting, cluster/*: they start several shards and move slots between them.
# - moduleapi/*: there are no modules.
# - printver: it has no test.
SPAWNED = """
    unit/auth unit/acl unit/acl-v2 unit/info unit/pubsubshard unit/wait unit/networking
    unit/limits unit/obuf-limits unit/maxmemory unit/client-eviction unit/pendingquerybuf
    integration/redis-cli integration/redis-benchmark
""".split()

# There is no debugger of scripts.
WITHOUT = {"unit/scripting": ("    r script debug sync",)}

# Of each file one mode is asked for by every run, servers that the suite starts itself, but for these:
# those that take minutes, and one whose tests are all slow.
SHORT_MODE = {"geo": PLAIN, "hyperloglog": PLAIN, "querybuf": WITH_DEBUG}
LONG = ("unit/maxmemory",)


def _units():
    for name in EXTERNAL:
        for mode in (PLAIN, WITH_DEBUG, CLUSTER, SPAWN):
            yield f"unit/{name}", mode, mode is not SHORT_MODE.get(name, SPAWN)
    for name in SPAWNED:
        yield name, SPAWN, name in LONG
    yield "unit/tls", TLS, False


UNITS = [Unit(name, mode, long, without=WITHOUT.get(name, ())) for name, mode, long in _units()]


def find(names, modes, long):
    """The units of these names (`unit/sort`, `sort`, `type/string`; all when there are none) in
    these modes. Those of the long form count with `long`, and when they are asked for by mode."""
    known = {unit.name for unit in UNITS}
    full = [name if name in known else f"unit/{name}" for name in names]
    if unknown := set(full) - known:
        raise SystemExit(f"{' '.join(sorted(unknown))}: not one of {' '.join(sorted(known))}")
    return [unit for unit in UNITS
            if (unit.name in full or not full)
            and (unit.mode.name in modes if modes else long or not unit.long)]
