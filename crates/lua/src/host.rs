//! The connection between the two stacks: orders to the interpreter, questions of a script, and
//! kills. What a script may use before it pauses, or at all, is counted in `meter`, of which `held`
//! tells what Lua does not count.
//!
//! Both stacks share everything here, but never at the same time: while one runs, the other is
//! suspended.

mod held;
mod meter;

use crate::compiled::Compiled;
use crate::errors;
use crate::limits::Limits;
use crate::random::Random;
use crate::script::{CodeKind, ScriptRef};
use crate::step::{Answer, Arguments, LoadedFunction, ScriptError, Step};
use base::Clock;
pub(crate) use held::Held;
use meter::Meter;
pub(crate) use meter::{COLLECTING_STEPS, PIECE_BYTES, STEP_BYTES};
use mlua::{Function, Lua};
use resp::Protocol;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of a buffer that is kept to be used again.
const SPARE_BYTES_MAX: usize = 16 << 10;

/// Times in a row that a script cannot be left before it is killed.
const NO_EXITS_MAX: u32 = 20;

/// The error of a script that cannot be left any more.
const NESTED_TOO_DEEP: &str = "ERR C stack overflow: calls are nested too deeply";

/// An order to the code on the interpreter's stack.
pub(crate) enum Order {
    Compile(Vec<u8>),
    Forget(ScriptRef),
    Collect,
    Run(crate::script::Invocation),
    Load(Vec<u8>),
    End,
}

/// The interpreter's answer when it leaves its stack.
pub(crate) enum Told {
    Compiled(Result<ScriptRef, ScriptError>),
    /// What answers nothing is done.
    Done,
    Step(Step),
}

/// Which functions of `redis` may be called now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Idle,
    /// A script or function runs.
    Running,
    /// A library's code runs, and may register functions only.
    Loading,
}

/// Empty buffers that are used again, so that a script and its calls allocate none.
#[derive(Default)]
pub(crate) struct Spare {
    /// The reply to a call, and its arguments.
    pub(crate) reply: Vec<u8>,
    pub(crate) arguments: Arguments,
    /// The reply of a script, and its keys and arguments.
    pub(crate) script_reply: Vec<u8>,
    pub(crate) script_arguments: Arguments,
}

/// Keeps a buffer for its next use, unless it is large.
pub(crate) fn keep_bytes(kept: &mut Vec<u8>, mut buffer: Vec<u8>) {
    if buffer.capacity() <= SPARE_BYTES_MAX {
        buffer.clear();
        *kept = buffer;
    }
}

/// As [`keep_bytes`].
pub(crate) fn keep_arguments(kept: &mut Arguments, mut arguments: Arguments) {
    if arguments.capacity() <= SPARE_BYTES_MAX {
        arguments.clear();
        *kept = arguments;
    }
}

/// The state that both stacks share: questions and answers, and the running script.
pub(crate) struct Host {
    pub(crate) kind: CodeKind,
    /// The directive `lua-enable-deprecated-api`: whether scripts may call `getfenv`, `setfenv` and
    /// `newproxy`.
    pub(crate) offers_deprecated: bool,
    /// The secret of the Lua state.
    pub(crate) secret: u128,
    /// A Lua function that leaves the interpreter's stack, and returns when it is resumed.
    exit: RefCell<Option<Function>>,
    pub(crate) order: RefCell<Option<Order>>,
    pub(crate) told: RefCell<Option<Told>>,
    pub(crate) answer: RefCell<Option<Answer>>,
    /// Times in a row that the script could not be left.
    no_exits: Cell<u32>,
    /// The error that every instruction raises until the end of the script, if it was killed.
    killed: RefCell<Option<String>>,
    pub(crate) stage: Cell<Stage>,
    /// The protocol that `redis.setresp` chose.
    pub(crate) protocol: Cell<Protocol>,
    pub(crate) random: Cell<Random>,
    /// The functions that the library which is loaded has registered, by their names.
    pub(crate) registered: RefCell<BTreeMap<Vec<u8>, LoadedFunction>>,
    /// The compiled scripts and functions, while there is a Lua state.
    compiled: RefCell<Option<Rc<Compiled>>>,
    /// Bytes that were in use when Lua last left its stack.
    pub(crate) used_bytes: Cell<usize>,
    /// Bytes that functions in Rust hold while the script runs ([`held`]).
    held: Cell<usize>,
    /// Buffers of the last script and of its last call, for the next ones.
    pub(crate) spare: RefCell<Spare>,
    /// Steps, time and memory of the running script.
    pub(crate) meter: Meter,
}

