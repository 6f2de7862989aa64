//! Redis as a value: a request, the time and a seed go in, a reply and effects come out.
//!
//! Pure and deterministic: no clock, no I/O, no thread, no randomness that is not passed in.
//!
//! | module | holds |
//! |---|---|
//! | [`keyspace`] | the databases: tables of entries, expiry times |
//! | [`master`] | the server of Redis that the shard follows, as its log says |
//! | [`value`] | what a key can hold, and in which encoding |
//! | [`effect`] | changes as outcomes, and their bytes in the log |
//! | [`apply`] | the one place where keys change, on every role |
//! | [`tx`], [`view`] | the keyspace as a writing and a reading command sees it |
//! | [`unit`] | what one unit did, saw and said |
//! | [`feed`] | effects told as Redis commands, for replicas that know no effects |
//! | [`execute`] | runs one command, deletes what it found expired |
//! | [`work`] | counts the steps of long commands, so that the node can act amid one |
//! | [`eviction`] | which keys go when memory is short |
//! | [`command`] | the declaration of commands, and one file per family |
//! | [`digest`] | what keys hold in 128 bits, for comparison |
//! | [`interest`] | who must hear of changes: watched keys, blocked clients, subscribers |
//! | [`debug_digest`] | the same as Redis computes it, to compare with a Redis server |
//! | [`notify`], [`subscribers`] | keyspace notifications, published messages, who gets them |
//! | [`snapshot`] | the whole keyspace as it was at one instant, beside writes |
//! | [`rdb`] | values and files in Redis's snapshot format |
//! | [`glob`], [`number`] | Redis's patterns, and its numbers as text |
//! | [`geohash`] | places on Earth as scores |
//! | [`sha1`] | the hash that names scripts and makes digests |
#![forbid(unsafe_code)]

pub mod access;
pub mod apply;
pub mod command;
pub mod debug_digest;
pub mod digest;
pub mod effect;
pub mod eviction;
pub mod execute;
pub mod expiries;
pub mod feed;
#[cfg(test)]
mod flood;
pub mod geohash;
pub mod glob;
pub mod interest;
pub mod keyspace;
pub mod master;
pub mod notify;
pub mod number;
mod prefetch;
pub mod random;
pub mod rdb;
pub mod refusal;
pub mod settings;
pub mod sha1;
pub mod slot;
pub mod snapshot;
pub mod statistics;
pub mod subscribers;
#[cfg(test)]
pub mod testing;
pub mod tx;
pub mod unit;
pub mod value;
pub mod view;
pub mod work;

#[cfg(feature = "twins")]
pub use structures::chosen;
