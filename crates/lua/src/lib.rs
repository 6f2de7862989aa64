//! The Lua 5.1 interpreter in which scripts and functions run, behind a safe seam.
//!
//! It knows the language, Redis's sandbox, and the libraries for scripts. It knows no command, no
//! keyspace, no user and no source of chance: when a script needs one of those, the interpreter
//! stops with a [`Step`], and the node answers. A clock that it is handed says how long
//! instructions take that may take long; scripts cannot see it. They cannot see
//! the secret either under which Lua hashes keys that collide (`vendor/lua-src/README.md`).
//!
//! ```text
//! interpreter.start(script, …)
//! resume(Answer::Begin) ──► Step::Call(…)          the node executes it
//! resume(Answer::Reply) ──► Step::Paused           it ran for a while: time for others
//! resume(Answer::GoOn)  ──► Step::Done(reply)
//! ```
//!
//! The interpreter runs on a stack of its own (a stackful coroutine), and leaves it in the middle
//! of a script: when the script calls a command, and after a number of steps. So the node's code is
//! not re-entered, no thread waits, and a long script is suspended while the loop turns.
//!
//! | module | holds |
//! |---|---|
//! | [`interpreter`] | what the node drives: scripts compiled, started, resumed, killed |
//! | [`script`] | what is run, and what it is called with |
//! | [`step`] | what a script asks for, and what it is answered |
//! | [`limits`] | memory, stack, steps between pauses |
//! | `fiber` | what happens on the other stack |
//! | `host` | a script's way out: asking, pausing, being killed; what it may use until then |
//! | `errors`, `given` | errors as scripts see them; arguments of functions, checked as Lua does |
//! | `source` | source code into functions |
//! | `sandbox` | the globals, read-only; what replaces functions of Lua |
//! | `library` | `redis`, `cjson`, `cmsgpack`, `struct`, `bit`, patterns: what is not Lua's own |
//! | `incoming`, `outgoing` | replies of commands as Lua values; Lua values as replies |
//! | `random` | the numbers of math.random |
//!
//! Absent on purpose: bytecode, because it is not validated and could do anything; the libraries
//! `debug`, `io`, `os` and `package`.
#![forbid(unsafe_code)]

mod compiled;
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
pub use limits::{LOAD_STEPS_MAX, Limits, RELOAD_STEPS_MAX, SOURCE_BYTES_MAX};
pub use script::{CodeKind, Invocation, ScriptRef};
pub use source::COMPILED_STEP_BYTES;
pub use step::{
    Answer, Arguments, Call, Ending, FUNCTION_FLAGS, LoadedFunction, ScriptError, Step,
};
