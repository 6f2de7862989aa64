//! The checksum of RDB files: CRC-64 with the Jones polynomial, reflected, initial value 0.
//!
//! It passes over every byte of a snapshot, written or loaded, on a core that may serve clients.

use crc_fast::{CrcAlgorithm, Digest};

/// A checksum in the making.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Crc64(u64);

impl Crc64 {
    pub fn update(&mut self, bytes: &[u8]) {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc64Redis, self.0);
        digest.update(bytes);
        self.0 = digest.get_state();
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
