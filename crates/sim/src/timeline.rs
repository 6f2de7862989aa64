//! Simulated time: what happens when, and a trace of everything that did.
//!
//! All parts of a simulated world (network, disks, faults, workloads) put their happenings on one
//! timeline. Time stands still while code runs and jumps to the next happening when the world's
//! nodes wait. Happenings of one instant run in the order in which they were scheduled, so that a
//! run depends on nothing but its seed. The trace proves it: two runs of one seed must end with
//! the same [`Timeline::trace`].

use base::time::MonotonicNanos;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something that happens at its time. It may schedule more.
pub type Happening = Box<dyn FnOnce() + Send>;

/// Where simulated time starts: one second, so that "an hour ago" style bugs underflow visibly
/// rather than at 0, which code may take for "never".
const START_NANOS: u64 = 1_000_000_000;

/// Names a scheduled happening: its time and its rank in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scheduled {
    pub at: MonotonicNanos,
    rank: u64,
}

/// A handle on a world's time. Clones share it.
#[derive(Clone)]
pub struct Timeline(Arc<Mutex<State>>);

struct State {
    now: MonotonicNanos,
    due: BTreeMap<Scheduled, Happening>,
    scheduled: u64,
    /// FNV-1a over everything recorded.
    trace: u64,
    recorded: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Timeline")
            .field("now", &state.now)
            .field("due", &state.due.len())
            .field("recorded", &state.recorded)
            .finish_non_exhaustive()
    }
}

impl Timeline {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            now: MonotonicNanos(START_NANOS),
            due: BTreeMap::new(),
            scheduled: 0,
            trace: 0xcbf2_9ce4_8422_2325,
            recorded: 0,
        })))
    }

    pub fn now(&self) -> MonotonicNanos {
        self.state().now
    }

    /// Lets something happen `after_nanos` from now; 0 means: when time is next asked to go on.
    pub fn schedule(&self, after_nanos: u64, happening: Happening) -> Scheduled {
        let mut state = self.state();
        let at = MonotonicNanos(state.now.0.saturating_add(after_nanos));
        state.scheduled += 1;
        let scheduled = Scheduled { at, rank: state.scheduled };
        state.due.insert(scheduled, happening);
        scheduled
    }

    /// Takes a happening back; whether it was still to come.
    pub fn cancel(&self, scheduled: Scheduled) -> bool {
        self.state().due.remove(&scheduled).is_some()
    }

    /// When the next happening is due.
    pub fn next_due(&self) -> Option<MonotonicNanos> {
        self.state().due.first_key_value().map(|(scheduled, _)| scheduled.at)
    }

    /// Moves to the next happening, if it is due at `until` or before, and runs it. Otherwise time
    /// moves to `until` and the answer is false.
    pub fn step(&self, until: MonotonicNanos) -> bool {
        let happening = {
            let mut state = self.state();
            let due = state.due.first_entry().filter(|first| first.key().at <= until);
            let Some(first) = due else {
                state.now = state.now.max(until);
                return false;
            };
            let (scheduled, happening) = first.remove_entry();
            // What was scheduled for the past by a jump of time happens now.
            state.now = state.now.max(scheduled.at);
            happening
        };
        // Not under the lock: the happening may schedule more.
        happening();
        true
    }

    /// Lets `nanos` pass and everything in them happen.
    pub fn pass(&self, nanos: u64) {
        let until = MonotonicNanos(self.now().0.saturating_add(nanos));
        while self.step(until) {}
    }

    /// Folds the time, `what` happened and its `details` into the trace.
    pub fn record(&self, what: &str, details: &[u8]) {
        let mut state = self.state();
        let now = state.now.0.to_le_bytes();
        let lengths = ((what.len() as u64) << 32 | details.len() as u64).to_le_bytes();
        for part in [&now, &lengths, what.as_bytes(), details] {
            for &byte in part {
                state.trace = (state.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        state.recorded += 1;
    }

    /// A digest of everything recorded so far. The same seed must give the same trace.
    pub fn trace(&self) -> u64 {
        self.state().trace
    }

    /// How much was recorded: a trace of nothing proves nothing.
    pub fn recorded(&self) -> u64 {
        self.state().recorded
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code of ours runs under the lock, so a panic elsewhere leaves the state whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A happening that notes a name and the time.
    fn note(timeline: &Timeline, notes: &Arc<Mutex<Vec<(char, u64)>>>, name: char) -> Happening {
        let (timeline, notes) = (timeline.clone(), Arc::clone(notes));
        Box::new(move || {
            notes.lock().unwrap().push((name, timeline.now().0 - START_NANOS));
        })
    }

    #[test]
    fn happenings_run_in_order_of_time_then_of_scheduling() {
        let timeline = Timeline::new();
        let notes = Arc::new(Mutex::new(Vec::new()));
        for (after, name) in [(30, 'd'), (10, 'a'), (20, 'b'), (20, 'c')] {
            timeline.schedule(after, note(&timeline, &notes, name));
        }
        timeline.pass(25);
        assert_eq!(*notes.lock().unwrap(), [('a', 10), ('b', 20), ('c', 20)]);
        assert_eq!(timeline.now().0, START_NANOS + 25);
        assert_eq!(timeline.next_due(), Some(MonotonicNanos(START_NANOS + 30)));
    }

    #[test]
    fn a_cancelled_happening_does_not_happen() {
        let timeline = Timeline::new();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let scheduled = timeline.schedule(10, note(&timeline, &notes, 'x'));
        assert!(timeline.cancel(scheduled));
        assert!(!timeline.cancel(scheduled));
        timeline.pass(100);
        assert_eq!(*notes.lock().unwrap(), []);
    }

    #[test]
    fn a_happening_may_schedule_another_in_the_time_that_passes() {
        let timeline = Timeline::new();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let (inner, noted) = (timeline.clone(), Arc::clone(&notes));
        let outer = move || {
            let happening = note(&inner, &noted, 'i');
            inner.schedule(5, happening);
        };
        timeline.schedule(10, Box::new(outer));
        timeline.pass(100);
        assert_eq!(*notes.lock().unwrap(), [('i', 15)]);
    }

    #[test]
    fn the_trace_tells_order_time_and_boundaries_apart() {
        let trace = |records: &[(u64, &str, &[u8])]| {
            let timeline = Timeline::new();
            for (nanos, what, details) in records {
                timeline.pass(*nanos);
                timeline.record(what, details);
            }
            assert_eq!(timeline.recorded(), records.len() as u64);
            timeline.trace()
        };
        let one = trace(&[(0, "send", b"a"), (0, "close", b"b")]);
        assert_eq!(one, trace(&[(0, "send", b"a"), (0, "close", b"b")]));
        assert_ne!(one, trace(&[(0, "close", b"b"), (0, "send", b"a")]));
        assert_ne!(one, trace(&[(1, "send", b"a"), (0, "close", b"b")]));
        assert_ne!(one, trace(&[(0, "senda", b""), (0, "close", b"b")]));
    }
}
