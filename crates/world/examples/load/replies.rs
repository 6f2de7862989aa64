//! Counts whole replies of RESP2, however the bytes are split over reads.
//!
//! Nothing of a reply is kept but how much of it is missing. Arrays need no stack: an array of n
//! puts n elements in the place of one, so the number of elements that are missing is enough.
//!
//! ```text
//! *2 $1 a *2 :1 :2        missing, after each:  2 1 2 1 0
//! ```

/// Longest text of an error that is kept, in bytes; a guess, some lines of a terminal.
const ERROR_BYTES_MAX: usize = 512;

/// No server sends a longer string, in bytes, or array, in elements: 1 TiB. One digit may follow.
const NUMBER_MAX: u64 = 1 << 40;

#[derive(Default, Debug)]
pub struct Replies {
    at: At,
    /// Elements of the current reply that are not complete; 0 between replies.
    missing: u64,
    /// The text of an error that has begun.
    error: Vec<u8>,
    /// Errors are counted, and do not end the count.
    goes_on: bool,
    pub outcomes: Outcomes,
}

/// Replies that are no success.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outcomes {
    /// Nulls: what was asked for is not there.
    pub missed: u64,
    /// Errors.
    pub refused: u64,
}

/// What the next byte is.
#[derive(Clone, Copy, Default, Debug)]
enum At {
    /// The first byte of an element.
    #[default]
    Kind,
    /// In the line of a simple string or an integer.
    Line,
    /// In the line of an error.
    Error,
    /// In the number of a bulk string or, if `is_array`, of an array.
    Number { is_array: bool, is_negative: bool, number: u64 },
    /// In a bulk string, its line end included, of which so many bytes are missing.
    Bulk(u64),
}

/// Why the count cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unusable {
    /// The server answered with this error.
    Refused(String),
    /// This is no RESP2.
    NotResp,
    /// This is no answer of memcached to `get` or `set`.
    NotMemcached,
}

impl Replies {
    /// An error ends the count, unless it `goes_on`.
    pub fn new(goes_on: bool) -> Self {
        Self { goes_on, ..Self::default() }
    }

    /// Takes what was received next; how many replies it completes.
    pub fn count(&mut self, mut bytes: &[u8]) -> Result<u64, Unusable> {
        let mut complete = 0;
        while let [first, rest @ ..] = bytes {
            match self.at {
                At::Kind => {
                    self.missing = self.missing.max(1);
                    self.at = after(*first)?;
                    bytes = rest;
                }
                At::Line => {
                    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { break };
                    bytes = &bytes[end + 1..];
                    complete += self.element(0);
                }
                At::Error => {
                    if self.goes_on {
                        bytes = rest;
                        if *first == b'\n' {
                            self.outcomes.refused += 1;
                            complete += self.element(0);
                        }
                        continue;
                    }
                    if *first == b'\n' || self.error.len() == ERROR_BYTES_MAX {
                        let text = String::from_utf8_lossy(&self.error).trim_end().to_owned();
                        return Err(Unusable::Refused(text));
                    }
                    self.error.push(*first);
                    bytes = rest;
                }
                At::Number { is_array, is_negative, number } => {
                    bytes = rest;
                    match *first {
                        b'\r' => {}
                        b'\n' if is_negative => {
                            self.outcomes.missed += 1;
                            complete += self.element(0);
                        }
                        b'\n' if is_array => complete += self.element(number),
                        b'\n' => self.at = At::Bulk(number + b"\r\n".len() as u64),
                        b'-' => self.at = At::Number { is_array, is_negative: true, number },
                        digit @ b'0'..=b'9' => {
                            if number > NUMBER_MAX {
                                return Err(Unusable::NotResp);
                            }
                            let number = number * 10 + u64::from(digit - b'0');
                            self.at = At::Number { is_array, is_negative, number };
                        }
                        _ => return Err(Unusable::NotResp),
                    }
                }
                At::Bulk(missing) => {
                    let taken = missing.min(bytes.len() as u64);
                    bytes = &bytes[taken as usize..];
                    self.at = At::Bulk(missing - taken);
                    if taken == missing {
                        complete += self.element(0);
                    }
                }
            }
        }
        Ok(complete)
    }

    /// An element is complete, or is an array whose elements follow. 1 if this ends the reply.
    fn element(&mut self, elements: u64) -> u64 {
        self.at = At::Kind;
        self.missing = self.missing - 1 + elements;
        u64::from(self.missing == 0)
    }
}

/// What follows the first byte of an element.
fn after(kind: u8) -> Result<At, Unusable> {
    match kind {
        b'+' | b':' => Ok(At::Line),
        b'-' => Ok(At::Error),
        b'$' | b'*' => Ok(At::Number { is_array: kind == b'*', is_negative: false, number: 0 }),
        _ => Err(Unusable::NotResp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One reply of each kind.
    const KINDS: &[&str] = &[
        "+OK\r\n",
        "+\r\n",
        ":0\r\n",
        ":-12\r\n",
        "$0\r\n\r\n",
        "$5\r\na\r\nbc\r\n",
        "$12\r\n*1\r\n$3\r\n-no\n\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*1\r\n$-1\r\n",
        "*3\r\n$1\r\na\r\n:1\r\n+b\r\n",
        "*2\r\n*2\r\n*0\r\n*1\r\n:7\r\n*-1\r\n",
    ];

    #[test]
    fn replies_are_counted_at_their_last_byte() {
        for kind in KINDS {
            let mut replies = Replies::default();
            let counts: Vec<u64> =
                kind.bytes().map(|byte| replies.count(&[byte]).expect("it is RESP")).collect();
            let (last, others) = counts.split_last().expect("no reply is empty");
            assert!(*last == 1 && others.iter().all(|&count| count == 0), "{kind:?}: {counts:?}");
        }
    }

    #[test]
    fn replies_are_counted_however_the_bytes_are_split() {
        let all = KINDS.concat().into_bytes();
        for first in 0..=all.len() {
            for second in first..=all.len() {
                let mut replies = Replies::default();
                let parts = [&all[..first], &all[first..second], &all[second..]];
                let counts = parts.map(|part| replies.count(part).expect("it is RESP"));
                let sum: u64 = counts.iter().sum();
                assert_eq!(sum, KINDS.len() as u64, "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_error_is_told_in_full_wherever_it_stands_and_is_split() {
        for before in ["", "+OK\r\n", "*2\r\n:1\r\n"] {
            let text = format!("{before}-ERR no such key\r\n+OK\r\n");
            for split in 0..=text.len() {
                let mut replies = Replies::default();
                let (first, second) = text.as_bytes().split_at(split);
                let outcome = replies.count(first).and_then(|_| replies.count(second));
                let wanted = Unusable::Refused("ERR no such key".to_owned());
                assert_eq!(outcome, Err(wanted), "{before:?} split at {split}");
            }
        }
    }

    #[test]
    fn errors_and_nulls_are_counted_if_it_goes_on() {
        let mut replies = Replies::new(true);
        let text = "-OOM no room\r\n$-1\r\n*2\r\n-ERR\r\n*-1\r\n+OK\r\n";
        let complete: u64 =
            text.bytes().map(|byte| replies.count(&[byte]).expect("it is RESP")).sum();
        assert_eq!((complete, replies.outcomes), (4, Outcomes { missed: 2, refused: 2 }));
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for text in ["HTTP/1.1 400\r\n", "$x\r\n", "*1\r\n?", "%1\r\n", "$99999999999999999999999"]
        {
            assert_eq!(Replies::default().count(text.as_bytes()), Err(Unusable::NotResp), "{text}");
        }
    }
}
