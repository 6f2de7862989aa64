//! What goes wrong, done to the world: the weather says what, and this to whom and how it ends.

use super::weather::Disturbance;
use super::world::{Slot, World};
use crate::clock::Awakening;
use crate::network::NetworkFaults;
use crate::odds::Odds;
use base::{MonotonicNanos, Sequence};

impl World {
    /// What goes wrong at this instant begins.
    pub fn disturb(&self, now: MonotonicNanos) {
        let disturbance = self.weather.borrow_mut().next(now);
        let Some(disturbance) = disturbance else { return };
        let index = self.victim();
        let slot = &self.slots[index];
        let until = |nanos: u64| MonotonicNanos(now.0 + nanos);
        let mut seen = self.seen.borrow_mut();
        match disturbance {
            Disturbance::Pause(nanos) => {
                seen.pauses += 1;
                slot.idle_until.set(slot.idle_until.get().max(until(nanos)));
            }
            Disturbance::Freeze(nanos, awakening) => {
                drop(seen);
                self.freeze(slot, nanos, awakening);
            }
            Disturbance::Crash if slot.process.borrow().is_some() => {
                seen.crashes += 1;
                self.end_quietly(index);
            }
            Disturbance::Crash => {}
            Disturbance::Stop => {
                seen.stops += 1;
                self.network.ask_to_stop(&slot.machine.name);
            }
            Disturbance::Cut(nanos) => {
                seen.cuts += 1;
                slot.cut_until.set(until(nanos));
                self.set_reachable(slot, false);
            }
            Disturbance::Stall(nanos) => {
                seen.stalls += 1;
                self.stalled_until.set(until(nanos));
                self.service.set_stalled(true);
            }
            Disturbance::Odds(odds) => {
                *slot.odds.lock().expect("nobody panics with it") = odds;
            }
            Disturbance::Jump(_) if slot.are_clocks_touched.get() => {}
            Disturbance::Jump(micros) => {
                seen.jumps += 1;
                slot.are_clocks_touched.set(true);
                slot.machine.clock.step_wall(micros);
            }
        }
    }

    /// A machine stands still, and its monotonic clock with it. Whoever calls this sees to it that
    /// its process does nothing meanwhile.
    pub fn freeze(&self, slot: &Slot, nanos: u64, awakening: Awakening) {
        if !slot.are_clocks_touched.replace(true) {
            self.seen.borrow_mut().freezes += 1;
            slot.machine.clock.freeze(nanos, awakening);
        }
    }

    /// Whom the next disturbance meets.
    fn victim(&self) -> usize {
        let leads =
            |slot: &Slot| slot.process.borrow().as_ref().is_some_and(|process| process.leads());
        let mut weather = self.weather.borrow_mut();
        let primary = self.slots.iter().position(leads).filter(|_| weather.means_primary());
        primary.unwrap_or_else(|| weather.victim(self.slots.len()))
    }

    /// Nothing goes wrong any more, and what does is over.
    pub fn heal(&self) {
        self.weather.borrow_mut().end();
        self.network.set_faults(NetworkFaults::benign());
        self.service.set_stalled(false);
        self.storage.heal();
        self.is_healed.set(true);
        for slot in &self.slots {
            if let Some(process) = &*slot.process.borrow() {
                process.heal();
            }
            *slot.odds.lock().expect("nobody panics with it") = Odds::benign();
            slot.cut_until.set(MonotonicNanos(0));
            self.set_reachable(slot, true);
            slot.idle_until.set(MonotonicNanos(0));
        }
    }

    /// What has lasted long enough ends.
    pub fn end_disturbances(&self, now: MonotonicNanos) {
        for slot in &self.slots {
            let until = slot.cut_until.get();
            if until > MonotonicNanos(0) && now >= until {
                slot.cut_until.set(MonotonicNanos(0));
                self.set_reachable(slot, true);
            }
        }
        if now >= self.stalled_until.get() {
            self.service.set_stalled(false);
        }
    }

    /// Only one process starts, until all are woken; which.
    pub fn leave_one(&self) -> usize {
        let chosen = self.service.tail().sequence.0 as usize % self.slots.len();
        for (index, slot) in self.slots.iter().enumerate() {
            let idle_until = if index == chosen { 0 } else { u64::MAX >> 1 };
            slot.idle_until.set(MonotonicNanos(idle_until));
        }
        chosen
    }

    pub fn wake_all(&self) {
        self.slots.iter().for_each(|slot| slot.idle_until.set(MonotonicNanos(0)));
    }

    /// What there was of archive and keys.
    pub fn sum_up(&self, moments: u64) {
        let mut seen = self.seen.borrow_mut();
        seen.off_box.moments = moments;
        seen.off_box.faults = self.storage.odds.met();
        seen.off_box.trimmed_logs = u64::from(self.service.record(Sequence(1)).is_none());
        seen.off_box.encrypted = u64::from(self.storage.is_encrypted());
        seen.off_box.rotated = u64::from(self.storage.is_rotated());
    }

    /// Connects a process with the log, or cuts it off.
    pub fn set_reachable(&self, slot: &Slot, is_reachable: bool) {
        if let Some(wire) = &*slot.wire.borrow() {
            wire.set_reachable(is_reachable);
        }
    }
}
