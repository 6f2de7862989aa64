//! What a snapshot says about itself.
//!
//! JSON, so that operators and tools read it. Words of 64 bits that no one counts with are
//! hexadecimal text, because many readers of JSON keep 53 bits of a number. The last field is the
//! checksum of all others.

use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the format that this build writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The name that it has beside the parts.
pub const MANIFEST: &str = "manifest.json";

/// Longest manifest that is read, in bytes: some thousand parts have less.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// A snapshot's manifest, as it stands in the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The incarnation of the log, hexadecimal.
    log: String,
    /// The last record whose effects are in the snapshot.
    sequence: u64,
    /// Where the log's chain stands behind that record: its value, hexadecimal, and its epoch.
    chain: String,
    epoch: u64,
    /// The newest clock of the records through `sequence`, in Unix milliseconds.
    clock_ms: i64,
    /// When the snapshot began, in Unix milliseconds.
    began_ms: i64,
    /// Keys in all parts.
    pub keys: u64,
    pub parts: Vec<Part>,
    /// CRC-32C of this manifest with an empty checksum, hexadecimal.
    checksum: String,
}

/// One file of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub bytes: u64,
    /// CRC-32C of the file, hexadecimal.
    crc32c: String,
}

impl Part {
    pub fn new(name: &str, bytes: u64, crc: u32) -> Self {
        Self { name: name.to_owned(), bytes, crc32c: format!("{crc:08x}") }
    }

    /// The checksum of the file; `None` if it is not a number.
    pub fn crc(&self) -> Option<u32> {
        u32::from_str_radix(&self.crc32c, 16).ok()
    }
}

/// The record behind which a snapshot was taken, and what the log said there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotPoint {
    /// The last record whose effects are in the snapshot.
    pub position: Position,
    /// Where the log's chain stands behind it.
    pub chain: u64,
    pub epoch: Epoch,
    /// The newest clock of the records through `position`.
    pub clock: UnixMillis,
    pub began: UnixMillis,
}

impl Manifest {
    pub fn new(point: SnapshotPoint, keys: u64, parts: Vec<Part>) -> Self {
        let mut manifest = Self {
            format: FORMAT,
            log: format!("{:016x}", point.position.incarnation.0),
            sequence: point.position.sequence.0,
            chain: format!("{:016x}", point.chain),
            epoch: point.epoch.0,
            clock_ms: point.clock.0,
            began_ms: point.began.0,
            keys,
            parts,
            checksum: String::new(),
        };
        manifest.checksum = manifest.computed();
        manifest
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes =
            serde_json::to_vec_pretty(self).expect("strings and integers are always JSON");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a manifest and checks it against its checksum.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        /// All that is certain of a newer format.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if head.format > FORMAT || head.format == 0 {
            return Err(format!("it has format {}, this build reads {FORMAT}", head.format));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if manifest.checksum != manifest.computed() {
            return Err("its checksum is wrong".to_owned());
        }
        manifest.point()?;
        let mut names = BTreeSet::new();
        for part in &manifest.parts {
            let is_plain =
                part.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
            if !is_plain || part.name.starts_with('.') || part.crc().is_none() {
                return Err(format!("its part {:?} is malformed", part.name));
            }
            if !names.insert(&part.name) {
                return Err(format!("it names the part {:?} twice", part.name));
            }
        }
        Ok(manifest)
    }

    /// Where in its log the snapshot stands.
    ///
    /// # Errors
    /// A field that should be a number is none.
    pub fn point(&self) -> Result<SnapshotPoint, String> {
        let word = |text: &str| {
            u64::from_str_radix(text, 16).map_err(|_| format!("{text:?} is no hexadecimal number"))
        };
        let incarnation = Incarnation(word(&self.log)?);
        Ok(SnapshotPoint {
            position: Position { incarnation, sequence: Sequence(self.sequence) },
            chain: word(&self.chain)?,
            epoch: Epoch(self.epoch),
            clock: UnixMillis(self.clock_ms),
            began: UnixMillis(self.began_ms),
        })
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    fn computed(&self) -> String {
        let blank = Self { checksum: String::new(), ..self.clone() };
        let bytes = serde_json::to_vec(&blank).expect("strings and integers are always JSON");
        format!("{:08x}", crc32c::crc32c(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let position = Position { incarnation: Incarnation(0xfeed), sequence: Sequence(42) };
        let point = SnapshotPoint {
            position,
            chain: u64::MAX - 1,
            epoch: Epoch(3),
            clock: UnixMillis(1_700_000_000_000),
            began: UnixMillis(1_700_000_000_001),
        };
        Manifest::new(point, 7, vec![Part::new("part-0000.rdb", 119, 0x0123_abcd)])
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let golden = include_str!("manifest/golden-1.json");
        assert_eq!(String::from_utf8(sample().encode()).unwrap(), golden);
        assert_eq!(Manifest::decode(golden.as_bytes()), Ok(sample()));
    }

    #[test]
    fn several_parts_are_the_documented_form_too() {
        let golden = include_str!("manifest/golden-1-parts.json");
        let point = sample().point().expect("it was made of one");
        let parts = [("part-0000.rdb", 119, 0x0123_abcd), ("part-0001.rdb", 67_108_871, 0xff)];
        let parts = parts.map(|(name, bytes, crc)| Part::new(name, bytes, crc)).to_vec();
        let manifest = Manifest::new(point, 7, parts.clone());
        assert_eq!(String::from_utf8(manifest.encode()).unwrap(), golden);
        assert_eq!(Manifest::decode(golden.as_bytes()), Ok(manifest));
        let twice = Manifest::new(point, 7, [parts.clone(), parts].concat());
        let why = Manifest::decode(&twice.encode()).unwrap_err();
        assert_eq!(why, "it names the part \"part-0000.rdb\" twice");
    }

    #[test]
    fn the_most_parts_that_are_written_are_read() {
        let part = |index| Part::new(&format!("part-{index:04}.rdb"), u64::MAX, u32::MAX);
        let parts = (0..crate::Limits::default().parts_max).map(part).collect();
        let bytes =
            Manifest::new(sample().point().expect("it was made of one"), u64::MAX, parts).encode();
        assert!(bytes.len() as u64 <= MANIFEST_BYTES_MAX, "{} bytes", bytes.len());
    }

    #[test]
    fn what_was_changed_is_refused() {
        let bytes = sample().encode();
        for at in 0..bytes.len() - 1 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 2;
            // White space may turn into other white space, which changes nothing.
            assert!(Manifest::decode(&damaged).map_or(true, |read| read == sample()), "{at}");
            assert!(Manifest::decode(&bytes[..at]).is_err());
        }
        let newer = String::from_utf8(bytes).unwrap().replace("\"format\": 1", "\"format\": 2");
        assert!(Manifest::decode(newer.as_bytes()).unwrap_err().contains("format 2"));
    }
}
