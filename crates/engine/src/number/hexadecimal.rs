//! C's hexadecimal floating point, `0x1.8p3`: `strtod` takes it, so Redis's commands do.

/// `mantissa · 2^exponent`, and whether bits below the mantissa were dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hexadecimal {
    pub mantissa: u128,
    pub exponent: i64,
    /// A digit other than zero lies below the mantissa's last bit.
    pub inexact: bool,
}

/// Exponents are cut off here: far beyond any format, and sums with digit counts cannot overflow.
const EXPONENT_MAX: i64 = 1 << 40;

impl Hexadecimal {
    /// Reads all of `text`, which begins with `0x`. No sign.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut value = Self { mantissa: 0, exponent: 0, inexact: false };
        let (mut digits, mut behind_point) = (0, false);
        let mut rest = text.get(2..)?;
        while let [byte, tail @ ..] = rest {
            match (*byte, (*byte as char).to_digit(16)) {
                (_, Some(digit)) => {
                    value.push(u128::from(digit), behind_point);
                    digits += 1;
                }
                (b'.', _) if !behind_point => behind_point = true,
                _ => break,
            }
            rest = tail;
        }
        if digits == 0 {
            return None;
        }
        match rest {
            [] => {}
            [b'p' | b'P', exponent @ ..] => value.exponent += parse_exponent(exponent)?,
            _ => return None,
        }
        Some(value)
    }

    /// Takes the next digit while the mantissa has room for it.
    fn push(&mut self, digit: u128, behind_point: bool) {
        if self.mantissa >> 124 == 0 {
            self.mantissa = self.mantissa << 4 | digit;
            self.exponent -= if behind_point { 4 } else { 0 };
        } else {
            self.inexact |= digit != 0;
            self.exponent += if behind_point { 0 } else { 4 };
        }
    }

    /// Whether the number is at least 1.
    pub fn is_large(self) -> bool {
        self.exponent + 127 - i64::from(self.mantissa.leading_zeros()) >= 0
    }

    /// The nearest double, ties to even; `None` where `strtod` reports a value out of range:
    /// infinity, or zero for what is not.
    pub fn to_f64(self) -> Option<f64> {
        if self.mantissa == 0 {
            return Some(0.0);
        }
        let lead = self.exponent + 127 - i64::from(self.mantissa.leading_zeros());
        if !(-1076..=1023).contains(&lead) {
            return None;
        }
        // The weight of the double's last bit: subnormals have a fixed one.
        let unit = (lead - 52).max(-1074);
        let shift = unit - self.exponent;
        let kept = if shift <= 0 {
            (self.mantissa << -shift) as u64
        } else {
            round_shift(self.mantissa, shift as u32, self.inexact) as u64
        };
        // At most 2^53, so the conversion is exact, and so are the two scalings.
        let half = unit / 2;
        let scaled = kept as f64 * 2_f64.powi(half as i32) * 2_f64.powi((unit - half) as i32);
        (scaled != 0.0 && scaled.is_finite()).then_some(scaled)
    }
}

/// `value / 2^shift` to the nearest integer, ties to even. `inexact`: a little more than `value`.
pub(super) fn round_shift(value: u128, shift: u32, inexact: bool) -> u128 {
    if shift == 0 {
        return value;
    }
    if shift > 128 {
        return 0;
    }
    let kept = value.checked_shr(shift).unwrap_or(0);
    let half = 1_u128 << (shift - 1);
    let below = value & (half | (half - 1));
    let up = below > half || (below == half && (inexact || kept & 1 == 1));
    kept + u128::from(up)
}

/// Reads a signed decimal exponent, cut off at a bound that no format reaches.
pub(super) fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = super::split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0_i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX));
    Some(if negative { -value } else { value })
}
