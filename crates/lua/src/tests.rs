use crate::*;
use resp::{Protocol, Reply};

mod hostile;
mod recorded;

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
    let owned = |list: &[&str]| list.iter().map(|text| text.as_bytes().to_vec()).collect();
    interpreter.start(Invocation {
        script,
        name: "sha".to_owned(),
        keys: owned(keys),
        arguments: owned(arguments),
        reply: Reply::new(Protocol::Resp3),
    });
    let mut step = interpreter.resume(Answer::Begin);
    loop {
        step = match step {
            Step::Done(Outcome::Reply(reply)) => {
                return String::from_utf8_lossy(&reply.into_bytes()).replace("\r\n", " ");
            }
            Step::Done(Outcome::Failed(reply, error)) => {
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
    let mut interpreter = Interpreter::new(Kind::Scripts, Limits::default());
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
        let mut interpreter = Interpreter::new(Kind::Scripts, Limits::default());
        let script = interpreter.compile(body.as_bytes()).unwrap();
        interpreter.start(Invocation {
            script,
            name: "sha".to_owned(),
            keys: Vec::new(),
            arguments: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
        });
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
        let Step::Done(Outcome::Failed(_, error)) = step else { panic!("{body}: {step:?}") };
        assert!(error.text.starts_with(b"ERR Script killed by user"), "{error:?}");
        assert!(!interpreter.is_running());
        assert_eq!(eval_with(&mut interpreter, "return 1", &[], &[], |_| Answer::GoOn), ":1 ");
    }
}

#[test]
fn a_script_that_is_given_up_ends() {
    let mut interpreter = Interpreter::new(Kind::Scripts, Limits::default());
    let script = interpreter.compile(b"while true do pcall(redis.call, 'x') end").unwrap();
    interpreter.start(Invocation {
        script,
        name: "sha".to_owned(),
        keys: Vec::new(),
        arguments: Vec::new(),
        reply: Reply::new(Protocol::Resp2),
    });
    assert!(matches!(interpreter.resume(Answer::Begin), Step::Call(_)));
    drop(interpreter);
}

#[test]
fn memory_is_limited_and_given_back() {
    let mut interpreter =
        Interpreter::new(Kind::Scripts, Limits { memory_bytes: 32 << 20, ..Limits::default() });
    for body in [
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "return #string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do pcall(function() for i = 1, 1e9 do t[#t + 1] = {} end end) end",
    ] {
        let script = interpreter.compile(body.as_bytes()).unwrap();
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
            if pauses == 100_000 {
                interpreter.kill("ERR killed");
            }
            step = interpreter.resume(Answer::GoOn);
        }
        let Step::Done(Outcome::Failed(_, error)) = step else { panic!("{body}: {step:?}") };
        let text = String::from_utf8_lossy(&error.text);
        assert!(text.contains("33554432 bytes") || text.contains("killed"), "{text}");
        assert!(interpreter.used_bytes() <= 8 << 20, "{body}: {}", interpreter.used_bytes());
    }
}

#[test]
fn a_library_registers_functions() {
    let mut interpreter = Interpreter::new(Kind::Functions, Limits::default());
    interpreter
        .start_loading(
            b"local n = 0
          redis.register_function('f', function(keys, args) n = n + 1 return {n, keys[1]} end)
          redis.register_function{function_name='g', flags={'no-writes'},
            callback=function() return math.random(1, 10) end}",
        )
        .unwrap();
    let Step::Done(Outcome::Loaded(functions)) = interpreter.resume(Answer::Begin) else {
        panic!()
    };
    assert_eq!(functions.len(), 2);
    assert_eq!(functions[1].flags, ["no-writes"]);
    for n in 1..3 {
        interpreter.start(Invocation {
            script: functions[0].callback,
            name: "f".to_owned(),
            keys: vec![b"k".to_vec()],
            arguments: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
        });
        let Step::Done(Outcome::Reply(reply)) = interpreter.resume(Answer::Begin) else { panic!() };
        assert_eq!(reply.bytes(), format!("*2\r\n:{n}\r\n$1\r\nk\r\n").as_bytes());
    }
}
