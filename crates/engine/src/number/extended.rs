//! The 80-bit extended double of x87 processors, in integers.
//!
//! INCRBYFLOAT and HINCRBYFLOAT compute in C's `long double`, and their results, 17 digits behind
//! the point, are stored as text. A double would print other digits, so that a data set moved from
//! Redis would drift. Rust has no such type; this one adds and prints on any processor alike.
//!
//! ```text
//! sign | 15 bits of exponent | 64 bits of mantissa, the leading 1 written out
//! ```
//!
//! Every operation is exact, then rounded once to the nearest value, ties to even.

#[cfg(test)]
mod tests;
mod wide;

use super::hexadecimal::{Hexadecimal, parse_exponent, round_shift};
use super::{is_hexadecimal, is_infinity, split_sign};
use wide::Wide;

/// The weight of the last bit of the smallest values, 2^-16445. Subnormals stop there.
const UNIT_MIN: i64 = -16445;

/// The weight of the last bit of the largest values. Beyond is infinity.
const UNIT_MAX: i64 = 16383 - 63;

/// Decimal exponents of a leading digit outside these overflow or vanish, whatever the digits.
const DECIMAL_LEAD_MAX: i64 = 4933;
const DECIMAL_LEAD_MIN: i64 = -4953;

/// Bytes of text that Redis converts at most: `MAX_LONG_DOUBLE_CHARS` less the final NUL.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;

/// Digits behind the point that are printed.
const FRACTION_DIGITS: usize = 17;

/// A number, or an infinity. Never not-a-number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extended {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Magnitude {
    /// `mantissa · 2^unit`: the mantissa's top bit is set unless `unit` is [`UNIT_MIN`].
    Finite {
        mantissa: u64,
        unit: i64,
    },
    Infinite,
}

impl Extended {
    pub const ZERO: Self =
        Self { negative: false, magnitude: Magnitude::Finite { mantissa: 0, unit: UNIT_MIN } };

    /// Reads all of `text` as C's `strtold` does: decimal, hexadecimal or infinity, no blank
    /// before. `None` for not-a-number, and for what overflows or vanishes to zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, text) = split_sign(text);
        if is_infinity(text) {
            return Some(Self { negative, magnitude: Magnitude::Infinite });
        }
        let (value, zero) = if is_hexadecimal(text) {
            let value = Hexadecimal::parse(text)?;
            let rounded = Self::round(negative, value.mantissa, value.exponent, value.inexact);
            (rounded, value.mantissa == 0)
        } else {
            let decimal = Decimal::parse(text)?;
            (decimal.to_extended(negative)?, decimal.digits.is_empty())
        };
        (value.is_finite() && value.is_zero() == zero).then_some(value)
    }

    pub fn is_finite(self) -> bool {
        self.magnitude != Magnitude::Infinite
    }

    fn is_zero(self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { mantissa: 0, .. })
    }

    /// The sum; `None` if it is infinite or not a number.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (
            Magnitude::Finite { mantissa: left, unit: left_unit },
            Magnitude::Finite { mantissa: right, unit: right_unit },
        ) = (self.magnitude, other.magnitude)
        else {
            return None;
        };
        if left_unit < right_unit {
            return other.checked_add(self);
        }
        // 63 bits below the larger: of a difference at most one leading bit is lost when anything
        // is shifted out, so the result has bits to spare for rounding.
        let high = u128::from(left) << 63;
        let distance = left_unit - right_unit;
        let aligned = u128::from(right) << 63;
        let low = if distance < 128 { aligned >> distance } else { 0 };
        let inexact = if distance < 128 { low << distance != aligned } else { right != 0 };
        let unit = left_unit - 63;
        let sum = if self.negative == other.negative {
            Self::round(self.negative, high + low, unit, inexact)
        } else if high == low && !inexact {
            Self::ZERO
        } else if high > low {
            // What was shifted out makes the smaller one larger: borrow, and stay inexact.
            Self::round(self.negative, high - low - u128::from(inexact), unit, inexact)
        } else {
            Self::round(other.negative, low - high, unit, inexact)
        };
        sum.is_finite().then_some(sum)
    }

    /// The text that Redis stores: `%.17Lf` without trailing zeroes, no exponent, never `-0`.
    pub fn to_text(self) -> String {
        let Magnitude::Finite { mantissa, unit } = self.magnitude else {
            return if self.negative { "-inf" } else { "inf" }.to_owned();
        };
        let (whole, fraction) = if unit >= 0 {
            (Wide::from(mantissa).shifted_left(unit as u32).into_decimal(), 0)
        } else {
            const SCALE: u128 = 10_u128.pow(FRACTION_DIGITS as u32);
            let shift = u32::try_from(-unit).unwrap_or(u32::MAX);
            let scaled = round_shift(u128::from(mantissa) * SCALE, shift, false);
            ((scaled / SCALE).to_string(), scaled % SCALE)
        };
        let fraction = format!("{fraction:0FRACTION_DIGITS$}");
        let fraction = fraction.trim_end_matches('0');
        let sign = if self.negative && (whole != "0" || !fraction.is_empty()) { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    }

    /// The number times 1000, rounded up to an integer: seconds as milliseconds. `None` if that
    /// does not fit.
    pub fn thousandfold_ceil(self) -> Option<i64> {
        let Magnitude::Finite { mantissa, unit } = self.magnitude else { return None };
        let product = Self::round(self.negative, u128::from(mantissa) * 1000, unit, false);
        let Magnitude::Finite { mantissa, unit } = product.magnitude else { return None };
        let shift = u32::try_from(-unit).ok()?;
        let whole = mantissa.checked_shr(shift).unwrap_or(0);
        let has_fraction = whole.checked_shl(shift).unwrap_or(0) != mantissa;
        if product.negative {
            return 0_i64.checked_sub_unsigned(whole);
        }
        i64::try_from(whole).ok()?.checked_add(i64::from(has_fraction))
    }

    /// The value nearest to `value · 2^unit`, ties to even. `inexact`: a little more than that, and
    /// then `value` has more than 64 bits.
    fn round(negative: bool, value: u128, unit: i64, inexact: bool) -> Self {
        if value == 0 {
            return Self { negative, ..Self::ZERO };
        }
        let bits = 128 - i64::from(value.leading_zeros());
        let mut result_unit = (unit + bits - 64).max(UNIT_MIN);
        let shift = result_unit - unit;
        let mut kept = if shift >= 0 {
            round_shift(value, u32::try_from(shift).unwrap_or(u32::MAX), inexact)
        } else {
            value << -shift
        };
        if kept >> 64 != 0 {
            kept >>= 1;
            result_unit += 1;
        }
        let magnitude = if result_unit > UNIT_MAX {
            Magnitude::Infinite
        } else {
            Magnitude::Finite { mantissa: kept as u64, unit: result_unit }
        };
        Self { negative, magnitude }
    }
}

