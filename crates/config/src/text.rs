//! The words of a configuration line: quoting, and sizes with units. A line is split as a request
//! of the inline protocol is ([`resp::inline::split_line`]; Redis documentation, "Redis
//! configuration").

/// Appends `word` in double quotes, so that [`resp::inline::split_line`] gives it back.
pub fn quote(word: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for &byte in word {
        match byte {
            b'\\' | b'"' => line.extend([b'\\', byte]),
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            b'\t' => line.extend(b"\\t"),
            0x07 => line.extend(b"\\a"),
            0x08 => line.extend(b"\\b"),
            0x20..=0x7e => line.push(byte),
            _ => line.extend(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}

/// Units of sizes, any case: `k` is 1000, `kb` 1024.
const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1 << 30),
];

/// Parses a size in bytes. No digits at all mean 0, as in Redis; a size beyond 64 bits is refused,
/// where Redis would wrap.
pub fn parse_size(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()))?;
    let number = match number {
        [] => 0,
        number => std::str::from_utf8(number).ok()?.parse::<u64>().ok()?,
    };
    number.checked_mul(*factor)
}

/// Formats a size with the largest unit that divides it, as CONFIG REWRITE writes it.
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10)] {
        if bytes != 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

/// Parses a decimal integer strictly: no blanks, no plus sign, no leading zeroes (as the values of
/// integer directives and of commands are read).
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses as C's `strtoll` does and needs the whole text: leading blanks, a sign and zeroes pass,
/// and nothing at all is 0. Out of range is clamped.
pub fn parse_lenient_integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let trimmed = text.trim_start();
    if trimmed.is_empty() {
        return text.is_empty().then_some(0);
    }
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(trimmed.parse().unwrap_or(if trimmed.starts_with('-') { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_survives_splitting() {
        let word: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        quote(&word, &mut line);
        assert_eq!(resp::inline::split_line(&line), Some(vec![word]));
    }

    #[test]
    fn sizes_take_units() {
        let check =
            |text: &str, expected| assert_eq!(parse_size(text.as_bytes()), expected, "{text}");
        check("1k", Some(1000));
        check("1kb", Some(1024));
        check("1M", Some(1_000_000));
        check("1mB", Some(1 << 20));
        check("2gb", Some(2 << 30));
        check("5b", Some(5));
        check("", Some(0));
        check("-1", None);
        check("1.5gb", None);
        check("1tb", None);
        check("18446744073709551615", Some(u64::MAX));
        check("18446744073709551615kb", None);
        assert_eq!(format_size(3 << 20), "3mb");
        assert_eq!(format_size(0), "0");
        assert_eq!(format_size(1000), "1000");
    }

    #[test]
    fn strict_integers_refuse_what_redis_refuses() {
        let check = |text: &str, expected| {
            assert_eq!(parse_integer(text.as_bytes()), expected, "{text}");
        };
        check("0", Some(0));
        check("-1", Some(-1));
        check("-9223372036854775808", Some(i64::MIN));
        check("9223372036854775808", None);
        check("-0", None);
        check("01", None);
        check("+1", None);
        check(" 1", None);
        check("", None);
        assert_eq!(parse_lenient_integer(b" +07"), Some(7));
        assert_eq!(parse_lenient_integer(b"7x"), None);
    }
}
