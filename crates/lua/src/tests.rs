use crate::*;
use resp::{Protocol, Reply};

mod hostile;
mod recorded;
mod registering;
mod slots;
mod stalls;
mod tables;

/// Starts a script without keys and arguments, for a client that speaks RESP2.
fn start(interpreter: &mut Interpreter, script: ScriptRef) {
    interpreter.start(Invocation {
        script,
        name: "sha".into(),
        keys: 0,
        given: Arguments::default(),
        reply: Reply::new(Protocol::Resp2),
    });
}

/// Runs what was started to its end, which calls no command: how it ended, and how often it paused.
fn finish(interpreter: &mut Interpreter) -> (Ending, usize) {
    let (mut step, mut pauses) = (interpreter.resume(Answer::Begin), 0);
    loop {
        match step {
            Step::Done(ending) => return (ending, pauses),
            Step::Paused => pauses += 1,
            other => panic!("{other:?}"),
        }
        step = interpreter.resume(Answer::GoOn);
    }
}

fn eval_with(
    interpreter: &mut Interpreter,
    body: &str,
    keys: &[&str],
    arguments: &[&str],
    mut answer: impl FnMut(Step) -> Answer,
) -> String {
    let script = match interpreter.compile(body.as_bytes()) {
        Ok(script) => script,
        Err(error) => return format!("-{}", String::from_utf8_lossy(&error.text)),
    };
    interpreter.start(Invocation {
        script,
        name: "sha".into(),
        keys: keys.len(),
        given: Arguments::of(keys.iter().chain(arguments).map(|text| text.as_bytes())).unwrap(),
        reply: Reply::new(Protocol::Resp3),
    });
    let mut step = interpreter.resume(Answer::Begin);
    loop {
        step = match step {
            Step::Done(Ending::Reply(reply)) => {
                return String::from_utf8_lossy(&reply.into_bytes()).replace("\r\n", " ");
            }
            Step::Done(Ending::Failed(reply, error)) => {
                assert!(reply.is_empty());
                return format!("-{}", String::from_utf8_lossy(&error.text));
            }
            Step::Done(other) => panic!("{other:?}"),
            Step::Paused => interpreter.resume(Answer::GoOn),
            other => {
                let answer = answer(other);
                interpreter.resume(answer)
            }
        };
    }
}

fn eval(body: &str) -> String {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    eval_with(&mut interpreter, body, &["k1", "k2"], &["a1"], |step| match step {
        Step::Call(call) => {
            let mut reply = Reply::new(call.protocol);
            match call.arguments.iter().next() {
                Some(b"fail") => reply.error("WRONGTYPE no"),
                _ => {
                    reply.array(call.arguments.len());
                    call.arguments.iter().for_each(|argument| reply.bulk(argument));
                }
            }
            Answer::Reply(reply.into_bytes())
        }
        Step::CheckRights(arguments) => Answer::Allowed(arguments.len() == 2),
        Step::Log { .. } => Answer::GoOn,
        other => panic!("{other:?}"),
    })
}

