//! The wire: Redis's serialization protocol, versions 2 and 3, read and written.
//!
//! No I/O and no session state beyond one half-read request, so that the server, the simulator and
//! the command-line tools share it and a fuzzer can reach all of it.
//!
//! | module | holds |
//! |---|---|
//! | [`decode`] | requests out of an input buffer, a piece at a time, arguments not copied |
//! | [`inline`] | the line form of a request, with its quoting rules |
//! | [`client`] | requests and answers of one line, as servers speak to each other |
//! | [`hint`] | a look ahead, for prefetching |
//! | [`error`] | what a client did wrong on the wire, in Redis's words |
//! | [`encode`] | replies into an output buffer, for either protocol |
//! | [`integer`] | Redis's strict decimal integers |
//! | [`format_double`] | doubles as C's `%.17g` prints them |
//!
//! Absent on purpose: commands, sessions and limits of clients, which are told to it; any copy of
//! an argument, which stays in the buffer that it arrived in.
#![forbid(unsafe_code)]

pub mod client;
pub mod decode;
pub mod encode;
pub mod error;
pub mod format_double;
pub mod hint;
pub mod inline;
pub mod integer;

pub use decode::{ArgumentRanges, Decoded, Decoder, Limits};
pub use encode::{Deferred, Protocol, Reply};
pub use error::ProtocolError;
