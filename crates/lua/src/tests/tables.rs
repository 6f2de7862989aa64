//! What the changed C of Lua does with large tables (`vendor/lua-src/README.md`).

use super::stalls::{run, timed};
use super::*;
use std::fmt::Write;

/// How often a script pauses when each look at the clock is a millisecond later.
fn pauses(body: &str) -> usize {
    let (ending, pauses) = run(body);
    assert!(matches!(ending, Ending::Reply(_)), "{body}: {ending:?}");
    pauses
}

/// The order in which `pairs` visits keys of which so many share each place, with this secret.
fn order(secret: u128, sharing: usize, places: usize) -> String {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    interpreter.set_secret(secret);
    let body = format!(
        "local t, seen = {{}}, {{}}
         for j = 0, {sharing} - 1 do
           for g = 0, {places} - 1 do t[2 ^ 52 + j * 2 ^ 32 + 1000 + g - j] = j end
         end
         for key, j in pairs(t) do seen[#seen + 1] = j end
         return table.concat(seen, ' ', 1, 200)"
    );
    eval_with(&mut interpreter, &body, &[], &[], |_| Answer::GoOn)
}

#[test]
fn a_table_is_scattered_where_more_than_200_keys_share_a_place() {
    for (sharing, places, is_scattered) in
        [(200, 40, false), (201, 40, true), (200, 1000, false), (201, 1000, true)]
    {
        let orders = [order(1, sharing, places), order(2, sharing, places)];
        assert_eq!(orders[0] != orders[1], is_scattered, "{sharing} keys in {places} places");
    }
}

/// Numbers as scripts have them: identifiers, and times in steps.
#[test]
fn tables_of_8192_ordinary_numbers_are_not_scattered() {
    for (from, step) in
        [("1e8", 1), ("123456789", 7), ("1.7e9", 1), ("1.7e9", 60), ("1.7e12", 1000)]
    {
        let body = format!(
            "local t, seen = {{}}, {{}}
             for i = 0, 8191 do t[{from} + i * {step}] = i end
             for _, i in pairs(t) do seen[#seen + 1] = i end
             return table.concat(seen, ' ', 1, 200)"
        );
        let orders = [1, 2].map(|secret| {
            let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
            interpreter.set_secret(secret);
            eval_with(&mut interpreter, &body, &[], &[], |_| Answer::GoOn)
        });
        assert_eq!(orders[0], orders[1], "from {from} in steps of {step}");
    }
}

/// Where a removed key's place is used again, stock Lua lets two chains grow together, without
/// limit: here each search for a metamethod would go through half a million nodes, and the test
/// would not end.
#[test]
fn chains_stay_apart_where_places_are_used_again() {
    let body = "local size = 2 ^ 20
        local function key(place, j)
          return 2 ^ 52 + (place - 0x43300000) % (size - 1) + j * (size - 1)
        end
        local hash = 7
        for i = 7, 1, -1 do
          local mixed = bit.lshift(hash, 5) + bit.rshift(hash, 2) + ('__index'):byte(i)
          hash = bit.bxor(hash, bit.tobit(mixed))
        end
        local t = {}
        for place = 0, size / 2 do t[key(place, 1)] = 1 end
        local free, head = size - 2, hash % size
        t[key(head, 1)] = 1
        t.__index = function() return 'found' end
        while free > size / 2 + 200 do
          local tail = free
          if tail == hash % size then free = free - 1 tail = free end
          for i = 1, 29 do
            t[key(head, i + 1)] = 1
            free = free - 1
            if free == hash % size then free = free - 1 end
          end
          t[key(head, 2)] = nil
          t[key(tail, 1)] = 1
          head = tail
        end
        local a = setmetatable({}, t)
        for i = 1, 100000 do if a.absent ~= 'found' then return i end end
        return 'all'";
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    assert_eq!(eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn), "$3 all ");
}

/// In a table that keeps neither keys nor values alive, a removed key's node must not be taken for
/// a new string's that has its address: it would stand at its own place, in another one's chain.
#[test]
fn removed_keys_of_weak_tables_are_no_others() {
    let body = "local function place(key)
          local hash = #key
          for i = #key, 1, -1 do
            local mixed = bit.lshift(hash, 5) + bit.rshift(hash, 2) + key:byte(i)
            hash = bit.bxor(hash, bit.tobit(mixed))
          end
          return hash % 8
        end
        local pad, at = ('q'):rep(80), {}
        for i = 0, 7 do at[i] = {} end
        for i = 1000, 1999 do
          local of_place = at[place(i .. pad)]
          of_place[#of_place + 1] = i
        end
        local a, last = at[0][1] .. pad, at[7][1] .. pad
        local one, two, three = at[1][1] .. pad, at[2][1] .. pad, at[3][1] .. pad
        pad = nil collectgarbage() pad = ('q'):rep(80)
        local function make(i)
          local t = {[a] = 1, [i .. pad] = 1, [one] = 1, [two] = 1, [three] = 1}
          t[i .. pad] = nil
          return setmetatable(t, {__mode = 'kv'})
        end
        local function clear_stack(...) return select('#', ...) end
        for try = 1, 100 do
          local t = make(at[0][2 + try % 20])
          clear_stack(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
          collectgarbage() collectgarbage()
          local key = at[7][2 + try % 20] .. pad
          t[key] = 'key'
          t[last] = 'last'
          if t[key] ~= 'key' then return try end
        end
        return 'all'";
    assert_eq!(eval(body), "$3 all ");
}

/// A full table is made anew for each key that is set in the place of another one.
#[test]
fn the_clock_is_looked_at_behind_each_growth_of_a_large_table() {
    let mut changes = String::new();
    for _ in 0..300 {
        write!(changes, "t.a = nil t.b = 1 t.b = nil t.a = 1 ").unwrap();
    }
    let make = "local t = {a = 1} for i = 1, 2 ^ 15 - 1 do t['k' .. i] = 1 end";
    let (changed, made) =
        (pauses(&format!("{make} {changes} return 1")), pauses(&format!("{make} return 1")));
    assert!(changed >= made + 200, "{changed} and {made}");
}

/// Moving a nil sets a key as well.
#[test]
fn the_clock_is_looked_at_between_moves_that_let_a_table_grow() {
    let make = "local t = {} for i = 1, 2 ^ 15 - 3 do t['k' .. i] = 1 end";
    let (moved, made) = (
        pauses(&format!("{make} table.insert(t, -300, 5) return 1")),
        pauses(&format!("{make} return 1")),
    );
    assert!(moved >= made + 60, "{moved} and {made}");
}

#[test]
fn maxn_visits_a_table_with_pauses() {
    let body = |calls: usize| {
        format!(
            "local t = {{}} for i = 1, 1e5 do t['k' .. i] = 1 end
             for i = 1, {calls} do if table.maxn(t) ~= 0 then error('a number') end end return 1"
        )
    };
    let (called, made) = (pauses(&body(5)), pauses(&body(0)));
    assert!(called >= made + 1000, "{called} and {made}");
    for (table, most) in [
        ("{}", "0"),
        ("{1, 2, nil, 4}", "4"),
        ("{[-3] = 1}", "0"),
        ("{[2.5] = 1, [2] = 1, x = 9}", "2.5"),
        ("{[1e300] = 1, [7] = 1}", "1e+300"),
        ("{[1 / 0] = 1}", "inf"),
    ] {
        let reply = eval(&format!("return tostring(table.maxn({table}))"));
        assert_eq!(reply, format!("${} {most} ", most.len()), "{table}");
    }
    assert_eq!(
        eval("return select(2, pcall(table.maxn))"),
        "$53 bad argument #1 to '?' (table expected, got no value) "
    );
}

/// One long string lets Lua owe a whole collection; it is made in pieces all the same.
#[test]
fn what_is_owed_is_collected_with_pauses() {
    let body = "local t = {}
        for i = 1, 300 do
          local u = {} t[i] = u for j = 1, 1000 do u[j] = i .. 'x' .. j end
        end
        local s = string.rep('x', 8e7) local u = {}
        redis.call('now')
        t, s = nil, nil collectgarbage() return 1";
    let mut interpreter = timed(CodeKind::Scripts, 1_000_000);
    let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
    start(&mut interpreter, script);
    let (mut step, mut pauses) = (interpreter.resume(Answer::Begin), 0);
    while !matches!(step, Step::Done(_)) {
        let answer = match step {
            Step::Call(_) => {
                pauses = 0;
                Answer::Reply(b"+OK\r\n".to_vec())
            }
            _ => {
                pauses += 1;
                Answer::GoOn
            }
        };
        step = interpreter.resume(answer);
    }
    assert!(pauses >= 60, "{pauses}");
    assert!(interpreter.used_bytes() < 4 << 20, "{} bytes are left", interpreter.used_bytes());
}

/// What a library has left is collected with pauses too, when the next one wants its room.
#[test]
fn a_collection_between_scripts_pauses() {
    let mut interpreter = timed(CodeKind::Functions, 1_000_000);
    let code = "local t = {} for i = 1, 3e5 do t[i] = 'x' .. i end
                redis.register_function('f', function() return #t end)";
    interpreter.start_loading(code.as_bytes()).unwrap();
    let (Ending::Loaded(functions), _) = finish(&mut interpreter) else { panic!("it loads") };
    interpreter.forget(functions[0].callback);
    let mut pauses = 0;
    interpreter.collect(|| pauses += 1);
    assert!(pauses >= 50, "{pauses}");
    assert!(interpreter.used_bytes() < 4 << 20, "{} bytes are left", interpreter.used_bytes());
    interpreter.start_loading(b"redis.register_function('g', function() return 1 end)").unwrap();
    assert!(matches!(finish(&mut interpreter).0, Ending::Loaded(_)));
}

/// Functions in C are interrupted as code in Lua is, also where each element costs a long search.
#[test]
fn functions_on_lists_pause() {
    let list = "local t, u = {}, {} for i = 1, 1e5 do t[i] = i u['z' .. i] = 2 end";
    for call in [
        "table.concat(t)",
        "table.insert(t, 1, 0)",
        "table.insert(t, -1e5, 0)",
        "table.remove(t, 1)",
        "table.sort(t)",
        "table.sort(t, rawequal)",
        "table.foreach(u, tonumber)",
        "table.foreachi(t, redis.debug)",
        "string.format('%q', ('x'):rep(1e7))",
        "string.format(('x'):rep(1e7))",
    ] {
        let called = pauses(&format!("{list} pcall(function() {call} end) return 1"));
        let made = pauses(&format!("{list} return 1"));
        assert!(called >= made + 300, "{call}: {called} and {made}");
    }
}

/// Redis's Lua reads all bytes of a key, and so `pairs` has this order there (7.0.15).
#[test]
fn long_keys_have_the_order_of_redis() {
    let body = "local t, seen = {}, {}
        for i = 1, 12 do t[('session:'):rep(5) .. i] = i end
        for _, i in pairs(t) do seen[#seen + 1] = i end
        return table.concat(seen, ' ')";
    assert_eq!(eval(body), "$26 12 2 9 4 1 7 6 8 3 11 10 5 ");
    let empty =
        "local seen = '' for key in pairs({[''] = 1, x = 2}) do seen = seen .. '<' .. key end
        return seen";
    assert_eq!(eval(empty), "$3 <<x ");
}

/// A key in the place of another one is moved when that one comes.
#[test]
fn keys_that_make_room_for_others_are_found_again() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let body = "local size, groups = 2 ^ 16, 1000
        local function key(place, j)
          return 2 ^ 52 + (place - 0x43300000) % (size - 1) + j * (size - 1)
        end
        local t = {}
        for j = 1, 30 do for g = 1, groups do t[key(g, j)] = j end end
        for place = groups + 1, size - 1 do t[key(place, 1)] = 1 end
        for j = 1, 30 do
          for g = 1, groups do if t[key(g, j)] ~= j then return g end end
        end
        for place = groups + 1, size - 1 do if t[key(place, 1)] ~= 1 then return place end end
        return 'all'";
    assert_eq!(eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn), "$3 all ");
}

/// What a command answers becomes a table where memory is not limited: mlua protects nothing there,
/// so that no error may be raised.
#[test]
fn a_reply_of_millions_becomes_a_table() {
    let limits = Limits { memory_bytes: 1 << 30, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    let mut reply = Reply::new(Protocol::Resp3);
    let members = (1 << 21) + 2;
    reply.set(members);
    (0..members).for_each(|member| reply.bulk(member.to_string()));
    let reply = reply.into_bytes();
    let body = "redis.setresp(3) local t = redis.call('members')
        return t.set['0'] and t.set['2097153'] and 1";
    let answered = eval_with(&mut interpreter, body, &[], &[], |_| Answer::Reply(reply.clone()));
    assert_eq!(answered, ":1 ");
}

/// What a mode says is kept until the metatable changes.
#[test]
fn tables_are_weak_as_their_metatables_say_now() {
    let body = "local metatable, said = {}, {}
        local t = setmetatable({}, metatable)
        local function say()
          t.value, t[{}] = {}, 1
          collectgarbage() collectgarbage()
          local keys = 0
          for key in pairs(t) do if type(key) == 'table' then keys = keys + 1 end end
          said[#said + 1] = (t.value and 'v' or '-') .. (keys > 0 and 'k' or '-')
          for key in pairs(t) do t[key] = nil end
        end
        say()
        for _, mode in ipairs({'k', 'v', 'kv', 'x', ('x'):rep(31) .. 'k', ('x'):rep(32) .. 'k'}) do
          metatable.__mode = mode say() say()
        end
        metatable.__mode = nil say()
        rawset(metatable, '__mode', 'v') say()
        metatable.other = 1 say()
        metatable.__mode = 5 say()
        setmetatable(t, {__mode = 'kv'}) say()
        setmetatable(t, nil) say()
        return table.concat(said, ' ')";
    let said = "vk v- v- -k -k -- -- vk vk v- v- vk vk vk -k -k vk -- vk";
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let found = eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn);
    assert_eq!(found, format!("${} {said} ", said.len()));
}
