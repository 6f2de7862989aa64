//! A script's way out: asking whoever runs it, pausing, and being killed.
//!
//! Everything here is shared between the two stacks, but never at the same time: one of them runs,
//! the other lies suspended.

use crate::errors::{self, Raised};
use crate::limits::Limits;
use crate::random::Random;
use crate::script::{Kind, ScriptRef};
use crate::step::{Answer, LoadedFunction, Outcome, ScriptError, Step};
use mlua::{Function, HookTriggers, Lua, Value, VmState};
use resp::{Protocol, Reply};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Used memory of which each part adds one to what an instruction counts: an instruction may handle
/// all memory there is, at some 10 GB/s.
const HEAVY_BYTES: usize = 128 << 10;

/// Used memory from which on an instruction may take so long that looks come after fewer of them.
const MUCH_BYTES: usize = 16 << 20;

/// Instructions between two looks then: this times 100 ms, for an instruction that copies a string
/// as long as the default limit, is how long a hostile script can go on without a pause.
const FEW_INSTRUCTIONS: u32 = 16;

/// What the interpreter is told to do.
pub(crate) enum Order {
    Compile(Vec<u8>),
    Forget(ScriptRef),
    Run(crate::script::Invocation),
    Load(Vec<u8>),
    End,
}

/// What the interpreter tells.
pub(crate) enum Told {
    Compiled(Result<ScriptRef, ScriptError>),
    Forgotten,
    Step(Step),
}

/// What of a script may be done now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Idle,
    /// A script or function runs.
    Running,
    /// A library's code runs, and may register functions only.
    Loading,
}

pub(crate) struct Host {
    pub(crate) kind: Kind,
    pub(crate) limits: Limits,
    /// Leaves the stack of the interpreter, and comes back when it is resumed.
    door: RefCell<Option<Function>>,
    pub(crate) order: RefCell<Option<Order>>,
    pub(crate) told: RefCell<Option<Told>>,
    pub(crate) answer: RefCell<Option<Answer>>,
    /// The error that every instruction raises from now on, to the end of the script.
    killed: RefCell<Option<String>>,
    pub(crate) stage: Cell<Stage>,
    steps_left: Cell<i64>,
    /// Instructions between two looks.
    looks_every: Cell<u32>,
    /// What `redis.setresp` chose.
    pub(crate) protocol: Cell<Protocol>,
    pub(crate) random: Cell<Random>,
    pub(crate) registered: RefCell<Vec<(LoadedFunction, Function)>>,
    /// Bytes that Lua used when its stack was left last.
    pub(crate) used_bytes: Cell<usize>,
    /// Whether Lua is held to its memory limit: while the code of a script runs or is compiled.
    is_limited: Cell<bool>,
}

impl Host {
    pub(crate) fn new(kind: Kind, limits: Limits, random: Random) -> Self {
        Self {
            kind,
            limits,
            door: RefCell::default(),
            order: RefCell::default(),
            told: RefCell::default(),
            answer: RefCell::default(),
            killed: RefCell::default(),
            stage: Cell::new(Stage::Idle),
            steps_left: Cell::new(0),
            looks_every: Cell::new(0),
            protocol: Cell::new(Protocol::Resp2),
            random: Cell::new(random),
            registered: RefCell::default(),
            used_bytes: Cell::new(0),
            is_limited: Cell::new(false),
        }
    }

    pub(crate) fn set_door(&self, door: Option<Function>) {
        *self.door.borrow_mut() = door;
    }

    /// Makes all as a script expects it at its first instruction.
    pub(crate) fn begin(self: &Rc<Self>, lua: &Lua, stage: Stage) -> mlua::Result<()> {
        *self.killed.borrow_mut() = None;
        self.stage.set(stage);
        self.steps_left.set(i64::from(self.limits.pause_steps));
        self.protocol.set(Protocol::Resp2);
        self.registered.borrow_mut().clear();
        if self.looks_every.get() == self.limits.look_instructions {
            return Ok(());
        }
        self.look_every(lua, self.limits.look_instructions)
    }

    /// The hook stays: between scripts nothing runs that it would count.
    pub(crate) fn end(&self) {
        self.stage.set(Stage::Idle);
    }

