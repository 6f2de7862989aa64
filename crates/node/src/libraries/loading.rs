//! The loading of the shard's libraries by the loop: a slice per turn, so that the lease is renewed
//! and others are answered meanwhile.
//!
//! What was acknowledged is not given up lightly. A library that does not fit into memory behind
//! others is loaded before them, all of them anew. One that fails all the same is named in the log
//! and in the error of FCALL, and is tried again when another one is forgotten.

use super::{CompiledLibraries, Ending, NotLoaded, TIMEOUT, refuse, registered};
use crate::scripts::PAUSE_WORK_STEPS;
use base::{Clock, MonotonicNanos};
use engine::functions;
use engine::work::Work;
use lua::Answer;
use std::sync::Arc;

/// The longest time that the code of one library of the shard may run. What bounds it are its steps
/// ([`lua::RELOAD_STEPS_MAX`]), because FUNCTION LOAD allowed half a second on a machine that may
/// have been faster. An hour is for code of which one step takes long, such as one that joins
/// strings of a hundred megabytes for ever: no machine of use is slower by so much.
const LOAD_NANOS_MAX: u64 = 3_600_000_000_000;

/// The most libraries that are loaded before the others because they need much memory. Each of them
/// costs one more loading of all.
const FIRST_MAX: usize = 8;

/// A library whose code is running.
pub(super) struct Loading {
    pub name: Vec<u8>,
    pub code: Arc<[u8]>,
    /// The answer with which it is resumed.
    answer: Answer,
    /// How long it has run.
    ran_nanos: u64,
}

/// A library that cannot be loaded.
pub(super) struct Failed {
    pub code: Arc<[u8]>,
    pub why: String,
    /// Whether it may succeed without other libraries: it did not run for too long.
    depends_on_others: bool,
}

/// The part of a turn in which libraries are loaded.
pub struct Slice<'a> {
    clock: &'a dyn Clock,
    pub(super) work: Work,
    nanos_max: u64,
    pauses_max: usize,
    began: MonotonicNanos,
    now: MonotonicNanos,
    pauses: usize,
}

impl<'a> Slice<'a> {
    /// A part that ends after this time or after so many pauses, whichever comes first.
    pub fn new(clock: &'a dyn Clock, work: Work, nanos_max: u64, pauses_max: usize) -> Self {
        let began = clock.monotonic();
        Self { clock, work, nanos_max, pauses_max, began, now: began, pauses: 0 }
    }

    /// Counts a pause; returns the nanoseconds since the last one.
    fn pause(&mut self) -> u64 {
        self.pauses += 1;
        self.work.steps(PAUSE_WORK_STEPS);
        let last = std::mem::replace(&mut self.now, self.clock.monotonic());
        self.now.since(last)
    }

    fn is_over(&self) -> bool {
        self.now.since(self.began) > self.nanos_max || self.pauses >= self.pauses_max
    }
}

impl CompiledLibraries {
    /// Loads libraries that the shard has, as far as this part of the turn allows.
    pub fn advance(&mut self, data: &functions::Libraries, slice: &mut Slice<'_>) {
        self.follow(data, &slice.work);
        while self.loading.is_some() || self.begin_next(data) {
            self.go_on(data, slice);
            if slice.is_over() {
                break;
            }
        }
    }

    /// Begins to load a missing library; whether there was one.
    fn begin_next(&mut self, data: &functions::Libraries) -> bool {
        let first = self.first.iter().find(|name| self.missing.contains(*name));
        let Some(name) = first.or_else(|| self.missing.first()).cloned() else { return false };
        self.missing.remove(&name);
        let Some(code) = data.code(&name) else { return true };
        match self.begin(code) {
            Ok(()) => {
                let code = Arc::clone(code);
                self.loading = Some(Loading { name, code, answer: Answer::Begin, ran_nanos: 0 });
            }
            Err(failure) => self.fail(name, code, failure, true, data),
        }
        true
    }

    /// Runs the code of the library that is being loaded up to its next pause.
    fn go_on(&mut self, data: &functions::Libraries, slice: &mut Slice<'_>) {
        let Some(mut loading) = self.loading.take() else { return };
        let ending = self.step(std::mem::replace(&mut loading.answer, Answer::GoOn));
        loading.ran_nanos += slice.pause();
        let Some(ending) = ending else {
            if self.has_run_long(&loading) {
                self.interpreter.kill(&TIMEOUT.0);
            }
            self.loading = Some(loading);
            return;
        };
        let is_in_time = !self.has_run_long(&loading);
        self.free_unwanted();
        self.finish(loading, ending, is_in_time, data);
    }

    fn has_run_long(&self, loading: &Loading) -> bool {
        self.interpreter.spent_steps() > self.reload_steps_max || loading.ran_nanos > LOAD_NANOS_MAX
    }

    fn finish(
        &mut self,
        loading: Loading,
        ending: Ending,
        is_in_time: bool,
        data: &functions::Libraries,
    ) {
        let Loading { name, code, .. } = loading;
        match registered(ending) {
            Ok(functions) => {
                let Some(taken) = functions.keys().find(|it| self.owner(it).is_some()) else {
                    return self.keep(&name, &code, functions);
                };
                let taken = String::from_utf8_lossy(taken);
                let refusal = refuse(format!("Function {taken} already exists"));
                self.discard(functions);
                self.fail(name, &code, refusal.into(), is_in_time, data);
            }
            Err(failure) => self.fail(name, &code, failure, is_in_time, data),
        }
    }

    /// Notes that a library cannot be loaded; or loads all anew, it before the others, if it lacked
    /// memory. What did not run for too long may succeed without other libraries.
    fn fail(
        &mut self,
        name: Vec<u8>,
        code: &Arc<[u8]>,
        failure: NotLoaded,
        depends_on_others: bool,
        data: &functions::Libraries,
    ) {
        let NotLoaded { refusal, lacks_memory } = failure;
        let why = refusal.0.strip_prefix("ERR ").unwrap_or(&refusal.0).to_owned();
        let may_be_first = self.first.len() < FIRST_MAX && !self.first.contains(&name);
        if lacks_memory && may_be_first && !self.by_name.is_empty() {
            self.first.push(name);
            return self.begin_anew(data);
        }
        let shown = String::from_utf8_lossy(&name);
        tracing::error!(name = %shown, %why, "a library of functions cannot be loaded");
        let code = Arc::clone(code);
        self.failed.insert(name, Failed { code, why, depends_on_others });
    }

    /// Loads all libraries anew.
    fn begin_anew(&mut self, data: &functions::Libraries) {
        self.by_name.clear();
        self.owners.clear();
        self.failed.clear();
        self.unwanted.clear();
        self.interpreter.clear();
        self.missing = data.iter().map(|(name, _)| name.to_vec()).collect();
    }

    /// Ends the loading of a library that is replaced or deleted.
    pub(super) fn give_loading_up(&mut self) {
        if self.loading.take().is_none() {
            return;
        }
        self.interpreter.kill("ERR the library is gone");
        let ending = loop {
            if let Some(ending) = self.step(Answer::GoOn) {
                break ending;
            }
        };
        if let Ok(functions) = registered(ending) {
            self.discard(functions);
        }
        self.free_unwanted();
    }

    /// Lets the libraries that failed be loaded once more, behind a change of the others.
    pub(super) fn try_failed_again(&mut self) {
        let again = self.failed.iter().filter(|(_, failed)| failed.depends_on_others);
        for name in again.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.failed.remove(&name);
            self.missing.insert(name);
        }
    }
}
