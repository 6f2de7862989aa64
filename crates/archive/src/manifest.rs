//! What a snapshot says about itself.
//!
//! JSON, so that operators and tools read it. Words of 64 bits that no one counts with are
//! hexadecimal text, because many readers of JSON keep 53 bits of a number. The last field is the
//! checksum of all others.

use crate::branch::Parent;
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the format that this build writes of snapshots with data of their own, unless it
/// is told to write an older one.
pub const FORMAT: u32 = 2;

/// The version of a branch's first snapshot.
pub(crate) const FORMAT_OF_BRANCHES: u32 = 3;

/// The oldest version that is read and written, and the newest.
pub const FORMAT_MIN: u32 = 1;
pub const FORMAT_MAX: u32 = FORMAT_OF_BRANCHES;

/// All slots: a shard has them all, as long as there is one.
const ALL_SLOTS: [u16; 2] = [0, 16383];

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
    /// The running checksum of the log there, hexadecimal, if it was known. This and whatever else
    /// may be absent is absent in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_checksum: Option<String>,
    /// The newest clock of the records through `sequence`, in Unix milliseconds.
    clock_ms: i64,
    /// When the snapshot began, in Unix milliseconds.
    began_ms: i64,
    /// Keys in all parts.
    pub keys: u64,
    /// The digest of the data, hexadecimal: of a snapshot that was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Name and version of the program that wrote it, and the version of the RDB files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdb: Option<u32>,
    /// The ranges of slots whose keys it holds, first and last of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Vec<[u16; 2]>>,
    /// Where its data lies, if it is a branch's first: it then has no parts, and `keys` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    pub parts: Vec<Part>,
    /// CRC-32C of this manifest with an empty checksum, hexadecimal.
    checksum: String,
}

/// How a snapshot was proven before it was published: it was restored from what had been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// The record in which the primary says what it had, and which agrees: the next one behind the
    /// snapshot, or the last one before it if nothing was written in between. `None` if there was
    /// none within half a minute, because no primary was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<u64>,
    /// When that was done, in Unix milliseconds.
    pub at_ms: i64,
}

/// What a manifest says beside the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub point: SnapshotPoint,
    pub keys: u64,
    /// The version of the RDB files.
    pub rdb: u32,
    /// The digest of the data, and how it was proven.
    pub proven: Option<(u128, Proof)>,
}

impl Facts {
    /// Of a snapshot that nobody has restored yet.
    pub fn unproven(point: SnapshotPoint, keys: u64, rdb: u32) -> Self {
        Self { point, keys, rdb, proven: None }
    }
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

    /// Whether it can be a file's: a manifest names nothing outside of its place.
    pub(crate) fn is_well_formed(&self) -> bool {
        let is_plain = self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
        is_plain && !self.name.starts_with('.') && self.crc().is_some()
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
    /// The running checksum of the log there, if it is known.
    pub log_sum: Option<u64>,
    /// The newest clock of the records through `position`.
    pub clock: UnixMillis,
    pub began: UnixMillis,
}

impl Manifest {
    /// The manifest of a snapshot with data of its own, of the newest version of the format that is
    /// no newer than `format_max`.
    pub fn new(facts: &Facts, parts: Vec<Part>, format_max: u32) -> Self {
        let format = format_max.min(FORMAT);
        Self::written_by(concat!("kiln ", env!("CARGO_PKG_VERSION")), facts, parts, format)
    }

    fn written_by(engine: &str, facts: &Facts, parts: Vec<Part>, format: u32) -> Self {
        let Facts { point, keys, rdb, proven } = facts;
        let is_newer = format > 1;
        let mut manifest = Self {
            format,
            log: format!("{:016x}", point.position.incarnation.0),
            sequence: point.position.sequence.0,
            chain: format!("{:016x}", point.chain),
            epoch: point.epoch.0,
            log_checksum: point.log_sum.filter(|_| is_newer).map(|sum| format!("{sum:016x}")),
            clock_ms: point.clock.0,
            began_ms: point.began.0,
            keys: *keys,
            digest: proven.filter(|_| is_newer).map(|(digest, _)| format!("{digest:032x}")),
            proof: proven.filter(|_| is_newer).map(|(_, proof)| proof),
            engine: is_newer.then(|| engine.to_owned()),
            rdb: is_newer.then_some(*rdb),
            slots: is_newer.then(|| vec![ALL_SLOTS]),
            parent: None,
            parts,
            checksum: String::new(),
        };
        manifest.checksum = manifest.computed();
        manifest
    }

