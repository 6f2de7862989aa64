//! Who leads a shard, as far as that is a matter of its log, its records and clocks.
//!
//! | file | holds |
//! |---|---|
//! | [`lease_clock`] | the clocks that a lease is counted by |
//! | [`member`] | who takes part, as records carry it |
//! | [`heartbeat`] | what records say of who leads |
//! | [`renewal`] | when a record renews the lease and says nothing else |
//! | [`state`] | leadership and lease as a pure state machine |

pub mod heartbeat;
pub mod lease_clock;
pub mod member;
pub mod renewal;
pub mod state;
#[cfg(test)]
mod tests;