/// A reply that is a table needs some room on Lua's stack beside the arguments.
#[test]
fn a_command_takes_as_many_arguments_as_unpack_returns() {
    let eval = |count: usize| {
        let body = format!(
            "local a = {{}} for i = 1, {count} do a[i] = 1 end
            return redis.call('lpush', 'l', unpack(a))"
        );
        let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
        eval_with(&mut interpreter, &body, &[], &[], |step| match step {
            Step::Call(call) => {
                Answer::Reply(format!(":{}\r\n", call.arguments.len()).into_bytes())
            }
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(eval(7999), ":8001 ");
    assert!(eval(8000).contains("user_script:2: too many results to unpack"));
}

#[test]
fn values_become_replies() {
    assert_eq!(eval("return 3.9"), ":3 ");
    assert_eq!(
        eval("return {1, 'a', true, false, {ok='fine'}, {double=2.5}}"),
        "*6 :1 $1 a :1 _ +fine ,2.5 "
    );
    assert_eq!(eval("return {KEYS, ARGV}"), "*2 *2 $2 k1 $2 k2 *1 $2 a1 ");
    assert_eq!(eval("redis.setresp(3); return {map={a=true}}"), "%1 $1 a #t ");
}

#[test]
fn commands_are_called_and_answered() {
    assert_eq!(eval("return redis.call('get', 'k', 1, 2.5)"), "*4 $3 get $1 k $1 1 $3 2.5 ");
    assert_eq!(eval("return redis.acl_check_cmd('get', 'k')"), ":1 ");
}

#[test]
fn errors_name_their_place() {
    assert_eq!(eval("return redis.call('fail')"), "-WRONGTYPE no script: sha, on @user_script:1.");
    assert_eq!(eval("return redis.pcall('fail')"), "-WRONGTYPE no");
    assert_eq!(
        eval("\nreturn foo"),
        "-ERR user_script:2: Script attempted to access nonexistent \
        global variable 'foo' script: sha, on @user_script:2."
    );
    assert_eq!(
        eval("redis.x = 1"),
        "-ERR user_script:1: Attempt to modify a readonly table \
        script: sha, on @user_script:1."
    );
    assert_eq!(eval("return pcall(redis.call, 'fail')"), "_ ");
    assert_eq!(eval("return {select(2, pcall(redis.call, 'fail'))}"), "*1 $12 WRONGTYPE no ");
    assert_eq!(
        eval("return ("),
        "-ERR Error compiling script (new function): user_script:1: \
        unexpected symbol near '<eof>'"
    );
}

#[test]
fn a_script_that_runs_long_pauses_and_can_be_killed() {
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return pcall(f) end while true do f() end",
        "local function g() while true do coroutine.yield() end end
         while true do local co = coroutine.wrap(g) co() co() end",
        "while true do xpcall(error, function() while true do end end) end",
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end})
         while true do pcall(function() return t[1] end) end",
        "while true do local co = coroutine.create(function() pcall(function() while true do end end) end)
         coroutine.resume(co) end",
        "table.sort({3,2,1,5,4}, function(a, b) while true do end end)",
    ] {
        let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
        let script = interpreter.compile(body.as_bytes()).unwrap();
        start(&mut interpreter, script);
        let mut step = interpreter.resume(Answer::Begin);
        for _ in 0..100 {
            assert!(matches!(step, Step::Paused), "{body}: {step:?}");
            step = interpreter.resume(Answer::GoOn);
        }
        interpreter.kill("ERR Script killed by user with SCRIPT KILL...");
        for _ in 0..10 {
            if !matches!(step, Step::Paused) {
                break;
            }
            step = interpreter.resume(Answer::GoOn);
        }
        let Step::Done(Ending::Failed(_, error)) = step else { panic!("{body}: {step:?}") };
        assert!(error.text.starts_with(b"ERR Script killed by user"), "{error:?}");
        if body == "while true do end" {
            assert!(error.text.ends_with(b", on @user_script:1."), "{error:?}");
        }
        assert!(!interpreter.is_running());
        assert_eq!(eval_with(&mut interpreter, "return 1", &[], &[], |_| Answer::GoOn), ":1 ");
    }
}

#[test]
fn a_script_that_is_given_up_ends() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let script = interpreter.compile(b"while true do pcall(redis.call, 'x') end").unwrap();
    start(&mut interpreter, script);
    assert!(matches!(interpreter.resume(Answer::Begin), Step::Call(_)));
    drop(interpreter);
}

#[test]
fn memory_is_limited_and_given_back() {
    let mut interpreter =
        Interpreter::new(CodeKind::Scripts, Limits { memory_bytes: 32 << 20, ..Limits::default() });
    for body in [
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "return #string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do pcall(function() for i = 1, 1e9 do t[#t + 1] = {} end end) end",
    ] {
        let script = interpreter.compile(body.as_bytes()).unwrap();
        start(&mut interpreter, script);
        let mut step = interpreter.resume(Answer::Begin);
        let mut pauses = 0;
        while let Step::Paused = step {
            pauses += 1;
            if pauses == 100_000 {
                interpreter.kill("ERR killed");
            }
            step = interpreter.resume(Answer::GoOn);
        }
        let Step::Done(Ending::Failed(_, error)) = step else { panic!("{body}: {step:?}") };
        let text = String::from_utf8_lossy(&error.text);
        assert!(text.contains("33554432 bytes") || text.contains("killed"), "{text}");
        assert!(interpreter.used_bytes() <= 8 << 20, "{body}: {}", interpreter.used_bytes());
    }
}

