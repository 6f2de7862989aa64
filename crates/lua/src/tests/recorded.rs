//! The replies of redis-server 7.0.15 to some 1,300 scripts: written by hand for the sandbox and
//! the errors, and drawn at random for the libraries. Each is called with the keys k1 and k2 and
//! the arguments a1 and a2. `record.py` takes the replies from a server.
//!
//! A line of `recorded.jsonl` has the protocol of the client, whether the script of the first line
//! is put before this one (1) or not (0), the script, and the encoded reply, in which SHA stands
//! for the script's hash. Each byte is one character, up to U+00FF.

use super::*;

fn bytes(value: &serde_json::Value) -> Vec<u8> {
    let text = value.as_str().expect("scripts and replies are strings");
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
}

/// The commands that the scripts call.
fn answer(call: &Call) -> Vec<u8> {
    let mut reply = Reply::new(call.protocol);
    match call.arguments.iter().collect::<Vec<_>>().as_slice() {
        [b"echo", text] => reply.bulk(text),
        [b"ping"] => reply.simple("PONG"),
        [b"get", _] => reply.null(),
        _ => reply.error("ERR Unknown Redis command called from script"),
    }
    reply.into_bytes()
}

fn run(interpreter: &mut Interpreter, body: &[u8], protocol: Protocol) -> Vec<u8> {
    let encode = |error: ScriptError| {
        let mut reply = Reply::new(protocol);
        reply.error(error.text);
        reply.into_bytes()
    };
    let script = match interpreter.compile(body) {
        Ok(script) => script,
        Err(error) => return encode(error),
    };
    interpreter.start(Invocation {
        script,
        name: "SHA".into(),
        keys: 2,
        given: Arguments::of([&b"k1"[..], b"k2", b"a1", b"a2"]).unwrap(),
        reply: Reply::new(protocol),
    });
    let mut next = Answer::Begin;
    let ending = loop {
        next = match interpreter.resume(next) {
            Step::Done(ending) => break ending,
            Step::Call(call) => Answer::Reply(answer(&call)),
            Step::CheckRights(arguments) => match arguments.iter().next() {
                Some(b"nosuch") => Answer::UnknownCommand,
                _ => Answer::Allowed(true),
            },
            Step::Log { .. } | Step::Paused => Answer::GoOn,
        };
    };
    interpreter.forget(script);
    match ending {
        Ending::Reply(reply) => reply.into_bytes(),
        Ending::Failed(_, error) => encode(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn scripts_answer_as_redis_does() {
    let mut lines = include_str!("recorded.jsonl").lines();
    let parse = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let prelude = bytes(&parse(lines.next().unwrap())[2]);
    let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
    let mut count = 0;
    for line in lines {
        let case = parse(line);
        let protocol = if case[0] == 3 { Protocol::Resp3 } else { Protocol::Resp2 };
        let script = bytes(&case[2]);
        let body = if case[1] == 1 { [prelude.clone(), script].concat() } else { script };
        let reply = run(&mut interpreter, &body, protocol);
        let (got, expected) = (reply.escape_ascii(), bytes(&case[3]));
        assert_eq!(got.to_string(), expected.escape_ascii().to_string(), "{}", case[2]);
        count += 1;
    }
    assert!(count > 1000, "{count}");
}
