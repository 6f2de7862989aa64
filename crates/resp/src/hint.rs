//! A look ahead at a request that is not decoded yet: only to prefetch what it will touch.
//!
//! What comes back is a guess. It may be wrong or missing, and nothing may depend on it but speed.

/// The second argument of the request at the front of `input`, which for most commands is their
/// first key. `None` if the request is inline, unusual, or not all there.
pub fn second_argument(input: &[u8]) -> Option<&[u8]> {
    let rest = input.strip_prefix(b"*")?;
    let (count, rest) = small_number(rest)?;
    if count < 2 {
        return None;
    }
    let (name, rest) = small_number(rest.strip_prefix(b"$")?)?;
    let rest = rest.get(name + 2..)?;
    let (length, rest) = small_number(rest.strip_prefix(b"$")?)?;
    rest.get(..length)
}

/// A number of at most three digits and the line's end after it; what follows.
fn small_number(text: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (at, byte) in text.iter().take(4).enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + usize::from(byte - b'0'),
            b'\r' => return Some((value, text.get(at + 2..)?)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::second_argument;

    #[test]
    fn the_key_of_a_whole_request_is_found_and_nothing_panics() {
        let request = b"*3\r\n$3\r\nSET\r\n$5\r\nhello\r\n$1\r\nx\r\n";
        assert_eq!(second_argument(request), Some(&b"hello"[..]));
        for cut in 0..request.len() {
            let found = second_argument(&request[..cut]);
            assert!(found.is_none() || found == Some(b"hello"), "cut at {cut}");
        }
        for text in
            ["PING\r\n", "*1\r\n$4\r\nPING\r\n", "*2\r\n$-1\r\n", "*2\r\n$999\r\nGET", "*", ""]
        {
            assert_eq!(second_argument(text.as_bytes()), None, "{text:?}");
        }
    }
}
