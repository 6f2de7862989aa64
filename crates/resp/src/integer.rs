//! Redis's strict decimal integers: one spelling per value.
//!
//! No plus sign, no leading zero, no blank, no `-0`. Lengths on the wire are read by this rule, and
//! so is every string that may be stored as an integer: what it accepts prints back unchanged.

/// Reads `text` as a 64-bit integer; `None` if it is not the one spelling of a value in range.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let magnitude = parse_u64(digits)?;
    match (negative, magnitude) {
        (true, 0) => None,
        (true, magnitude) => 0_i64.checked_sub_unsigned(magnitude),
        (false, magnitude) => i64::try_from(magnitude).ok(),
    }
}

/// Reads `digits` as an unsigned 64-bit integer, under the same rule.
pub fn parse_u64(digits: &[u8]) -> Option<u64> {
    match digits {
        [] => return None,
        [b'0'] => return Some(0),
        [b'0', ..] => return None,
        _ => {}
    }
    // Nineteen digits fit whatever they are; only a twentieth can overflow.
    if digits.len() > 20 {
        return None;
    }
    let mut value = 0_u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_the_spelling_it_would_print() {
        for value in [0, 1, -1, 9, 10, -10, i64::MAX, i64::MIN, 1 << 53] {
            assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
        for text in ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1.0", "0x1", "1e3", "--1"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_overflows() {
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"-9223372036854775809"), None);
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"111111111111111111111"), None);
    }
}
