//! The line form of a request: words as a person types them into a raw connection.
//!
//! Quoting follows Redis: double quotes know `\n \r \t \b \a`, `\xHH` and a backslash before any
//! other byte; single quotes know only `\'`. A quote may open in the middle of a word, and after it
//! closes the word ends: a blank or the end of the line must follow.

/// The words of a line, `None` if a quote is left open or followed by something other than a blank.
pub fn split_line(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
    split_words(line, &mut bytes, &mut ranges)?;
    let word = |&(start, length): &(u32, u32)| bytes[start as usize..][..length as usize].to_vec();
    Some(ranges.iter().map(word).collect())
}

/// Splits `line` into words, appended to `words` one after another; `ranges` takes the start and
/// length of each. `None` if a quote is left open or followed by something other than a blank.
pub(crate) fn split_words(
    line: &[u8],
    words: &mut Vec<u8>,
    ranges: &mut Vec<(u32, u32)>,
) -> Option<()> {
    let mut rest = line;
    loop {
        while let [byte, tail @ ..] = rest
            && is_space(*byte)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(());
        }
        let start = words.len();
        rest = take_word(rest, words)?;
        ranges.push((start as u32, (words.len() - start) as u32));
    }
}

/// The blanks of C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Appends the word at the front of `rest` to `words`; what follows it.
fn take_word<'a>(mut rest: &'a [u8], words: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            // Vertical tab and form feed separate words but do not end one: Redis has it so.
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Some(rest),
            [b'"', tail @ ..] => return closed(take_double_quoted(tail, words)?),
            [b'\'', tail @ ..] => return closed(take_single_quoted(tail, words)?),
            [byte, tail @ ..] => {
                words.push(*byte);
                rest = tail;
            }
        }
    }
}

/// What follows a closing quote, if it is a blank or nothing.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|byte| is_space(*byte)).then_some(rest)
}

fn take_double_quoted<'a>(mut rest: &'a [u8], words: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                words.push(hex_value(*high) << 4 | hex_value(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                words.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [byte, tail @ ..] => {
                words.push(*byte);
                rest = tail;
            }
        }
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], words: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'\\', b'\'', tail @ ..] => {
                words.push(b'\'');
                rest = tail;
            }
            [b'\'', tail @ ..] => return Some(tail),
            [byte, tail @ ..] => {
                words.push(*byte);
                rest = tail;
            }
        }
    }
}

/// The value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], expected: &[&[u8]]) {
        let expected: Vec<Vec<u8>> = expected.iter().map(|word| word.to_vec()).collect();
        assert_eq!(split_line(line), Some(expected), "{}", line.escape_ascii());
    }

    #[test]
    fn quotes_and_escapes_are_those_of_redis() {
        check(b"", &[]);
        check(b" \t\x0b ", &[]);
        check(b"set a b", &[b"set", b"a", b"b"]);
        check(b"set \"a b\" 'c d'", &[b"set", b"a b", b"c d"]);
        check(br#"x "\n\r\t\b\a\\\"\q" "#, &[b"x", b"\n\r\t\x08\x07\\\"q"]);
        check(br#"x "\x41\xfF\xg1\x4""#, &[b"x", b"A\xffxg1x4"]);
        check(br"x 'a\'b\n'", &[b"x", b"a'b\\n"]);
        check(b"foo\"bar\"", &[b"foobar"]);
        check(b"a \"\" ''", &[b"a", b"", b""]);
        check(b"a\x0bb", &[b"a\x0bb"]);
        check(b"\"a\"\x0bb", &[b"a", b"b"]);
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in
            [&b"a \"b"[..], b"a 'b", b"a \"b\"c", b"a 'b'c", b"\"\\\"", b"\"a\"\"b\"", b"'\\'"]
        {
            assert_eq!(split_line(line), None, "{}", line.escape_ascii());
        }
    }
}
