//! Scripts that want to harm: each ends, soon after it is killed at the latest, and leaves its
//! interpreter as it was.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pauses that a script is granted before it is killed.
const PAUSES_MAX: usize = 200;

/// Pauses after which a killed script must have ended.
const PAUSES_AFTER_KILL_MAX: usize = 3;

const SCRIPTS: &[&str] = &[
    // Long loops, which catch errors.
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "local function f() pcall(f) end while true do f() end",
    "local function f() return f() end f()",
    // As deep as Lua lets calls nest, where one more fails.
    "local function f() while true do pcall(f) end end f()",
    "local t = {} setmetatable(t, {__call = function(t) while true do pcall(t) end end}) t()",
    "local function f() while true do pcall(f) redis.sha1hex('') end end f()",
    "local function f() while true do xpcall(f, f) end end f()",
    "local function f() while true do coroutine.wrap(f)() end end while true do pcall(f) end",
    "while true do xpcall(error, function() while true do end end) end",
    "xpcall(function() error('x') end, function() error('y') end) while true do end",
    "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
    "error(setmetatable({}, {__newindex = function() while true do end end}))",
    "error(setmetatable({}, {__index = function() while true do end end}))",
    "pcall(error, setmetatable({}, {__index = function() while true do end end}))",
    "table.sort({3, 2, 1, 5, 4}, function() while true do end end)",
    "string.gsub('a', 'a', function() while true do end end)",
    "local t t = setmetatable({}, {__index = function() return t.x end})
     while true do pcall(function() return t.x end) end",
    // Coroutines count their instructions each for itself.
    "local function g(n) if n > 0 then for i = 1, 10 do coroutine.wrap(g)(n - 1) end end end
     while true do g(6) end",
    "local function g() local c = coroutine.wrap(g) c() end while true do pcall(g) end",
    "while true do coroutine.resume(coroutine.create(function()
     pcall(function() while true do end end) end)) end",
    "while true do coroutine.create(function() end) end",
    // Functions that could take very long.
    "while true do string.rep('', 2e9) end",
    "table.insert({}, -2147483647, 1)",
    "return string.find(string.rep('a', 30), string.rep('a?', 30) .. string.rep('a', 30))",
    "return string.find(string.rep('a', 1e4), '.-.-.-.-.-b')",
    "return string.find(string.rep('a', 1e6), string.rep('a', 1e5) .. 'b', 1, true)",
    "return string.gsub(string.rep('a', 1e6), '', string.rep('b', 1e4))",
    // One capture, many times over in a single replacement.
    "return #string.gsub(string.rep('a', 5e6), '.*', string.rep('%0', 2000), 1)",
    "return #string.gsub(string.rep('a', 5e6), '(.*)', string.rep('%1', 2000), 1)",
    "return #string.gsub(string.rep('a', 5e6), '.', string.rep('%0', 1e6))",
    "local t = {} for i = 1, 1e5 do t[i] = i end while true do table.sort(t) end",
    "local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 5) end",
    "while true do collectgarbage() end",
    // Values that grow as they are written.
    "local t = {} for i = 1, 60 do t = {t, t} end return t",
    "local t = {} for i = 1, 60 do t = {t, t} end return cjson.encode(t)",
    "local t = {} t[1] = t return t",
    // Memory.
    "local t = {} for i = 1, 1e9 do t[i] = {} end",
    "local s = 'x' while true do s = s .. s end",
    "local s = 'x' while true do s = s .. s .. string.rep('y', 1e6) end",
    "return #string.rep('x', 1e9)",
    "local t = {} while true do pcall(function() while true do t[#t + 1] = {} end end) end",
    "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
    // One string, many times over.
    "local s, t = string.rep('x', 1e7), {} for i = 1, 7000 do t[i] = s end redis.call(unpack(t))",
    "local s, t = string.rep('x', 1e7), {} for i = 1, 7000 do t[i] = s end redis.acl_check_cmd(unpack(t))",
    "local s, t = string.rep('x', 1e7), {} for i = 1, 7000 do t[i] = s end redis.log(redis.LOG_DEBUG, unpack(t))",
    "local s, t = string.rep('x', 1e7), {} for i = 1, 7000 do t[i] = s end return t",
    // Depth.
    "local function f() f() end f()",
    "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
    "return string.find(string.rep('a', 1e5), string.rep('a?', 1e5))",
    "cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)",
    "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 1e6))",
    "return cmsgpack.unpack(string.rep('\\145', 1e6))",
    "return cmsgpack.unpack(string.rep('\\1', 1e5))",
    "return struct.unpack(string.rep('b', 1e5), string.rep('\\1', 1e5))",
    "return unpack({}, 1, 1e8)",
    "return loadstring(string.rep('(', 1e5))",
    "return loadstring('return ' .. string.rep('{', 1e5))",
];

