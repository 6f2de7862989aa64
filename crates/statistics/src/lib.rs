//! What a server counts and notes of itself, for whoever operates it.
//!
//! | module | holds |
//! |---|---|
//! | [`counters`] | what INFO shows: of each command, of errors and bytes; rates; what is reset |
//! | [`histogram`] | the durations of one command |
//! | [`slowlog`] | the latest commands that took long |
//! | [`latency`] | the latency monitor: the worst moments of each sort of event |
//! | [`metrics`] | figures for Prometheus, which another thread reads |
//!
//! All of it belongs to a process, not to a shard: it outlives demotions, and several shards of a
//! process would share it.
//!
//! Deliberately absent: clocks (every instant is handed in), sessions and shards (whoever knows
//! them says what is to be counted, and reads the figures off them), and the commands that show
//! all this (`node::command`). What happens to keys is counted by `engine::statistics`.
#![forbid(unsafe_code)]

pub mod counters;
pub mod histogram;
pub mod latency;
pub mod metrics;
pub mod slowlog;

pub use counters::{CommandStatistics, Statistics};
pub use histogram::Histogram;
pub use latency::Latency;
pub use metrics::Metrics;
pub use slowlog::Slowlog;
