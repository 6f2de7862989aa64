//! Single calls that could take seconds: each pauses, and ends soon after it is killed.

use super::hostile::Steady;
use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// An interpreter with a clock that goes on by so many nanoseconds with each look at it.
pub(super) fn timed(kind: CodeKind, nanos: u64) -> Interpreter {
    let mut interpreter = Interpreter::new(kind, Limits::default());
    interpreter.set_clock(Arc::new(Steady(AtomicU64::new(1), nanos)));
    interpreter
}

/// How a script ends, and how often it pauses, when each look at the clock is a millisecond later.
pub(super) fn run(body: &str) -> (Ending, usize) {
    let mut interpreter = timed(CodeKind::Scripts, 1_000_000);
    let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
    start(&mut interpreter, script);
    finish(&mut interpreter)
}

/// Runs a script, and kills it once it has paused so often. Returns its error.
fn kill(interpreter: &mut Interpreter, pauses: usize) -> String {
    let mut step = interpreter.resume(Answer::Begin);
    for _ in 0..pauses {
        assert!(matches!(step, Step::Paused), "{step:?}");
        step = interpreter.resume(Answer::GoOn);
    }
    interpreter.kill("ERR killed");
    for _ in 0..3 {
        match step {
            Step::Done(Ending::Failed(_, error) | Ending::NotLoaded(error)) => {
                return String::from_utf8(error.text).unwrap();
            }
            Step::Paused => step = interpreter.resume(Answer::GoOn),
            other => panic!("{other:?}"),
        }
    }
    panic!("it goes on")
}

/// Code for which Lua's compiler walks ever longer lists of jumps.
fn quadratic() -> [String; 3] {
    [
        format!("while true do {} end return 1", "do break end ".repeat(8000)),
        format!("local a if a then {} end return 1", "elseif a then ".repeat(8000)),
        format!("local a = nil return {} 1", "a and a or ".repeat(8000)),
    ]
}

#[test]
fn code_that_takes_long_to_compile_is_refused() {
    for body in quadratic() {
        let error = timed(CodeKind::Scripts, 1_000_000).compile(body.as_bytes()).unwrap_err();
        let expected = "ERR Error compiling script (new function): the code takes longer than \
                        250 ms to compile";
        assert_eq!(String::from_utf8(error.text).unwrap(), expected);
        // It is the time that counts, and not the code.
        let mut quick = timed(CodeKind::Scripts, 1);
        assert!(quick.compile(body.as_bytes()).is_ok(), "{}", &body[..40]);
        assert!(
            Interpreter::new(CodeKind::Scripts, Limits::default()).compile(body.as_bytes()).is_ok()
        );
    }
}

#[test]
fn a_script_pauses_while_it_compiles() {
    for code in quadratic() {
        let body = format!("local f = loadstring([[{code}]]) return f and 1");
        let mut interpreter = timed(CodeKind::Scripts, 500_000);
        let script = interpreter.compile(body.as_bytes()).expect("some 450 looks are in time");
        start(&mut interpreter, script);
        let (ending, pauses) = finish(&mut interpreter);
        assert!(
            matches!(&ending, Ending::Reply(reply) if reply.bytes() == b":1\r\n"),
            "{ending:?}"
        );
        // One at every second look: the first look after a pause begins to measure.
        assert!(pauses >= code.len() / 256 / 2, "{pauses}");
        start(&mut interpreter, script);
        assert!(kill(&mut interpreter, 3).starts_with("ERR killed"));
        assert_eq!(eval_with(&mut interpreter, "return 1", &[], &[], |_| Answer::GoOn), ":1 ");
    }
}

#[test]
fn a_library_pauses_while_it_is_compiled() {
    let [code, ..] = quadratic();
    let code = format!(
        "local function f() {} end redis.register_function('f', f)",
        code.trim_end_matches(" return 1")
    );
    let mut interpreter = timed(CodeKind::Functions, 1_000_000);
    interpreter.start_loading(code.as_bytes()).unwrap();
    let (ending, pauses) = finish(&mut interpreter);
    assert!(matches!(&ending, Ending::Loaded(functions) if functions.len() == 1), "{ending:?}");
    // One at every second look: the first look after a pause begins to measure.
    assert!(pauses >= code.len() / 256 / 2, "{pauses}");
    interpreter.start_loading(code.as_bytes()).unwrap();
    assert_eq!(kill(&mut interpreter, 3), "ERR Error registering functions: ERR killed");
}

