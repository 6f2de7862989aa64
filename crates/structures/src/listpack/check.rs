//! Whether bytes from a file or a peer are a listpack.
//!
//! Every entry's length is read and its backlen compared, so that nothing that passes can make a
//! later walk, in either direction, leave the bytes. Most entries are integers and short strings,
//! which one look at a table checks: this is much of what a restore of small values does.

use super::encoding::{END, Item, SHORT_ENTRY_BYTES, backlen_len, decode, read_backlen};
use super::{COUNT_UNKNOWN, HEADER_BYTES};

/// An error of bytes that are no listpack, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListpackError {
    /// Not even a header and an end mark.
    TooShort,
    /// The header's length is not the length of the bytes.
    WrongTotal { header: u32 },
    /// An unknown encoding, or an entry that runs over the end.
    BadEntry { at: usize },
    /// The length behind the entry is not the entry's length.
    BadBacklen { at: usize },
    /// The end mark stands before the end, or is missing there.
    BadEnd { at: usize },
    /// The header's count is not the number of elements.
    WrongCount { header: u16, found: usize },
}

impl std::fmt::Display for ListpackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooShort => write!(f, "listpack is shorter than its header"),
            Self::WrongTotal { header } => write!(f, "listpack claims {header} bytes"),
            Self::BadEntry { at } => write!(f, "listpack entry at byte {at} is malformed"),
            Self::BadBacklen { at } => write!(f, "listpack entry at byte {at} has a wrong backlen"),
            Self::BadEnd { at } => write!(f, "listpack end mark is wrong at byte {at}"),
            Self::WrongCount { header, found } => {
                write!(f, "listpack claims {header} elements and has {found}")
            }
        }
    }
}

impl std::error::Error for ListpackError {}

/// Whoever looks at the elements as well does it in `visit`: a second walk costs as much as this.
#[inline]
pub(super) fn check(bytes: &[u8], mut visit: impl FnMut(Item<'_>)) -> Result<(), ListpackError> {
    if bytes.len() < HEADER_BYTES + 1 {
        return Err(ListpackError::TooShort);
    }
    let header = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if header as usize != bytes.len() {
        return Err(ListpackError::WrongTotal { header });
    }
    let end = bytes.len() - 1;
    if bytes[end] != END {
        return Err(ListpackError::BadEnd { at: end });
    }
    let (entries, mut at, mut found) = (&bytes[..end], HEADER_BYTES, 0usize);
    while at < end {
        let short = SHORT_ENTRY_BYTES[usize::from(bytes[at])];
        // No entry that is longer passes as a short one: 0 is not its first byte. None runs over
        // the end: the mark there is the length of none.
        let next = match bytes.get(at + usize::from(short)) {
            Some(backlen) if *backlen == short => at + usize::from(short) + 1,
            _ => end_of_any(entries, at)?,
        };
        // It is there, as its length was read; and who does not look at it pays nothing.
        if let Some((item, _)) = decode(entries, at) {
            visit(item);
        }
        at = next;
        found += 1;
    }
    let header = u16::from_le_bytes([bytes[4], bytes[5]]);
    if header != COUNT_UNKNOWN && usize::from(header) != found {
        return Err(ListpackError::WrongCount { header, found });
    }
    Ok(())
}

/// The end of the entry at `at`, of any length, and of its backlen.
pub(super) fn end_of_any(entries: &[u8], at: usize) -> Result<usize, ListpackError> {
    if entries[at] == END {
        return Err(ListpackError::BadEnd { at });
    }
    let (_, entry) = decode(entries, at).ok_or(ListpackError::BadEntry { at })?;
    let next = at + entry + backlen_len(entry);
    let backlen = if next <= entries.len() { read_backlen(entries, next) } else { None };
    match backlen == Some((entry, backlen_len(entry))) {
        true => Ok(next),
        false => Err(ListpackError::BadBacklen { at }),
    }
}
