//! The connection between the two stacks: orders to the interpreter, questions of a script, pauses,
//! and kills.
//!
//! Both stacks share everything here, but never at the same time: while one runs, the other is
//! suspended.

use crate::compiled::Compiled;
use crate::errors;
use crate::limits::Limits;
use crate::random::Random;
use crate::script::{CodeKind, ScriptRef};
use crate::step::{Answer, Arguments, LoadedFunction, ScriptError, Step};
use base::{Clock, MonotonicNanos};
use mlua::{Function, HookTriggers, Lua, VmState};
use resp::Protocol;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Memory in use for which each instruction counts one more step where no time is told: a single
/// instruction may handle all memory there is, at some 10 GB/s.
const HEAVY_BYTES: usize = 128 << 10;

/// Memory in use from which the clock is looked at: an instruction may take 100 µs then.
const TIMED_BYTES: usize = 1 << 20;

/// How long a script that uses much memory runs until it pauses, in nanoseconds: some times as long
/// as the steps between two pauses usually take.
const PAUSE_NANOS: u64 = 500_000;

/// Instructions between two checks while all memory is in use, more with less of it. One
/// instruction that copies a string as long as the default limit takes 100 ms: this many times that
/// is how long a hostile script can run without a pause.
const FEW_INSTRUCTIONS: usize = 16;

/// Bytes of a string that count as one step, in functions that visit all of it.
pub(crate) const STEP_BYTES: usize = 64;

/// Bytes of a buffer that is kept for the next call.
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

/// Empty buffers that are used again, so that a call allocates nothing.
#[derive(Default)]
pub(crate) struct Spare {
    pub(crate) reply: Vec<u8>,
    pub(crate) arguments: Arguments,
}

impl Spare {
    pub(crate) fn keep_reply(&mut self, mut reply: Vec<u8>) {
        if reply.capacity() <= SPARE_BYTES_MAX {
            reply.clear();
            self.reply = reply;
        }
    }

    pub(crate) fn keep_arguments(&mut self, mut arguments: Arguments) {
        if arguments.capacity() <= SPARE_BYTES_MAX {
            arguments.clear();
            self.arguments = arguments;
        }
    }
}

