//! A shard with clients: sessions, gate, execution.
//!
//! The only place where the shard and the wire meet. What lies here, from below:
//!
//! | room | holds |
//! |---|---|
//! | `session`, `output` | a client: its input and state; its replies, withheld until they may go |
//! | `core` | what all features need: the shard, clients, units, limits, rights, the turn |
//! | `limits` | how much is done at a time, and may wait |
//! | `announce` | who this process is to others |
//! | `metrics` | where the figures for Prometheus come from |
//! | `cross_protocol`, `scripts`, `switches` | web pages that speak; scripts; failovers told |
//!
//! Features own their state and are handed the core:
//!
//! | room | does |
//! |---|---|
//! | `feed` | tells replicas of Redis what happens, as commands |
//! | `link` | follows a Redis server, to take over its data |
//! | `members` | replicas of the log and their primary tell each other how far they are; FAILOVER |
//! | `migrate` | moves keys to another server |
//!
//! A request flows through `server`, in this order:
//!
//! | file of `server` | does |
//! |---|---|
//! | `start` | turns the loop while the shard loads |
//! | `reactor` | turns the loop: receive, parse, prefetch, execute, append, send |
//! | `gate` | every reason to refuse, before execution |
//! | `dispatch`, `functions` | what a request waits for; executes it within a unit |
//! | `queue`, `script` | what EXEC runs; scripts, and how one is suspended |
//! | `blocked`, `copies`, `saves` | clients that wait for keys, for replicas, for a snapshot |
//! | `lease`, `news`, `nodes` | the lease; what the shard tells; who is in it |
//! | `tick` | the periodic look at the whole |
//!
//! Above it stand `command`, a file for each family of the node's own commands; `configured`,
//! which checks what a configuration declares of commands and users; and `begin`, which puts it
//! all together.
//!
//! Absent, on purpose: files and sockets (`base::Driver` and `base::DiskQueue` are handed in), how
//! a shard is kept and led (`shard`), what a command is (`catalog`), what servers say to each other
//! (`peers`), and a second thread.
#![forbid(unsafe_code)]

mod announce;
mod begin;
mod command;
mod configured;
mod core;
mod cross_protocol;
mod feed;
mod fetches;
mod libraries;
mod limits;
mod link;
mod members;
mod metrics;
mod migrate;
mod output;
mod scripts;
mod server;
mod session;
mod switches;

pub use begin::begin;
pub use command::standard;
pub use configured::{Configured, configured};
pub use core::{Broken, Options, Stop};
pub use limits::{Limits, TurnLimits};
pub use server::Server;
pub use server::functions::Function;
pub use server::reactor::Scratch;
pub use server::start::Start;
pub use statistics::Metrics;

/// The version of Redis whose behaviour this is: what HELLO and INFO show as `redis_version`,
/// because clients choose their commands by it.
pub const REDIS_VERSION: &str = "7.0.15";