/// Wherever a library is killed that is loaded, those of before go on.
#[test]
fn a_library_that_is_killed_leaves_others_what_they_see() {
    let limits = Limits { pause_steps: 1, look_instructions: 1, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Functions, limits);
    let code = "redis.register_function('f', function() return redis.call ~= nil and 1 end)";
    interpreter.start_loading(code.as_bytes()).unwrap();
    let (Ending::Loaded(functions), pauses) = finish(&mut interpreter) else { panic!("it loads") };
    assert!(pauses > 3, "{pauses}");
    for killed_at in 0..pauses {
        interpreter.start_loading(code.as_bytes()).unwrap();
        let mut step = interpreter.resume(Answer::Begin);
        for _ in 0..killed_at {
            step = interpreter.resume(Answer::GoOn);
        }
        interpreter.kill("ERR killed");
        while !matches!(step, Step::Done(_)) {
            step = interpreter.resume(Answer::GoOn);
        }
        start(&mut interpreter, functions[0].callback);
        let (ending, _) = finish(&mut interpreter);
        let is_right = matches!(&ending, Ending::Reply(reply) if reply.bytes() == b":1\r\n");
        assert!(is_right, "{killed_at}: {ending:?}");
    }
}

/// Long code is compiled in another way than short code. Nothing else differs.
#[test]
fn long_code_is_compiled_as_short_code() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let padding = format!("--{}\n", "x".repeat(10_000));
    for (code, expected) in [
        ("return #KEYS", ":0 "),
        (
            "return (",
            "-ERR Error compiling script (new function): user_script:2: unexpected symbol near '<eof>'",
        ),
        (
            "x = ]] 'a'",
            "-ERR Error compiling script (new function): user_script:2: unexpected symbol near ']'",
        ),
        (
            "return nothing",
            "-ERR user_script:2: Script attempted to access nonexistent global variable 'nothing' \
             script: sha, on @user_script:2.",
        ),
        (
            "return select(2, loadstring([[--]] .. ('x'):rep(9999) .. '\\n(', '=c'))",
            "$35 c:2: unexpected symbol near '<eof>' ",
        ),
        ("return select('#', loadstring('--' .. ('x'):rep(9999)))", ":1 "),
        ("return select('#', loadstring('(--' .. ('x'):rep(9999)))", ":2 "),
        ("return loadstring('return ...--' .. ('x'):rep(9999))(7)", ":7 "),
        ("return loadstring('return KEYS--' .. ('x'):rep(9999))() == KEYS", ":1 "),
        (
            "return select(2, loadstring('\\27' .. ('x'):rep(9999), '=c'))",
            "$38 c:1: unexpected symbol near 'char(27)' ",
        ),
    ] {
        let reply =
            eval_with(&mut interpreter, &[&padding, code].concat(), &[], &[], |_| Answer::GoOn);
        assert_eq!(reply, expected, "{code}");
    }
}

