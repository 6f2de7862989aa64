//! A key's hash slot (Redis Cluster specification, key distribution model).

use base::Slot;

/// Slots of a keyspace.
pub const SLOTS: u16 = 16384;

/// The polynomial of CRC-16/XMODEM, x^16 + x^12 + x^5 + 1.
const POLYNOMIAL: u16 = 0x1021;

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The slot of a key: of what stands between its first `{` and the next `}`, if that is anything.
pub fn of_key(key: &[u8]) -> Slot {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then_some(&rest[..close])
    });
    Slot(crc16(tag.unwrap_or(key)) % SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // The specification's check value, and CLUSTER KEYSLOT of Redis 7.0.15.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, slot) in [("", 0), ("foo", 12182), ("bar", 5061), ("somekey", 11058)] {
            assert_eq!(of_key(key.as_bytes()), Slot(slot), "{key}");
        }
    }

    #[test]
    fn a_tag_stands_for_its_key() {
        assert_eq!(of_key(b"{user1000}.following"), of_key(b"user1000"));
        assert_eq!(of_key(b"foo{{bar}}zap"), of_key(b"{bar"));
        assert_eq!(of_key(b"foo{bar}{zap}"), of_key(b"bar"));
        assert_eq!(of_key(b"foo{}{bar}"), Slot(crc16(b"foo{}{bar}") % SLOTS));
        assert_eq!(of_key(b"foo{bar"), Slot(crc16(b"foo{bar") % SLOTS));
    }
}
