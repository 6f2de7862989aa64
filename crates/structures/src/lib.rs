//! Compact forms of the data types, and the quarantine for unsafe code.
//!
//! What leaves the process raw (listpack, intset, HyperLogLog) is byte for byte what Redis writes.
//! Each module uses those below it in the table; `cargo xtask tidy` checks it.
//!
//! | file | holds | unsafe |
//! |---|---|---|
//! | [`sorted_set`] | a table and a tree over the same members | yes |
//! | [`entry`] | a key, its expiry and its value in one allocation | yes |
//! | [`member`] | a set's member, a hash's field, a sorted set's member | yes |
//! | [`quicklist`] | a list as a chain of listpacks | |
//! | [`table`] | the hash table of keys, and of big hashes and sets | calls [`Element`] |
//! | [`ordered`] | the counted B+tree | |
//! | [`listpack`], [`intset`] | small collections, as Redis stores them | |
//! | [`hll`] | HyperLogLog, as Redis stores it | |
//! | `prefetch` | a hint to the processor | yes |
//! | [`slow_touch`] | for measurements: memory that answers late | yes |
//! | [`heap`] | the blocks of values, in ordinary or slow memory | yes |
//! | [`ratio`] | which blocks lie in slow memory, so that a share of all bytes does | |
//! | [`mover`] | blocks that are allocated anew because of where they lie | |
//! | `size_class`, `varint` | the allocator's sizes, lengths in few bytes | `varint` |
//! | `twin`, `chosen` | for tests: safe twins, keys that an attacker would choose | |
//!
//! Deliberately absent:
//! - What a command means, what a type is called, and when an encoding changes: a structure knows
//!   bytes and order.
//! - Threads, locks and clocks: a structure has one owner, and does nothing by itself. Long work
//!   (growing a table, walking it) is handed out in steps. What all threads share is [`heap`]'s
//!   count of blocks, which are freed wherever their value is.

#[cfg(any(test, feature = "twins"))]
pub mod chosen;
pub mod entry;
pub mod heap;
pub mod hll;
pub mod intset;
pub mod listpack;
pub mod member;
pub mod mover;
pub mod ordered;
mod prefetch;
pub mod quicklist;
pub mod ratio;
mod size_class;
pub mod slow_touch;
pub mod sorted_set;
pub mod table;
#[cfg(any(test, feature = "twins"))]
pub mod twin;
mod varint;

pub use entry::{Cold, Entry, EntryMut, EntryRef, Payload, ValueRef};
pub use intset::Intset;
pub use listpack::Listpack;
pub use member::{Field, FieldMut, FieldRef, Member, MemberBuffer, MemberRef};
pub use mover::{Met, Mover, WHOLE_BYTES_MAX};
pub use ordered::OrderedTree;
pub use prefetch::prefetch_item;
pub use quicklist::Quicklist;
pub use sorted_set::{Scored, SortedSet};
pub use table::{Element, KeyHasher, Occupied, Table};
