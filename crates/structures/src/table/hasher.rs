//! The tables' hash function: SipHash-1-3 with a secret key of 128 bits.
//!
//! Whoever may write one key chooses keys, fields and members, millions of them. If such a client
//! could find many of one hash, each lookup among them would look at all, on the primary, on every
//! replica and at every start. So the hash must be one for which nobody knows how to find
//! collisions without its key; docs/decisions/001-keyed-hash.md says which were considered. The key
//! is drawn from the kernel for nothing else ([`base::Seeds`]) and passed in, so that a simulated
//! run is the same run twice.
//!
//! **What SCAN shows.** Tables are ordered by hash, so SCAN's order and cursors show the upper bits
//! of the hash of keys that the client knows: about as many as the table's buckets have bits, 18 in
//! a table of a million. From hashes of chosen inputs, even whole ones, nothing is known to follow
//! about SipHash's key or about the hash of any other input. What remains is search: of n keys that
//! were inserted and scanned, n / 2^b share b upper bits, in whatever table of this process they
//! are written then. To bring 20,000 of them into one segment, whose splits stop at 14 bits for so
//! many, takes 300 million trial writes. Such a segment finds an entry by passing over the others
//! without reading them, because fingerprints are of the *lower* bits, which no cursor shows.

use base::HashKey;
use siphasher::sip::SipHasher13;

/// Hashes keys, fields and members. Two hashers with the same key agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHasher {
    key: HashKey,
}

impl KeyHasher {
    pub const fn new(key: HashKey) -> Self {
        Self { key }
    }

    /// A hasher whose key anybody can compute: for digests and for tests.
    pub const fn fixed(number: u64) -> Self {
        Self::new(HashKey::fixed(number))
    }

    /// The 64-bit hash of `key`. Every bit is usable: the table consumes them from both ends.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let [low, high] = self.key.words();
        SipHasher13::new_with_keys(low, high).hash(key)
    }
}
