//! Redis as a value: a request, the time and a seed go in, a reply and effects come out.
//!
//! A request comes in at the top of the table: a command reads and changes keys through `view`
//! and `tx`, these use the keyspace, and the keyspace is made of values. Each module uses only
//! its own floor and those below; `cargo xtask tidy` checks it.
//!
//! | floor | module | holds |
//! |---|---|---|
//! | run | [`eviction`] | which keys go when memory is short |
//! | | [`execute`] | runs one command, deletes what it found expired |
//! | commands | [`command`] | the declaration of commands, and one file per family |
//! | | [`import`] | a foreign RDB file into effects, as its bytes arrive |
//! | access | `tx`, `view` | the keyspace as a writing and a reading command sees it |
//! | | [`replay`] | applies the records of the log, on replicas and in recovery |
//! | change | `apply` | the one place where keys change, on every role |
//! | | [`interest`] | who must hear of changes: watched keys, blocked clients, subscribers |
//! | | `translate` | an effect as a command, for replicas that know no effects |
//! | | [`load`] | an RDB file into an empty keyspace |
//! | | [`digest`] | what keys hold in 128 bits, for comparison |
//! | | [`debug_digest`] | the same as Redis computes it, to compare with a Redis server |
//! | | [`cold`] | values that are not in memory: spilled, fetched |
//! | | [`moving`] | blocks of memory allocated anew, because of where they lie |
//! | state | [`keyspace`] | the databases: tables of entries, expiry times |
//! | | `snapshot` | the whole keyspace as it was at one instant, beside writes |
//! | parts | [`unit`] | what one unit did, saw and said |
//! | | [`save`], [`dump`] | entries of an RDB file and its frame; one value as DUMP gives it |
//! | | [`notify`] | keyspace notifications and published messages |
//! | | `feed` | the commands that a unit amounts to, for replicas that know no effects |
//! | | [`value`] | what a key can hold, and in which encoding |
//! | | [`rdb`] | the numbers, strings and checksums of Redis's snapshot format |
//! | | [`subscribers`] | who is subscribed to what |
//! | | `expiries` | which key expires next |
//! | | [`effect`] | changes as outcomes, and their bytes in the log |
//! | nouns | [`settings`], `statistics` | what is configured, what is counted |
//! | | [`functions`] | libraries of functions, as data |
//! | | [`master`] | the server of Redis that the shard follows, as its log says |
//! | | [`access`] | how recently or often a key was used |
//! | | [`work`] | counts the steps of long commands, so that the node can act amid one |
//! | | [`ids`], [`slot`] | names of keys and clients, slots of a cluster |
//! | | [`stream_id`] | names of a stream's entries |
//! | | [`refusal`], `random` | what a client did wrong, chance from a seed |
//! | | [`glob`], `number` | Redis's patterns, and its numbers as text |
//! | | `geohash` | positions on Earth as scores |
//!
//! Deliberately absent:
//! - A clock, I/O, threads, and randomness that is not passed in: the same calls with the same
//!   seed give the same bytes, which the simulator and every replica rely on.
//! - Sessions, users and authorization: whoever calls has decided that the command may run.
//! - The log: effects are handed out as bytes, and who makes them durable is the caller's
//!   business.
#![forbid(unsafe_code)]

pub mod access;
mod apply;
pub mod cold;
pub mod command;
pub mod debug_digest;
pub mod digest;
pub mod dump;
pub mod effect;
pub mod eviction;
pub mod execute;
mod expiries;
mod feed;
#[cfg(test)]
mod flood;
pub mod functions;
mod geohash;
pub mod glob;
pub mod ids;
pub mod import;
pub mod interest;
pub mod keyspace;
pub mod load;
pub mod master;
pub mod moving;
pub mod notify;
mod number;
pub mod prefetch;
mod random;
pub mod rdb;
pub mod refusal;
pub mod replay;
pub mod save;
pub mod settings;
pub mod slot;
pub mod snapshot;
mod statistics;
pub mod stream_id;
pub mod subscribers;
#[cfg(test)]
pub mod testing;
mod translate;
mod tx;
pub mod unit;
pub mod value;
mod view;
pub mod work;

#[cfg(feature = "twins")]
pub use structures::chosen;
