//! How long a blocking command waits.

use crate::number::Extended;
use crate::refusal::Refusal;

/// Reads a timeout in seconds as milliseconds, rounded up; `None` for `0`: without limit.
///
/// # Errors
/// Redis's texts for what is no number or negative. What exceeds 64 bits of milliseconds counts as
/// negative, as on the processors that Redis runs on.
pub fn millis(text: &[u8]) -> Result<Option<u64>, Refusal> {
    let seconds =
        Extended::parse(text).ok_or(Refusal::of("ERR timeout is not a float or out of range"))?;
    match seconds.thousandfold_ceil().map(u64::try_from) {
        Some(Ok(0)) => Ok(None),
        Some(Ok(millis)) => Ok(Some(millis)),
        _ => Err(Refusal::of("ERR timeout is negative")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_seconds_rounded_up_to_milliseconds() {
        for (text, expected) in [
            ("1", 1_000),
            ("0.001", 1),
            ("0.0001", 1),
            ("1.0001", 1_001),
            ("0.1", 100),
            ("1e-9", 1),
            ("0x10", 16_000),
            ("4.35", 4_350),
            ("9223372036854774", 9_223_372_036_854_774_000),
            ("9223372036854775.807", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(millis(text.as_bytes()), Ok(Some(expected)), "{text}");
        }
        // A thousandth is a little less in binary, and what is left of it rounds up to zero.
        for text in ["0", "-0", "-0.0001", "-0.001"] {
            assert_eq!(millis(text.as_bytes()), Ok(None), "{text}");
        }
        for text in ["-1", "-0.002", "inf", "-inf", "1e300", "9223372036854775.808"] {
            assert_eq!(
                millis(text.as_bytes()),
                Err(Refusal::of("ERR timeout is negative")),
                "{text}"
            );
        }
        for text in ["", "abc", "1 ", " 1", "nan", "1e99999"] {
            assert_eq!(
                millis(text.as_bytes()),
                Err(Refusal::of("ERR timeout is not a float or out of range")),
                "{text}"
            );
        }
    }
}
