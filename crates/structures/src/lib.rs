//! Compact forms of the data types, and the quarantine for unsafe code.
//!
//! A structure here knows bytes and order, never what a command means or what a type is called.
//! What leaves the process raw (listpack, intset, HyperLogLog) is byte for byte what Redis writes.
//!
//! | file | holds | unsafe |
//! |---|---|---|
//! | [`table`] | the hash table of keys, and of big hashes and sets | calls [`Element`] |
//! | [`entry`] | a key, its expiry and its value in one allocation | yes |
//! | [`member`] | a set's member, a hash's field, a sorted set's member | yes |
//! | [`sorted_set`] | a table and a tree over the same members | yes |
//! | [`ordered`] | the counted B+tree | |
//! | [`listpack`], [`intset`] | small collections, as Redis stores them | |
//! | [`quicklist`] | a list as a chain of listpacks | |
//! | [`hll`] | HyperLogLog, as Redis stores it | |
//! | `chosen` | keys that an attacker would choose, for tests | |

#[cfg(any(test, feature = "twins"))]
pub mod chosen;
pub mod entry;
pub mod hll;
pub mod intset;
pub mod listpack;
pub mod member;
pub mod ordered;
mod prefetch;
pub mod quicklist;
mod size_class;
pub mod sorted_set;
pub mod table;
#[cfg(any(test, feature = "twins"))]
pub mod twin;
mod varint;

pub use entry::{Entry, EntryMut, EntryRef, Payload, ValueRef};
pub use intset::Intset;
pub use listpack::Listpack;
pub use member::{Field, FieldMut, FieldRef, Member, MemberBuffer, MemberRef};
pub use ordered::OrderedTree;
pub use quicklist::Quicklist;
pub use sorted_set::{Scored, SortedSet};
pub use table::{Element, KeyHasher, Occupied, Table};