    /// Calls [`Self::look`] after every so many instructions of the thread that runs now, and of
    /// those that it creates.
    fn look_every(self: &Rc<Self>, lua: &Lua, instructions: u32) -> mlua::Result<()> {
        let host = Rc::clone(self);
        self.looks_every.set(instructions);
        let every = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(every, move |lua, _| {
            let used = lua.used_memory();
            host.spend(lua, instructions as usize * (1 + used / HEAVY_BYTES))?;
            let wanted = host.instructions_for(used);
            if wanted != host.looks_every.get() {
                host.look_every(lua, wanted)?;
            }
            Ok(VmState::Continue)
        })
    }

    /// Instructions between two looks, where so much memory is used.
    fn instructions_for(&self, used: usize) -> u32 {
        let few = self.limits.look_instructions.min(FEW_INSTRUCTIONS);
        if used < MUCH_BYTES { self.limits.look_instructions } else { few }
    }

    /// Counts steps, and pauses if it is time.
    ///
    /// # Errors
    /// The script was killed.
    pub(crate) fn spend(self: &Rc<Self>, lua: &Lua, steps: usize) -> mlua::Result<()> {
        let left = self.steps_left.get() - i64::try_from(steps).unwrap_or(i64::MAX);
        self.steps_left.set(left);
        if left <= 0 {
            self.steps_left.set(i64::from(self.limits.pause_steps));
            self.ask(lua, Step::Paused)?;
        }
        self.check_alive(lua)
    }

    /// # Errors
    /// The script was killed: then so is its every instruction from now on, whoever catches this.
    pub(crate) fn check_alive(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        let Some(text) = self.killed.borrow().clone() else { return Ok(()) };
        self.freely(lua, || {
            self.look_every(lua, 1)?;
            Err(errors::table(lua, text.as_bytes()))
        })
    }

    /// Leaves the interpreter's stack with a question, and comes back with the answer.
    ///
    /// # Errors
    /// The script was killed meanwhile.
    pub(crate) fn ask(self: &Rc<Self>, lua: &Lua, step: Step) -> mlua::Result<Answer> {
        *self.told.borrow_mut() = Some(Told::Step(step));
        self.used_bytes.set(lua.used_memory());
        let door = self.door.borrow().clone();
        let door = door.ok_or_else(|| mlua::Error::external(Raised(Value::Nil)))?;
        self.freely(lua, || door.call::<()>(()))?;
        self.check_alive(lua)?;
        Ok(self.answer.borrow_mut().take().unwrap_or(Answer::GoOn))
    }

    /// Whether so many bytes, which Lua does not count yet, are within the limit.
    ///
    /// # Errors
    /// They are not.
    pub(crate) fn check_room(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        if self.has_room(lua, bytes) { Ok(()) } else { Err(errors::text(lua, errors::NO_MEMORY)) }
    }

    /// Lets `act` use memory without limit, of which it must need little. Nothing that it does can
    /// fail for want of memory then, so it need not be protected from that, call by call, which is
    /// most of what a short act costs. A script at its limit could not be paused otherwise, nor
    /// told so.
    pub(crate) fn freely<T>(&self, lua: &Lua, act: impl FnOnce() -> T) -> T {
        self.limit_while(lua, false, act)
    }

    /// Lets `act` use no more memory than all scripts may.
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

    /// Whether so many bytes may be used without asking for each of them.
    pub(crate) fn has_room(&self, lua: &Lua, bytes: usize) -> bool {
        lua.used_memory().saturating_add(bytes) <= self.limits.memory_bytes
    }

    pub(crate) fn kill(&self, text: &str) {
        *self.killed.borrow_mut() = Some(text.to_owned());
    }

    pub(crate) fn killed(&self) -> Option<String> {
        self.killed.borrow().clone()
    }

    /// What the error of a script that ran out of memory says.
    pub(crate) fn memory_text(&self) -> String {
        format!(
            "ERR not enough memory: all scripts together may use {} bytes",
            self.limits.memory_bytes
        )
    }

    /// The end of a run.
    pub(crate) fn finish(&self, reply: Option<Reply>, result: Result<(), ScriptError>) {
        let outcome = match (reply, result) {
            (Some(reply), Ok(())) => Outcome::Reply(reply),
            (Some(reply), Err(error)) => Outcome::Failed(reply, error),
            (None, Ok(())) => Outcome::Loaded(Vec::new()),
            (None, Err(error)) => Outcome::NotLoaded(error),
        };
        *self.told.borrow_mut() = Some(Told::Step(Step::Done(outcome)));
    }
}