impl Host {
    pub(crate) fn new(
        kind: CodeKind,
        limits: Limits,
        random: Random,
        clock: Option<Arc<dyn Clock>>,
    ) -> Self {
        Self {
            kind,
            offers_deprecated: false,
            secret: 0,
            exit: RefCell::default(),
            order: RefCell::default(),
            told: RefCell::default(),
            answer: RefCell::default(),
            no_exits: Cell::new(0),
            killed: RefCell::default(),
            stage: Cell::new(Stage::Idle),
            protocol: Cell::new(Protocol::Resp2),
            random: Cell::new(random),
            registered: RefCell::default(),
            compiled: RefCell::default(),
            used_bytes: Cell::new(0),
            held: Cell::new(0),
            spare: RefCell::default(),
            meter: Meter::new(limits, clock),
        }
    }

    pub(crate) fn set_exit(&self, exit: Option<Function>) {
        *self.exit.borrow_mut() = exit;
    }

    pub(crate) fn set_compiled(&self, compiled: Option<Rc<Compiled>>) {
        *self.compiled.borrow_mut() = compiled;
    }

    /// Keeps a function that a library registers, and counts so many bytes that others keep beside
    /// it.
    ///
    /// # Errors
    /// There is no memory for one more.
    pub(crate) fn keep(&self, function: &Function, beside: usize) -> mlua::Result<ScriptRef> {
        let compiled = self.compiled.borrow();
        compiled.as_ref().expect("what runs has a state").keep(function, beside)
    }

    /// Resets the state for a new script.
    pub(crate) fn begin(self: &Rc<Self>, lua: &Lua, stage: Stage) -> mlua::Result<()> {
        *self.killed.borrow_mut() = None;
        self.no_exits.set(0);
        self.stage.set(stage);
        self.protocol.set(Protocol::Resp2);
        self.registered.borrow_mut().clear();
        self.begin_metering(lua)
    }

    /// Ends a script. The hook stays: hardly any Lua code runs between scripts.
    pub(crate) fn end(&self) {
        self.stage.set(Stage::Idle);
        *self.killed.borrow_mut() = None;
    }

    /// # Errors
    /// The script was killed. Then every instruction of it fails from now on, whatever catches this
    /// error.
    pub(crate) fn check_alive(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        let Some(text) = self.killed.borrow().clone() else { return Ok(()) };
        self.freely(lua, || {
            self.look_every(lua, 1)?;
            Err(errors::table(lua, text.as_bytes()))
        })
    }

    /// Ends the script, whatever it catches, because it cannot be told what a command did that has
    /// been executed: it would take it for one that failed. Returns the error.
    pub(crate) fn end_untold(self: &Rc<Self>, lua: &Lua, why: &mlua::Error) -> mlua::Error {
        if self.killed.borrow().is_none() {
            let report = self.freely(lua, || errors::plain(lua, why, &self.memory_text()));
            self.kill(&String::from_utf8_lossy(&report.text));
        }
        self.check_alive(lua).err().unwrap_or_else(|| why.clone())
    }

    /// Leaves the interpreter's stack with a question, and returns the answer.
    ///
    /// # Errors
    /// The script was killed meanwhile, or calls are nested too deeply.
    pub(crate) fn ask(self: &Rc<Self>, lua: &Lua, step: Step) -> mlua::Result<Answer> {
        if !self.leave(lua, step) {
            self.check_alive(lua)?;
            return Err(errors::text(lua, "C stack overflow"));
        }
        self.answered(lua)
    }

    /// As [`Self::ask`], for a function that leaves the stack by itself.
    pub(crate) fn ask_through(
        self: &Rc<Self>,
        lua: &Lua,
        step: Step,
        leave: impl FnOnce(),
    ) -> mlua::Result<Answer> {
        self.tell(lua, step);
        leave();
        self.answered(lua)
    }

    fn answered(self: &Rc<Self>, lua: &Lua) -> mlua::Result<Answer> {
        self.check_alive(lua)?;
        Ok(self.answer.borrow_mut().take().unwrap_or(Answer::GoOn))
    }

    fn tell(&self, lua: &Lua, step: Step) {
        *self.told.borrow_mut() = Some(Told::Step(step));
        self.used_bytes.set(lua.used_memory() + self.held_bytes());
    }

    /// Leaves the interpreter's stack with a question, until the interpreter is resumed.
    ///
    /// Returns false where calls nest as deep as Lua allows: leaving takes one more. A correct
    /// script is there for a moment at most, while Lua handles the error of that. A script that
    /// stays there and catches each error could never be stopped, so it is killed.
    fn leave(&self, lua: &Lua, step: Step) -> bool {
        self.tell(lua, step);
        let exit = self.exit.borrow().clone();
        let has_left = exit.is_some_and(|exit| self.freely(lua, || exit.call::<()>(())).is_ok());
        self.no_exits.set(if has_left { 0 } else { self.no_exits.get() + 1 });
        if self.no_exits.get() > NO_EXITS_MAX {
            self.kill(NESTED_TOO_DEEP);
        }
        has_left
    }

    pub(crate) fn kill(&self, text: &str) {
        *self.killed.borrow_mut() = Some(text.to_owned());
    }

    pub(crate) fn killed(&self) -> Option<String> {
        self.killed.borrow().clone()
    }
}
