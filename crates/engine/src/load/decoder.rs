//! A file of our own, read where its keyspace is not: on a thread of its own.

use super::decoded::Decoded;
use super::parser::{Parser, Until};
use crate::keyspace::Keyspace;
use crate::rdb::{RdbError, Source};
use crate::settings::Settings;
use crate::value::Recipe;
use crate::work::Work;
use base::UnixMillis;
use std::io::{self, Read};
use structures::KeyHasher;

/// Reads one file that this program wrote, for a keyspace that need not be at hand.
pub struct Decoder<R> {
    parser: Parser<R>,
    settings: Settings,
    hasher: KeyHasher,
}

impl<R: Read> Decoder<R> {
    /// Reads from a stream that checks its own bytes: until [`Decoded::is_end`] nothing that was
    /// read may be relied on. `keys` is how many the file has, from somebody who knows: memory for
    /// them is taken at once, where they are put in.
    pub fn of_own_file(stream: R, keys: u64, now: UnixMillis, keyspace: &Keyspace) -> Self {
        Self {
            parser: Parser::new(Source::without_checksum(stream), keys, now),
            settings: keyspace.settings.clone(),
            hasher: keyspace.hasher(),
        }
    }

    /// Reads up to `keys_max` more keys, or fewer: about `bytes_max` of the file. A value larger
    /// than that takes several calls, and comes with the last.
    ///
    /// # Errors
    /// [`RdbError`]; what was read of the file is then of no use.
    pub fn decode(&mut self, keys_max: u64, bytes_max: u64) -> Result<Decoded, RdbError> {
        let Self { parser, settings, hasher } = self;
        // Nobody waits for a command here, so nobody is called.
        let work = Work::default();
        let recipe = Recipe { settings, hasher: *hasher, work: &work };
        let keys = parser.keys.saturating_add(keys_max);
        let bytes = parser.source.offset().saturating_add(bytes_max);
        let mut decoded = Decoded::default();
        parser.read(&recipe, Until { keys, bytes }, &mut decoded)?;
        Ok(decoded)
    }

    /// Reads the rest of the stream, so that it has checked all of its bytes.
    ///
    /// # Errors
    /// The stream's.
    pub fn check_rest(&mut self) -> io::Result<()> {
        io::copy(self.parser.source.stream_mut(), &mut io::sink()).map(|_| ())
    }
}
