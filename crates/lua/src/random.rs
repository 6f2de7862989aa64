//! The generator of `math.random`: Redis's own. It starts alike in every process, and continues
//! from script to script.
//!
//! It is the 48-bit linear congruential generator of `lrand48` (POSIX), of which the highest 31
//! bits are a number.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// The low 16 bits of the state behind `math.randomseed`; the seed is above them.
const SEED_LOW: u64 = 0x330E;
/// The initial state.
const START: u64 = 0x1234_ABCD_330E;

/// The modulus of numbers drawn: one more than the greatest.
pub(crate) const RANDOM_MAX: i32 = i32::MAX;

/// A generator's state, of 48 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(START)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are those of redis-server: the first of a process, and the first behind
    /// `math.randomseed(0)`, for `math.random(1000)`.
    #[test]
    fn it_draws_what_redis_draws() {
        let drawn = |mut random: Random| {
            let part = f64::from(random.next() % RANDOM_MAX) / f64::from(RANDOM_MAX);
            (part * 1000.0).floor() + 1.0
        };
        assert_eq!(drawn(Random::default()), 397.0);
        assert_eq!(drawn(Random::seeded(0)), 171.0);
    }
}
