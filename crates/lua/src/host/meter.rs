//! Steps, time and memory of the running script. It pauses when steps or time run out; memory
//! beyond the limit is refused.
//!
//! Steps are counted by a hook of Lua after some instructions, and by each function in Rust whose
//! work a script chooses. Time counts where memory is large, because then a single instruction may
//! take long, and where code is compiled or garbage is collected, which may take long anyhow.

use super::Host;
use crate::errors;
use crate::limits::{COMPILE_MS_MAX, Limits};
use crate::step::Step;
use base::time::MILLISECOND;
use base::{Clock, MonotonicNanos};
use mlua::state::{GcIncParams, GcMode};
use mlua::{HookTriggers, Lua, VmState};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Memory in use for which each instruction counts one more step where no time is told: a single
/// instruction may handle all memory there is, at a GB a second or more.
const HEAVY_BYTES: usize = 128 << 10;

/// Memory in use from which the clock is looked at: an instruction may take 100 µs then.
const TIMED_BYTES: usize = 1 << 20;

/// How long a script that uses much memory runs until it pauses, in nanoseconds: some times as long
/// as the steps between two pauses usually take.
const PAUSE_NANOS: u64 = 500_000;

/// Instructions between two checks while all memory is in use, more with less of it. One
/// instruction that compares or concatenates strings of as many bytes takes up to 200 ms, and this
/// many times that is how long a hostile script can run without a pause. (Behind one that lets a
/// large table grow, a check follows at once.) A check for each would double the time of scripts
/// that use much memory for other things.
const FEW_INSTRUCTIONS: usize = 2;

/// Steps that Lua's piece of a garbage collection counts: it handles some 2 KiB.
pub(crate) const COLLECTING_STEPS: usize = 40;

/// How many of them are done between two looks at the clock where all garbage is collected: some
/// 100 µs.
const COLLECTED_PIECE: i32 = 32;

/// Bytes of a string that count as one step, in functions that visit all of it.
pub(crate) const STEP_BYTES: usize = 64;

/// Bytes that such functions look at between two counts of steps.
pub(crate) const PIECE_BYTES: usize = 4 << 10;

/// The limits of an interpreter, and how far the running script is from them.
pub(crate) struct Meter {
    pub(crate) limits: Limits,
    clock: Option<Arc<dyn Clock>>,
    steps_left: Cell<i64>,
    /// Steps since the script began, each counted once, however much memory is in use and however
    /// long it took: the same code spends about as many on every machine.
    spent: Cell<u64>,
    /// Instructions between two checks of the steps, as the hook is set now.
    looks_every: Cell<u32>,
    /// When the script began to run on, or when the clock was first looked at since.
    resumed_at: Cell<Option<MonotonicNanos>>,
    /// Whether the memory limit is in force. It is while a script runs or is compiled.
    is_limited: Cell<bool>,
}