fn survive(interpreter: &mut Interpreter, body: &str) {
    let Ok(script) = interpreter.compile(body.as_bytes()) else { panic!("{body}") };
    start(interpreter, script);
    let mut step = interpreter.resume(Answer::Begin);
    let mut pauses = 0;
    while let Step::Paused | Step::Log { .. } = step {
        pauses += usize::from(matches!(step, Step::Paused));
        assert!(pauses < PAUSES_MAX + PAUSES_AFTER_KILL_MAX, "{body}");
        if pauses == PAUSES_MAX {
            interpreter.kill("ERR killed");
        }
        step = interpreter.resume(Answer::GoOn);
    }
    assert!(matches!(step, Step::Done(_)), "{body}: {step:?}");
    interpreter.forget(script);
}

#[test]
fn hostile_scripts_harm_nobody() {
    let limits = Limits { memory_bytes: 32 << 20, reply_bytes: 64 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    for body in SCRIPTS {
        survive(&mut interpreter, body);
        let reply = eval_with(&mut interpreter, "return #KEYS", &[], &[], |_| Answer::GoOn);
        assert_eq!(reply, ":0 ", "after {body}");
        assert!(interpreter.used_bytes() < limits.memory_bytes / 2, "after {body}");
    }
}

/// A command that was executed is never shown as one that failed: a script may do it again then.
#[test]
fn a_script_without_memory_for_a_reply_ends() {
    end_for_want_of_memory(&[b"$20000000\r\n", &[b'y'; 20_000_000][..], b"\r\n"].concat());
    end_for_want_of_memory(&[b"*2000000\r\n", &b":1\r\n".repeat(2_000_000)[..]].concat());
    end_for_want_of_memory(&[b"*200000\r\n", &b"*1\r\n+x\r\n".repeat(200_000)[..]].concat());
    end_for_want_of_memory(&[b"%200000\r\n", &b":1\r\n:2\r\n".repeat(200_000)[..]].concat());
}

fn end_for_want_of_memory(reply: &[u8]) {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    let body = "local s = string.rep('x', 2e7) while true do pcall(redis.pcall, 'getset') end";
    let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
    start(&mut interpreter, script);
    let (mut step, mut calls) = (interpreter.resume(Answer::Begin), 0);
    let ending = loop {
        let answer = match step {
            Step::Done(ending) => break ending,
            Step::Call(_) => {
                calls += 1;
                assert_eq!(calls, 1, "it goes on behind a command of which it heard nothing");
                Answer::Reply(reply.to_vec())
            }
            _ => Answer::GoOn,
        };
        step = interpreter.resume(answer);
    };
    let Ending::Failed(_, error) = ending else { panic!("{ending:?}") };
    let text = String::from_utf8_lossy(&error.text);
    assert!(text.starts_with("ERR not enough memory"), "{text}");
    assert_eq!(eval_with(&mut interpreter, "return 1", &[], &[], |_| Answer::GoOn), ":1 ");
}

/// A clock that goes on by so many nanoseconds with each look at it.
pub(super) struct Steady(pub(super) AtomicU64, pub(super) u64);

impl base::Clock for Steady {
    fn unix_micros(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> base::MonotonicNanos {
        base::MonotonicNanos(self.0.fetch_add(self.1, Ordering::Relaxed))
    }
}

/// How often a script with much memory pauses, if each look at the clock is so much later.
fn pauses(nanos: u64) -> usize {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    interpreter.set_clock(Arc::new(Steady(AtomicU64::new(1), nanos)));
    let body = "local t = {} for i = 1, 4e5 do t[i] = 'x' .. i end return #t";
    let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
    start(&mut interpreter, script);
    let (ending, pauses) = finish(&mut interpreter);
    let Ending::Reply(reply) = ending else { panic!("{ending:?}") };
    assert_eq!(reply.bytes(), b":400000\r\n");
    pauses
}

#[test]
fn a_script_with_much_memory_pauses_by_the_time_that_its_instructions_take() {
    let quick = pauses(1);
    assert!((100..400).contains(&quick), "2 million instructions, 10,000 each: {quick}");
    let slow = pauses(1_000_000);
    assert!(slow > 10_000, "each look finds that much time has gone: {slow}");
}

/// What copies or visits megabytes counts them, also where nothing comes of it.
#[test]
fn copies_that_come_to_nothing_are_counted() {
    let acts = [
        "pcall(redis.call, unpack(t))",
        "pcall(redis.pcall, unpack(t))",
        "pcall(redis.acl_check_cmd, unpack(t))",
        "pcall(cmsgpack.pack, s, s)",
        "pcall(cmsgpack.unpack, packed)",
        "pcall(struct.pack, 'c0i', s, 'none')",
        "pcall(struct.unpack, 'c2000000i', s)",
        "pcall(struct.unpack, 's', s)",
        "pcall(string.find, s, 'y')",
    ];
    for act in acts {
        let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
        let body = format!(
            "local s = string.rep('x', 2e6) local t, packed = {{s, s, {{}}}}, cmsgpack.pack(s)
            for i = 1, 50 do {act} end return 1"
        );
        let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
        start(&mut interpreter, script);
        let (ending, pauses) = finish(&mut interpreter);
        assert!(matches!(ending, Ending::Reply(_)), "{act}: {ending:?}");
        assert!(pauses >= 50, "{act}: each visits 2 MB, which is 3 pauses, but of {pauses}");
    }
}

/// What one script leaves in its interpreter, no other can see.
#[test]
fn scripts_leave_nothing_behind() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let mut eval = |body: &str| eval_with(&mut interpreter, body, &["k"], &[], |_| Answer::GoOn);
    eval("cjson.encode_max_depth(2) table.foreach = nil");
    assert_eq!(eval("return cjson.encode({{{1}}})"), "$7 [[[1]]] ");
    eval("local mt = getmetatable('') mt.__index = nil");
    assert_eq!(eval("return ('x'):upper()"), "$1 X ");
    eval("string.upper = nil rawset(string, 'upper', nil)");
    assert_eq!(eval("return ('x'):upper()"), "$1 X ");
    eval("KEYS[1] = 'other'");
    assert_eq!(eval("return KEYS[1]"), "$1 k ");
    eval("redis.setresp(3)");
    assert_eq!(eval("return false"), "_ ");
}

/// No function that a script can reach writes into a table that all scripts see.
#[test]
fn no_function_changes_what_all_scripts_see() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let mut eval = |body: &str| eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn);
    // But for what never returns, and what asks the server.
    let all = "local views, functions, seen, hit = {}, {}, { [KEYS] = true, [ARGV] = true }, {}
        local function visit(view)
            if seen[view] then return end
            seen[view] = true
            views[#views + 1] = view
            if getmetatable(view) then visit(getmetatable(view)) end
            for name, value in pairs(view) do
                if type(value) == 'table' then visit(value) end
                if type(value) == 'function' then functions[name] = value end
            end
        end
        visit(_G) visit(getmetatable(''))
        functions.call, functions.pcall, functions.log = nil, pcall, nil
        functions.acl_check_cmd, functions.error, functions.assert = nil, nil, nil
        local calls = 0
        for name, f in pairs(functions) do
            for _, view in ipairs(views) do
                for _, arguments in ipairs({ {}, { 1 }, { 1, 'x' }, { 'k', 'v' }, { 'k', nil },
                    { function(a, b) return true end }, { view }, { { k = 'v' } },
                    { 'x', 1, 2 } }) do
                    pcall(f, view, unpack(arguments, 1, 3))
                    pcall(f, arguments[1], view, arguments[2])
                    pcall(f, function() return view end, view)
                    calls = calls + 1
                end
                if #view > 0 or rawget(view, 'k') then hit[#hit + 1] = name end
            end
        end
        return { #views > 10, calls > 5000, table.concat(hit, ' ') }";
    assert_eq!(eval(all), "*3 :1 :1 $0  ");
}

/// Runs scripts of one interpreter that has the deprecated functions.
fn with_deprecated(bodies: &[(&str, &str)]) {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    interpreter.offer_deprecated();
    for (body, expected) in bodies {
        let reply = eval_with(&mut interpreter, body, &["k"], &[], |_| Answer::GoOn);
        let reply = reply.split(" script: sha").next().unwrap();
        assert_eq!(reply, *expected, "{body}");
    }
}

#[test]
fn deprecated_functions_change_the_environment_of_scripts_alone() {
    with_deprecated(&[
        ("local f = function() return x end setfenv(f, {x = 5}) return f()", ":5 "),
        ("x_of = 1", "-ERR user_script:1: Attempt to modify a readonly table"),
        ("setfenv(1, {y = 7}) return y", ":7 "),
        (
            "local g = getfenv() return {g == _G, getfenv(1) == _G, getfenv(0) == _G}",
            "*3 :1 :1 :1 ",
        ),
        (
            "local e = getfenv local f = setfenv(function() return e(1).z end, {z = 'z'}) return f()",
            "$1 z ",
        ),
        ("return getfenv(redis.call) == _G and getfenv(pcall) == _G", ":1 "),
        (
            "getfenv(pcall).string.upper = nil",
            "-ERR user_script:1: Attempt to modify a readonly table",
        ),
        ("getfenv(getfenv).loadfile = 1", "-ERR user_script:1: Attempt to modify a readonly table"),
        (
            "setfenv(pcall, {})",
            "-ERR user_script:1: 'setfenv' cannot change environment of given object",
        ),
        (
            "setfenv(0, {})",
            "-ERR user_script:1: 'setfenv' cannot change environment of given object",
        ),
        (
            "setfenv(redis.call, {})",
            "-ERR user_script:1: 'setfenv' cannot change environment of given object",
        ),
    ]);
    let levels = "local g = {} for level = 0, 40 do local ok, e = pcall(getfenv, level)
        if ok and e ~= _G then g[#g + 1] = level end end return #g";
    with_deprecated(&[(levels, ":0 ")]);
    let levels = "local n = 0 for level = 0, 40 do
        local ok = pcall(setfenv, level, setmetatable({}, {__index = _G}))
        if ok then n = n + 1 end
        end return {n > 0, type(redis.call), type(string.upper)}";
    with_deprecated(&[
        (levels, "*3 :1 $8 function $8 function "),
        ("return type(_G)", "$5 table "),
    ]);
}

#[test]
fn a_proxy_has_a_metatable_and_no_finalizer() {
    with_deprecated(&[
        (
            "return {type(newproxy()), type(getmetatable(newproxy(true)))}",
            "*2 $8 userdata $5 table ",
        ),
        ("return getmetatable(newproxy())", "_ "),
        ("local p = newproxy(true) getmetatable(p).__index = {a = 3} return p.a", ":3 "),
        (
            "local p = newproxy(true) getmetatable(p).__len = function() return 9 end return #p",
            ":9 ",
        ),
        (
            "local p = newproxy(true) getmetatable(p).__call = function(_, x) return x end
            return newproxy(p)(4)",
            ":4 ",
        ),
        (
            "local m = getmetatable(newproxy(true)) m.__gc = function() while true do end end
            rawset(m, '__gc', function() while true do end end)
            m = nil collectgarbage() collectgarbage() return 1",
            ":1 ",
        ),
        (
            "local p = newproxy(true) getmetatable(p).__metatable = nil
            local m = getmetatable(p) m.__gc = function() while true do end end
            p, m = nil collectgarbage() return 'no finalizer by way of the metatable'",
            "$36 no finalizer by way of the metatable ",
        ),
        ("getmetatable(newproxy(true))[nil] = 1", "-ERR user_script:1: table index is nil"),
        ("return getmetatable(getmetatable(newproxy(true)))", "_ "),
    ]);
}

#[test]
fn proxies_are_collected() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    interpreter.offer_deprecated();
    let body = "for i = 1, 1000 do getmetatable(newproxy(true)).__index = {} end return 1";
    let mut eval = |body: &str| {
        let reply = eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn);
        interpreter.collect(|| ());
        (reply, interpreter.used_bytes())
    };
    let (_, before) = eval(body);
    for _ in 0..20 {
        assert_eq!(eval(body).0, ":1 ");
    }
    let (_, after) = eval(body);
    assert!(after < before + (64 << 10), "{before} became {after}");
}

