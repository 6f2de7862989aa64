//! Counts times in buckets whose width is a fixed share of their time, as HdrHistogram does.
//!
//! Times below 128 ns have a bucket each. From there on each power of two is cut into 128 buckets:
//!
//! ```text
//! 128 129 … 255 │ 256 258 … 510 │ 512 516 … 1020 │ …
//! ```
//! A bucket answers with its middle, so a quantile is wrong by at most 1/256 of itself.

/// Buckets of each power of two, as a power of two.
const PARTS_BITS: u32 = 7;
const PARTS: usize = 1 << PARTS_BITS;

/// The last bucket holds the longest time that 64 bits can tell.
const BUCKETS: usize = (u64::BITS - PARTS_BITS + 1) as usize * PARTS;

#[derive(Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: 0 }
    }
}

impl Histogram {
    /// Adds the same time `count` times.
    pub fn record(&mut self, nanos: u64, count: u64) {
        self.counts[bucket(nanos)] += count;
        self.total += count;
        self.max = self.max.max(nanos);
    }

    /// How many times there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest time, exactly.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The time that this share of all times does not exceed; 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return middle(bucket).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - PARTS_BITS - 1).saturating_sub(nanos.leading_zeros());
    shift as usize * PARTS + (nanos >> shift) as usize
}

fn middle(bucket: usize) -> u64 {
    let shift = (bucket / PARTS).saturating_sub(1);
    let first = ((bucket - shift * PARTS) as u64) << shift;
    first + ((1_u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_told_within_a_two_hundredth() {
        for power in 0..64 {
            for nanos in [1_u64 << power, (1_u64 << power) | (1 << power >> 3), u64::MAX >> power] {
                let told = middle(bucket(nanos));
                assert!(told.abs_diff(nanos) <= nanos / 200, "{nanos} is told as {told}");
            }
        }
    }

    #[test]
    fn buckets_ascend_without_a_hole() {
        let mut last = 0;
        for nanos in 0..100_000 {
            let this = bucket(nanos);
            assert!(this == last || this == last + 1, "{nanos}");
            last = this;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), 0);
        for nanos in 1..=100 {
            histogram.record(nanos, 10);
        }
        let told = [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| histogram.quantile(share));
        assert_eq!(told, [1, 50, 90, 99, 100]);
        histogram.record(1_000_003, 1);
        assert_eq!((histogram.max(), histogram.quantile(1.0).min(999_000)), (1_000_003, 999_000));
    }
}
