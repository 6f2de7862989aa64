//! The sizes at which a turn's work is divided, and queues are full.
//!
//! A server is handed them when it begins, so that the simulator can draw small ones from its
//! seed: then each edge is walked in every run. What an operator may set is a directive instead.

use engine::settings::Limits as EngineLimits;
use shard::Limits as ShardLimits;

/// How much is done at a time, and may wait. What serves is the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Those of commands, of a snapshot's walk, and of loading one.
    pub engine: EngineLimits,
    /// Those of records, and of what replies wait for.
    pub shard: ShardLimits,
    /// Keys deleted in one turn because their time has come.
    pub expired_keys_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            engine: EngineLimits::default(),
            shard: ShardLimits::default(),
            expired_keys_max: 256,
        }
    }
}
