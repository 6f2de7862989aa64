//! The stack after work with a secret, and how it is overwritten.

use std::hint::black_box;

/// Overwrites the stack below its caller, where what the caller called before has left what it
/// worked with. Whatever that was must not have been inlined.
#[inline(never)]
pub fn overwrite_stack<const BYTES: usize>() {
    black_box(&mut [0_u8; BYTES]);
}
