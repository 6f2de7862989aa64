//! Pins: values that stay in memory because requests wait for others beside them.

use super::ColdStore;
use crate::ids::KeyHash;

impl ColdStore {
    /// Keeps values of keys with this hash in memory, once they are: a request waits for others
    /// beside them. As often as it is pinned, it must be unpinned.
    pub fn pin(&mut self, hash: KeyHash) {
        *self.pins.entry(hash).or_default() += 1;
        self.pin_count += 1;
    }

    /// Ends a pin.
    pub fn unpin(&mut self, hash: KeyHash) {
        if let Some(count) = self.pins.get_mut(&hash) {
            *count -= 1;
            self.pin_count -= 1;
            if *count == 0 {
                self.pins.remove(&hash);
                self.free_guests(hash);
            }
        }
    }

    /// True if the request that runs has pins.
    pub fn has_own_pins(&self) -> bool {
        self.own_pins > 0
    }

    /// From now on so many pins are those of the request that runs.
    pub fn set_own_pins(&mut self, count: usize) {
        self.own_pins = count;
    }

    /// Whether pins are held by requests beside the one that runs: they will end.
    pub(super) fn waits_for_pins(&self) -> bool {
        self.pin_count > self.own_pins
    }

    pub(super) fn is_pinned(&self, hash: KeyHash) -> bool {
        !self.pins.is_empty() && self.pins.contains_key(&hash)
    }
}
