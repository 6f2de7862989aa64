//! Stream IDs and the ends of ID ranges, as requests give them.

use crate::command::Args;
use crate::effect::Ids;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use resp::Reply;

pub(super) const INVALID: Refusal =
    Refusal::of("ERR Invalid stream ID specified as stream command argument");

/// Reads an ID; a sequence that is missing is 0.
///
/// # Errors
/// The text is no ID, or is `-` or `+`.
pub(super) fn id(text: &[u8]) -> Result<StreamId, Refusal> {
    StreamId::parse(text, 0).ok_or(INVALID)
}

/// Reads the arguments from `first` on as IDs.
///
/// # Errors
/// An argument is no ID.
pub(super) fn ids(args: Args<'_>, first: usize) -> Result<Vec<StreamId>, Refusal> {
    args.from(first).map(id).collect()
}

/// The first ID of a range, from its text.
///
/// # Errors
/// The text is no ID, or excludes the greatest one.
pub(super) fn start(text: &[u8]) -> Result<StreamId, Refusal> {
    let (id, is_left_out) = end_of_range(text, 0)?;
    let refusal = Refusal::of("ERR invalid start ID for the interval");
    if is_left_out { id.next().ok_or(refusal) } else { Ok(id) }
}

/// The last ID of a range, from its text.
///
/// # Errors
/// The text is no ID, or excludes the smallest one.
pub(super) fn end(text: &[u8]) -> Result<StreamId, Refusal> {
    let (id, is_left_out) = end_of_range(text, u64::MAX)?;
    let refusal = Refusal::of("ERR invalid end ID for the interval");
    if is_left_out { id.previous().ok_or(refusal) } else { Ok(id) }
}

/// Reads an end of a range: an ID, `-` or `+`; `(` before it excludes it. Returns whether it does.
/// A sequence that is missing is `missing`.
fn end_of_range(text: &[u8], missing: u64) -> Result<(StreamId, bool), Refusal> {
    match text {
        b"-" => Ok((StreamId::MIN, false)),
        b"+" => Ok((StreamId::MAX, false)),
        [b'(', text @ ..] if !text.is_empty() => {
            StreamId::parse(text, missing).map(|id| (id, true)).ok_or(INVALID)
        }
        _ => StreamId::parse(text, missing).map(|id| (id, false)).ok_or(INVALID),
    }
}

/// Appends an ID as a bulk string.
pub(super) fn reply_id(id: StreamId, reply: &mut Reply) {
    let mut digits = [itoa::Buffer::new(), itoa::Buffer::new()];
    let [millis, sequence] = &mut digits;
    let (millis, sequence) = (millis.format(id.millis), sequence.format(id.sequence));
    let mut text = [0; 41];
    text[..millis.len()].copy_from_slice(millis.as_bytes());
    text[millis.len()] = b'-';
    let len = millis.len() + 1 + sequence.len();
    text[millis.len() + 1..len].copy_from_slice(sequence.as_bytes());
    reply.bulk(&text[..len]);
}

/// IDs as bytes, from which an effect borrows them ([`lent`]).
pub(super) fn packed(ids: impl IntoIterator<Item = StreamId>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ids.into_iter().for_each(|id| Ids::put(&mut bytes, id));
    bytes
}

/// The IDs in bytes that [`packed`] made.
pub(super) fn lent(bytes: &[u8]) -> Ids<'_> {
    Ids::of(bytes).expect("whole IDs were packed")
}
