//! What servers say to each other over connections that one of them asked for.
//!
//! Machines without clock or thread. One moves bytes over a connection; the others are dialogues:
//! what arrived goes in, what to say and what was learned come out. Whoever owns them brings the
//! two together (`node`).
//!
//! | module | between | holds |
//! |---|---|---|
//! | [`outgoing`] | any two | the connection: dialed, listened to, given up, dialed again |
//! | [`handshake`] | a shard and its master of Redis | what is said before the data comes |
//! | [`data_set`] | | where the master's file begins and ends in what arrives |
//! | [`report`] | a replica of the log and its primary | the words: how far, who else is there |
//! | [`reports`] | | what the primary knows of its replicas; who should lead next |
//! | [`failover`] | | a planned failover: whom to wait for, when to hand over |
//! | [`restore`] | the source of a migration and its target | keys and answers |
//! | [`idle`] | | connections kept for the next migration |
//!
//! How a request and a line look is `resp::client`'s.
//!
//! Deliberately absent: sockets (`base::Driver` is handed in), the shard's data (a data set is read
//! by `engine::import`, keys are dumped by `engine::dump`), sessions and what is withheld from
//! them, and every decision about durability: what may be said is decided by who says it.
#![forbid(unsafe_code)]

pub mod data_set;
pub mod failover;
pub mod handshake;
pub mod idle;
pub mod outgoing;
pub mod report;
pub mod reports;
pub mod restore;
