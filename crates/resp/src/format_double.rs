//! Doubles as C's `%.17g` prints them: what Redis sends, and what its clients compare against.
//!
//! Seventeen significant digits identify a double, so the text reads back as the same value. Not
//! the shortest such text: 0.1 is `0.10000000000000001`, and clients of Redis expect that.
//!
//! Rust's `{:.16e}` is correctly rounded to the same digits; only their layout differs.

use std::fmt::Write;

/// Significant digits, C's precision for `g`.
const DIGITS: usize = 17;

/// Below this, an integral double has at most seventeen digits, so `g` prints it as an integer.
const INTEGRAL_MAX: f64 = 1e17;

/// A double's text. The longest, `-1.7976931348623157e+308`, has 24 bytes.
#[derive(Clone, Copy, Debug)]
pub struct DoubleText {
    bytes: [u8; 32],
    len: usize,
}

impl DoubleText {
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn empty() -> Self {
        Self { bytes: [0; 32], len: 0 }
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }
}

impl Write for DoubleText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.len() - self.len;
        if text.len() > room {
            return Err(std::fmt::Error);
        }
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Formats `value` as `%.17g`. Infinities are `inf` and `-inf`, not-a-number keeps its sign.
pub fn format_double(value: f64) -> DoubleText {
    let mut text = DoubleText::empty();
    if value.is_nan() {
        text.push(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    } else if value.is_infinite() {
        text.push(if value < 0.0 { b"-inf" } else { b"inf" });
    } else if value.abs() < INTEGRAL_MAX && value == value.trunc() {
        if value.is_sign_negative() && value == 0.0 {
            text.push(b"-");
        }
        text.push(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        lay_out(value, &mut text);
    }
    text
}

/// Lays the digits of a finite `value` out: plain for exponents from -4 to 16, else scientific.
fn lay_out(value: f64, text: &mut DoubleText) {
    let mut scientific = DoubleText::empty();
    write!(scientific, "{:.16e}", value.abs()).expect("17 digits and an exponent fit 32 bytes");
    let source = scientific.as_bytes();
    // d.dddddddddddddddde±x
    let mut digits = [0; DIGITS];
    digits[0] = source[0];
    digits[1..].copy_from_slice(&source[2..DIGITS + 1]);
    let exponent: i32 = std::str::from_utf8(&source[DIGITS + 2..])
        .ok()
        .and_then(|exponent| exponent.parse().ok())
        .expect("`{:e}` ends in a decimal exponent");
    let significant = DIGITS - digits.iter().rev().take_while(|digit| **digit == b'0').count();
    let digits = &digits[..significant.max(1)];

    if value.is_sign_negative() {
        text.push(b"-");
    }
    match exponent {
        ..-4 | 17.. => lay_out_scientific(digits, exponent, text),
        -4..0 => {
            text.push(b"0.");
            text.push(&b"000"[..(-exponent - 1) as usize]);
            text.push(digits);
        }
        _ => {
            let whole = exponent as usize + 1;
            if digits.len() <= whole {
                text.push(digits);
                text.push(&[b'0'; DIGITS][..whole - digits.len()]);
            } else {
                text.push(&digits[..whole]);
                text.push(b".");
                text.push(&digits[whole..]);
            }
        }
    }
}

/// `d.ddde±xx`, at least two digits of exponent.
fn lay_out_scientific(digits: &[u8], exponent: i32, text: &mut DoubleText) {
    text.push(&digits[..1]);
    if digits.len() > 1 {
        text.push(b".");
        text.push(&digits[1..]);
    }
    text.push(if exponent < 0 { b"e-" } else { b"e+" });
    if exponent.abs() < 10 {
        text.push(b"0");
    }
    text.push(itoa::Buffer::new().format(exponent.abs()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: f64, expected: &str) {
        assert_eq!(std::str::from_utf8(format_double(value).as_bytes()), Ok(expected));
    }

    /// The right-hand sides are what glibc's printf prints.
    #[test]
    fn prints_as_c_does() {
        check(0.0, "0");
        check(-0.0, "-0");
        check(3.0, "3");
        check(-17.0, "-17");
        check(0.1, "0.10000000000000001");
        check(3.2, "3.2000000000000002");
        check(-2.5, "-2.5");
        check(0.0001, "0.0001");
        check(0.00012, "0.00012");
        check(0.00001, "1.0000000000000001e-05");
        check(99999999999999984.0, "99999999999999984");
        check(1e17, "1e+17");
        check(1.2345e17, "1.2345e+17");
        check(123456.789, "123456.789");
        check(1e100, "1e+100");
        check(1.7976931348623157e308, "1.7976931348623157e+308");
        check(-5e-324, "-4.9406564584124654e-324");
        check(9007199254740993.0, "9007199254740992");
        check(1234567890123456.7, "1234567890123456.8");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "nan");
    }

    proptest! {
        #[test]
        fn reads_back_as_the_same_value(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            let text = format_double(value);
            let back: f64 = std::str::from_utf8(text.as_bytes()).unwrap().parse().unwrap();
            prop_assert_eq!(back.to_bits(), bits);
        }
    }
}