#[test]
fn a_library_registers_functions() {
    let mut interpreter = Interpreter::new(CodeKind::Functions, Limits::default());
    interpreter
        .start_loading(
            b"local n = 0
          redis.register_function('f', function(keys, args) n = n + 1 return {n, keys[1]} end)
          redis.register_function{function_name='g', flags={'no-writes'},
            callback=function() return math.random(1, 10) end}",
        )
        .unwrap();
    let (Ending::Loaded(functions), _) = finish(&mut interpreter) else { panic!() };
    assert_eq!(functions.len(), 2);
    assert_eq!(functions[1].flags, ["no-writes"]);
    for n in 1..3 {
        interpreter.start(Invocation {
            script: functions[0].callback,
            name: "f".into(),
            keys: 1,
            given: Arguments::of([&b"k"[..]]).unwrap(),
            reply: Reply::new(Protocol::Resp2),
        });
        let (Ending::Reply(reply), _) = finish(&mut interpreter) else { panic!() };
        assert_eq!(reply.bytes(), format!("*2\r\n:{n}\r\n$1\r\nk\r\n").as_bytes());
    }
}

/// What is alive stays, however often it is collected: so it is not, behind each run.
#[test]
fn a_library_that_holds_much_does_not_slow_down_every_call() {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Functions, limits);
    interpreter
        .start_loading(
            b"local much, weak = {}, nil
          redis.register_function('fill', function() for i = 1, 6e5 do much[i] = i end end)
          redis.register_function('put', function()
            weak = setmetatable({}, {__mode = 'v'}) weak[1] = {} end)
          redis.register_function('has', function() return weak[1] and 1 or 0 end)",
        )
        .unwrap();
    let (Ending::Loaded(functions), _) = finish(&mut interpreter) else { panic!() };
    let mut call = |name: &str| {
        let function = functions.iter().find(|it| it.name == name.as_bytes()).unwrap();
        interpreter.start(Invocation {
            script: function.callback,
            name: name.into(),
            keys: 0,
            given: Arguments::default(),
            reply: Reply::new(Protocol::Resp2),
        });
        let (Ending::Reply(reply), _) = finish(&mut interpreter) else { panic!("{name}") };
        String::from_utf8(reply.bytes().to_vec()).unwrap()
    };
    call("fill");
    call("put");
    assert_eq!(call("has"), ":1\r\n");
}

/// References from Rust into Lua are few: what is kept must not take one each.
#[test]
fn more_scripts_and_functions_are_kept_than_lua_has_references() {
    const MANY: usize = 20_000;
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let scripts: Vec<ScriptRef> = (0..MANY)
        .map(|number| interpreter.compile(format!("return {number}").as_bytes()).unwrap())
        .collect();
    for (number, script) in scripts.iter().enumerate() {
        start(&mut interpreter, *script);
        let (Ending::Reply(reply), _) = finish(&mut interpreter) else { panic!() };
        assert_eq!(reply.bytes(), format!(":{number}\r\n").as_bytes());
    }
    // A place that is free again is used once.
    interpreter.forget(scripts[7]);
    interpreter.forget(scripts[7]);
    let two = [(); 2].map(|()| interpreter.compile(b"return 'new'").unwrap());
    assert_eq!(two[0], scripts[7]);
    assert!(!scripts.contains(&two[1]));

    let mut interpreter = Interpreter::new(CodeKind::Functions, Limits::default());
    let code = format!(
        "for i = 1, {MANY} do redis.register_function('f' .. i, function() return i end) end"
    );
    interpreter.start_loading(code.as_bytes()).unwrap();
    let (Ending::Loaded(functions), _) = finish(&mut interpreter) else { panic!() };
    assert_eq!(functions.len(), MANY);
    let last = functions.iter().find(|it| it.name == format!("f{MANY}").as_bytes()).unwrap();
    start(&mut interpreter, last.callback);
    let (Ending::Reply(reply), _) = finish(&mut interpreter) else { panic!() };
    assert_eq!(reply.bytes(), format!(":{MANY}\r\n").as_bytes());
}

/// As the Lua that Redis builds with, for scripts that were written for Lua 5.0.
#[test]
fn gmatch_has_its_name_of_lua_5_0_too() {
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let body = "local t = {} for word in string.gfind('a bc', '%a+') do t[#t + 1] = word end
        return t";
    let reply = eval_with(&mut interpreter, body, &[], &[], |_| Answer::GoOn);
    assert_eq!(reply, "*2 $1 a $2 bc ");
}
