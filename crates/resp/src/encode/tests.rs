use super::*;

/// What `write` appends in protocol 2, then in protocol 3.
fn check(write: impl Fn(&mut Reply), resp2: &str, resp3: &str) {
    for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
        let mut reply = Reply::over(b"before".to_vec(), protocol);
        write(&mut reply);
        let written = String::from_utf8(reply.into_bytes()).unwrap();
        assert_eq!(written.strip_prefix("before"), Some(expected), "{protocol:?}");
    }
}

fn same(write: impl Fn(&mut Reply), expected: &str) {
    check(write, expected, expected);
}

#[test]
fn each_kind_takes_the_form_of_its_protocol() {
    same(|reply| reply.ok(), "+OK\r\n");
    same(|reply| reply.simple("PONG"), "+PONG\r\n");
    same(|reply| reply.error("ERR no such key"), "-ERR no such key\r\n");
    same(|reply| reply.integer(7), ":7\r\n");
    same(|reply| reply.integer(-123), ":-123\r\n");
    same(|reply| reply.bulk("abc"), "$3\r\nabc\r\n");
    same(|reply| reply.bulk_integer(-15), "$3\r\n-15\r\n");
    same(|reply| reply.bulk("x".repeat(100)), &format!("$100\r\n{}\r\n", "x".repeat(100)));
    same(|reply| reply.array(0), "*0\r\n");
    same(|reply| reply.array(12), "*12\r\n");
    check(|reply| reply.null(), "$-1\r\n", "_\r\n");
    check(|reply| reply.null_array(), "*-1\r\n", "_\r\n");
    check(|reply| reply.map(3), "*6\r\n", "%3\r\n");
    check(|reply| reply.set(3), "*3\r\n", "~3\r\n");
    check(|reply| reply.push(3), "*3\r\n", ">3\r\n");
    check(
        |reply| assert_eq!(reply.attribute(1), reply.protocol() == Protocol::Resp3),
        "",
        "|1\r\n",
    );
    check(|reply| reply.double(0.1), "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n");
    check(|reply| reply.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    check(|reply| reply.boolean(true), ":1\r\n", "#t\r\n");
    check(|reply| reply.boolean(false), ":0\r\n", "#f\r\n");
    check(|reply| reply.big_number("123"), "$3\r\n123\r\n", "(123\r\n");
    check(|reply| reply.verbatim(b"txt", "hi"), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
}

#[test]
fn a_line_cannot_be_ended_by_its_text() {
    same(|reply| reply.error("ERR unknown 'a\r\n+OK'"), "-ERR unknown 'a  +OK'\r\n");
    same(|reply| reply.simple("a\nb"), "+a b\r\n");
}

#[test]
fn deferred_headers_nest_and_grow() {
    for count in [0, 1, 9, 10, 99, 100, 12345] {
        let mut deferred = Reply::over(b"+OK\r\n".to_vec(), Protocol::Resp3);
        let mut known = deferred.clone();
        let outer = deferred.begin_array();
        known.array(2);
        let inner = deferred.begin_map();
        known.map(count);
        for number in 0..count as i64 {
            for reply in [&mut deferred, &mut known] {
                reply.integer(number);
                reply.bulk("value");
            }
        }
        deferred.end(inner, count);
        deferred.double(1.5);
        known.double(1.5);
        deferred.end(outer, 2);
        assert_eq!(deferred.bytes(), known.bytes());
    }
    check(
        |reply| {
            let map = reply.begin_map();
            (0..6).for_each(|number| reply.integer(number));
            reply.end(map, 3);
        },
        "*6\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
        "%3\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
    );
    check(
        |reply| {
            let set = reply.begin_set();
            reply.end(set, 0);
        },
        "*0\r\n",
        "~0\r\n",
    );
}

#[test]
fn a_reply_beyond_its_bound_is_dropped_and_costs_nothing_more() {
    let before = b"+OK\r\n";
    let bounded = |write: &dyn Fn(&mut Reply)| {
        let mut reply = Reply::over(before.to_vec(), Protocol::Resp3);
        reply.bound(before.len() + 100);
        write(&mut reply);
        let capacity = reply.capacity();
        let len = reply.len();
        (reply.unbound(), len, capacity)
    };
    let too_much: [&dyn Fn(&mut Reply); 8] = [
        &|reply| reply.bulk([b'x'; 90]),
        &|reply| reply.raw(&[b'x'; 101]),
        &|reply| reply.error("x".repeat(101)),
        &|reply| reply.verbatim(b"txt", "x".repeat(90)),
        &|reply| (0..30).for_each(|_| reply.integer(12)),
        // Announced, and never made.
        &|reply| reply.array(34_000),
        &|reply| reply.map(usize::MAX / 2),
        &|reply| {
            let header = reply.begin_array();
            (0..50).for_each(|_| reply.null());
            reply.end(header, 50);
        },
    ];
    for (number, write) in too_much.into_iter().enumerate() {
        let went_on = |reply: &mut Reply| {
            write(reply);
            assert!(reply.is_over(), "{number}");
            let header = reply.begin_map();
            (0..1000).for_each(|_| reply.bulk([b'x'; 1000]));
            reply.end(header, 500);
            reply.simple("more");
        };
        let (was_over, len, capacity) = bounded(&went_on);
        assert!(was_over && len == before.len() && capacity < 64, "{number}: {len} {capacity}");
    }
    let (was_over, len, _) = bounded(&|reply| reply.bulk([b'x'; 70]));
    assert!(!was_over && len == before.len() + 77);
}

/// All bytes of a reply in pieces, and how many pieces they were.
fn taken(mut reply: Reply) -> (Vec<u8>, usize) {
    let (mut bytes, mut pieces) = (Vec::new(), 0);
    while !reply.is_empty() {
        bytes.extend_from_slice(reply.oldest());
        reply.drop_oldest(0);
        pieces += 1;
    }
    (bytes, pieces)
}

/// Values of many lengths, three times nested behind headers that are known late.
fn write_much(reply: &mut Reply) {
    let outer = reply.begin_array();
    for round in 0..3 {
        let inner = reply.begin_map();
        for number in 0..500 {
            let length = [7, 100, 3000, 20_000][(number + round) % 4];
            reply.integer(number as i64);
            reply.bulk(vec![number as u8; length]);
        }
        reply.end(inner, 500);
        reply.verbatim(b"txt", "x".repeat((round + 1) * 700_000));
    }
    reply.end(outer, 6);
}

#[test]
fn a_reply_in_pieces_is_the_reply_in_one_buffer() {
    let mut whole = Reply::new(Protocol::Resp3);
    let mut reply = Reply::in_pieces(Protocol::Resp3);
    write_much(&mut whole);
    write_much(&mut reply);
    assert_eq!(reply.len(), whole.len());
    assert!(reply.capacity() <= 2 * whole.len(), "{} of {}", reply.capacity(), whole.len());
    let (bytes, pieces) = taken(reply);
    assert!(bytes == whole.bytes());
    assert!((8..=20).contains(&pieces), "{pieces} pieces of {} bytes", bytes.len());
}

#[test]
fn a_piece_is_never_moved_and_one_long_value_is_one_piece() {
    let mut reply = Reply::in_pieces(Protocol::Resp2);
    reply.bulk(vec![1; PIECE_BYTES - 100]);
    let begin = reply.oldest().as_ptr();
    reply.bulk(vec![2; 40 * PIECE_BYTES]);
    for number in 0..100 {
        reply.bulk(vec![number; 100_000]);
    }
    assert_eq!(reply.oldest().as_ptr(), begin);
    reply.drop_oldest(0);
    assert!((40 * PIECE_BYTES..40 * PIECE_BYTES + 50).contains(&reply.oldest().len()));
    assert!(reply.capacity() < 51 * PIECE_BYTES, "{}", reply.capacity());
}

#[test]
fn a_reply_in_pieces_is_cut_where_it_is_told() {
    let mut whole = Reply::new(Protocol::Resp3);
    write_much(&mut whole);
    for len in (0..whole.len()).step_by(100_003) {
        let mut reply = Reply::in_pieces(Protocol::Resp3);
        write_much(&mut reply);
        reply.truncate(len);
        assert_eq!(reply.len(), len);
        reply.ok();
        let (bytes, _) = taken(reply);
        assert!(bytes == [&whole.bytes()[..len], b"+OK\r\n"].concat(), "{len}");
    }
}

#[test]
fn what_is_split_off_a_reply_in_pieces_can_be_written_again() {
    let mut whole = Reply::new(Protocol::Resp3);
    write_much(&mut whole);
    for len in (0..=whole.len()).step_by(100_003) {
        let mut reply = Reply::in_pieces(Protocol::Resp3);
        write_much(&mut reply);
        let rest = reply.split_off(len);
        assert!(rest == whole.bytes()[len..], "{len}");
        assert_eq!(reply.len(), len);
        reply.raw(&rest);
        assert!(taken(reply).0 == whole.bytes());
    }
}

#[test]
fn a_bound_counts_all_pieces() {
    let mut reply = Reply::in_pieces(Protocol::Resp2);
    reply.raw(&[b'x'; 60]);
    reply.bound(60 + 5 * PIECE_BYTES);
    for _ in 0..5 * PIECE_BYTES / 1000 {
        reply.raw(&[b'x'; 1000]);
    }
    assert!(!reply.is_over() && reply.admits(100) && !reply.admits(1000));
    reply.raw(&[b'x'; 1000]);
    assert!(reply.is_over() && reply.len() == 60 && reply.capacity() < 100);
    reply.bulk(b"more");
    reply.array(100_000);
    assert_eq!(reply.refused(), 3);
    assert!(reply.unbound());
    reply.raw(&[b'x'; 2 * PIECE_BYTES]);
    assert_eq!(reply.len(), 60 + 2 * PIECE_BYTES);
}
