//! Counts the work of commands in steps, and calls the node after every so many of them. The node
//! uses these calls to renew a primary's lease amid a command that takes long
//! (`shard/shard/appender.rs`).
//!
//! One thread executes commands, one after another, and some take long: SORT over millions of
//! elements, KEYS over a whole database. The engine knows neither the time nor the log, so all it
//! can do is to count and to call.
//!
//! A step is about a microsecond of work at most, most are far less: an element looked at, an
//! effect, a key looked up, [`BYTES_PER_STEP`] bytes. Every loop whose length a client chooses
//! counts its steps: by [`Work::reply_each`] if it writes a reply, else by [`Work::step`]. Who is
//! called gets no access to the keyspace, which may be in the middle of a change.

#[cfg(test)]
pub(crate) mod long;

use resp::Reply;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Steps from one pulse to the next. Some 10 to 100 microseconds of work, of which a look at the
/// clock is one part in a thousand; and a hundredth of the shortest lease even if each step took a
/// microsecond.
const STEPS_PER_PULSE: u32 = 1024;

/// Bytes that are looked at, copied or hashed as one step: 0.1 to 4 microseconds, for a plain copy
/// and for a check sum that goes byte by byte.
pub const BYTES_PER_STEP: usize = 1 << 10;

/// Whom the node names to be called in the midst of long work.
pub trait Pulse {
    /// Further steps have been taken, or one that is long is about to be.
    fn beat(&mut self);
}

/// Counts steps. A copy counts on with the original.
#[derive(Clone, Default)]
pub struct Work(Rc<Count>);

struct Count {
    /// Steps until the next pulse.
    left: Cell<u32>,
    steps_per_pulse: Cell<u32>,
    pulse: RefCell<Option<Rc<RefCell<dyn Pulse>>>>,
    /// All steps ever taken.
    #[cfg(test)]
    taken: Cell<usize>,
}

impl Default for Count {
    fn default() -> Self {
        Self {
            left: Cell::new(STEPS_PER_PULSE),
            steps_per_pulse: Cell::new(STEPS_PER_PULSE),
            pulse: RefCell::default(),
            #[cfg(test)]
            taken: Cell::default(),
        }
    }
}

impl Work {
    /// Names whom to call.
    pub fn set_pulse(&self, pulse: Rc<RefCell<dyn Pulse>>) {
        *self.0.pulse.borrow_mut() = Some(pulse);
    }

    /// Puts another in the place of whom to call, made from that one: a test's.
    #[doc(hidden)]
    pub fn wrap_pulse(&self, wrap: impl FnOnce(Rc<RefCell<dyn Pulse>>) -> Rc<RefCell<dyn Pulse>>) {
        let mut pulse = self.0.pulse.borrow_mut();
        *pulse = pulse.take().map(wrap);
    }

    /// Calls after so many steps from now on. The simulator's commands are short.
    #[doc(hidden)]
    pub fn set_steps_per_pulse(&self, steps: u32) {
        self.0.steps_per_pulse.set(steps);
        self.0.left.set(steps);
    }

    /// All steps ever taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.get()
    }

    /// One step was taken.
    #[inline]
    pub fn step(&self) {
        self.steps(1);
    }

    /// So many steps were taken, or are about to be taken at a stretch.
    #[inline]
    pub fn steps(&self, count: usize) {
        #[cfg(test)]
        self.0.taken.set(self.0.taken.get().saturating_add(count));
        let left = self.0.left.get() as usize;
        if count < left {
            self.0.left.set((left - count) as u32);
        } else {
            self.beat();
        }
    }

    /// So many bytes were gone through, or are about to be at a stretch.
    #[inline]
    pub fn bytes(&self, count: usize) {
        if count >= BYTES_PER_STEP {
            self.steps(count / BYTES_PER_STEP);
        }
    }

    /// Lets `write` append each of `items` to a reply. Counts a step for each, and stops once the
    /// reply exceeds its bound. Returns how many were written.
    pub fn reply_each<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        reply: &mut Reply,
        mut write: impl FnMut(T, &mut Reply),
    ) -> usize {
        let mut count = 0;
        for item in items {
            self.step();
            if reply.is_over() {
                break;
            }
            write(item, reply);
            count += 1;
        }
        count
    }

    #[cold]
    fn beat(&self) {
        self.0.left.set(self.0.steps_per_pulse.get());
        let pulse = self.0.pulse.borrow().clone();
        let Some(pulse) = pulse.as_deref() else { return };
        let Ok(mut pulse) = pulse.try_borrow_mut() else {
            debug_assert!(false, "whom it calls counts no steps");
            return;
        };
        pulse.beat();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Beats(u32);

    impl Pulse for Beats {
        fn beat(&mut self) {
            self.0 += 1;
        }
    }

    #[test]
    fn a_pulse_comes_with_so_many_steps_whoever_counts_them() {
        let (work, beats) = (Work::default(), Rc::new(RefCell::new(Beats(0))));
        work.set_pulse(beats.clone());
        let copy = work.clone();
        for _ in 0..STEPS_PER_PULSE / 2 {
            work.step();
            copy.step();
        }
        assert_eq!(beats.borrow().0, 1);
        work.bytes(BYTES_PER_STEP * (STEPS_PER_PULSE as usize - 1));
        assert_eq!(beats.borrow().0, 1);
        work.bytes(BYTES_PER_STEP - 1);
        assert_eq!(beats.borrow().0, 1, "less than a step");
        work.steps(usize::MAX);
        assert_eq!(beats.borrow().0, 2);
    }
}
