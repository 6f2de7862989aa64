//! Values that memory has no room for, as opaque bytes on a file.
//!
//! The crate decides where each record lies, what is written when, what is free, and which segment
//! is emptied next. It does no I/O: it hands out what to write and what to read, and is told what
//! became of it.
//!
//! The tier is a cache of the log. Nothing of its file is read after a start, so the layout has no
//! version and may change with every release. Records are immutable. A record lies in memory, in a
//! piece that is open or being written, or on disk; its place says which bytes, not which of both.
//!
//! ```text
//! file      | segment 0 | segment 1 | segment 2 | …             8 MiB each
//! segment   | piece | piece | long record, a piece of its own | piece | unused
//! piece     | page | page | page | …                            256 KiB, written at once
//! page      | record | record | record | zeroes                 4 KiB, encrypted as one unit
//! record    | crc32c u32 | content length u32 | key hash u64 | content | zeroes to 16
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `limits` | how large everything is |
//! | `place` | where a record lies, in eight bytes |
//! | `record` | a record's bytes |
//! | `seal` | the encryption of pages |
//! | `segment` | what is known of one segment |
//! | `segments` | which parts of the file are in use, and how much of each is live |
//! | `victim` | which segment is worth cleaning |
//! | `stream` | where the next record goes: an open segment, and an open piece |
//! | `draft` | a long record in the making |
//! | `pieces` | the full pieces in memory, waiting for their write |
//! | `read` | one record, read back from the file |
//! | `cleaning` | one segment, read back in chunks so that its live records move |
//! | `tier` | all of it together |
//! | `figures` | what a tier holds, and has done |
//!
//! Absent on purpose: files, threads and clocks; which key has which place, and which value is
//! spilled: the caller knows; authenticity: a checksum inside the encryption finds bytes that are
//! damaged, old or elsewhere's, but not a forger with time.
#![forbid(unsafe_code)]

mod cleaning;
mod draft;
mod figures;
mod limits;
mod pieces;
mod place;
mod read;
mod record;
mod seal;
mod segment;
mod segments;
mod stream;
mod tier;
mod victim;

#[cfg(test)]
mod tests;

pub use cleaning::{Chunk, Cleaning, Found};
pub use draft::Draft;
pub use figures::Figures;
pub use limits::{Limits, PAGE_BYTES, SMALL_BYTES_MAX};
pub use pieces::{Shared, Write, WriteId};
pub use place::Place;
pub use read::Read;
pub use record::Damaged;
pub use seal::{HeldKeys, Keys, Sealer};
pub use segments::{Generations, Hold};
pub use tier::{Refused, Tier};
