use super::*;

/// Receives `bytes` in pieces of at most `piece`, as the loop does; returns the input.
fn receive(bytes: &[u8], piece: usize) -> Input {
    let mut input = Input::new();
    let mut arguments = resp::ArgumentRanges::new();
    let mut given = 0;
    while given < bytes.len() {
        let room = input.make_room(input.room(usize::MAX));
        assert!(room > 0);
        input.bytes.reserve(room);
        let count = room.min(piece).min(bytes.len() - given);
        input.bytes.extend_from_slice(&bytes[given..given + count]);
        given += count;
        input.wanted = match input.decoder.next(&input.bytes, &mut arguments) {
            resp::Decoded::Incomplete { needed } => needed,
            _ => 0,
        };
    }
    input
}

#[test]
fn the_buffer_of_a_long_request_ends_where_the_request_does() {
    let length = 3 << 20;
    let mut bytes = format!("*1\r\n${length}\r\n").into_bytes();
    let head = bytes.len();
    bytes.resize(head + length, b'v');
    for piece in [7_000, 65_536, usize::MAX] {
        let input = receive(&bytes, piece);
        assert_eq!(input.allocated_bytes(), bytes.len() + 2, "pieces of {piece}");
        assert_eq!(input.undecoded_bytes(), length, "the head is understood");
    }
}

#[test]
fn the_buffer_of_short_requests_has_room_for_more() {
    let bytes = b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI";
    let input = receive(bytes, 5);
    assert!(input.allocated_bytes() >= crate::limits::RECEIVED_BYTES);
}

#[test]
fn a_session_occupies_the_same_while_it_executes() {
    let mut session = Session::new(ConnectionId(1), 1, MonotonicNanos(0));
    session.input.bytes = Vec::with_capacity(5000);
    let before = session.memory_bytes();
    let bytes = std::mem::take(&mut session.input.bytes);
    session.input.executing = (bytes.len(), bytes.capacity());
    assert_eq!(session.memory_bytes(), before);
}
