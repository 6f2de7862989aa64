//! A shard with clients: sessions, gate, execution.
//!
//! The only place where the shard and the wire meet. A request flows through these
//! files, in this order:
//!
//! | module | does |
//! |---|---|
//! | `begin` | puts commands, users and server together |
//! | [`reactor`] | turns the loop: receive, parse, prefetch, execute, append, send |
//! | [`session`] | one connection's input and state |
//! | [`gate`] | every reason to refuse, before execution |
//! | `acl` | denies what a user may not do, ends connections that lost a right |
//! | [`dispatch`] | executes within a unit |
//! | [`functions`] | what each command does |
//! | `expiry` | by which clock keys are past their time, and when they go |
//! | `cross_protocol` | ends connections through which a web page speaks |
//! | [`blocked`], [`pubsub`] | wake waiting clients, deliver messages |
//! | [`output`] | withholds replies until then |
//! | `client_memory` | disconnects the largest clients when all take too much |
//! | `flush` | sends them, holds back who does not read |
//! | [`feed`] | tells replicas of Redis what happens, as commands |
//! | `saves` | who asked for a snapshot, and waits for it |
//! | [`start`] | turns the loop while the shard loads |
//! | [`role`] | primary or replica of the transaction log: leadership and its lease |
//! | [`members`] | replicas of the log and their primary tell each other how far they are |
//! | [`link`] | follows a Redis server, to take over its data |
//! | `migrate` | moves keys to another server |
//! | [`metrics`] | figures for whoever watches |
//! | [`configured`] | checks the names and the users that the configuration declares |
#![forbid(unsafe_code)]

mod announce;
mod begin;
pub mod command;
pub mod configured;
pub mod core;
mod cross_protocol;
pub mod feed;
pub mod histogram;
pub mod latency;
pub mod link;
pub mod members;
pub mod metrics;
mod migrate;
pub mod output;
mod scripts;
pub mod server;
pub mod session;
pub mod slowlog;
pub mod statistics;
mod switches;

pub use begin::begin;
pub use configured::configured;
pub use core::{Options, Stop};
pub use server::Server;

/// The version of Redis whose behaviour this is: what HELLO and INFO show as `redis_version`,
/// because clients choose their commands by it.
pub const REDIS_VERSION: &str = "7.0.15";