impl From<i64> for Extended {
    fn from(value: i64) -> Self {
        Self::round(value < 0, u128::from(value.unsigned_abs()), 0, false)
    }
}

/// A decimal number: `0.ddd · 10^point`, without zeroes on either end of the digits.
struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// Reads all of `text`, which has no sign.
    fn parse(text: &[u8]) -> Option<Self> {
        let end = text.iter().position(|byte| byte | 0x20 == b'e').unwrap_or(text.len());
        let (mantissa, exponent) = text.split_at(end);
        let exponent = if exponent.is_empty() { 0 } else { parse_exponent(&exponent[1..])? };
        let mut parts = mantissa.splitn(2, |byte| *byte == b'.');
        let whole = parts.next().unwrap_or_default();
        let fraction = parts.next().unwrap_or_default();
        let mut digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..leading);
        let trailing = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        digits.truncate(digits.len() - trailing);
        Some(Self { digits, point: whole.len() as i64 - leading as i64 + exponent })
    }

    /// The nearest value; `None` where that is certain to be infinity, or zero for what is not.
    fn to_extended(&self, negative: bool) -> Option<Extended> {
        if self.digits.is_empty() {
            return Some(Extended { negative, ..Extended::ZERO });
        }
        if !(DECIMAL_LEAD_MIN..=DECIMAL_LEAD_MAX).contains(&self.point) {
            return None;
        }
        let mut numerator = Wide::from_decimal(&self.digits);
        let scale = self.point - self.digits.len() as i64;
        let mut denominator = Wide::from(1);
        let scaled = if scale >= 0 { &mut numerator } else { &mut denominator };
        scaled.multiply_by_power_of_ten(scale.unsigned_abs() as u32);
        // A quotient of 66 or 67 bits: 64 to keep, one to round by, the rest to be sure of it.
        let shift = 66 - (numerator.bits() as i64 - denominator.bits() as i64);
        if shift >= 0 {
            numerator = numerator.shifted_left(shift as u32);
        } else {
            denominator = denominator.shifted_left(shift.unsigned_abs() as u32);
        }
        let (quotient, inexact) = numerator.divided_by(&denominator);
        Some(Extended::round(negative, quotient, -shift, inexact))
    }
}
