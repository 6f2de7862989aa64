//! Times as people give them: RFC 3339 in UTC, or milliseconds since 1970.

use base::UnixMillis;
use config::secrets::hide_credentials;

/// Reads a time.
///
/// # Errors
/// Why it is none, in words.
pub fn parse(text: &str) -> Result<UnixMillis, String> {
    let wrong = || {
        let text = hide_credentials(text);
        format!("'{text}' is no time: 2026-11-20T12:00:00.000Z, or milliseconds since 1970 in UTC")
    };
    if let Ok(millis) = text.parse::<i64>() {
        return Ok(UnixMillis(millis));
    }
    of_date(text).map(UnixMillis).ok_or_else(wrong)
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction]Z`, the date of the proleptic Gregorian calendar.
fn of_date(text: &str) -> Option<i64> {
    let text = text.strip_suffix(['Z', 'z'])?;
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_valid = (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit());
    if !is_valid || !is_fraction {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    // Years that begin in March, so that the leap day is the last one.
    let (from_march, of_year) = ((month + 9) % 12, year - i64::from(month < 3));
    let days_before_month = (153 * from_march + 2) / 5;
    let days = 365 * of_year + of_year.div_euclid(4) - of_year.div_euclid(100)
        + of_year.div_euclid(400)
        + days_before_month
        + day
        - 1
        - DAYS_TO_1970;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

/// From the 1st of March of the year 0.
const DAYS_TO_1970: i64 = 719_468;

/// Three numbers of so many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let words: Vec<&str> = text.split(between).collect();
    let words: [&str; 3] = words.try_into().ok()?;
    let mut numbers = [0; 3];
    for ((number, word), digits) in numbers.iter_mut().zip(words).zip(digits) {
        if word.len() != digits || !word.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        *number = word.parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, millis) in [
            ("0", 0),
            ("1795749283086", 1_795_749_283_086),
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.5Z", 500),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-11-20T12:00:00.000Z", 1_795_176_000_000),
            ("2026-11-20T12:00:00.1234567Z", 1_795_176_000_123),
        ] {
            assert_eq!(parse(text), Ok(UnixMillis(millis)), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2026-11-20",
            "2026-11-20T12:00:00",
            "2026-11-20T12:00Z",
            "2026-13-20T12:00:00Z",
            "2026-02-29T12:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T12:00:60Z",
            "2026-11-20T12:00:00.Z",
            "+026-11-20T12:00:00Z",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
