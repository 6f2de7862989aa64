//! The judgement on a machine's wall clock: may it become the shard's? Asked by
//! `leadership/wall.rs` as long as this process would take it over by leading.
//!
//! A process that has heard no primary takes its own wall clock when it leads: time has passed
//! while nobody served. If that clock is wrong by years, every key that expires is deleted, and the
//! shard's clock never goes back by itself. So a clock that is too far ahead of the newest record,
//! or that was never set, is a reason not to lead, until somebody sets it or says that it is right.
//!
//! A clock that is behind does no harm: the shard's goes on from its newest record, a quarter
//! slower.

use base::UnixMillis;
use std::fmt;

/// 2025-01-01: this software did not exist before. A machine whose clock says so has none that goes
/// on without power, and was not told the time yet.
const EARLIEST: UnixMillis = UnixMillis(1_735_689_600_000);

const MILLIS_PER_SECOND: i64 = 1000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Why a wall clock is not taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// It is further ahead of the newest record than `clock-ahead-max`.
    Ahead { wall: UnixMillis, recorded: UnixMillis },
    /// It is before [`EARLIEST`].
    NotSet { wall: UnixMillis },
}

impl Doubt {
    /// How far the wall clock is ahead of the newest record, in milliseconds.
    pub fn ahead_millis(&self) -> i64 {
        match self {
            Self::Ahead { wall, recorded } => wall.0.saturating_sub(recorded.0),
            Self::NotSet { .. } => 0,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead { wall, recorded } => {
                let days = self.ahead_millis() / MILLIS_PER_SECOND / SECONDS_PER_DAY;
                write!(
                    f,
                    "this machine's clock says {}, {days} days after the newest record of the \
                     transaction log ({}), which is more than clock-ahead-max. Set the clock; or, \
                     if it is right, say so with 'shard-clock wall' (at the start, or by CONFIG \
                     SET)",
                    utc(*wall),
                    utc(*recorded)
                )
            }
            Self::NotSet { wall } => {
                write!(f, "this machine's clock says {}: it was never set. Set it", utc(*wall))
            }
        }
    }
}

/// The reason not to take the wall clock for the shard's, if there is one. `recorded` is the clock
/// of the newest record, 0 if there is none; `is_trusted`: the operator says that the wall clock is
/// right; `ahead_seconds_max` of 0: it may be ahead by any time.
pub fn doubt(
    recorded: UnixMillis,
    wall: UnixMillis,
    ahead_seconds_max: u64,
    is_trusted: bool,
) -> Option<Doubt> {
    let is_empty = recorded.0 <= 0;
    if wall < EARLIEST && (is_empty || is_trusted) {
        return Some(Doubt::NotSet { wall });
    }
    let bound = i64::try_from(ahead_seconds_max).unwrap_or(i64::MAX);
    let ahead = wall.0.saturating_sub(recorded.0) / MILLIS_PER_SECOND;
    let is_ahead = !is_empty && bound > 0 && ahead > bound;
    (is_ahead && !is_trusted).then_some(Doubt::Ahead { wall, recorded })
}

/// A time as people write it, to the second.
pub fn utc(at: UnixMillis) -> String {
    let seconds = at.0.div_euclid(MILLIS_PER_SECOND);
    let (days, of_day) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The Gregorian date so many days after 1970-01-01. Years are counted from March, so that the day
/// of a leap year stands at the end.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const DAYS_BEFORE_1970: i64 = 719_468;
    let days = days + DAYS_BEFORE_1970;
    let (cycles, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let leap_days = day / 1460 - day / 36_524 + day / 146_096;
    let year = (day - leap_days) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March have 153 days in each five.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let is_after_december = i64::from(month >= 10);
    (400 * cycles + year + is_after_december, (month + 2) % 12 + 1, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_767_225_600_000);
    const DAY: i64 = SECONDS_PER_DAY * MILLIS_PER_SECOND;
    const BOUND: u64 = 30 * SECONDS_PER_DAY as u64;

    #[test]
    fn a_clock_that_is_too_far_ahead_or_was_never_set_is_in_doubt() {
        let after = |days: i64| UnixMillis(NOW.0 + days * DAY);
        let nothing = UnixMillis(0);
        let ahead = |days| Some(Doubt::Ahead { wall: after(days), recorded: NOW });
        for (recorded, wall, bound, is_trusted, expected) in [
            (NOW, NOW, BOUND, false, None),
            (NOW, after(30), BOUND, false, None),
            (NOW, after(31), BOUND, false, ahead(31)),
            (NOW, after(31), BOUND, true, None),
            (NOW, after(31), 0, false, None),
            (NOW, after(40_000), BOUND, false, ahead(40_000)),
            (NOW, after(-40_000), BOUND, false, None),
            (nothing, after(40_000), BOUND, false, None),
            (nothing, nothing, BOUND, false, Some(Doubt::NotSet { wall: nothing })),
            (NOW, nothing, BOUND, true, Some(Doubt::NotSet { wall: nothing })),
            (UnixMillis(i64::MIN), UnixMillis(i64::MAX), BOUND, false, None),
        ] {
            assert_eq!(doubt(recorded, wall, bound, is_trusted), expected, "{recorded:?} {wall:?}");
        }
    }

    #[test]
    fn what_is_said_names_both_times_and_the_remedy() {
        let said = Doubt::Ahead { wall: UnixMillis(4_070_908_800_000), recorded: NOW }.to_string();
        for part in ["2099-01-01 00:00:00 UTC", "2026-01-01", "26663 days", "shard-clock wall"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_799, "2000-02-29 23:59:59 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(UnixMillis(seconds * 1000)), expected);
        }
    }
}
