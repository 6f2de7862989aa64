//! The secret numbers of one life of a process.
//!
//! Clients see the ids that a process makes for itself, and they see what it chose at random. So
//! each of these numbers is drawn by itself, and none is made of another or of what an id is made
//! of: who computes one of them from what the server shows has learnt nothing about the others.

use crate::driver::Driver;
use std::fmt;

/// Secrets of a process, drawn when it starts and again after each demotion.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The key of the hash by which tables know keys, fields and members.
    pub hash: HashKey,
    /// The seed of random choices: SPOP, RANDOMKEY, eviction. Their generator is fast and not
    /// cryptographic: who sees enough of what it chose can tell what it will choose.
    pub chance: u64,
}

impl Seeds {
    /// Draws all of them.
    pub fn draw(driver: &mut dyn Driver) -> Self {
        let hash = HashKey::new([driver.entropy(), driver.entropy()]);
        Self { hash, chance: driver.entropy() }
    }

    /// Seeds that anybody can compute: for simulated processes and for tests.
    pub const fn fixed(number: u64) -> Self {
        Self { hash: HashKey::fixed(number), chance: number }
    }
}

/// The key of a keyed hash: 128 bits, of which nobody outside the process may learn any.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u64; 2]);

impl HashKey {
    pub const fn new(words: [u64; 2]) -> Self {
        Self(words)
    }

    /// A key that anybody can compute: for digests, which must be the same everywhere, for
    /// simulated processes and for tests.
    pub const fn fixed(number: u64) -> Self {
        Self([number, !number])
    }

    /// The two halves.
    pub const fn words(self) -> [u64; 2] {
        self.0
    }
}

impl fmt::Debug for HashKey {
    /// Without the key: what is printed may reach a log file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(secret)")
    }
}