pub(crate) struct Host {
    pub(crate) kind: CodeKind,
    pub(crate) limits: Limits,
    /// The directive `lua-enable-deprecated-api`: whether scripts may call `getfenv`, `setfenv` and
    /// `newproxy`.
    pub(crate) offers_deprecated: bool,
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
    steps_left: Cell<i64>,
    /// Instructions between two checks of the steps, as the hook is set now.
    looks_every: Cell<u32>,
    /// The protocol that `redis.setresp` chose.
    pub(crate) protocol: Cell<Protocol>,
    pub(crate) random: Cell<Random>,
    /// The functions that the library which is loaded has registered, by their names.
    pub(crate) registered: RefCell<BTreeMap<Vec<u8>, LoadedFunction>>,
    /// The compiled scripts and functions, while there is a Lua state.
    compiled: RefCell<Option<Rc<Compiled>>>,
    /// Bytes that Lua used when it last left its stack.
    pub(crate) used_bytes: Cell<usize>,
    /// Buffers of the last call, for the next one.
    pub(crate) spare: RefCell<Spare>,
    /// Whether the memory limit is in force: while code of a script runs or is compiled.
    is_limited: Cell<bool>,
    clock: Option<Arc<dyn Clock>>,
    /// When the script last began to run on, as far as the clock was looked at.
    resumed_at: Cell<MonotonicNanos>,
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
            limits,
            offers_deprecated: false,
            exit: RefCell::default(),
            order: RefCell::default(),
            told: RefCell::default(),
            answer: RefCell::default(),
            no_exits: Cell::new(0),
            killed: RefCell::default(),
            stage: Cell::new(Stage::Idle),
            steps_left: Cell::new(0),
            looks_every: Cell::new(0),
            protocol: Cell::new(Protocol::Resp2),
            random: Cell::new(random),
            registered: RefCell::default(),
            compiled: RefCell::default(),
            used_bytes: Cell::new(0),
            spare: RefCell::default(),
            is_limited: Cell::new(false),
            clock,
            resumed_at: Cell::new(MonotonicNanos(0)),
        }
    }

    pub(crate) fn set_exit(&self, exit: Option<Function>) {
        *self.exit.borrow_mut() = exit;
    }

    pub(crate) fn set_compiled(&self, compiled: Option<Rc<Compiled>>) {
        *self.compiled.borrow_mut() = compiled;
    }

    /// Keeps a function that a library registers.
    ///
    /// # Errors
    /// There is no memory for one more.
    pub(crate) fn keep(&self, function: &Function) -> mlua::Result<ScriptRef> {
        let compiled = self.compiled.borrow();
        compiled.as_ref().expect("what runs has a state").keep(function)
    }

    /// Resets the state for a new script.
    pub(crate) fn begin(self: &Rc<Self>, lua: &Lua, stage: Stage) -> mlua::Result<()> {
        *self.killed.borrow_mut() = None;
        self.no_exits.set(0);
        self.stage.set(stage);
        self.steps_left.set(i64::from(self.limits.pause_steps));
        self.protocol.set(Protocol::Resp2);
        self.registered.borrow_mut().clear();
        self.note_resumed(lua);
        if self.looks_every.get() == self.limits.look_instructions {
            return Ok(());
        }
        self.look_every(lua, self.limits.look_instructions)
    }

    /// Ends a script. The hook stays: hardly any Lua code runs between scripts.
    pub(crate) fn end(&self) {
        self.stage.set(Stage::Idle);
        *self.killed.borrow_mut() = None;
    }

    /// Installs a hook that counts steps after this many instructions, in the running Lua thread
    /// and in those that it creates.
    fn look_every(self: &Rc<Self>, lua: &Lua, instructions: u32) -> mlua::Result<()> {
        let host = Rc::clone(self);
        self.looks_every.set(instructions);
        let every = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(every, move |lua, _| {
            let used = lua.used_memory();
            host.spend(lua, host.steps_for(instructions, used))?;
            let wanted = host.instructions_for(used);
            if wanted != host.looks_every.get() {
                host.look_every(lua, wanted)?;
            }
            Ok(VmState::Continue)
        })
    }

    /// Instructions between two checks while this much memory is in use.
    fn instructions_for(&self, used: usize) -> u32 {
        let wanted = FEW_INSTRUCTIONS * self.limits.memory_bytes / used.max(1);
        u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, self.limits.look_instructions)
    }

    /// The steps that so many instructions count for, with this much memory in use. Most take as
    /// long as with little memory, but some take as long as all of it: they concatenate or compare
    /// long strings, or let a table or the collector's work grow. Which one did shows the clock,
    /// if there is one.
    fn steps_for(&self, instructions: u32, used: usize) -> usize {
        let is_timed = self.clock.is_some() && used >= TIMED_BYTES;
        instructions as usize * if is_timed { 1 } else { 1 + used / HEAVY_BYTES }
    }

    /// The clock, while so much memory is in use that it is to be looked at.
    fn clock(&self, lua: &Lua) -> Option<&dyn Clock> {
        self.clock.as_deref().filter(|_| lua.used_memory() >= TIMED_BYTES)
    }

    /// Notes that a script begins to run, or runs on.
    fn note_resumed(&self, lua: &Lua) {
        if let Some(clock) = self.clock(lua) {
            self.resumed_at.set(clock.monotonic());
        }
    }

    /// Whether a script that uses so much memory that single instructions take long has run for as
    /// long as it may without a pause.
    fn has_run_long(&self, lua: &Lua) -> bool {
        self.clock(lua).is_some_and(|it| it.monotonic().since(self.resumed_at.get()) >= PAUSE_NANOS)
    }

    /// Counts steps, and pauses when they are used up, or when time is.
    ///
    /// # Errors
    /// The script was killed.
    pub(crate) fn spend(self: &Rc<Self>, lua: &Lua, steps: usize) -> mlua::Result<()> {
        let steps = i64::try_from(steps).unwrap_or(i64::MAX);
        let steps = if self.has_run_long(lua) { i64::MAX } else { steps };
        let left = self.steps_left.get().saturating_sub(steps);
        self.steps_left.set(left);
        // A pause that cannot be made is due again at once.
        if left <= 0 && self.leave(lua, Step::Paused) {
            self.steps_left.set(i64::from(self.limits.pause_steps));
            self.note_resumed(lua);
            self.answer.take();
        }
        self.check_alive(lua)
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
        self.used_bytes.set(lua.used_memory());
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

    /// Checks that this many bytes, which Lua does not count yet, are within the memory limit.
    ///
    /// # Errors
    /// They are not: Lua's error for want of memory.
    pub(crate) fn check_room(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        let has_room = lua.used_memory().saturating_add(bytes) <= self.limits.memory_bytes;
        if has_room { Ok(()) } else { Err(errors::text(lua, errors::NO_MEMORY)) }
    }

    /// Counts a copy of this many bytes before it is made, whether or not anything comes of it.
    ///
    /// # Errors
    /// They and what else is held are beyond the memory limit, or the script was killed.
    pub(crate) fn spend_copy(
        self: &Rc<Self>,
        lua: &Lua,
        bytes: usize,
        held: usize,
    ) -> mlua::Result<()> {
        self.check_room(lua, bytes.saturating_add(held))?;
        self.spend(lua, bytes / STEP_BYTES)
    }

    /// Runs `act` without the memory limit; it must need little memory. Without a limit no
    /// allocation fails, so mlua need not protect each call, which is most of the cost of a short
    /// one. Also a script at its limit could not be paused otherwise, nor get an error.
    pub(crate) fn freely<T>(&self, lua: &Lua, act: impl FnOnce() -> T) -> T {
        self.limit_while(lua, false, act)
    }

    /// Runs `act` with the memory limit in force.
    pub(crate) fn within_limit<T>(&self, lua: &Lua, act: impl FnOnce() -> T) -> T {
        self.limit_while(lua, true, act)
    }

    fn limit_while<T>(&self, lua: &Lua, is_limited: bool, act: impl FnOnce() -> T) -> T {
        let was_limited = self.is_limited.get();
        self.set_limited(lua, is_limited);
        let result = act();
        self.set_limited(lua, was_limited);
        result
    }

    fn set_limited(&self, lua: &Lua, is_limited: bool) {
        if self.is_limited.replace(is_limited) != is_limited {
            let bytes = if is_limited { self.limits.memory_bytes } else { 0 };
            lua.set_memory_limit(bytes).expect("Lua allocates through mlua");
        }
    }

    pub(crate) fn kill(&self, text: &str) {
        *self.killed.borrow_mut() = Some(text.to_owned());
    }

    pub(crate) fn killed(&self) -> Option<String> {
        self.killed.borrow().clone()
    }

    /// The error text for a script that ran out of memory.
    pub(crate) fn memory_text(&self) -> String {
        format!(
            "ERR not enough memory: all scripts together may use {} bytes",
            self.limits.memory_bytes
        )
    }
}
