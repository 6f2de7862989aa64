//! LZF, the compression of strings in RDB files. Redis writes it by default; Kiln reads it.
//!
//! ```text
//! 000lllll bytes            l + 1 literal bytes
//! lllooooo oooooooo         l + 2 bytes from o + 1 bytes back       (l from 1 to 6)
//! 111ooooo llllllll oooooooo        l + 9 bytes from o + 1 bytes back
//! ```

/// Appends what `bytes` stand for to `out`; whether that was exactly `length` bytes. Never writes
/// more, whatever the bytes say.
#[must_use]
pub fn inflate(bytes: &[u8], length: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut rest = bytes;
    while let [control, tail @ ..] = rest {
        rest = tail;
        let left = length - (out.len() - start);
        if *control < 0x20 {
            let count = usize::from(*control) + 1;
            if count > left {
                return false;
            }
            let Some((literal, tail)) = rest.split_at_checked(count) else { return false };
            out.extend_from_slice(literal);
            rest = tail;
            continue;
        }
        let mut count = usize::from(control >> 5) + 2;
        if count == 9 {
            let [more, tail @ ..] = rest else { return false };
            count += usize::from(*more);
            rest = tail;
        }
        let [low, tail @ ..] = rest else { return false };
        rest = tail;
        let back = usize::from(control & 0x1f) << 8 | usize::from(*low);
        let Some(from) = (out.len() - start).checked_sub(back + 1) else { return false };
        if count > left {
            return false;
        }
        // The copy may overlap what it makes: that is how runs are written.
        for at in start + from..start + from + count {
            out.push(out[at]);
        }
    }
    out.len() - start == length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], length: usize, expected: Option<&[u8]>) {
        let mut out = b"before".to_vec();
        let fits = inflate(bytes, length, &mut out);
        assert_eq!(fits.then_some(&out[6..]), expected);
        assert!(out.len() <= 6 + length);
    }

    #[test]
    fn literals_and_references_are_expanded() {
        check(b"", 0, Some(b""));
        check(b"\x02abc", 3, Some(b"abc"));
        // One literal, then 20 bytes from one byte back: a run.
        check(b"\x00a\xe0\x0b\x00", 21, Some(&[b'a'; 21]));
        check(b"\x01ab\x40\x01", 6, Some(b"ababab"));
    }

    #[test]
    fn bytes_that_do_not_fit_are_refused() {
        check(b"\x02ab", 3, None);
        check(b"\x02abc", 2, None);
        check(b"\x02abc", 4, None);
        check(b"\x00a\x20\x05", 4, None);
        check(b"\x00a\xe0", 21, None);
        check(b"\x00a\xe0\xff\x00", 21, None);
    }
}
