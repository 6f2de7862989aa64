//! Scripts that want to harm: each ends, soon after it is killed at the latest, and leaves its
//! interpreter as it was.

use super::*;

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
    interpreter.start(Invocation {
        script,
        name: "sha".to_owned(),
        keys: Vec::new(),
        arguments: Vec::new(),
        reply: Reply::new(Protocol::Resp2),
    });
    let mut step = interpreter.resume(Answer::Begin);
    let mut pauses = 0;
    while let Step::Paused = step {
        pauses += 1;
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
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(Kind::Scripts, limits);
    for body in SCRIPTS {
        survive(&mut interpreter, body);
        let reply = eval_with(&mut interpreter, "return #KEYS", &[], &[], |_| Answer::GoOn);
        assert_eq!(reply, ":0 ", "after {body}");
        assert!(interpreter.used_bytes() < limits.memory_bytes / 2, "after {body}");
    }
}

/// What one script leaves in its interpreter, no other can see.
#[test]
fn scripts_leave_nothing_behind() {
    let mut interpreter = Interpreter::new(Kind::Scripts, Limits::default());
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