/// A reply that is short may have taken long to read.
#[test]
fn long_texts_in_tables_of_a_reply_are_counted() {
    for field in ["ok=s", "big_number=s", "verbatim_string={format=s, string='x'}"] {
        for first in ["A", "a"] {
            let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
            let body = format!(
                "local s = string.rep('{first}\\0', 2e5) local e, t = {{{field}}}, {{}}
                 for i = 1, 50 do t[i] = e end return t"
            );
            let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
            start(&mut interpreter, script);
            let (_, pauses) = finish(&mut interpreter);
            // One for 10,000 steps of 64 bytes.
            assert!(pauses >= 25, "{field} {first}: {pauses}");
        }
    }
}

/// As many arguments as Lua hands over, each too short to be counted by its bytes.
#[test]
fn many_short_arguments_are_a_command() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let body = "local t = {} for i = 1, 7900 do t[i] = string.rep('x', 127) end
                return redis.pcall(unpack(t))";
    let mut asked = 0;
    let reply = eval_with(&mut interpreter, body, &[], &[], |step| match step {
        Step::Call(call) => {
            asked += call.arguments.iter().map(<[u8]>::len).sum::<usize>();
            Answer::Reply(b":1\r\n".to_vec())
        }
        _ => Answer::GoOn,
    });
    assert_eq!((reply.as_str(), asked), (":1 ", 7900 * 127));
}

