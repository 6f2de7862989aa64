//! A client's requests: whatever it sends, and in whatever pieces it arrives.

use crate::random::Random;
use resp::decode::LINE_BYTES_MAX;
use resp::{ArgumentRanges, Decoded, Decoder, Limits, ProtocolError};

/// Bytes of one argument: the least that `proto-max-bulk-len` can be set to.
const BULK_BYTES_MAX: usize = 1 << 20;

/// What strangers may send, as Redis has it.
const STRANGER_ARGUMENTS_MAX: usize = 10;
const STRANGER_BULK_BYTES_MAX: usize = 16384;

/// A session's request, decoded beside the others: sessions share their scratch space.
const NEIGHBOUR: &[u8] = b"*2\r\n$3\r\nGET\r\n$4\r\nname\r\n";

/// What a client said: its requests, and how it ended.
#[derive(PartialEq, Eq, Debug)]
struct Heard {
    requests: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// Decodes requests as they stand, and again in pieces. The input's first byte says whether the
/// client has authenticated, its second how the bytes are cut, the rest is what the client sends.
///
/// # Panics
/// If the pieces mean something else than the whole, or a limit is not kept: the finding.
pub fn decode_requests(input: &[u8]) {
    let Some((&[mode, cuts], wire)) = input.split_first_chunk() else { return };
    let limits = Limits {
        bulk_bytes_max: BULK_BYTES_MAX,
        authenticated: mode & 1 == 0,
        ..Limits::default()
    };
    let whole = hear(limits, wire, std::iter::once(wire.len()));
    for request in &whole.requests {
        check_request(request, limits);
    }
    // A line too long is refused as soon as that is seen, which may be before its end arrives.
    if wire.len() <= LINE_BYTES_MAX {
        let in_pieces = hear(limits, wire, pieces(u64::from(cuts)));
        assert_eq!(whole, in_pieces, "how the bytes arrive does not matter");
    }
    let mut rest = wire;
    while let [_, tail @ ..] = rest {
        // A guess, of which only that it ends is asked.
        let _ = resp::hint::second_argument(rest);
        rest = tail;
    }
}

/// How many bytes arrive at a time: mostly few.
fn pieces(seed: u64) -> impl Iterator<Item = usize> {
    let mut random = Random::stream(seed, "pieces");
    std::iter::repeat_with(move || {
        let longest = *random.choose(&[1, 2, 5, 40]);
        random.within(1..longest + 1) as usize
    })
}

/// Gives a decoder the wire's bytes piece by piece, as a session does.
fn hear(limits: Limits, wire: &[u8], pieces: impl Iterator<Item = usize>) -> Heard {
    let mut heard = Heard { requests: Vec::new(), error: None };
    let (mut decoder, mut arguments) = (Decoder::new(limits), ArgumentRanges::new());
    let (mut begin, mut end) = (0, 0);
    for piece in pieces {
        end = wire.len().min(end + piece);
        loop {
            let buffer = &wire[begin..end];
            match decoder.next(buffer, &mut arguments) {
                Decoded::Request { consumed } => {
                    assert!(0 < consumed && consumed <= buffer.len());
                    heard.requests.push(arguments.iter(buffer).map(<[u8]>::to_vec).collect());
                    begin += consumed;
                }
                Decoded::Empty { consumed } => {
                    assert!(0 < consumed && consumed <= buffer.len());
                    begin += consumed;
                }
                Decoded::Incomplete { needed } => {
                    // What a session reserves at a stranger's word.
                    assert!(0 < needed && needed <= limits.bulk_bytes_max + 2);
                    break;
                }
                Decoded::Error(error) => {
                    heard.error = Some(error);
                    return heard;
                }
            }
            hear_neighbour(&mut arguments);
        }
        hear_neighbour(&mut arguments);
        if end == wire.len() {
            break;
        }
    }
    heard
}

fn hear_neighbour(arguments: &mut ArgumentRanges) {
    let decoded = Decoder::default().next(NEIGHBOUR, arguments);
    assert_eq!(decoded, Decoded::Request { consumed: NEIGHBOUR.len() });
    assert!(arguments.iter(NEIGHBOUR).eq([&b"GET"[..], b"name"]));
}

/// A request is within the limits, and means the same when it is written in the usual form.
fn check_request(request: &[Vec<u8>], limits: Limits) {
    assert!(!request.is_empty(), "a request has a name");
    let mut wire = format!("*{}\r\n", request.len()).into_bytes();
    for argument in request {
        assert!(argument.len() <= limits.bulk_bytes_max);
        wire.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        wire.extend_from_slice(argument);
        wire.extend_from_slice(b"\r\n");
    }
    let is_small = request.len() <= STRANGER_ARGUMENTS_MAX
        && request.iter().all(|argument| argument.len() <= STRANGER_BULK_BYTES_MAX);
    let again = hear(limits, &wire, std::iter::once(wire.len()));
    if limits.authenticated || is_small {
        assert_eq!(again, Heard { requests: vec![request.to_vec()], error: None });
    } else {
        // Only a line of words may say that much before its client has authenticated.
        assert!(again.error.is_some(), "a stranger may not say so much");
    }
}
