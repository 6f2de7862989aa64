//! Redis's numbers: which texts a command takes for one, and how it prints one.

pub mod extended;
mod hexadecimal;

use crate::number::hexadecimal::Hexadecimal;
pub use extended::Extended;
pub use resp::format_double::format_double;

/// Scores beyond half the range of an `i64` are printed as doubles: Redis's bound for a safe cast.
const INTEGRAL_SCORE_MAX: f64 = (i64::MAX / 2) as f64;

/// Reads `text` as C's `strtod` does, the whole of it: decimal, hexadecimal or infinity, with no
/// blank before. `None` for not-a-number, and for what overflows or vanishes to zero.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (negative, magnitude) = split_sign(text);
    let value = match magnitude_of(magnitude)? {
        Magnitude::Value(value) => value,
        Magnitude::TooLarge | Magnitude::TooSmall => return None,
    };
    Some(if negative { -value } else { value })
}

/// Reads an end of a range of scores, for which Redis does not ask whether `strtod` could hold the
/// number: what overflows is infinite, what vanishes is zero. Blanks may stand before, a NUL ends
/// the text, and no text at all is zero. `None` for not-a-number.
pub fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    let (negative, magnitude) = split_sign(&text[blanks..]);
    let value = match magnitude_of(magnitude)? {
        Magnitude::Value(value) => value,
        Magnitude::TooLarge => f64::INFINITY,
        Magnitude::TooSmall => 0.0,
    };
    Some(if negative { -value } else { value })
}

/// A number without its sign.
enum Magnitude {
    Value(f64),
    /// A finite number beyond the largest double.
    TooLarge,
    /// A number that rounds to zero, and is not.
    TooSmall,
}

/// Reads all of `text`, which has no sign; `None` if it is no number.
fn magnitude_of(text: &[u8]) -> Option<Magnitude> {
    if is_infinity(text) {
        return Some(Magnitude::Value(f64::INFINITY));
    }
    if is_hexadecimal(text) {
        let number = Hexadecimal::parse(text)?;
        let beyond = if number.is_large() { Magnitude::TooLarge } else { Magnitude::TooSmall };
        return Some(number.to_f64().map_or(beyond, Magnitude::Value));
    }
    if !text.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.') {
        return None;
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    if value.is_infinite() {
        return Some(Magnitude::TooLarge);
    }
    let mut mantissa = text.iter().take_while(|byte| *byte | 0x20 != b'e');
    if value == 0.0 && mantissa.any(|byte| matches!(byte, b'1'..=b'9')) {
        return Some(Magnitude::TooSmall);
    }
    Some(Magnitude::Value(value))
}

/// Appends a score as Redis stores it in a listpack: integers in full, all else as `%.17g`.
pub fn push_score(out: &mut Vec<u8>, score: f64) {
    if score.is_nan() {
        out.extend_from_slice(b"nan");
    } else if score != 0.0 && score.abs() <= INTEGRAL_SCORE_MAX && score == score.trunc() {
        out.extend_from_slice(itoa::Buffer::new().format(score as i64).as_bytes());
    } else {
        out.extend_from_slice(format_double(score).as_bytes());
    }
}

/// Whether a sign says minus, and what follows the sign.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', magnitude @ ..] => (true, magnitude),
        [b'+', magnitude @ ..] => (false, magnitude),
        magnitude => (false, magnitude),
    }
}

fn is_infinity(magnitude: &[u8]) -> bool {
    magnitude.eq_ignore_ascii_case(b"inf") || magnitude.eq_ignore_ascii_case(b"infinity")
}

fn is_hexadecimal(magnitude: &[u8]) -> bool {
    matches!(magnitude, [b'0', b'x' | b'X', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_read_as_strtod_reads_them() {
        let accepted = [
            ("1", 1.0),
            ("-1.5", -1.5),
            ("+.5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1E-2", 0.01),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("0x.8", 0.5),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("5e-324", 5e-324),
            ("0e999999", 0.0),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("007", 7.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000000000000000001p0", 1.0000000000000002),
            ("0x1.00000000000018p0", 1.0000000000000004),
        ];
        for (text, value) in accepted {
            assert_eq!(parse_f64(text.as_bytes()), Some(value), "{text}");
        }
        let refused = [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            " 1",
            "1 ",
            "nan",
            "-nan",
            "1x",
            "0x",
            "0xg",
            "0x1p",
            "0x1p+",
            "1e400",
            "-1e400",
            "1e-400",
            "0x1p1024",
            "0x1p-1080",
            "infi",
            "1\0",
            "1,5",
            "0x.",
            "--1",
            "+-1",
            "1_0",
        ];
        for text in refused {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn bounds_may_be_out_of_range_or_empty() {
        for (text, value) in [
            ("1e400", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("0x1p5000", f64::INFINITY),
            ("1e-400", 0.0),
            ("0x1p-5000", 0.0),
            ("", 0.0),
            (" \t1.5", 1.5),
            ("2\0x", 2.0),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_bound(text.as_bytes()), Some(value), "{text}");
        }
        for text in [" ", "1 ", "nan", "-nan", "x", "0x", "1e", "(1", "--1"] {
            assert_eq!(parse_bound(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn negative_zero_keeps_its_sign() {
        assert!(parse_f64(b"-0").is_some_and(|value| value.is_sign_negative()));
        let mut out = Vec::new();
        push_score(&mut out, -0.0);
        assert_eq!(out, b"-0");
    }

    #[test]
    fn scores_print_integers_in_full() {
        for (score, text) in [
            (1e17, "100000000000000000"),
            (4e18, "4000000000000000000"),
            (5e18, "5e+18"),
            (-3.0, "-3"),
            (1.1, "1.1000000000000001"),
            (f64::INFINITY, "inf"),
        ] {
            let mut out = Vec::new();
            push_score(&mut out, score);
            assert_eq!(String::from_utf8(out).as_deref(), Ok(text));
        }
    }
}
