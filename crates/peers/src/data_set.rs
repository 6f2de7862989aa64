//! How a master's data set is framed: where its file begins and ends in what arrives.
//!
//! ```text
//! "\n"* "$" length "\r\n" file            or            "\n"* "$EOF:" mark "\r\n" file mark
//! ```
//! The frame says which bytes are the file's and keeps none of them. That the file has ended is
//! for its reader to say, who hands back what it was given and did not need.

use resp::client::{take_filled_line, text};

const MARK_BYTES: usize = 40;

/// The file ends before its announced end.
pub const SHORT: &str = "the data set is shorter than announced";

/// How the end of the file is known.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Frame {
    /// Its line has not arrived.
    Unknown,
    /// This many bytes are still to arrive.
    Length(u64),
    /// These bytes stand behind it.
    Mark(Vec<u8>),
}

/// A data set on its way.
#[derive(Debug)]
pub struct DataSet {
    frame: Frame,
    /// What arrived behind the file, once its end was seen.
    rest: Option<Vec<u8>>,
    /// Bytes of the file in all, where that is known, and received.
    pub total_bytes: Option<u64>,
    pub received_bytes: u64,
}

impl Default for DataSet {
    fn default() -> Self {
        Self { frame: Frame::Unknown, rest: None, total_bytes: None, received_bytes: 0 }
    }
}

impl DataSet {
    /// Whether the line that announces the file has arrived.
    pub fn is_announced(&self) -> bool {
        self.frame != Frame::Unknown
    }

    /// Whether the end of the file was seen.
    pub fn has_ended(&self) -> bool {
        self.rest.is_some()
    }

    /// Whether nothing of the file is still to arrive, where its length is known.
    pub fn has_arrived(&self) -> bool {
        self.frame == Frame::Length(0)
    }

    /// Bytes that arrived behind the file and wait.
    pub fn waiting(&self) -> usize {
        self.rest.as_ref().map_or(0, Vec::len)
    }

    /// Takes what arrived, but for the bytes of the file: so many of them stand at the front of
    /// `input` now, and are the reader's to take.
    ///
    /// # Errors
    /// It is no data set.
    pub fn take(&mut self, input: &mut Vec<u8>) -> Result<usize, String> {
        if self.frame == Frame::Unknown {
            let Some(line) = take_filled_line(input)? else { return Ok(0) };
            self.frame = frame_of(&line)?;
            if let Frame::Length(length) = self.frame {
                self.total_bytes = Some(length);
            }
        }
        if let Some(rest) = &mut self.rest {
            rest.append(input);
            return Ok(0);
        }
        let count = match &mut self.frame {
            Frame::Length(left) => {
                let count = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                count
            }
            _ => input.len(),
        };
        self.received_bytes += count as u64;
        Ok(count)
    }

    /// The reader has seen the end of the file, and was given these bytes behind it.
    ///
    /// # Errors
    /// By the length that was announced they are the file's.
    pub fn end(&mut self, rest: Vec<u8>) -> Result<(), String> {
        if matches!(self.frame, Frame::Length(_)) && !rest.is_empty() {
            return Err(SHORT.to_owned());
        }
        self.rest.get_or_insert(rest);
        Ok(())
    }

    /// What follows the file and its mark, once the file has ended and the mark has arrived.
    ///
    /// # Errors
    /// The file is not as long as was announced.
    pub fn behind(&mut self, input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, String> {
        let Some(rest) = &mut self.rest else { return Ok(None) };
        rest.append(input);
        match &self.frame {
            Frame::Mark(mark) => {
                let known = rest.len().min(mark.len());
                if rest[..known] != mark[..known] {
                    return Err("the data set does not end with its mark".to_owned());
                }
                if rest.len() < mark.len() {
                    return Ok(None);
                }
                Ok(Some(rest.split_off(mark.len())))
            }
            Frame::Length(0) if self.received_bytes == self.total_bytes.unwrap_or(0) => {
                Ok(Some(std::mem::take(rest)))
            }
            _ => Err(SHORT.to_owned()),
        }
    }
}

fn frame_of(line: &[u8]) -> Result<Frame, String> {
    if let Some(mark) = line.strip_prefix(b"$EOF:")
        && mark.len() == MARK_BYTES
    {
        return Ok(Frame::Mark(mark.to_vec()));
    }
    let length = line.strip_prefix(b"$").and_then(|digits| std::str::from_utf8(digits).ok());
    match length.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(length) if i64::try_from(length).is_ok() => Ok(Frame::Length(length)),
        _ => Err(format!("the master sends no data set: {}", text(line))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

    /// Takes what arrived as the file's reader would: the file's bytes are gone.
    fn take(set: &mut DataSet, input: &mut Vec<u8>) -> Result<(), String> {
        let count = set.take(input)?;
        input.drain(..count);
        Ok(())
    }

    /// Gives a data set all the bytes, and what its reader would have left of them.
    fn end_after(said: &[u8], rest: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let mut set = DataSet::default();
        let mut input = said.to_vec();
        take(&mut set, &mut input)?;
        set.end(rest.to_vec())?;
        set.behind(&mut input)
    }

    #[test]
    fn a_file_of_known_length_ends_where_it_should() {
        assert_eq!(end_after(b"\n\n$3\r\nabcPING", b""), Ok(Some(b"PING".to_vec())));
        assert_eq!(end_after(b"$5\r\nabc", b""), Err(SHORT.to_owned()));
        // Within the announced length nothing follows the file, however it arrived.
        assert_eq!(end_after(b"$5\r\nabcSET", b"bc"), Err(SHORT.to_owned()));
        let mut set = DataSet::default();
        let mut input = b"$5\r\nabc".to_vec();
        take(&mut set, &mut input).expect("is a frame");
        assert_eq!((set.total_bytes, set.received_bytes), (Some(5), 3));
        assert!(!set.has_arrived());
        input.extend_from_slice(b"deREST");
        take(&mut set, &mut input).expect("goes on");
        assert_eq!((input.as_slice(), set.received_bytes), (&b"REST"[..], 5));
        assert!(set.has_arrived());
    }

    #[test]
    fn a_file_of_unknown_length_ends_with_its_mark() {
        let said = format!("$EOF:{MARK}\r\nfile");
        let mut set = DataSet::default();
        let mut input = said.into_bytes();
        take(&mut set, &mut input).expect("is a frame");
        assert_eq!(set.behind(&mut input), Ok(None), "the file has not ended");
        set.end(MARK.as_bytes()[..30].to_vec()).expect("it is the mark's");
        assert_eq!(set.behind(&mut input), Ok(None), "the mark is still arriving");
        input.extend_from_slice(&MARK.as_bytes()[30..]);
        input.extend_from_slice(b"PING");
        take(&mut set, &mut input).expect("goes on");
        assert_eq!(set.behind(&mut input), Ok(Some(b"PING".to_vec())));
        let other = MARK.replace('m', "n");
        let said = format!("$EOF:{MARK}\r\nfile");
        assert!(end_after(said.as_bytes(), other.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_data_set_is_said_so() {
        for said in ["-ERR no\r\n", "$x\r\n", "$-1\r\n", "$EOF:short\r\n", "PING\r\n"] {
            let mut set = DataSet::default();
            let why = set.take(&mut said.as_bytes().to_vec()).expect_err("is refused");
            assert!(why.starts_with("the master sends no data set: "), "{why}");
        }
    }
}