/// Redis's suite allows a server that runs short scripts so much.
#[test]
fn short_scripts_leave_little_garbage() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let script = interpreter.compile(b"return {KEYS, ARGV, 'x'}").expect("this is Lua");
    for _ in 0..10_000 {
        start(&mut interpreter, script);
        finish(&mut interpreter);
        assert!(interpreter.used_bytes() < 100 << 10, "{}", interpreter.used_bytes());
    }
}

/// Nothing runs behind code that is refused, so nothing but compiling collects what it left.
#[test]
fn the_garbage_of_code_that_is_refused_goes() {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    for number in 0..60 {
        let texts: String = (0..20_000).map(|text| format!("'{number} {text}',")).collect();
        let refused = interpreter.compile(format!("return {{{texts} =)").as_bytes());
        let why = refused.expect_err("it is no Lua").text;
        assert!(why.ends_with(b"near '='"), "{}", String::from_utf8_lossy(&why));
    }
    interpreter.compile(b"return 1").expect("there is room");
}

/// What a script has left is collected behind short ones, which allocate little: Lua by itself
/// would begin once they have allocated as much again as was alive when it last ended.
#[test]
fn garbage_goes_while_only_short_scripts_run() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    // To compile is to begin to collect.
    let script = interpreter.compile(b"return 1").expect("this is Lua");
    let body = "local t = {} for i = 1, 4e5 do t[i] = {} end collectgarbage() return #t";
    assert_eq!(eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn), ":400000 ");
    assert!(interpreter.used_bytes() > 10 << 20);
    for _ in 0..50_000 {
        start(&mut interpreter, script);
        finish(&mut interpreter);
    }
    assert!(interpreter.used_bytes() < 2 << 20, "{}", interpreter.used_bytes());
}

