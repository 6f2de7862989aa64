//! The numbers of `math.random`: Redis's own generator, so that a script draws the same everywhere.
//!
//! It is the 48-bit linear congruential generator of `lrand48` (POSIX), of which the highest 31
//! bits are a number.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// What stands below a seed.
const SEED_LOW: u64 = 0x330E;

/// One more than the greatest number.
pub(crate) const RANDOM_MAX: i32 = i32::MAX;

/// A generator. It begins as every script finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self::seeded(0)
    }
}

impl Random {
    pub(crate) fn seeded(seed: i32) -> Self {
        Self((u64::from(seed.cast_unsigned()) << 16) | SEED_LOW)
    }

    /// The next number, of 31 bits.
    pub(crate) fn next(&mut self) -> i32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.0 >> 17) as i32
    }
}
