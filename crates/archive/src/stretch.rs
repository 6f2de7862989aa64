//! What a stretch of the log says about itself: consecutive records, as they stood in the log, in
//! one part.
//!
//! Its manifest is JSON, as a snapshot's is, and has its rules. The records themselves are opaque
//! here, as snapshots are.

use crate::manifest::{Part, word};
use crate::names::extent_of;
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use serde::{Deserialize, Serialize};

/// The version of the format that this build reads and writes.
const FORMAT: u32 = 1;

/// What it says it holds, which no snapshot's manifest does.
const CONTENT: &str = "log";

/// Where the log's chain stands between two records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainPoint {
    pub chain: u64,
    pub epoch: Epoch,
}

/// What a manifest says beside the part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StretchFacts {
    /// The first record, and its log.
    pub first: Position,
    pub last: Sequence,
    /// Where the chain stands before the first, and behind the last.
    pub before: ChainPoint,
    pub behind: ChainPoint,
    /// The newest clock of its records that count; that of the records before it, if none does.
    pub clock: UnixMillis,
}

/// A stretch that is published and whose manifest is whole. Its bytes are checked as they are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub name: String,
    pub facts: StretchFacts,
    pub(crate) part: Part,
}

/// The manifest, as it stands in the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Stored {
    format: u32,
    content: String,
    /// The incarnation of the log, hexadecimal.
    log: String,
    first: u64,
    last: u64,
    chain_before: String,
    epoch_before: u64,
    chain: String,
    epoch: u64,
    clock_ms: i64,
    part: Part,
    /// CRC-32C of this manifest with an empty checksum, hexadecimal.
    checksum: String,
}

impl Stretch {
    /// Bytes of its records.
    pub fn bytes(&self) -> u64 {
        self.part.bytes
    }

    /// The file's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let StretchFacts { first, last, before, behind, clock } = self.facts;
        let mut stored = Stored {
            format: FORMAT,
            content: CONTENT.to_owned(),
            log: format!("{:016x}", first.incarnation.0),
            first: first.sequence.0,
            last: last.0,
            chain_before: format!("{:016x}", before.chain),
            epoch_before: before.epoch.0,
            chain: format!("{:016x}", behind.chain),
            epoch: behind.epoch.0,
            clock_ms: clock.0,
            part: self.part.clone(),
            checksum: String::new(),
        };
        stored.checksum = stored.computed();
        let mut bytes =
            serde_json::to_vec_pretty(&stored).expect("strings and integers are always JSON");
        bytes.push(b'\n');
        bytes
    }

    /// Reads the manifest of the stretch of this name and checks it against its checksum.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Self, String> {
        /// All that is certain of a newer format.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            content: String,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if head.content != CONTENT {
            return Err(format!("it holds {:?}, not {CONTENT:?}", head.content));
        }
        if head.format != FORMAT {
            return Err(format!("it has format {}, this build reads {FORMAT}", head.format));
        }
        let stored: Stored = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if stored.checksum != stored.computed() {
            return Err("its checksum is wrong".to_owned());
        }
        let part = stored.part;
        if !part.is_well_formed() {
            return Err(format!("its part {:?} is malformed", part.name));
        }
        let point = |chain: &str, epoch| -> Result<ChainPoint, String> {
            Ok(ChainPoint { chain: word(chain)?, epoch: Epoch(epoch) })
        };
        let facts = StretchFacts {
            first: Position {
                incarnation: Incarnation(word(&stored.log)?),
                sequence: Sequence(stored.first),
            },
            last: Sequence(stored.last),
            before: point(&stored.chain_before, stored.epoch_before)?,
            behind: point(&stored.chain, stored.epoch)?,
            clock: UnixMillis(stored.clock_ms),
        };
        // A copy under another name would stand for records that it does not hold.
        let named = extent_of(name).map(|extent| (extent.first, extent.last));
        if named != Some((facts.first.sequence, facts.last)) {
            return Err(format!(
                "its manifest is that of records {} to {}",
                stored.first, stored.last
            ));
        }
        Ok(Self { name: name.to_owned(), facts, part })
    }
}

impl Stored {
    fn computed(&self) -> String {
        let blank = Self { checksum: String::new(), ..self.clone() };
        let bytes = serde_json::to_vec(&blank).expect("strings and integers are always JSON");
        format!("{:08x}", crc32c::crc32c(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Extent;

    fn sample() -> Stretch {
        let first = Position { incarnation: Incarnation(0xfeed), sequence: Sequence(42) };
        let facts = StretchFacts {
            first,
            last: Sequence(1041),
            before: ChainPoint { chain: u64::MAX - 1, epoch: Epoch(3) },
            behind: ChainPoint { chain: 0x77, epoch: Epoch(4) },
            clock: UnixMillis(1_700_000_000_000),
        };
        let name = Extent::of(Sequence(42), Sequence(1041)).name();
        Stretch { name, facts, part: Part::new("part-0000.log", 33_554_433, 0x0123_abcd) }
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let golden = include_str!("stretch/golden-1.json");
        assert_eq!(String::from_utf8(sample().encode()).expect("JSON"), golden);
        assert_eq!(Stretch::decode(&sample().name, golden.as_bytes()), Ok(sample()));
    }

    #[test]
    fn what_was_changed_is_refused() {
        let (name, bytes) = (sample().name, sample().encode());
        for at in 0..bytes.len() - 1 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 2;
            // White space may turn into other white space, which changes nothing.
            let read = Stretch::decode(&name, &damaged);
            assert!(read.map_or(true, |read| read == sample()), "{at}");
            assert!(Stretch::decode(&name, &bytes[..at]).is_err());
        }
        let other = Extent::of(Sequence(43), Sequence(1041)).name();
        let why = Stretch::decode(&other, &bytes).unwrap_err();
        assert_eq!(why, "its manifest is that of records 42 to 1041");
        let text = String::from_utf8(bytes).expect("JSON");
        let newer = text.replace("\"format\": 1", "\"format\": 2");
        assert!(Stretch::decode(&name, newer.as_bytes()).unwrap_err().contains("format 2"));
        let other = text.replace("\"log\",\n", "\"snapshot\",\n");
        assert!(Stretch::decode(&name, other.as_bytes()).unwrap_err().contains("\"snapshot\""));
    }
}
