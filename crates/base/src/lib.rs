//! The nouns that every other crate speaks, and the traits through which the product sees the
//! world. No logic lives here, but for one hash that crates of one floor share: a rule belongs to
//! the crate that keeps it.
//!
//! | file | holds |
//! |---|---|
//! | [`ids`] | positions, epochs, slots, databases: integers that must not be swapped |
//! | [`time`] | wall-clock and monotonic instants, and the [`Clock`] that tells them |
//! | [`disk`] | files, directories and the queue that runs disk work off the loop |
//! | [`heap`] | how the allocator's blocks lie, for who moves them |
//! | [`machine`] | the process and what it uses, for INFO |
//! | [`slow_memory`] | how values are divided between ordinary and slow memory |
//! | [`driver`] | the execution loop's only seam to sockets, timers, signals and wake-ups |
//! | [`tls`] | settings of encrypted connections |
//! | [`secrets`] | overwriting the stack after work with a secret |
//! | [`seeds`] | the secret numbers of a process: the key of its hash, the seed of its choices |
//! | [`sha1`] | the hash that names scripts, and of which DEBUG DIGEST is made |
//!
//! Absent on purpose: every implementation of these traits (`world` has the real ones, `sim` the
//! simulated), and every noun that only one crate speaks.
#![forbid(unsafe_code)]

pub mod disk;
pub mod driver;
pub mod heap;
pub mod ids;
pub mod machine;
pub mod secrets;
pub mod seeds;
pub mod sha1;
pub mod slow_memory;
pub mod time;
pub mod tls;

pub use disk::{Disk, DiskFile, DiskQueue, DiskTicket};
pub use driver::{ConnectionId, Driver, Event};
pub use ids::{DatabaseId, Epoch, Incarnation, Position, Sequence, Slot};
pub use machine::Machine;
pub use seeds::{HashKey, Seeds};
pub use time::{Clock, Moment, MonotonicNanos, UnixMillis};
