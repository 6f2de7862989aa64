//! The checksum of RDB files: CRC-64 with the Jones polynomial, reflected, initial value 0.
//!
//! Eight bytes a step through eight tables (slicing-by-8): about 2 GB/s, where one table gives
//! 0.4. The tables are made at compile time.

/// The polynomial 0xad93d23594c935a9 with its bits in reverse.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut slice = 1;
    while slice < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[slice - 1][byte];
            tables[slice][byte] = tables[0][(before & 0xff) as usize] ^ before >> 8;
            byte += 1;
        }
        slice += 1;
    }
    tables
}

/// A checksum in the making.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Crc64(u64);

impl Crc64 {
    pub fn update(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
            crc = TABLES[7][mixed[0] as usize]
                ^ TABLES[6][mixed[1] as usize]
                ^ TABLES[5][mixed[2] as usize]
                ^ TABLES[4][mixed[3] as usize]
                ^ TABLES[3][mixed[4] as usize]
                ^ TABLES[2][mixed[5] as usize]
                ^ TABLES[1][mixed[6] as usize]
                ^ TABLES[0][mixed[7] as usize];
        }
        for byte in rest {
            crc = TABLES[0][(crc as u8 ^ byte) as usize] ^ crc >> 8;
        }
        self.0 = crc;
    }

    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> u64 {
        let mut crc = Crc64::default();
        crc.update(bytes);
        crc.value()
    }

    #[test]
    fn the_check_value_is_that_of_redis() {
        assert_eq!(of(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn pieces_sum_up_to_the_whole() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| ((i * 7919) >> 3) as u8).collect();
        for cut in [0, 1, 7, 8, 9, 500, 1000] {
            let mut crc = Crc64::default();
            crc.update(&bytes[..cut]);
            crc.update(&bytes[cut..]);
            assert_eq!(crc.value(), of(&bytes));
        }
    }
}
