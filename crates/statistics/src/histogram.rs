//! Durations of one command, counted in classes of equal relative width.
//!
//! The layout is that of HdrHistogram with two significant digits, which Redis uses: below 256 ns
//! every value has its own class; above, each power of two is cut into 128 classes. So a reported
//! value is at most 0.8 % above the true one, whatever its size, and nothing is ever resized.

/// Longest duration told apart, in nanoseconds: longer ones count as one second, as in Redis.
const NANOS_MAX: u64 = 1_000_000_000;

/// Classes per power of two.
const HALF: u64 = 128;

/// Powers of two from 256 up to [`NANOS_MAX`], which lies below 2^30.
const OCTAVES: u64 = 22;

const CLASSES: usize = ((OCTAVES + 2) * HALF) as usize;

/// Counts of durations between 1 ns and 1 s.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; CLASSES].into_boxed_slice(), total: 0 }
    }
}

/// The power of two whose classes hold the value, counted from 0 for values below 256.
fn octave(nanos: u64) -> u64 {
    u64::from((nanos | (2 * HALF - 1)).ilog2()) - 7
}

fn class(nanos: u64) -> usize {
    let octave = octave(nanos);
    (octave * HALF + (nanos >> octave)) as usize
}

/// The largest value of a class.
fn highest(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * HALF {
        return class;
    }
    let octave = class / HALF - 1;
    ((class - octave * HALF + 1) << octave) - 1
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, nanos: u64) {
        self.counts[class(nanos.clamp(1, NANOS_MAX))] += 1;
        self.total += 1;
    }

    /// How many durations were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The duration in nanoseconds that `percent` of all stayed within; 0 if none was counted.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (percent.min(100.0) / 100.0 * self.total as f64 + 0.5) as u64;
        let mut count = 0;
        for (class, in_class) in self.counts.iter().enumerate() {
            count += in_class;
            if count >= wanted.max(1) {
                return highest(class);
            }
        }
        0
    }

    /// Upper bounds in microseconds that double from one to the next, each with the count of
    /// durations up to it; bounds that add none are left out (LATENCY HISTOGRAM).
    pub fn cumulative_micros(&self) -> Vec<(u64, u64)> {
        let mut steps = Vec::new();
        let (mut count, mut next_class, mut bound) = (0, 0, 1024);
        while count < self.total {
            let last_class = class(bound).min(CLASSES - 1);
            let before = count;
            count += self.counts[next_class..=last_class].iter().sum::<u64>();
            next_class = last_class + 1;
            if count > before {
                steps.push((highest(last_class) / 1000, count));
            }
            bound *= 2;
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_class_of_at_most_a_hundredth_of_it() {
        for shift in 0..30 {
            for nanos in [1_u64 << shift, (1 << shift) + 1, (1 << shift) * 3 / 2] {
                let nanos = nanos.min(NANOS_MAX);
                let bound = highest(class(nanos));
                assert!(bound >= nanos, "{nanos}");
                assert!((bound - nanos) * 100 <= nanos, "{nanos} {bound}");
                assert_eq!(class(bound), class(nanos));
            }
        }
    }

    #[test]
    fn percentiles_are_those_that_redis_shows() {
        let mut histogram = Histogram::default();
        for nanos in [1000, 13_000] {
            histogram.record(nanos);
        }
        assert_eq!(histogram.percentile(50.0), 1003);
        assert_eq!(histogram.percentile(99.0), 13_055);
    }

    #[test]
    fn cumulative_bounds_double() {
        let mut histogram = Histogram::default();
        for nanos in [1, 900, 20_000, 30_000, 70_000, 5_000_000_000] {
            histogram.record(nanos);
        }
        assert_eq!(histogram.cumulative_micros(), [(1, 2), (33, 4), (132, 5), (1_073_741, 6)]);
    }
}
