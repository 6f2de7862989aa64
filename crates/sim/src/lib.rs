#![forbid(unsafe_code)]
//! The simulated world: deterministic from a seed, with faults.
//!
//! | file | holds |
//! |---|---|
//! | [`timeline`] | what happens when, and the trace of what did |
//! | [`clock`] | a machine's clocks, which can be wrong |
//! | [`random`] | numbers from a seed |

pub mod clock;
pub mod random;
pub mod timeline;
