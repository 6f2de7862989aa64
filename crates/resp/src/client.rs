//! The client's half of the protocol, as far as servers speak it to each other: requests, and
//! answers of one line.

/// Longest line that a server says, in bytes. A guess: error texts are the longest.
const LINE_BYTES_MAX: usize = 4096;

/// Takes a line off what arrived, without its end. `None` if it has not ended.
///
/// # Errors
/// It is longer than any line should be.
pub fn take_line(input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, &'static str> {
    Ok(Lines::of(input).next()?.map(<[u8]>::to_vec))
}

/// Takes the first line that says something, and the empty ones before it, which are signs of life.
///
/// # Errors
/// As [`take_line`].
pub fn take_filled_line(input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, &'static str> {
    let mut lines = Lines::of(input);
    while let Some(line) = lines.next()? {
        if !line.is_empty() {
            return Ok(Some(line.to_vec()));
        }
    }
    Ok(None)
}

/// Lines of what arrived, one after the other. What was read is taken off at the end, all at once:
/// there may be as many lines as bytes.
pub struct Lines<'a> {
    input: &'a mut Vec<u8>,
    used: usize,
}

impl<'a> Lines<'a> {
    /// Those of `input`, from its beginning.
    pub fn of(input: &'a mut Vec<u8>) -> Self {
        Self { input, used: 0 }
    }

    /// The next line, without its end. `None` if it has not ended.
    ///
    /// # Errors
    /// It is longer than any line should be.
    #[expect(clippy::should_implement_trait, reason = "what it lends is in itself")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, &'static str> {
        let left = &self.input[self.used..];
        let Some(end) = left.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
            if left.len() >= LINE_BYTES_MAX {
                return Err("the other side says a line without end");
            }
            return Ok(None);
        };
        self.used += end + 1;
        let line = &left[..end];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        self.input.drain(..self.used);
    }
}

/// A line of the other side's, to be shown: without what would move a cursor.
pub fn text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A request as clients send it.
pub fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_and_are_not_endless() {
        let mut input = b"+OK\r\n\n+PO".to_vec();
        assert_eq!(take_line(&mut input), Ok(Some(b"+OK".to_vec())));
        assert_eq!(take_line(&mut input), Ok(Some(Vec::new())));
        assert_eq!(take_line(&mut input), Ok(None));
        assert!(take_line(&mut vec![b'x'; LINE_BYTES_MAX]).is_err());
    }

    #[test]
    fn lines_that_say_nothing_are_taken_together() {
        let mut input = b"\n\r\n\n+OK\r\n\n".to_vec();
        assert_eq!(take_filled_line(&mut input), Ok(Some(b"+OK".to_vec())));
        assert_eq!(input, b"\n");
        assert_eq!(take_filled_line(&mut input), Ok(None));
        assert!(input.is_empty());
        // As many as one megabyte holds, taken one by one, would keep a server for minutes.
        let mut input = vec![b'\n'; 1 << 20];
        assert_eq!(take_filled_line(&mut input), Ok(None));
        assert!(input.is_empty());
    }
}
