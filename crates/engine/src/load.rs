//! A whole file into a keyspace: in slices, or read elsewhere and put in here.
//!
//! ```text
//! Loader                   parser ─▶ Decoded ─▶ keyspace          on one thread
//! Decoder, Keyspace::take_in   parser ─▶ Decoded ┈┈▶ keyspace     read by others
//! ```
//! Fast, because a restart waits for it: keys are known to be new, so nothing is looked up twice,
//! tables are laid out for all keys at once, and segments and their buckets are asked for
//! before entries enter them.

mod decoded;
mod decoder;
mod parser;
mod reload;

use crate::keyspace::Keyspace;
use crate::rdb::{RdbError, Source};
use base::UnixMillis;
pub use decoded::Decoded;
use decoded::SEGMENTS_AHEAD;
pub use decoder::Decoder;
use parser::{Parser, Until};
use std::io::Read;

/// Loads one file.
pub struct Loader<R> {
    parser: Parser<R>,
    /// The file is one of our own: no key stands in it twice.
    is_own: bool,
    decoded: Decoded,
}

impl<R: Read> Loader<R> {
    pub fn new(stream: R, now: UnixMillis) -> Self {
        Self::of_parser(Parser::new(Source::new(stream), 0, now), false)
    }

    /// Loads a snapshot that this program wrote, from a stream that checks its own bytes: neither
    /// is the checksum computed a second time, nor is every key looked for before it is inserted.
    /// Together that is about a quarter of the time. Until the stream has reached its end nothing
    /// that was loaded may be relied on.
    ///
    /// `keys` is how many the file has, from somebody who knows: memory for them is taken at once.
    pub fn of_own_file(stream: R, keys: u64, now: UnixMillis) -> Self {
        Self::of_parser(Parser::new(Source::without_checksum(stream), keys, now), true)
    }

    fn of_parser(parser: Parser<R>, is_own: bool) -> Self {
        Self { parser, is_own, decoded: Decoded::default() }
    }

    /// Bytes of the file used so far.
    pub fn offset(&self) -> u64 {
        self.parser.source.offset()
    }

    /// Keys loaded so far.
    pub fn keys_loaded(&self) -> u64 {
        self.parser.keys
    }

    /// Loads up to about `entries_max` keys, or fewer if they are long: one slice takes about
    /// [`crate::settings::Limits::load_slice_bytes`]. Whether the file is finished. A large value
    /// takes several slices, and its key is not there before the last. Keys past their time are
    /// kept: the log says when they went.
    ///
    /// # Errors
    /// [`RdbError`]; the keyspace then holds a part of the file and is of no use.
    pub fn load(&mut self, keyspace: &mut Keyspace, entries_max: u64) -> Result<bool, RdbError> {
        let last = self.parser.keys.saturating_add(entries_max);
        let bytes = self.offset() + keyspace.settings.limits.load_slice_bytes;
        while !self.parser.is_done && self.parser.keys < last && self.offset() < bytes {
            let keys = last.min(self.parser.keys.saturating_add(SEGMENTS_AHEAD as u64));
            let until = Until { keys, bytes };
            self.parser.read(&keyspace.recipe(), until, &mut self.decoded)?;
            if !keyspace.put_in(&mut self.decoded, self.is_own)? {
                return Err(self.parser.source.damaged("a key that stands in the file twice"));
            }
        }
        Ok(self.parser.is_done)
    }

    /// Loads the rest of the file, however long that takes.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_all(&mut self, keyspace: &mut Keyspace) -> Result<(), RdbError> {
        while !self.load(keyspace, u64::MAX)? {}
        Ok(())
    }
}

#[cfg(test)]
mod tests;