    /// The manifest of a branch's first snapshot, whose data is another shard's.
    pub fn of_branch(point: SnapshotPoint, rdb: u32, parent: Parent) -> Self {
        let facts = Facts::unproven(point, 0, rdb);
        let mut manifest = Self::new(&facts, Vec::new(), FORMAT);
        manifest.format = FORMAT_OF_BRANCHES;
        manifest.parent = Some(parent);
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
        if !(FORMAT_MIN..=FORMAT_MAX).contains(&head.format) {
            let known = format!("this build reads {FORMAT_MIN} to {FORMAT_MAX}");
            return Err(format!("it has format {}, {known}", head.format));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if manifest.checksum != manifest.computed() {
            return Err("its checksum is wrong".to_owned());
        }
        manifest.point()?;
        manifest.digest()?;
        let is_of_branch = head.format == FORMAT_OF_BRANCHES;
        if is_of_branch != manifest.parent.is_some() || is_of_branch && !manifest.parts.is_empty() {
            return Err("it does not say where its data is".to_owned());
        }
        manifest.parent.as_ref().map(Parent::point).transpose()?;
        if manifest.slots.as_ref().is_some_and(|slots| slots != &[ALL_SLOTS]) {
            return Err("it does not hold the keys of all slots".to_owned());
        }
        let mut names = BTreeSet::new();
        for part in &manifest.parts {
            if !part.is_well_formed() {
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
        let incarnation = Incarnation(word(&self.log)?);
        Ok(SnapshotPoint {
            position: Position { incarnation, sequence: Sequence(self.sequence) },
            chain: word(&self.chain)?,
            epoch: Epoch(self.epoch),
            log_sum: self.log_checksum.as_deref().map(word).transpose()?,
            clock: UnixMillis(self.clock_ms),
            began: UnixMillis(self.began_ms),
        })
    }

    /// The digest of the data, if it was proven.
    ///
    /// # Errors
    /// It is no number.
    pub fn digest(&self) -> Result<Option<u128>, String> {
        let parse = |text: &str| u128::from_str_radix(text, 16).map_err(|_| not_a_number(text));
        self.digest.as_deref().map(parse).transpose()
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

pub(crate) fn word(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| not_a_number(text))
}

pub(crate) fn not_a_number(text: &str) -> String {
    format!("{text:?} is no hexadecimal number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(proven: Option<(u128, Proof)>) -> Facts {
        let position = Position { incarnation: Incarnation(0xfeed), sequence: Sequence(42) };
        let point = SnapshotPoint {
            position,
            chain: u64::MAX - 1,
            epoch: Epoch(3),
            log_sum: Some(0xabc),
            clock: UnixMillis(1_700_000_000_000),
            began: UnixMillis(1_700_000_000_001),
        };
        Facts { point, keys: 7, rdb: 10, proven }
    }

    fn parts() -> Vec<Part> {
        let parts = [("part-0000.rdb", 119, 0x0123_abcd), ("part-0001.rdb", 67_108_871, 0xff)];
        parts.map(|(name, bytes, crc)| Part::new(name, bytes, crc)).to_vec()
    }

    /// As format 1 has it, with one part.
    fn sample() -> Manifest {
        Manifest::new(&facts(None), parts()[..1].to_vec(), 1)
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let proof = Proof { checked: Some(43), at_ms: 1_700_000_000_002 };
        let facts_proven = facts(Some((0x77, proof)));
        let proven = Manifest::written_by("kiln 0.1.0", &facts_proven, parts(), FORMAT);
        let goldens = [
            (sample(), include_str!("manifest/golden-1.json")),
            (Manifest::new(&facts(None), parts(), 1), include_str!("manifest/golden-1-parts.json")),
            (proven, include_str!("manifest/golden-2.json")),
        ];
        for (manifest, golden) in goldens {
            assert_eq!(String::from_utf8(manifest.encode()).expect("JSON"), golden);
            assert_eq!(Manifest::decode(golden.as_bytes()), Ok(manifest));
        }
    }

    #[test]
    fn the_format_of_branches_is_the_documented_one() {
        let position = Position { incarnation: Incarnation(0xbee), sequence: Sequence(99) };
        let at = crate::BranchPoint { position, chain: 0xabcd, epoch: Epoch(5) };
        let name = "snapshot-00000000000000000090-000";
        let parent = Parent::new("s3://bucket/shard", name, Sequence(90), &at);
        assert_eq!(parent.point(), Ok(at));
        let mut manifest = Manifest::of_branch(facts(None).point, 10, parent);
        manifest.engine = Some("kiln 0.1.0".to_owned());
        manifest.checksum = manifest.computed();
        let golden = include_str!("manifest/golden-3.json");
        assert_eq!(String::from_utf8(manifest.encode()).expect("JSON"), golden);
        assert_eq!(Manifest::decode(golden.as_bytes()), Ok(manifest.clone()));
        // Each of them alone says nothing.
        for broken in [
            Manifest { parent: None, ..manifest.clone() },
            Manifest { format: 2, ..manifest.clone() },
            Manifest { parts: parts(), ..manifest },
        ] {
            let broken = Manifest { checksum: broken.computed(), ..broken };
            let why = Manifest::decode(&broken.encode()).unwrap_err();
            assert_eq!(why, "it does not say where its data is");
        }
    }

    #[test]
    fn no_part_is_named_twice() {
        let twice = Manifest::new(&facts(None), [parts(), parts()].concat(), FORMAT);
        let why = Manifest::decode(&twice.encode()).unwrap_err();
        assert_eq!(why, "it names the part \"part-0000.rdb\" twice");
    }

    #[test]
    fn the_most_parts_that_are_written_are_read() {
        let part =
            |index| Part::new(&format!("part-{index:04}-0123456789abcdef.rdb"), u64::MAX, u32::MAX);
        let parts = (0..crate::Limits::default().parts_max).map(part).collect();
        let proof = Proof { checked: Some(u64::MAX), at_ms: i64::MAX };
        let facts = facts(Some((u128::MAX, proof)));
        let bytes = Manifest::new(&facts, parts, FORMAT).encode();
        assert!(bytes.len() as u64 <= MANIFEST_BYTES_MAX, "{} bytes", bytes.len());
    }

    #[test]
    fn what_was_changed_is_refused() {
        let proof = Proof { checked: None, at_ms: 1 };
        for whole in [sample(), Manifest::new(&facts(Some((1, proof))), parts(), FORMAT)] {
            let bytes = whole.encode();
            for at in 0..bytes.len() - 1 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 2;
                // White space may turn into other white space, which changes nothing.
                assert!(Manifest::decode(&damaged).map_or(true, |read| read == whole), "{at}");
                assert!(Manifest::decode(&bytes[..at]).is_err());
            }
        }
        let text = String::from_utf8(sample().encode()).expect("JSON");
        let newer = text.replace("\"format\": 1", "\"format\": 4");
        assert!(Manifest::decode(newer.as_bytes()).unwrap_err().contains("format 4"));
    }
}
