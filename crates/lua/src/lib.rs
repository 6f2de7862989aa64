//! The Lua 5.1 interpreter in which scripts and functions run, behind a safe seam.
//!
//! It knows the language, the sandbox that Redis builds around it, and the libraries that scripts
//! find there. It knows no command, no keyspace, no user, no clock and no chance: what a script
//! wants of those it asks for, in steps.
//!
//! ```text
//! interpreter.start(script, …)
//! resume(Answer::Begin) ──► Step::Call(…)          the node executes it
//! resume(Answer::Reply) ──► Step::Paused           so many steps were taken: time for others
//! resume(Answer::GoOn)  ──► Step::Done(reply)
//! ```
//!
//! The interpreter runs on a stack of its own (a stackful coroutine), and leaves it in the middle
//! of a script: when the script calls a command, and after so many steps. So the node is not
//! re-entered, no thread waits, and a script that runs long lies suspended while the loop turns.
//!
//! | module | holds |
//! |---|---|
//! | [`interpreter`] | what the node drives: scripts compiled, started, resumed, killed |
//! | [`script`] | what is run, and what it is called with |
//! | [`step`] | what a script asks for, and what it is answered |
//! | [`limits`] | memory, stack, steps between pauses |
//! | `fiber` | what happens on the other stack |
//! | `host` | a script's way out: asking, pausing, being killed |
//! | `errors`, `given` | errors as scripts see them; arguments of functions, checked as Lua does |
//! | `source` | source code into functions |
//! | `sandbox` | the globals, read-only; what replaces functions of Lua |
//! | `library` | `redis`, `cjson`, `cmsgpack`, `struct`, `bit`, patterns: what is not Lua's own |
//! | `incoming`, `outgoing` | replies of commands as Lua values; Lua values as replies |
//! | `random` | the numbers of math.random |
//!
//! Absent on purpose: bytecode, which nobody checks, so it is never loaded; the libraries `debug`,
//! `io`, `os` and `package`.
#![forbid(unsafe_code)]

mod errors;
mod fiber;
mod given;
mod host;
mod incoming;
pub mod interpreter;
mod library;
pub mod limits;
mod outgoing;
mod random;
mod sandbox;
pub mod script;
mod source;
pub mod step;
#[cfg(test)]
mod tests;

pub use interpreter::Interpreter;
pub use limits::Limits;
pub use script::{Invocation, Kind, ScriptRef};
pub use step::{
    Answer, Arguments, Call, FUNCTION_FLAGS, LoadedFunction, Outcome, ScriptError, Step,
};
