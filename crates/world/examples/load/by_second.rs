//! What each second showed, printed as it ends.
//!
//! A second in which nothing was answered has its line too. What waited through it counts in the
//! second in which it was answered.

/// Seconds of the monotonic clock, so that whoever reads it too knows which is which.
const SECOND_NANOS: u64 = 1_000_000_000;

#[derive(Default, Debug)]
pub struct BySecond {
    /// The second that goes on; `None` before the first.
    second: Option<u64>,
    requests: u64,
    sum_nanos: u64,
    max_nanos: u64,
    /// Errors of all seconds that are over.
    refused_before: u64,
}

impl BySecond {
    /// Adds the same latency `count` times.
    pub fn record(&mut self, nanos: u64, count: u64) {
        self.requests += count;
        self.sum_nanos += nanos * count;
        self.max_nanos = self.max_nanos.max(nanos);
    }

    /// Prints the seconds that are over at this time of the monotonic clock. `refused` tells how
    /// many errors there were so far.
    pub fn end_those_before(&mut self, now_nanos: u64, refused: impl Fn() -> u64) {
        for line in self.ended(now_nanos / SECOND_NANOS, refused) {
            println!("{line}");
        }
    }

    fn ended(&mut self, now: u64, refused: impl Fn() -> u64) -> Vec<String> {
        let first = *self.second.get_or_insert(now);
        let lines = (first..now).map(|second| {
            let refused = refused();
            let next =
                Self { second: Some(second + 1), refused_before: refused, ..Self::default() };
            std::mem::replace(self, next).told(refused)
        });
        lines.collect()
    }

    fn told(&self, refused: u64) -> String {
        let mean_nanos = self.sum_nanos.checked_div(self.requests).unwrap_or(0);
        format!(
            "{{\"second\": {}, \"requests\": {}, \"mean_ms\": {:.4}, \"max_ms\": {:.4}, \
             \"refused\": {}}}",
            self.second.unwrap_or(0),
            self.requests,
            mean_nanos as f64 / 1e6,
            self.max_nanos as f64 / 1e6,
            refused - self.refused_before,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_is_told_once_and_a_silent_one_too() {
        let mut by_second = BySecond::default();
        assert!(by_second.ended(7, || 0).is_empty());
        by_second.record(2_000_000, 3);
        by_second.record(10_000_000, 1);
        assert!(by_second.ended(7, || 0).is_empty());
        let told = by_second.ended(9, || 3);
        let seven = r#"{"second": 7, "requests": 4, "mean_ms": 4.0000, "max_ms": 10.0000, "#;
        let eight = r#"{"second": 8, "requests": 0, "mean_ms": 0.0000, "max_ms": 0.0000, "#;
        assert_eq!(told, [format!("{seven}\"refused\": 3}}"), format!("{eight}\"refused\": 0}}")]);
        by_second.record(5_000_000, 1);
        assert_eq!(by_second.ended(10, || 3).len(), 1);
    }
}
