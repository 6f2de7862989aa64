//! Arbitrary bytes as a script, and as replies to its commands.

use lua::{Answer, Arguments, CodeKind, Ending, Interpreter, Invocation, Limits, Step};
use resp::{Protocol, Reply};

/// Pauses before a script is killed.
const PAUSES_MAX: usize = 20;

/// The most steps of a killed script until it ends.
const STEPS_AFTER_KILL_MAX: usize = 10;

/// Commands that are answered before the script is killed.
const CALLS_MAX: usize = 100;

/// The memory limit of the interpreter, in bytes.
const MEMORY_BYTES: usize = 16 << 20;

/// Runs `input` as a script, and as the code of a library. Whatever it is, it must end soon after
/// it is killed, and the interpreter must run the next script. Each command is answered with the
/// text of its last argument as an encoded reply, so replies are arbitrary too.
pub fn run_script(input: &[u8]) {
    let limits = Limits { memory_bytes: MEMORY_BYTES, ..Limits::default() };
    let mut interpreter = Interpreter::new(CodeKind::Scripts, limits);
    if let Ok(script) = interpreter.compile(input) {
        interpreter.start(Invocation {
            script,
            name: "script".into(),
            keys: 1,
            given: Arguments::of([input, input]).expect("it is short"),
            reply: Reply::new(Protocol::Resp3),
        });
        finish(&mut interpreter);
        interpreter.forget(script);
    }
    let script = interpreter.compile(b"return 'sound'").expect("this is Lua");
    interpreter.start(Invocation {
        script,
        name: "sound".into(),
        keys: 0,
        given: Arguments::default(),
        reply: Reply::new(Protocol::Resp2),
    });
    let Ending::Reply(reply) = finish(&mut interpreter) else { panic!("no script may harm it") };
    assert_eq!(reply.bytes(), b"$5\r\nsound\r\n");

    let mut interpreter = Interpreter::new(CodeKind::Functions, limits);
    if interpreter.start_loading(input).is_ok() {
        finish(&mut interpreter);
    }
}

fn finish(interpreter: &mut Interpreter) -> Ending {
    let (mut pauses, mut calls, mut after_kill) = (0, 0, 0);
    let mut answer = Answer::Begin;
    loop {
        let step = interpreter.resume(answer);
        answer = match step {
            Step::Done(ending) => return ending,
            Step::Paused => {
                pauses += 1;
                Answer::GoOn
            }
            Step::Log { .. } => Answer::GoOn,
            Step::CheckRights(arguments) => Answer::Allowed(arguments.len() % 2 == 0),
            Step::Call(call) => {
                calls += 1;
                Answer::Reply(call.arguments.iter().last().unwrap_or_default().to_vec())
            }
        };
        if pauses > PAUSES_MAX || calls > CALLS_MAX {
            interpreter.kill("ERR killed");
            after_kill += 1;
            assert!(after_kill <= STEPS_AFTER_KILL_MAX, "a script outlives its end");
        }
    }
}
