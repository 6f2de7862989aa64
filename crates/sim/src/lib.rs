#![forbid(unsafe_code)]
//! The simulated world: deterministic from a seed, with faults.
//!
//! | file | holds |
//! |---|---|
//! | [`timeline`] | what happens when, and the trace of what did |
//! | [`clock`] | a machine's clocks, which can be wrong |
//! | [`driver`] | a node's end of the network |
//! | [`network`] | clients, the bytes under way, and what goes wrong with them |
//! | [`random`] | numbers from a seed |

pub mod clock;
pub mod driver;
pub mod network;
pub mod random;
pub mod timeline;
