//! The client's half of the protocol, as far as servers speak it to each other: requests, and
//! answers of one line.

/// Longest line that a server says, in bytes. A guess: error texts are the longest.
const LINE_BYTES_MAX: usize = 4096;

/// Takes a line off what arrived, without its end. `None` if it has not ended.
///
/// # Errors
/// It is longer than any line should be.
pub fn take_line(input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, &'static str> {
    let end = input.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n');
    let Some(end) = end else {
        if input.len() >= LINE_BYTES_MAX {
            return Err("the other side says a line without end");
        }
        return Ok(None);
    };
    let mut line: Vec<u8> = input.drain(..=end).collect();
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(line))
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
}