/// A gsub waits, with what it has made so far, for the function that it calls.
#[test]
fn what_waits_for_functions_counts_as_memory() {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    let body = |depth: usize| {
        format!(
            "local text = ('x'):rep(1e5)
             local function nest(depth)
               if depth == 0 then return 'end' end
               local n = 0
               local function by()
                 n = n + 1
                 return n < 40 and text or tostring(nest(depth - 1))
               end
               return #(('a'):rep(40)):gsub('a', by)
             end
             return nest({depth})"
        )
    };
    let mut run = |depth| eval_with(&mut interpreter, &body(depth), &[], &[], |_| Answer::GoOn);
    for _ in 0..3 {
        assert_eq!(run(3), ":3900007 ");
        let refused = run(60);
        assert!(refused.contains("not enough memory"), "{refused}");
    }
}

/// So does what it has passed over.
#[test]
fn what_was_not_replaced_counts_as_memory() {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    let mut run = |depth: usize| {
        let body = format!(
            "local text, deepest = ('a'):rep(1e6) .. 'b', 0
             local function nest(depth)
               deepest = math.max(deepest, depth)
               if depth == {depth} then return 'x' end
               return #text:gsub('b', function() return tostring(nest(depth + 1)) end)
             end
             local done, result = pcall(nest, 0)
             return {{deepest, done and result or 0}}"
        );
        eval_with(&mut interpreter, &body, &[], &[], |_| Answer::GoOn)
    };
    assert_eq!(run(10), "*2 :10 :1000007 ");
    let refused = run(60);
    let deepest = refused.strip_prefix("*2 :").and_then(|it| it.strip_suffix(" :0 "));
    let deepest: usize = deepest.and_then(|it| it.parse().ok()).expect(&refused);
    assert!((15..35).contains(&deepest), "{refused}");
}

/// As in C, a pattern ends at its first NUL, however much is behind it.
#[test]
fn what_is_behind_the_nul_of_a_pattern_does_not_make_it_long() {
    let body = "return {string.find('xab', '[a]\\0' .. ('y'):rep(2e6))}";
    assert_eq!(eval(body), "*2 :2 :2 ");
}
