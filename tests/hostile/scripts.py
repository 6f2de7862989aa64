"""Scripts that want all of the processor: the primary goes on leading, beside a replica that would."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "failover"))
from harness.info import info_fields  # noqa: E402
from harness.resp import Disconnected, Refusal  # noqa: E402
from harness.waiting import wait_for  # noqa: E402
from shard import Shard, shared_log  # noqa: E402

# Longer than the default, so that a machine that is busy with other things deposes nobody. When they
# could, most of these scripts held the loop for longer.
LEASE_MS = 10_000

# After which a script is killed that goes on.
SCRIPT_SECONDS = 5.0

# How a script ends: killed because it goes on for long (on a busy machine others are, too), or otherwise.
KILLED, MEMORY, VALUE = "Script killed by user", "not enough memory", "a value"

# Loops, memory, and work in one function of Lua's or in one instruction; and how they end.
BODIES = {
    ("an endless loop", KILLED): "while true do pcall(function() while true do end end) end",
    ("numbers that collide in a table", VALUE):
        "local t = {} for i = 1, 1000000 do t[2 ^ 52 + i * 2 ^ 32 + 2 ^ 31 - i] = i end return #t",
    ("one capture many times", MEMORY):
        "return #string.gsub(string.rep('a', 5e6), '.*', string.rep('%0', 2000), 1)",
    ("a text for every byte", MEMORY): "return string.gsub(string.rep('a', 1e6), '', string.rep('b', 1e4))",
    ("long texts sorted", VALUE):
        "local s, t = string.rep('x', 60000), {} for i = 1, 3000 do t[i] = s .. (i * 7919) % 3000 end "
        "table.sort(t) return #t",
    ("a list sorted by a function of C", VALUE):
        "local t = {} for i = 1, 1e6 do t[i] = i end table.sort(t, rawequal) return #t",
    # What quicksort compares makes its worst order (McIlroy, A Killer Adversary for Quicksort).
    ("a list in the worst order", VALUE): """
        local order, list, solid, candidate = {}, {}, 0, nil
        for i = 1, 5000 do order[i] = i end
        pcall(table.sort, order, function(a, b)
          if not list[a] and not list[b] then
            solid = solid + 1
            list[a == candidate and a or b] = solid
          end
          if not list[a] then candidate = a elseif not list[b] then candidate = b end
          return (list[a] or 1e9) < (list[b] or 1e9)
        end)
        for i = 1, 5000 do list[i] = list[i] or 1e9 end
        table.sort(list)""",
    ("numbers concatenated", VALUE):
        "local t = {} for i = 1, 4e6 do t[i] = i end return #table.concat(t, ',')",
    ("code of many breaks", VALUE):
        "return loadstring('while true do ' .. string.rep('do break end ', 60000) .. 'end') and 1",
    ("code of many conditions", VALUE):
        "return loadstring('local a = nil return ' .. string.rep('a and a or ', 60000) .. '1') and 1",
    ("a long set", KILLED): "return string.find(string.rep('b', 3e5), '[' .. string.rep('a', 1e6) .. ']*c')",
    ("a longer one", "pattern too complex"):
        "return string.find(string.rep('b', 3e4), '[' .. string.rep('a', 5e6) .. ']*c')",
    ("a long word that is no option", VALUE):
        "return select('#', pcall(collectgarbage, string.rep('\\255', 2e8)))",
    ("long texts changed", VALUE):
        "local s = string.rep('1', 2e7) for i = 1, 100 do s:upper() tonumber(s) end return 1",
    ("a digest of much", VALUE):
        "local s = string.rep('x', 1e8) for i = 1, 20 do redis.sha1hex(s) end return 1",
    ("much memory in small things", MEMORY): "local t = {} for i = 1, 1e9 do t[i] = {} end",
    ("long texts as numbers", "number expected"):
        "local s, t = 'nan(' .. ('1'):rep(5e6) .. ')', {} for i = 1, 7000 do t[i] = s end "
        "return math.max(1, unpack(t))",
    # One search for the mode passes 198 others, and all weak tables are asked at the end of a collection.
    ("weak tables whose mode is hard to find", VALUE): """
        local function place(key)
          local hash = #key
          for i = #key, 1, -1 do
            local mixed = bit.lshift(hash, 5) + bit.rshift(hash, 2) + key:byte(i)
            hash = bit.bxor(hash, bit.tobit(mixed))
          end
          return hash % 256
        end
        local others, tried = {}, 0
        while #others < 198 do
          tried = tried + 1
          if place('q' .. tried) == place('__mode') then others[#others + 1] = 'q' .. tried end
        end
        local rest = table.concat(others, '=0,', 2)
        local metatable = loadstring('return {' .. others[1] .. "=0,__mode='k'," .. rest .. '=0}')
        local metatables, t = {}, {}
        for i = 1, 2000 do metatables[i] = metatable() end
        for i = 1, 2000000 do t[i] = setmetatable({}, metatables[i % 2000 + 1]) end
        return #t""",
    ("a mode of megabytes", VALUE):
        "local mt, t = {__mode = ('k'):rep(2000000)}, {} "
        "for i = 1, 100000 do t[i] = setmetatable({}, mt) end collectgarbage() return #t",
    # In stock Lua the chains of all places grow together here, and one search visits half a million nodes.
    ("removed keys whose places are used again", VALUE): """
        local N = 2 ^ 19
        local function key(place, j) return 2 ^ 52 + (place - 0x43300000) % (N - 1) + j * (N - 1) end
        local t = {}
        for place = 0, N / 2 do t[key(place, 1)] = 1 end
        t[key(0, 2)] = 1
        local free, head = N - 2, 1
        while free > N / 2 + 200 do
          local tail = free
          for i = 1, 98 do t[key(head, i + 1)] = 1 free = free - 1 end
          t[key(head, 2)] = nil
          t[key(tail, 1)] = 1
          head = tail
        end
        local from = 2 ^ 28 + 256 * (N - 1 - 0x41B - 4100 - 300)
        return select('#', unpack(t, from, from + 7900))""",
    ("metamethods behind such keys", VALUE): """
        local N, name = 2 ^ 20, '__concat'
        local function key(place, j) return 2 ^ 52 + (place - 0x43300000) % (N - 1) + j * (N - 1) end
        local hash = #name
        for i = #name, 1, -1 do
          hash = bit.bxor(hash, bit.tobit(bit.lshift(hash, 5) + bit.rshift(hash, 2) + name:byte(i)))
        end
        local t = {}
        for place = 0, N / 2 do t[key(place, 1)] = 1 end
        local free, head = N - 2, hash % N
        t[key(head, 1)] = 1
        t[name] = assert
        while free > N / 2 + 200 do
          local tail = free
          if tail == hash % N then free = free - 1 tail = free end
          for i = 1, 29 do
            t[key(head, i + 1)] = 1
            free = free - 1
            if free == hash % N then free = free - 1 end
          end
          t[key(head, 2)] = nil
          t[key(tail, 1)] = 1
          head = tail
        end
        local a = setmetatable({}, t)
        local x = """ + "..".join(["a"] * 185),
    # 199 in each place: a table in which 201 share one is scattered.
    ("keys that nearly collide in a large table", VALUE): """
        local t, places = {}, math.floor(2 ^ 21 / 199)
        for j = 0, 198 do
          for g = 0, places - 1 do t[2 ^ 52 + j * 2 ^ 32 + 1000 + g - j] = 1 end
        end
        for i = 1, 10 do table.maxn(t) end
        for i = 1, 1e6 do t['x' .. i] = 1 end""",
    ("results of gsub that wait for others", MEMORY): """
        local text = ('x'):rep(1e6)
        local function nest(depth)
          if depth == 0 then return 'end' end
          local n = 0
          local function by()
            n = n + 1
            return n <= 200 and text or tostring(nest(depth - 1))
          end
          return #(('a'):rep(201)):gsub('a', by)
        end
        return nest(60)""",
    # Each key that is set lets the table grow.
    ("keys changed in a full table", KILLED):
        "local t = {} for i = 2, 2 ^ 20 do t['k' .. i] = 1 end t.a = 1 "
        "while true do t.a = nil t.b = 1 t.b = nil t.a = 1 t.a = nil t.b = 1 t.b = nil t.a = 1 end",
    ("a coroutine that was made before the memory", VALUE):
        "local s = '' local co = coroutine.create(function() coroutine.yield() "
        "for i = 1, 2000 do local x = s .. 'x' end end) coroutine.resume(co) "
        "s = string.rep('x', 5e7) coroutine.resume(co)",
    ("millions of small strings that are left", VALUE):
        "local t = {} for i = 1, 4000 do local u = {} t[i] = u "
        "for j = 1, 1000 do u[j] = i .. ':' .. j end end",
    ("deep values", MEMORY): "local t = {} for i = 1, 60 do t = {t, t} end return cjson.encode(t)",
}


