//! What the log's objects are called, and what the one that is no record holds.
//!
//! ```text
//! PREFIX/incarnation                             which life of the log stands here
//! PREFIX/{incarnation:016x}/log/{sequence:020}   one record, exactly its bytes
//! PREFIX/{incarnation:016x}/floor/{sequence:020} everything through here is forgotten; empty
//! PREFIX/{incarnation:016x}/kept/{sequence:020}  the record there is never deleted; empty
//! PREFIX/probe/{entropy:016x}                    shows whether create-only puts are; removed
//! ```
//!
//! `docs/formats/objects.md` is the normative description. The incarnation stands in the names, so
//! that a put of a writer that slept through the log's deletion can never land among the records
//! of the next life.

use base::{Incarnation, Sequence};
use object_store::path::Path;
use txlog::remote::store::SEQUENCE_MAX;

const MAGIC: [u8; 8] = *b"kilnobjs";
const VERSION: u32 = 1;

/// Bytes of the object `incarnation`.
pub const LIFE_BYTES: usize = 32;

/// What a log is, from its creation on: nothing here ever changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    pub incarnation: Incarnation,
    /// How long a record has been known to its trimmer before it may be trimmed, in milliseconds.
    /// What [`super::known`] infers rests on it, so every process must use the same.
    pub trim_age_ms: u64,
}

impl Life {
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LIFE_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.incarnation.0.to_le_bytes());
        bytes.extend_from_slice(&self.trim_age_ms.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// # Errors
    /// Says in words what is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let bytes: [u8; LIFE_BYTES] = bytes
            .try_into()
            .map_err(|_| format!("{} bytes, where {LIFE_BYTES} are expected", bytes.len()))?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if bytes[..8] != MAGIC {
            return Err("it does not begin as one of Kiln's does".to_owned());
        }
        if half(8) != VERSION {
            return Err(format!("format version {}, written by a newer release", half(8)));
        }
        let mut unmarked = bytes;
        unmarked[12..16].fill(0);
        if crc32c::crc32c(&unmarked) != half(12) {
            return Err("its checksum is wrong".to_owned());
        }
        Ok(Self { incarnation: Incarnation(word(16)), trim_age_ms: word(24) })
    }
}

/// Makes names below one prefix.
#[derive(Clone, Debug)]
pub struct Names {
    prefix: Path,
}

impl Names {
    pub fn new(prefix: Path) -> Self {
        Self { prefix }
    }

    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    pub fn incarnation(&self) -> Path {
        self.prefix.clone().join("incarnation")
    }

    pub fn probe(&self, entropy: u64) -> Path {
        self.prefix.clone().join("probe").join(format!("{entropy:016x}"))
    }

    pub fn records(&self, life: Life) -> Path {
        self.of(life, "log")
    }

    pub fn record(&self, life: Life, sequence: Sequence) -> Path {
        self.records(life).join(numbered(sequence))
    }

    pub fn floors(&self, life: Life) -> Path {
        self.of(life, "floor")
    }

    pub fn floor(&self, life: Life, sequence: Sequence) -> Path {
        self.floors(life).join(numbered(sequence))
    }

    pub fn all_kept(&self, life: Life) -> Path {
        self.of(life, "kept")
    }

    pub fn kept(&self, life: Life, sequence: Sequence) -> Path {
        self.all_kept(life).join(numbered(sequence))
    }

    fn of(&self, life: Life, what: &str) -> Path {
        self.prefix.clone().join(format!("{:016x}", life.incarnation.0)).join(what)
    }

    /// Whether a name is that of a record of any life.
    pub fn is_record(path: &Path) -> bool {
        let parts: Vec<_> = path.parts().collect();
        let [.., kind, _] = parts.as_slice() else { return false };
        kind.as_ref() == "log" && sequence_of(path).is_some()
    }
}

/// 20 digits hold every sequence, and sort as numbers do.
fn numbered(sequence: Sequence) -> String {
    format!("{:020}", sequence.0)
}

/// The number that a record's or a floor's name ends with. Names made by others have none.
pub fn sequence_of(path: &Path) -> Option<Sequence> {
    let name = path.filename()?;
    let is_number = name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit());
    let number = name.parse().ok().filter(|_| is_number).map(Sequence);
    number.filter(|sequence| *sequence <= SEQUENCE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life =
        Life { incarnation: Incarnation(0x0123_4567_89ab_cdef), trim_age_ms: 60_000 };

    fn golden() -> Vec<u8> {
        let text = include_str!("golden/incarnation.hex");
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |pair: &[u8]| std::str::from_utf8(pair).expect("digits are ASCII").to_owned();
        let byte = |text: String| u8::from_str_radix(&text, 16).expect("only digits are left");
        digits.chunks(2).map(|digits| byte(pair(digits))).collect()
    }

    #[test]
    fn the_incarnation_is_written_and_read_as_in_the_golden_file() {
        assert_eq!(LIFE.encode(), golden());
        assert_eq!(Life::decode(&golden()), Ok(LIFE));
    }

    #[test]
    fn no_byte_of_the_incarnation_may_change() {
        for at in 0..LIFE_BYTES {
            let mut bytes = golden();
            bytes[at] ^= 1;
            Life::decode(&bytes).expect_err("a changed byte is noticed");
        }
        Life::decode(&golden()[1..]).expect_err("a short object is noticed");
        Life::decode(b"").expect_err("an empty object is noticed");
    }

    #[test]
    fn names_sort_as_their_numbers_and_are_read_back() {
        let names = Names::new(Path::from("some/shard"));
        let record = |sequence| names.record(LIFE, Sequence(sequence));
        assert_eq!(record(7).as_ref(), "some/shard/0123456789abcdef/log/00000000000000000007");
        assert!(record(9) < record(10) && record(10) < record(u64::MAX));
        assert_eq!(sequence_of(&record(SEQUENCE_MAX.0)), Some(SEQUENCE_MAX));
        assert_eq!(sequence_of(&record(u64::MAX)), None, "whoever counted on would overflow");
        assert!(Names::is_record(&record(7)));
        assert!(!Names::is_record(&names.floor(LIFE, Sequence(7))));
        for foreign in ["some/log/7", "some/log/0000000000000000000x", "log", ""] {
            assert!(!Names::is_record(&Path::from(foreign)), "{foreign}");
        }
    }
}
