//! The libraries of functions that came with the data: their code is run once, as servers will when
//! they load it. What never ends is refused here, by its name, instead of costing every server that
//! starts on the new log half a minute.

use base::Clock;
use engine::functions::{Header, Libraries};
use lua::{Answer, CodeKind, Ending, Interpreter, LOAD_STEPS_MAX, Limits, Step};
use std::sync::Arc;

/// Pauses after which code counts as one that never ends, however few steps it has made: each step
/// may handle all memory. Ten times as many as the steps that are allowed take otherwise.
const PAUSES_MAX: u64 = 1_000_000;

/// Runs the code of each library.
///
/// # Errors
/// One does not end. (What fails for another reason is said in the log, and kept as it is: servers
/// say the same of it, and its code is somebody's data.)
pub fn check(libraries: &Libraries, clock: &Arc<dyn Clock>) -> Result<(), String> {
    check_within(libraries, clock, LOAD_STEPS_MAX)
}

fn check_within(
    libraries: &Libraries,
    clock: &Arc<dyn Clock>,
    steps_max: u64,
) -> Result<(), String> {
    for (name, code) in libraries.iter() {
        let name = shown(name);
        // Each in a state of its own: nothing of one is in the way of another.
        let mut interpreter = Interpreter::new(CodeKind::Functions, Limits::default());
        interpreter.set_clock(Arc::clone(clock));
        match run(&mut interpreter, code, steps_max) {
            Ok(()) => {}
            Err(Failed::Endless) => {
                return Err(format!(
                    "the code of the library of functions '{name}' does not end when it is loaded \
                     (FUNCTION LOAD timeout). FUNCTION DELETE it on the server that the data is of"
                ));
            }
            Err(Failed::Otherwise(why)) => {
                tracing::warn!("the library of functions '{name}' cannot be loaded: {why}");
            }
        }
    }
    Ok(())
}

enum Failed {
    Endless,
    Otherwise(String),
}

fn run(interpreter: &mut Interpreter, code: &[u8], steps_max: u64) -> Result<(), Failed> {
    let header = Header::of(code).map_err(Failed::Otherwise)?;
    let started = interpreter.start_loading(header.body);
    started.map_err(|error| Failed::Otherwise(shown(&error.text)))?;
    let (mut answer, mut pauses, mut is_endless) = (Answer::Begin, 0, false);
    loop {
        match interpreter.resume(answer) {
            Step::Done(_) if is_endless => return Err(Failed::Endless),
            Step::Done(Ending::NotLoaded(error) | Ending::Failed(_, error)) => {
                return Err(Failed::Otherwise(shown(&error.text)));
            }
            Step::Done(Ending::Loaded(_) | Ending::Reply(_)) => return Ok(()),
            Step::Log { .. } | Step::Paused => {
                pauses += 1;
                is_endless |= interpreter.spent_steps() > steps_max || pauses > PAUSES_MAX;
                if is_endless {
                    interpreter.kill("ERR FUNCTION LOAD timeout");
                }
            }
            // `redis` has neither while a library is loaded.
            Step::Call(_) | Step::CheckRights(_) => {
                interpreter.kill("ERR the code of a library calls no commands");
            }
        }
        answer = Answer::GoOn;
    }
}

/// Bytes that another server chose, as they may be shown.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().filter(|it| !it.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::tests::Still;

    fn checked(codes: &[&str]) -> Result<(), String> {
        let mut libraries = Libraries::default();
        for code in codes {
            libraries.load(code.as_bytes()).expect("it has a name");
        }
        check_within(&libraries, &(Arc::new(Still) as Arc<dyn Clock>), 1_000_000)
    }

    #[test]
    fn a_library_that_does_not_end_is_refused_by_its_name() {
        let good = "#!lua name=good\nredis.register_function('g', function() while 1 do end end)";
        checked(&[good]).expect("what its functions do is not asked");
        let broken = "#!lua name=broken\nerror('x')";
        checked(&[good, broken, "#!perl name=other\nx"]).expect("that is a warning");
        for body in [
            "while true do end",
            "local function f() return f() end f()",
            "while true do redis.log(redis.LOG_NOTICE, 'x') end",
        ] {
            let endless = format!("#!lua name=endless\n{body}");
            let why = checked(&[good, &endless]).expect_err(body);
            assert!(why.contains("'endless'") && why.contains("FUNCTION LOAD timeout"), "{why}");
        }
    }
}