def eval_to_its_end(primary, body):
    """Runs a script, and kills it if it goes on for long. How it ended."""
    def kill():
        with primary.client() as client:
            try:
                client.call("SCRIPT", "KILL")
            except Refusal:
                pass  # it has just ended

    killer = threading.Timer(SCRIPT_SECONDS, kill)
    killer.start()
    try:
        with primary.client() as client:
            client.call("EVAL", body, 0)
            return VALUE
    except Refusal as refusal:
        return str(refusal)
    finally:
        killer.cancel()
        killer.join()


def compile_in_a_transaction(primary):
    """Has many scripts compiled in one unit, each of which takes long, and is refused in the end."""
    body = "local a = nil return " + "a and a or " * 40_000 + "1"
    with primary.client() as client:
        client.call("MULTI")
        for number in range(60):
            client.call("EVAL", f"-- {number}\n{body}", 0)
        for reply in client.call("EXEC"):
            assert isinstance(reply, Refusal) and "takes longer" in str(reply), reply


def epoch(member):
    with member.client() as client:
        return info_fields(client.call("INFO"))["kiln_log_epoch"]


def scripts_depose_nobody(command, _):
    """Neither does a script that a client may send make the primary miss its lease."""
    arguments = ["--transaction-log-lease", str(LEASE_MS)]
    with Shard(command, 2, shared_log, arguments, first_leads=True) as shard:
        primary = shard.primary()
        led = epoch(primary)
        for (name, ending), body in BODIES.items():
            try:
                ended = eval_to_its_end(primary, body)
                now = epoch(primary)
            except Disconnected as gone:
                raise AssertionError(f"{name}: {gone}\n{primary.log_tail()}") from gone
            assert now == led, f"{name}: somebody else led\n{primary.log_tail()}"
            assert ending in ended or KILLED in ended, f"{name}: {ended}"
        compile_in_a_transaction(primary)
        assert epoch(primary) == led, f"compiling: somebody else led\n{primary.log_tail()}"
        assert shard.primary() is primary
        with primary.client() as client:
            assert client.call("SET", "after", "1") == b"OK"
        (replica,) = shard.replicas()
        with replica.client() as client:
            client.call("READONLY")
            wait_for("the write on the replica", lambda: client.call("GET", "after") == b"1")
        return f"{len(BODIES)} scripts"
