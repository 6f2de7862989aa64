//! Pseudo-random numbers from a seed: xoshiro256++, seeded through splitmix64.
//!
//! Both are the public-domain algorithms of Blackman and Vigna (<https://prng.di.unimi.it>). They
//! are written out here because a seed must mean the same run for ever, whatever a library does.

use std::ops::Range;

/// One stream of numbers. Each part of a simulated world draws from a stream of its own, so that
/// one more draw in one part does not change what happens in another.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    pub fn from_seed(seed: u64) -> Self {
        let mut mixed = seed;
        Self { state: std::array::from_fn(|_| splitmix(&mut mixed)) }
    }

    /// The stream that belongs to `name` in the world of `seed`.
    pub fn stream(seed: u64, name: &str) -> Self {
        let mut mixed = seed;
        for byte in name.bytes() {
            mixed = splitmix(&mut mixed) ^ u64::from(byte);
        }
        Self::from_seed(splitmix(&mut mixed))
    }

    pub fn draw(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number of `range`, all equally likely (up to a bias of range/2^64).
    ///
    /// # Panics
    /// The range is empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        assert!(!range.is_empty(), "no number lies in {range:?}");
        let width = u128::from(range.end - range.start);
        range.start + ((u128::from(self.draw()) * width) >> 64) as u64
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(0..100) < percent
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// There is none.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.within(0..choices.len() as u64) as usize]
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_numbers() {
        // The first outputs for seed 1234567, as the reference implementation prints them.
        let mut state = 1_234_567;
        let outputs: Vec<u64> = (0..3).map(|_| splitmix(&mut state)).collect();
        assert_eq!(
            outputs,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn xoshiro_gives_the_published_numbers() {
        // The first outputs for state 1, 2, 3, 4, as the reference implementation prints them.
        let mut random = Random { state: [1, 2, 3, 4] };
        let outputs: Vec<u64> = (0..3).map(|_| random.draw()).collect();
        assert_eq!(outputs, [41_943_041, 58_720_359, 3_588_806_011_781_223]);
    }

    #[test]
    fn streams_differ_by_seed_and_by_name() {
        let first = |seed, name| Random::stream(seed, name).draw();
        assert_eq!(first(1, "network"), first(1, "network"));
        assert_ne!(first(1, "network"), first(2, "network"));
        assert_ne!(first(1, "network"), first(1, "disk"));
    }

    #[test]
    fn numbers_stay_within_their_range_and_reach_both_ends() {
        let mut random = Random::from_seed(7);
        let mut seen = [0_u32; 5];
        for _ in 0..1_000 {
            seen[random.within(10..15) as usize - 10] += 1;
        }
        assert!(seen.iter().all(|&count| count > 120), "{seen:?}");
    }
}