/// Code that needs more memory than there is fails as before, and the interpreter goes on.
#[test]
fn long_code_may_lack_memory() {
    let limits = Limits { memory_bytes: 4 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    let body = format!("return {{ {} }}", "1, ".repeat(1_000_000));
    assert!(interpreter.compile(body.as_bytes()).unwrap_err().lacks_memory);
    assert_eq!(eval_with(&mut interpreter, "return 1", &[], &[], |_| Answer::GoOn), ":1 ");
}

/// Strings that Lua's hash does not tell apart, 32,768 at most: wherever one of two blocks stands,
/// read from the end of a string of 60 bytes, the other leaves the hash where this one does.
fn colliding(count: usize) -> Vec<String> {
    const BLOCKS: [[&str; 2]; 15] = [
        ["caaa", "Bbaa"],
        ["baaa", "Abaa"],
        ["cbaa", "Bcaa"],
        ["caaa", "Bbaa"],
        ["Caaa", "bbaa"],
        ["Cbaa", "bcaa"],
        ["Cbaa", "bcaa"],
        ["cbaa", "Bcaa"],
        ["aaaa", "Abaa"],
        ["Baaa", "abaa"],
        ["cbaa", "Bcaa"],
        ["Baaa", "abaa"],
        ["baaa", "Abaa"],
        ["baaa", "Abaa"],
        ["cbaa", "Bcaa"],
    ];
    let blocks = |n: usize| BLOCKS.iter().enumerate().map(move |(at, two)| two[n >> at & 1]);
    (0..count).map(|n| blocks(n).collect()).collect()
}

/// They do collide: `pairs` has another order under another secret.
#[test]
fn strings_that_collide_scatter_a_table() {
    let orders = [200, 201].map(|count| {
        let arguments = colliding(count);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let body = "local t, seen = {}, {}
            for i, key in ipairs(ARGV) do t[key] = i end
            for _, i in pairs(t) do seen[#seen + 1] = i end
            return table.concat(seen, ' ')";
        let [one, other] = [1, 2].map(|secret| {
            let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
            interpreter.set_secret(secret);
            eval_with(&mut interpreter, body, &[], &arguments, |_| Answer::GoOn)
        });
        one == other
    });
    assert_eq!(orders, [true, false]);
}

#[test]
fn many_arguments_are_made_strings_with_pauses() {
    let arguments = colliding(20_000);
    let mut interpreter = timed(CodeKind::Scripts, 100_000);
    let script = interpreter.compile(b"return #ARGV").expect("this is Lua");
    let begin = |interpreter: &mut Interpreter| {
        interpreter.start(Invocation {
            script,
            name: "sha".into(),
            keys: 0,
            given: Arguments::of(arguments.iter().map(|text| text.as_bytes())).unwrap(),
            reply: Reply::new(Protocol::Resp2),
        });
    };
    begin(&mut interpreter);
    let (ending, pauses) = finish(&mut interpreter);
    assert!(
        matches!(&ending, Ending::Reply(reply) if reply.bytes() == b":20000\r\n"),
        "{ending:?}"
    );
    assert!(pauses >= 200, "{pauses}");
    // It may be killed before its first instruction.
    begin(&mut interpreter);
    assert!(kill(&mut interpreter, 1).starts_with("ERR killed"));
    begin(&mut interpreter);
    assert!(matches!(finish(&mut interpreter).0, Ending::Reply(_)));
}

#[test]
fn many_strings_are_decoded_with_pauses() {
    let list = colliding(20_000);
    let mut reply = Reply::new(Protocol::Resp2);
    reply.array(list.len());
    list.iter().for_each(|text| reply.bulk(text));
    let reply = reply.into_bytes();
    for decode in [
        "local t = redis.call('list')",
        "local t = cjson.decode('[\"' .. table.concat(redis.call('list'), '\",\"') .. '\"]')",
        "local t = cmsgpack.unpack(cmsgpack.pack(redis.call('list')))",
    ] {
        let mut interpreter = timed(CodeKind::Scripts, 100_000);
        let body = format!("{decode} return #t");
        let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
        start(&mut interpreter, script);
        let (mut step, mut pauses) = (interpreter.resume(Answer::Begin), 0);
        let ending = loop {
            let answer = match step {
                Step::Done(ending) => break ending,
                Step::Call(_) => Answer::Reply(reply.clone()),
                _ => {
                    pauses += 1;
                    Answer::GoOn
                }
            };
            step = interpreter.resume(answer);
        };
        assert!(
            matches!(&ending, Ending::Reply(reply) if reply.bytes() == b":20000\r\n"),
            "{ending:?}"
        );
        assert!(pauses >= 50, "{decode}: {pauses}");
    }
}

/// Keys that stock Lua does not tell apart. With a million numbers it takes half an hour, most of
/// it in single instructions, one each time that the table grows: this test would not end.
#[test]
fn keys_that_collide_do_not_make_a_table_slow() {
    let arguments = colliding(10_000);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    for body in [
        // Found, changed, removed and visited as in any table; also beside other keys and a list.
        "local t, n = {}, 0
         for i, key in ipairs(ARGV) do t[key] = i end
         for i, key in ipairs(ARGV) do if t[key] ~= i then return key end end
         for key, i in pairs(t) do
           n = n + 1
           if ARGV[i] ~= key then return key end
           if i % 3 == 0 then t[key] = nil end
         end
         for i = 1, 20000 do t[i] = i t['k' .. i] = i t[i / 3] = i / 3 end
         collectgarbage()
         for i, key in ipairs(ARGV) do if (t[key] == nil) ~= (i % 3 == 0) then return key end end
         for i = 1, 20000 do
           if t[i] ~= i or t['k' .. i] ~= i or t[i / 3] ~= i / 3 then return i end
         end
         for key in pairs(t) do t[key] = nil end
         return next(t) == nil and #t == 0 and n",
        // Numbers whose halves have the same sum. Zero has two forms.
        "local t = {[0] = 0}
         for i = 1, 1000000 do t[2 ^ 52 + i * 2 ^ 32 + 2 ^ 31 - i] = i end
         for i = 1, 1000000 do if t[2 ^ 52 + i * 2 ^ 32 + 2 ^ 31 - i] ~= i then return i end end
         return t[-0] == 0 and 10000",
        // They collide only once the table has so many places that it is full.
        "local t = {}
         for i = 1, 60000 do t[2 ^ 52 + i * 65535] = i end
         for i = 1, 30000 do t[i] = i end
         for i = 2, 30000 do t[i] = nil end
         for i = 1, 60000 do t['k' .. i] = i end
         for i = 1, 60000 do if t[2 ^ 52 + i * 65535] ~= i then return i end end
         return t[1] == 1 and t[2] == nil and 10000",
    ] {
        let reply = eval_with(&mut interpreter, body, &[], &arguments, |_| Answer::GoOn);
        assert_eq!(reply, ":10000 ", "{body}");
    }
}

#[test]
fn lists_are_sorted_with_pauses() {
    // Many elements, and long ones.
    for make in [
        "for i = 1, 40000 do t[i] = (i * 7919) % 40000 end",
        "local s = string.rep('x', 60000) for i = 1, 900 do t[i] = s .. (i * 7919) % 900 end",
    ] {
        let sorted = run(&format!("local t = {{}} {make} table.sort(t) return #t")).1;
        let made = run(&format!("local t = {{}} {make} return #t")).1;
        assert!(sorted > made + 50, "{make}: {sorted} and {made}");
    }
    // What is called is not Lua, so that no instruction runs.
    for (sort, key) in [
        ("table.sort(t, rawequal)", "i"),
        ("table.foreach(t, tonumber)", "'z' .. i"),
        ("table.foreachi(t, redis.debug)", "i"),
    ] {
        let make = format!("local t = {{}} for i = 1, 200000 do t[{key}] = 2 end");
        let sorted = run(&format!("{make} pcall(function() {sort} end) return 1")).1;
        let made = run(&format!("{make} return 1")).1;
        assert!(sorted > made + 500, "{sort}: {sorted} and {made}");
    }
}

#[test]
fn long_sets_and_captures_in_patterns_are_counted() {
    for (make, find) in [
        ("string.rep('b', 3000)", "string.find(s, '[' .. string.rep('a', 50000) .. ']*c')"),
        ("string.rep('a', 5000)", "string.find(s, '^(' .. string.rep('a', 2000) .. ')a-%1b')"),
    ] {
        let body = format!("local s = {make} {find} return 1");
        let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
        let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
        start(&mut interpreter, script);
        let (_, pauses) = finish(&mut interpreter);
        assert!(pauses >= 5, "{find}: {pauses}");
    }
}

#[test]
fn functions_return_as_many_values_as_in_lua() {
    for (call, count) in [
        ("next({})", 1),
        ("next({1})", 2),
        ("load(function() end)", 1),
        ("load(coroutine.wrap(function() coroutine.yield('(') end))", 2),
        ("loadstring('')", 1),
        ("pcall(error, { 1, 2 })", 3),
        ("pcall(error, { err = 'x' })", 2),
        ("pcall(error, 'x')", 2),
        ("string.gmatch('', 'x')()", 0),
        ("string.gmatch('x', 'x')()", 1),
    ] {
        assert_eq!(eval(&format!("return select('#', {call})")), format!(":{count} "), "{call}");
    }
}

/// One call may have thousands of arguments, each of which would be read.
#[test]
fn a_long_string_is_no_number() {
    for (body, expected) in [
        ("return tonumber(('1'):rep(4096)) == 1 / 0 and tonumber((' '):rep(4095) .. '7')", ":7 "),
        (
            "return tonumber(('1'):rep(4097)) == nil and tonumber('x' .. ('1'):rep(5000)) == nil and 1",
            ":1 ",
        ),
        (
            "return select(2, pcall(math.max, 1, ('1'):rep(4097)))",
            "$52 bad argument #2 to '?' (number expected, got string) ",
        ),
    ] {
        assert_eq!(eval(body), expected, "{body}");
    }
}

/// A coroutine is looked after as often as who resumes it, though it was made earlier.
#[test]
fn a_coroutine_pauses_as_its_memory_wants() {
    let work = "for i = 1, 2000 do local x = s < 'x' end";
    let body = |coroutine: bool| {
        let go = if coroutine { "coroutine.resume(co)" } else { work };
        format!(
            "local s = ''
             local co = coroutine.create(function() coroutine.yield() {work} end)
             coroutine.resume(co)
             s = string.rep('x', 100000000)
             {go}
             return 1"
        )
    };
    let (inside, outside) = (run(&body(true)).1, run(&body(false)).1);
    assert!(inside >= outside * 9 / 10, "{inside} and {outside}");
}

/// The end of a script collects all that it has left, and so does `collectgarbage`.
#[test]
fn collections_pause() {
    let make = "local t = {}
        for i = 1, 300 do
          local u = {} t[i] = u for j = 1, 1000 do u[j] = i .. 'x' .. j end
        end";
    let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
    for (body, least) in [
        (format!("{make} t = nil return 1"), 100),
        (format!("{make} collectgarbage() return 1"), 200),
    ] {
        let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
        interpreter.set_clock(Arc::new(Steady(AtomicU64::new(1), 100_000)));
        let script = interpreter.compile(body.as_bytes()).expect("this is Lua");
        start(&mut interpreter, script);
        let (ending, pauses) = finish(&mut interpreter);
        assert!(matches!(ending, Ending::Reply(_)), "{body}: {ending:?}");
        assert!(interpreter.used_bytes() < 4 << 20, "{} bytes are left", interpreter.used_bytes());
        assert!(pauses >= least, "{body}: {pauses}");
    }
}

#[test]
fn functions_that_visit_a_long_string_pause() {
    let long = "local s = string.rep('1', 20000000)";
    for body in [
        format!("{long} for i = 1, 30 do s:upper() end return 1"),
        format!("{long} for i = 1, 30 do s:lower() end return 1"),
        format!("{long} for i = 1, 30 do s:reverse() end return 1"),
        format!("{long} redis.sha1hex(s) return 1"),
    ] {
        let (ending, pauses) = run(&body);
        assert!(matches!(ending, Ending::Reply(_)), "{body}: {ending:?}");
        assert!(pauses >= 3, "{body}: {pauses}");
    }
    // What is long is changed as what is short.
    let same = "local s = string.rep('aZ\\0\\195', 2000) \
                for _, f in ipairs({'upper', 'lower'}) do \
                  if string[f](s) ~= string.rep(string[f]('aZ\\0\\195'), 2000) then error(f) end \
                end \
                local back = s:reverse() \
                if back:reverse() ~= s or back:sub(1, 2) ~= '\\195\\0' then error('reverse') end \
                return string.upper(12) == '12' and 1";
    assert!(matches!(run(same).0, Ending::Reply(_)), "{:?}", run(same).0);
}

/// What an error shows of a long text is short, and so is what is kept of a chunk's name. Each byte
/// of these is three as text, and was copied many times beside the memory of scripts.
#[test]
fn errors_show_the_beginning_of_a_long_word() {
    for (body, bytes_max) in [
        ("return select(2, pcall(collectgarbage, LONG))", 400),
        ("return select(2, pcall(cjson.encode_invalid_numbers, LONG))", 400),
        ("return select(2, pcall(function() return _G[LONG] end))", 3500),
        ("return select(2, loadstring('(', LONG))", 400),
        ("return select(2, pcall(loadstring('error(1)', '@' .. LONG)))", 400),
        ("return select(2, pcall(string.find, 'a', '[' .. LONG))", 100),
        ("return select(2, pcall(string.gsub, 'a', LONG, ''))", 100),
        ("return select(2, pcall(cjson.decode, ('1'):rep(5000)))", 100),
    ] {
        let reply = eval(&body.replace("LONG", "('\\255'):rep(2e6)"));
        assert!(reply.len() < bytes_max, "{body}: {} bytes", reply.len());
    }
    // A comparison may raise what looks like an error of `sort` itself: it is not changed.
    let raised = "return #select(2, pcall(table.sort, {3, 2, 1}, function()
        error('invalid order function' .. ('\\255'):rep(1000), 0) end))";
    assert_eq!(eval(raised), ":1022 ");
    assert_eq!(eval("return tostring(tonumber(('1'):rep(5000), 16))"), "$3 nil ");
    assert_eq!(eval("return (('x'):rep(2e6) .. 'yz'):find(('x'):rep(2e6) .. 'y')"), ":1 ");
}
