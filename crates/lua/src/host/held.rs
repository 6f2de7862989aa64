//! Bytes that Lua does not count, though they are there for what a script does. Whatever would
//! become more of them is refused if they and what Lua counts are beyond the memory limit. Lua
//! itself may still come to the limit beside them: both together to twice as much.

use super::Host;
use std::rc::Rc;

/// The bytes of a buffer that a function in Rust keeps while it calls functions of the script.
/// Those may call it again, and each call has a buffer of its own.
pub(crate) struct Held {
    host: Rc<Host>,
    bytes: usize,
}

impl Held {
    pub(crate) fn none(host: &Rc<Host>) -> Self {
        Self { host: Rc::clone(host), bytes: 0 }
    }

    /// It holds so many bytes from now on.
    pub(crate) fn set(&mut self, bytes: usize) {
        let held = &self.host.held;
        held.set(held.get() - self.bytes + bytes);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Host {
    /// Bytes that functions in Rust hold, and those beside the functions that are kept.
    pub(crate) fn held_bytes(&self) -> usize {
        let beside = self.compiled.borrow().as_ref().map_or(0, |compiled| compiled.beside());
        self.held.get() + beside
    }
}
