//! The running checksum of what a log says, and the record that holds it.
//!
//! The chain proves that the records are those that were written. This checksum covers what became
//! of them: the payloads of `Data` as they are applied, in order, each unit that was split as one.
//! An encrypted payload counts as it is stored: the checksum is there for all to read, and one of a
//! small plain payload would let it be guessed. That it was decrypted rightly its own tag says.
//! Writer and readers keep it independently, and the primary appends what it has every now and then
//! ([`Kind::Checksum`](crate::Kind::Checksum)): a reader that dropped, repeated or mixed up
//! anything on the way from record to payload finds it there. Beside it stand the writer's keys,
//! which tell the same of the way from payload to data. A snapshot keeps both for its own place.
//!
//! ```text
//! offset 0        1       2           8               16            24
//!        | version | flags | 0         | log checksum | keys        |
//! ```

use crate::chain::{Chain, mix};
use crate::record::{Part, u64_at};

/// The layout of the payload that this file writes.
const VERSION: u8 = 1;

/// Bytes of the payload.
const PAYLOAD_BYTES: usize = 24;

/// The writer did not know the checksum: it began it anew, and readers take this one.
const FLAG_BEGINS_ANEW: u8 = 1;

/// Keeps the checksum of an empty log apart from the value of its chain.
const ORIGIN: u64 = 0x6c6f_6720_7375_6d73;

/// The checksum of everything applied so far, and of the unit of which parts were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSum {
    value: u64,
    unit_crc: u32,
    unit_bytes: u64,
}

impl LogSum {
    /// Of an empty log, whose chain begins here.
    pub fn start(chain: Chain) -> Self {
        Self::at(mix(chain.value.0 ^ ORIGIN))
    }

    /// Behind a whole unit.
    pub fn at(value: u64) -> Self {
        Self { value, unit_crc: 0, unit_bytes: 0 }
    }

    /// The checksum through the last whole unit.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Takes the payload of the next `Data` record that counts.
    pub fn add(&mut self, part: Part, payload: &[u8]) {
        self.unit_crc = crc32c::crc32c_append(self.unit_crc, payload);
        self.unit_bytes += payload.len() as u64;
        if matches!(part, Part::Whole | Part::Last) {
            self.value = mix(self.value ^ (u64::from(self.unit_crc) << 32) ^ self.unit_bytes);
            self.abandon();
        }
    }

    /// The unit of which parts were taken never ends: another leader came.
    pub fn abandon(&mut self) {
        (self.unit_crc, self.unit_bytes) = (0, 0);
    }
}

/// What a `Checksum` record says of its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// The running checksum of the log, see [`LogSum`].
    pub log: u64,
    /// The writer did not know it and began it anew.
    pub begins_anew: bool,
    /// Keys in all databases, those past their time but not yet deleted included.
    pub keys: u64,
}

impl Checksum {
    pub fn encode(&self) -> [u8; PAYLOAD_BYTES] {
        let mut bytes = [0; PAYLOAD_BYTES];
        bytes[0] = VERSION;
        bytes[1] = u8::from(self.begins_anew) * FLAG_BEGINS_ANEW;
        bytes[8..16].copy_from_slice(&self.log.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.keys.to_le_bytes());
        bytes
    }

    /// Reads a record's payload; `None` if this release does not know its form.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let is_known = payload.len() == PAYLOAD_BYTES
            && payload[0] == VERSION
            && payload[1] & !FLAG_BEGINS_ANEW == 0
            && payload[2..8] == [0; 6];
        if !is_known {
            return None;
        }
        Some(Self {
            log: u64_at(payload, 8)?,
            begins_anew: payload[1] & FLAG_BEGINS_ANEW != 0,
            keys: u64_at(payload, 16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Incarnation;

    #[test]
    fn a_unit_counts_alike_whole_and_in_parts() {
        let start = LogSum::start(Chain::start(Incarnation(7)));
        let (mut whole, mut split) = (start, start);
        whole.add(Part::Whole, b"abcdef");
        for (part, bytes) in [(Part::First, "ab"), (Part::Middle, ""), (Part::Last, "cdef")] {
            assert_ne!(split.value(), whole.value());
            split.add(part, bytes.as_bytes());
        }
        assert_eq!(split, whole);
        split.add(Part::First, b"never ended");
        split.abandon();
        assert_eq!(split, whole);
        whole.add(Part::Whole, b"x");
        split.add(Part::Whole, b"y");
        assert_ne!(split.value(), whole.value());
        assert_ne!(start, LogSum::start(Chain::start(Incarnation(8))), "of its log");
    }

    #[test]
    fn the_payload_is_the_documented_one() {
        let checksum = Checksum { log: 0x0102_0304_0506_0708, begins_anew: true, keys: 3 };
        let bytes = checksum.encode();
        assert_eq!(bytes, [1, 1, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Checksum::decode(&bytes), Some(checksum));
        for (at, value) in [(0, 2), (1, 2), (7, 1)] {
            let mut other = bytes;
            other[at] = value;
            assert_eq!(Checksum::decode(&other), None, "a newer form");
        }
        assert_eq!(Checksum::decode(&bytes[..23]), None);
    }
}
