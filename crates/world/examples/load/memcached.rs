//! memcached's text protocol, as far as GET and SET go.
//!
//! ```text
//! get key:000000483920 ⏎                    VALUE key:000000483920 0 500 ⏎ … ⏎ END ⏎
//! set key:000000483920 0 0 500 ⏎ … ⏎        STORED ⏎
//! ```
//! A value that is not there is answered with the END alone. Source: doc/protocol.txt of memcached.

use crate::replies::{Outcomes, Unusable};

/// Longer than any line: a key has 250 bytes at most. Of an error the rest is left out.
const LINE_BYTES_MAX: usize = 512;

/// `GET key` or `SET key value` in memcached's words.
///
/// # Errors
/// It is another command.
pub fn encode(words: &[String], value: &str) -> Result<Vec<u8>, String> {
    let words: Vec<String> =
        words.iter().map(|word| word.replace(crate::requests::VALUE, value)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        [name, key] if name.eq_ignore_ascii_case("get") => format!("get {key}\r\n"),
        [name, key, value] if name.eq_ignore_ascii_case("set") => {
            format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
        }
        _ => return Err(format!("memcached is asked GET key or SET key value, not {words:?}")),
    };
    Ok(text.into_bytes())
}

/// Counts whole replies, however the bytes are split over reads.
#[derive(Default, Debug)]
pub struct Replies {
    /// The line that has begun.
    line: Vec<u8>,
    /// Bytes of a value and its line end that are missing.
    missing: u64,
    /// The reply that has begun has a value.
    has_value: bool,
    /// Errors are counted, and do not end the count.
    goes_on: bool,
    pub outcomes: Outcomes,
}

impl Replies {
    pub fn new(goes_on: bool) -> Self {
        Self { goes_on, ..Self::default() }
    }

    /// Takes what was received next; how many replies it completes.
    pub fn count(&mut self, mut bytes: &[u8]) -> Result<u64, Unusable> {
        let mut complete = 0;
        while !bytes.is_empty() {
            if self.missing > 0 {
                let taken = self.missing.min(bytes.len() as u64);
                self.missing -= taken;
                bytes = &bytes[taken as usize..];
                continue;
            }
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let room = LINE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let Some(end) = end else { break };
            bytes = &bytes[end + 1..];
            complete += self.end_of_line()?;
        }
        Ok(complete)
    }

    /// 1 if the line ends a reply.
    fn end_of_line(&mut self) -> Result<u64, Unusable> {
        let line = self.line.trim_ascii_end();
        if let Some(rest) = line.strip_prefix(b"VALUE ") {
            // Key, flags, length.
            let length = rest.split(|&byte| byte == b' ').nth(2).unwrap_or_default();
            let length = std::str::from_utf8(length).ok().and_then(|text| text.parse::<u32>().ok());
            self.missing = u64::from(length.ok_or(Unusable::NotMemcached)?) + b"\r\n".len() as u64;
            self.has_value = true;
            self.line.clear();
            return Ok(0);
        }
        match line {
            b"END" if self.has_value => {}
            b"END" => self.outcomes.missed += 1,
            b"STORED" => {}
            _ if is_error(line) && self.goes_on => self.outcomes.refused += 1,
            _ if is_error(line) => {
                return Err(Unusable::Refused(String::from_utf8_lossy(line).into_owned()));
            }
            _ => return Err(Unusable::NotMemcached),
        }
        self.has_value = false;
        self.line.clear();
        Ok(1)
    }
}

fn is_error(line: &[u8]) -> bool {
    let begins = [&b"ERROR"[..], b"CLIENT_ERROR", b"SERVER_ERROR", b"NOT_STORED"];
    begins.iter().any(|begin| line.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &str = "VALUE key:1 0 7\r\nEND\r\nab\r\nEND\r\nEND\r\nSTORED\r\n\
                           SERVER_ERROR out of memory storing object\r\nVALUE k 0 0\r\n\r\nEND\r\n";

    fn encoded(text: &str) -> Result<String, String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        encode(&words, "abc").map(|bytes| String::from_utf8(bytes).expect("it is ASCII"))
    }

    #[test]
    fn get_and_set_have_their_lines_and_nothing_else_is_known() {
        assert_eq!(encoded("GET key:1").as_deref(), Ok("get key:1\r\n"));
        assert_eq!(encoded("set key:1 <__value__>").as_deref(), Ok("set key:1 0 0 5\r\n<abc>\r\n"));
        assert!(encoded("DEL key:1").is_err() && encoded("GET").is_err());
    }

    #[test]
    fn replies_are_counted_however_the_bytes_are_split() {
        let all = REPLIES.as_bytes();
        for split in 0..=all.len() {
            let mut replies = Replies::new(true);
            let (first, second) = all.split_at(split);
            let counts = [first, second].map(|part| replies.count(part).expect("it is memcached"));
            assert_eq!(counts.iter().sum::<u64>(), 5, "split at {split}");
            assert_eq!(replies.outcomes, Outcomes { missed: 1, refused: 1 }, "split at {split}");
        }
    }

    #[test]
    fn an_error_ends_the_count_unless_it_goes_on() {
        let outcome = Replies::new(false).count(REPLIES.as_bytes());
        let text = "SERVER_ERROR out of memory storing object";
        assert_eq!(outcome, Err(Unusable::Refused(text.to_owned())));
        for text in ["+OK\r\n", "VALUE k 0 x\r\n", "VALUE k\r\n", "\r\n"] {
            let outcome = Replies::new(true).count(text.as_bytes());
            assert_eq!(outcome, Err(Unusable::NotMemcached), "{text}");
        }
    }
}