impl Meter {
    pub(super) fn new(limits: Limits, clock: Option<Arc<dyn Clock>>) -> Self {
        Self {
            limits,
            clock,
            steps_left: Cell::new(0),
            spent: Cell::new(0),
            looks_every: Cell::new(0),
            resumed_at: Cell::new(None),
            is_limited: Cell::new(false),
        }
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

    /// Grants the steps and the time until the next pause: a script begins to run, or runs on.
    fn refill(&self, lua: &Lua) {
        self.steps_left.set(i64::from(self.limits.pause_steps));
        self.resumed_at.set(self.clock(lua).map(|clock| clock.monotonic()));
    }

    /// Counts steps; returns whether a pause is due, because they are used up, or time is.
    fn count(&self, lua: &Lua, steps: usize) -> bool {
        let steps = i64::try_from(steps).unwrap_or(i64::MAX);
        let steps = if self.has_run_long(lua) { i64::MAX } else { steps };
        let left = self.steps_left.get().saturating_sub(steps);
        self.steps_left.set(left);
        left <= 0
    }

    fn note_spent(&self, steps: usize) {
        self.spent.set(self.spent.get().saturating_add(steps as u64));
    }

    /// Whether the time until the next pause is over. It counts only with so much memory in use
    /// that single instructions may take long.
    fn has_run_long(&self, lua: &Lua) -> bool {
        self.clock(lua).is_some_and(|clock| self.is_time_over(clock))
    }

    fn is_time_over(&self, clock: &dyn Clock) -> bool {
        let now = clock.monotonic();
        match self.resumed_at.get() {
            Some(resumed_at) => now.since(resumed_at) >= PAUSE_NANOS,
            None => {
                self.resumed_at.set(Some(now));
                false
            }
        }
    }

    /// The time, if there is a clock.
    pub(crate) fn now(&self) -> Option<MonotonicNanos> {
        self.clock.as_deref().map(|clock| clock.monotonic())
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
}

/// Chooses how much of a garbage collection is done at once, as a multiple of what Lua does.
fn set_piece(lua: &Lua, times: i32) {
    /// Lua's own step multiplier, in percent (LUAI_GCMUL): a piece of 2 KiB.
    const LUAS: i32 = 200;
    let parameters = GcIncParams::default().step_multiplier(times * LUAS);
    lua.gc_set_mode(GcMode::Incremental(parameters));
}

impl Host {
    /// Steps that the running script, or the last one, has spent so far.
    pub(crate) fn spent_steps(&self) -> u64 {
        self.meter.spent.get()
    }

    /// Grants a new script what it may use, and sees to it that its instructions are counted.
    pub(crate) fn begin_metering(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        self.meter.spent.set(0);
        self.meter.refill(lua);
        self.look_for(lua, lua.used_memory())
    }

    /// Lets the steps be checked as often as it takes with so much memory in use.
    fn look_for(self: &Rc<Self>, lua: &Lua, used: usize) -> mlua::Result<()> {
        let wanted = self.meter.instructions_for(used);
        if wanted == self.meter.looks_every.get() { Ok(()) } else { self.look_every(lua, wanted) }
    }

    /// Installs a hook that counts steps after this many instructions, in the running Lua thread
    /// and in those that it creates.
    pub(super) fn look_every(self: &Rc<Self>, lua: &Lua, instructions: u32) -> mlua::Result<()> {
        let host = Rc::clone(self);
        self.meter.looks_every.set(instructions);
        let every = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(every, move |lua, _| {
            let used = lua.used_memory();
            host.meter.note_spent(instructions as usize);
            host.take_steps(lua, host.meter.steps_for(instructions, used))?;
            host.look_for(lua, used)?;
            Ok(VmState::Continue)
        })
    }

    /// Counts steps, and pauses when they are used up, or when time is.
    ///
    /// # Errors
    /// The script was killed.
    pub(crate) fn spend(self: &Rc<Self>, lua: &Lua, steps: usize) -> mlua::Result<()> {
        self.meter.note_spent(steps);
        self.take_steps(lua, steps)
    }

    /// As [`Self::spend`], of steps that are noted, or that are more than were made.
    fn take_steps(self: &Rc<Self>, lua: &Lua, steps: usize) -> mlua::Result<()> {
        // A pause that cannot be made is due again at once.
        if self.meter.count(lua, steps) && self.leave(lua, Step::Paused) {
            self.meter.refill(lua);
            self.answer.take();
        }
        self.check_alive(lua)
    }

    /// As [`Self::spend`], for steps that may take long however little memory is in use: the clock
    /// is looked at.
    ///
    /// # Errors
    /// The script was killed.
    pub(crate) fn spend_long(self: &Rc<Self>, lua: &Lua, steps: usize) -> mlua::Result<()> {
        let is_over = self.meter.clock.as_deref().is_some_and(|it| self.meter.is_time_over(it));
        self.meter.note_spent(steps);
        self.take_steps(lua, if is_over { usize::MAX } else { steps })
    }

    /// Counts a string of so many bytes that is made in Lua: all of them are copied and hashed.
    ///
    /// # Errors
    /// The script was killed.
    pub(crate) fn spend_string(self: &Rc<Self>, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        self.spend(lua, 1 + bytes / STEP_BYTES)
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
        if bytes >= TIMED_BYTES {
            self.look_for(lua, lua.used_memory() + bytes)?;
        }
        self.spend(lua, bytes / STEP_BYTES)
    }

    /// Checks that this many bytes, which Lua does not count yet, are within the memory limit.
    ///
    /// # Errors
    /// They are not: Lua's error for want of memory.
    pub(crate) fn check_room(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        let used = lua.used_memory() + self.held_bytes();
        if used.saturating_add(bytes) <= self.meter.limits.memory_bytes {
            Ok(())
        } else {
            Err(errors::text(lua, errors::NO_MEMORY))
        }
    }

    /// Collects garbage when errors that nobody sees any more hold much, and returns the result of
    /// a function that has made one of them.
    ///
    /// # Errors
    /// The function failed, or the script was killed.
    pub(crate) fn collecting_errors<T>(
        self: &Rc<Self>,
        lua: &Lua,
        result: mlua::Result<T>,
    ) -> mlua::Result<T> {
        if result.is_err() && errors::uncollected(lua).are_many() {
            self.collect(lua)?;
        }
        result
    }

    /// Collects all garbage, with pauses.
    ///
    /// # Errors
    /// The script was killed.
    pub(crate) fn collect(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        set_piece(lua, COLLECTED_PIECE);
        // What has become garbage since a cycle began is left by it, so another follows.
        let done = (0..2).try_for_each(|_| {
            while !lua.gc_step()? {
                self.spend_long(lua, COLLECTING_STEPS * COLLECTED_PIECE as usize)?;
            }
            Ok(())
        });
        set_piece(lua, 1);
        done
    }

    /// As [`Self::collect`], when a script has ended: nothing kills it.
    pub(crate) fn collect_to_the_end(self: &Rc<Self>, lua: &Lua) {
        // A collection can only fail in a finalizer written in Lua, and 5.1 has none for tables.
        while self.collect(lua).is_err() && self.killed().is_some() {
            self.end();
        }
    }

    /// Collects garbage where nothing can pause, for as long as a script may be compiled. Whether a
    /// cycle has ended.
    pub(crate) fn collect_for_a_while(&self, lua: &Lua) -> bool {
        let began = self.meter.now();
        let takes_long = || {
            let took = self.meter.now().zip(began).map(|(now, began)| now.since(began));
            took.is_some_and(|nanos| nanos > COMPILE_MS_MAX * MILLISECOND)
        };
        set_piece(lua, COLLECTED_PIECE);
        let has_ended = loop {
            match lua.gc_step() {
                Ok(false) if takes_long() => break false,
                Ok(false) => {}
                // A collection can only fail in a finalizer written in Lua: there is none.
                Ok(true) | Err(_) => break true,
            }
        };
        set_piece(lua, 1);
        has_ended
    }

    /// Runs `act` without the memory limit; it must need little memory. Without a limit no
    /// allocation fails, so mlua need not protect each call, which is most of the cost of a short
    /// one. Also a script at its limit could not be paused otherwise, nor get an error.
    pub(crate) fn freely<T>(&self, lua: &Lua, act: impl FnOnce() -> T) -> T {
        self.meter.limit_while(lua, false, act)
    }

    /// Runs `act` with the memory limit in force.
    pub(crate) fn within_limit<T>(&self, lua: &Lua, act: impl FnOnce() -> T) -> T {
        self.meter.limit_while(lua, true, act)
    }

    /// The error text for a script that ran out of memory.
    pub(crate) fn memory_text(&self) -> String {
        format!(
            "ERR not enough memory: all scripts together may use {} bytes",
            self.meter.limits.memory_bytes
        )
    }
}
