//! Numbers, printed and parsed as C does.

use std::fmt::Write;

/// Prints a number as C's `%.{digits}g` does.
pub(super) fn format(number: f64, digits: usize, out: &mut Vec<u8>) {
    if !number.is_finite() {
        let text = if number.is_nan() { "nan" } else { "inf" };
        if number.is_sign_negative() {
            out.push(b'-');
        }
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let mut text = String::new();
    write!(text, "{:.*e}", digits - 1, number.abs()).expect("a string takes all");
    let (mantissa, exponent) = text.split_once('e').expect("`{:e}` has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let mut figures = mantissa.replace('.', "");
    figures.truncate(figures.trim_end_matches('0').len().max(1));
    if number.is_sign_negative() {
        out.push(b'-');
    }
    if exponent < -4 || exponent >= digits as i32 {
        out.extend_from_slice(&figures.as_bytes()[..1]);
        if figures.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&figures.as_bytes()[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(figures.as_bytes());
    } else {
        let whole = exponent as usize + 1;
        let shown = whole.min(figures.len());
        out.extend_from_slice(&figures.as_bytes()[..shown]);
        out.extend(std::iter::repeat_n(b'0', whole - shown));
        if figures.len() > whole {
            out.push(b'.');
            out.extend_from_slice(&figures.as_bytes()[whole..]);
        }
    }
}

/// Parses a number at the front of a text as C's `strtod` does: decimal, hexadecimal, infinity or
/// not-a-number. Returns it with its length.
pub(super) fn parse(text: &[u8]) -> Option<(f64, usize)> {
    let signs = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let is_negative = text.first() == Some(&b'-');
    let body = &text[signs..];
    let starts =
        |word: &[u8]| body.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word));
    let (value, length) = if starts(b"infinity") {
        (f64::INFINITY, 8)
    } else if starts(b"inf") {
        (f64::INFINITY, 3)
    } else if starts(b"nan") {
        (f64::NAN, 3 + nan_payload(&body[3..]))
    } else if starts(b"0x") && hexadecimal(&body[2..]).is_some() {
        let (value, length) = hexadecimal(&body[2..])?;
        (value, length + 2)
    } else {
        decimal(body)?
    };
    Some((if is_negative { -value } else { value }, signs + length))
}

/// The length of `(letters)`, which may follow `nan`.
fn nan_payload(text: &[u8]) -> usize {
    let Some((b'(', rest)) = text.split_first() else { return 0 };
    let letters =
        rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    if rest.get(letters) == Some(&b')') { letters + 2 } else { 0 }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of an exponent that begins with `mark`, if there is one.
fn exponent(text: &[u8], mark: u8) -> usize {
    if !text.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&mark)) {
        return 0;
    }
    let signs = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    match digits(&text[1 + signs..]) {
        0 => 0,
        count => 1 + signs + count,
    }
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(text);
    let mut length = whole;
    let mut fraction = 0;
    if text.get(whole) == Some(&b'.') {
        fraction = digits(&text[whole + 1..]);
        length += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    length += exponent(&text[length..], b'e');
    let number = std::str::from_utf8(&text[..length]).ok()?;
    number.parse().ok().map(|number| (number, length))
}

/// Parses the digits behind `0x`. Digits beyond the precision of a double count for the magnitude
/// only.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let (mut value, mut scale, mut length) = (0.0f64, 0i32, 0);
    let (mut has_digits, mut is_fraction) = (false, false);
    while let Some(&byte) = text.get(length) {
        if byte == b'.' && !is_fraction {
            is_fraction = true;
        } else if let Some(digit) = char::from(byte).to_digit(16) {
            has_digits = true;
            if value < 1e300 {
                value = value * 16.0 + f64::from(digit);
            } else {
                scale = scale.saturating_add(4);
            }
            if is_fraction {
                scale = scale.saturating_sub(4);
            }
        } else {
            break;
        }
        length += 1;
    }
    if !has_digits {
        return None;
    }
    let power = exponent(&text[length..], b'p');
    if power > 0 {
        let text = std::str::from_utf8(&text[length + 1..length + power]).ok()?;
        scale = scale.saturating_add(
            text.parse::<i64>()
                .map_or(i32::MAX, |by| by.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
        );
    }
    // In two factors, so that neither exceeds the range of a double before the product does.
    let half = scale / 2;
    Some((value * 2f64.powi(half) * 2f64.powi(scale - half), length + power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_c_prints_them() {
        let text = |number, digits| {
            let mut out = Vec::new();
            format(number, digits, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0.1, 14), "0.1");
        assert_eq!(text(1.0 / 3.0, 14), "0.33333333333333");
        assert_eq!(text(100_000_000_000_000.0, 14), "1e+14");
        assert_eq!(text(12_345_678_901_234.0, 14), "12345678901234");
        assert_eq!(text(123_456.0, 3), "1.23e+05");
        assert_eq!(text(-0.000_012_5, 14), "-1.25e-05");
        assert_eq!(text(0.000_125, 14), "0.000125");
        assert_eq!(text(-0.0, 14), "-0");
        assert_eq!(text(9.99, 1), "1e+01");
        assert_eq!(text(9.99, 2), "10");
        assert_eq!(text(f64::NEG_INFINITY, 14), "-inf");
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(parse(b"12]"), Some((12.0, 2)));
        assert_eq!(parse(b"-1.5e3,"), Some((-1500.0, 6)));
        assert_eq!(parse(b"1e+"), Some((1.0, 1)));
        assert_eq!(parse(b"0x10"), Some((16.0, 4)));
        assert_eq!(parse(b"0x.8p1 "), Some((1.0, 6)));
        assert_eq!(parse(b"0x"), Some((0.0, 1)));
        assert_eq!(parse(b"-Infinity"), Some((f64::NEG_INFINITY, 9)));
        assert_eq!(parse(b"nan(1)").map(|(_, length)| length), Some(6));
        assert_eq!(parse(b"5."), Some((5.0, 2)));
        assert_eq!(parse(b"-"), None);
        assert_eq!(parse(b"."), None);
    }
}
