use super::*;

/// Receives `bytes` in pieces of at most `piece`; returns the input, and in how many turns and
/// pieces.
fn receive(bytes: &[u8], piece: usize) -> (Input, usize, usize) {
    let mut input = Input::new();
    let mut arguments = resp::ArgumentRanges::new();
    let bounds = Bounds { unexecuted_max: 1 << 20, turn_max: 2 << 20, waiting_max: 1 << 30 };
    let (mut given, mut turns, mut pieces) = (0, 0, 0);
    while given < bytes.len() {
        turns += 1;
        let last = given;
        let receipt = input.receive(&bounds, |into, bytes_max| {
            if given == bytes.len() {
                return Received::WouldBlock;
            }
            into.reserve(bytes_max);
            let count = bytes_max.min(piece).min(bytes.len() - given);
            into.extend_from_slice(&bytes[given..given + count]);
            given += count;
            pieces += 1;
            Received::Bytes { count, more: true }
        });
        assert_eq!(receipt.bytes, given - last);
        assert!(given > last, "a turn receives something");
        input.wanted = loop {
            match input.decoder.next(&input.bytes[input.consumed..], &mut arguments) {
                resp::Decoded::Request { consumed } => {
                    input.parsed += consumed;
                    input.consumed = input.parsed;
                    let mut bytes = std::mem::take(&mut input.bytes);
                    input.compact(&mut bytes);
                    input.bytes = bytes;
                }
                resp::Decoded::Incomplete { needed } => break needed,
                other => panic!("{other:?}"),
            }
        };
    }
    (input, turns, pieces)
}

#[test]
fn the_buffer_of_a_long_request_ends_where_the_request_does() {
    let length = 3 << 20;
    let mut bytes = format!("*1\r\n${length}\r\n").into_bytes();
    let head = bytes.len();
    bytes.resize(head + length, b'v');
    for piece in [7_000, 65_536, usize::MAX] {
        let (input, ..) = receive(&bytes, piece);
        assert_eq!(input.allocated_bytes(), bytes.len() + 2, "pieces of {piece}");
        assert_eq!(input.undecoded_bytes(), length, "the head is understood");
        // It is executed before what follows it arrives.
        let two = [&bytes[..], b"\r\n", b"*1\r\n$4\r\nPING\r\n"].concat();
        let (input, ..) = receive(&two, piece);
        assert_eq!(input.allocated_bytes(), bytes.len() + 2, "pieces of {piece}");
    }
}

#[test]
fn the_buffer_of_a_request_is_as_long_however_much_arrives_at_once() {
    for length in [60_000, 128 << 10, 200_000, 1 << 20] {
        let mut bytes = format!("*1\r\n${length}\r\n").into_bytes();
        bytes.resize(bytes.len() + length, b'v');
        let occupied = [1_000, 7_000, 16 << 10, 65_536, usize::MAX]
            .map(|piece| receive(&bytes, piece).0.allocated_bytes());
        assert_eq!(occupied, [occupied[0]; 5], "{length}");
        assert!(occupied[0] < bytes.len() + RECEIVED_BYTES, "{length}");
    }
}

#[test]
fn a_long_request_of_many_arguments_is_received_in_few_pieces() {
    let count = 2_000_000;
    let mut bytes = format!("*{count}\r\n").into_bytes();
    bytes.extend_from_slice(&b"$10\r\n0123456789\r\n".repeat(count));
    // In the end it is whole, so that nothing is wanted any more.
    let (input, turns, pieces) = receive(&bytes, usize::MAX);
    assert!(turns < 100 && pieces < 500, "{turns} turns, {pieces} pieces of {}", bytes.len());
    assert!(input.allocated_bytes() <= bytes.len() * 5 / 4 + (1 << 20));
}

/// Also where the limit is low, because much is kept: it is not received byte by byte.
#[test]
fn at_the_limit_what_is_there_is_decoded_first() {
    for waiting_max in [1, 100, 20_000, 28_000, 32 << 10, 40_000, 500_000] {
        let mut input = Input::new();
        let bounds = Bounds { unexecuted_max: 1 << 20, turn_max: 2 << 20, waiting_max };
        let receive = |input: &mut Input| {
            input.receive(&bounds, |into, bytes_max| {
                into.resize(into.len() + bytes_max, b'x');
                Received::Bytes { count: bytes_max, more: true }
            })
        };
        let mut reads = 0;
        while input.waiting_bytes() < waiting_max {
            reads += receive(&mut input).reads;
        }
        assert_eq!(input.waiting_bytes(), waiting_max);
        assert!(reads <= 1 + waiting_max as u64 / RECEIVED_BYTES as u64 + 1, "{reads} reads");
        // Nothing of it was executed: then one more tells.
        let receipt = receive(&mut input);
        assert_eq!((receipt.bytes, receipt.reads), (1, 1), "{waiting_max}");
        // A request that is known to be longer is beyond the limit too.
        input.wanted = 1 << 30;
        let receipt = receive(&mut input);
        assert_eq!((receipt.bytes, receipt.reads), (1, 1), "{waiting_max}");
    }
}

#[test]
fn the_buffer_of_short_requests_has_room_for_more() {
    let bytes = b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI";
    let (input, ..) = receive(bytes, 5);
    assert!(input.allocated_bytes() >= crate::limits::RECEIVED_BYTES);
}
