//! When requests are due.
//!
//! In a closed loop a request is due once a connection is free, and its latency counts from its
//! sending. In an open loop requests are due at fixed times whether or not the server keeps up, and
//! latency counts from those times: a server that stops for a second delays all that was due in
//! that second, and a clock that starts at the sending would not see it.

const SECOND_NANOS: u128 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    Closed,
    /// Requests a second over all connections; the first is due at the start.
    Open {
        rate: u64,
    },
}

impl Pace {
    /// Requests due `nanos` after the start.
    pub fn due(self, nanos: u64) -> u64 {
        match self {
            Self::Closed => u64::MAX,
            Self::Open { rate } => (u128::from(nanos) * u128::from(rate) / SECOND_NANOS) as u64 + 1,
        }
    }

    /// When the request of this index, from 0, is due, in nanoseconds after the start. `None`: as
    /// soon as a connection is free.
    pub fn due_nanos(self, index: u64) -> Option<u64> {
        match self {
            Self::Closed => None,
            Self::Open { rate } => {
                Some((u128::from(index) * SECOND_NANOS).div_ceil(u128::from(rate)) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_due_exactly_from_its_time_on() {
        for rate in [1, 3, 7, 1000, 99_999, 1_000_000, 3_000_000_000] {
            let pace = Pace::Open { rate };
            for index in [0, 1, 2, 3, 10, 12_345, 1_000_000_007] {
                let nanos = pace.due_nanos(index).expect("it has a time");
                assert!(pace.due(nanos) > index, "{index} at {rate}/s");
                assert!(nanos == 0 || pace.due(nanos - 1) <= index, "{index} at {rate}/s");
            }
        }
    }

    #[test]
    fn everything_is_due_in_a_closed_loop() {
        assert_eq!((Pace::Closed.due(0), Pace::Closed.due_nanos(7)), (u64::MAX, None));
    }
}
