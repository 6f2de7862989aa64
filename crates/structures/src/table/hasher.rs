//! The table's hash function: rapidhash version 3 with a secret seed.
//!
//! The seed keeps a client from choosing keys that collide. It is passed in, never drawn here, so
//! that a simulated run is the same run twice.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// Hashes keys, fields and members. Two hashers with the same seed agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHasher {
    seed: u64,
}

impl KeyHasher {
    /// A hasher for `seed`, any 64 bits; in production a secret drawn at start.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The 64-bit hash of `key`. Every bit is usable: the table consumes them from both ends.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        // Expanding the seed is one multiplication; keeping it expanded would cost every small
        // hash and set 64 bytes.
        let secrets = RapidSecrets::seed_cpp(self.seed);
        rapidhash_v3_inline::<true, true, false>(key, &secrets)
    }
}
