use super::*;
use proptest::prelude::*;

/// Decodes `input` at once: each request's arguments, then what stopped the decoder.
fn decode(input: &[u8], limits: Limits) -> (Vec<Vec<Vec<u8>>>, Decoded) {
    decode_pieces(input, std::iter::once(input.len()), limits)
}

/// Decodes `input` arriving in pieces that end at `cuts`, as a session does.
fn decode_pieces(
    input: &[u8],
    cuts: impl IntoIterator<Item = usize>,
    limits: Limits,
) -> (Vec<Vec<Vec<u8>>>, Decoded) {
    let mut decoder = Decoder::new(limits);
    let mut arguments = ArgumentRanges::new();
    let mut requests = Vec::new();
    let mut start = 0;
    let mut last = Decoded::Incomplete { needed: 1 };
    for cut in cuts {
        loop {
            let buffer = &input[start..cut];
            last = decoder.next(buffer, &mut arguments);
            match last {
                Decoded::Request { consumed } => {
                    requests.push(arguments.iter(buffer).map(<[u8]>::to_vec).collect());
                    start += consumed;
                }
                Decoded::Empty { consumed } => start += consumed,
                Decoded::Incomplete { needed } => {
                    assert!(needed > 0);
                    break;
                }
                Decoded::Error(_) => return (requests, last),
            }
        }
    }
    (requests, last)
}

fn encode(request: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
    for argument in request {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The bytes that a column of the corpus writes with C's escapes; `<x*100>` is a run.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, run)) = rest.split_once('<') {
        let (run, after) = run.split_once('>').expect("a run ends");
        let (byte, count) = run.split_once('*').expect("a run has a count");
        bytes.extend(unquote(before));
        bytes.extend(unquote(byte).repeat(count.parse().unwrap()));
        rest = after;
    }
    bytes.extend(unquote(rest));
    bytes
}

fn unquote(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    split_words(format!("\"{text}\"").as_bytes(), &mut bytes, &mut Vec::new()).unwrap();
    bytes
}

/// What a server that knows only ECHO answers to `input`.
fn answer(input: &[u8], limits: Limits) -> Vec<u8> {
    let (requests, last) = decode(input, limits);
    let mut answer = crate::Reply::default();
    for request in requests {
        match &request[..] {
            _ if !limits.authenticated => answer.error("NOAUTH Authentication required."),
            [_, echoed] => answer.bulk(echoed),
            _ => answer.error("ERR wrong number of arguments for 'echo' command"),
        }
    }
    if let Decoded::Error(error) = last {
        answer.error(error.line());
    }
    answer.into_bytes()
}

#[test]
fn a_request_longer_than_ranges_can_tell_is_refused_however_it_arrives() {
    let limits = Limits { request_bytes_max: 200, ..Limits::default() };
    let whole = |count: usize| encode(&vec![b"12345678".to_vec(); count]);
    let (fits, does_not) = (whole(12), whole(20));
    assert!(fits.len() <= 200 && does_not.len() > 200);
    assert_eq!(decode(&fits, limits).0.len(), 1);
    let refused = Decoded::Error(ProtocolError::InvalidLength);
    assert_eq!(decode(&does_not, limits), (vec![], refused));
    // A count of four digits is none of the short headers.
    assert_eq!(decode(&whole(1000), limits), (vec![], refused));
    for cut in [50, 150, 199, 201] {
        let got = decode_pieces(&does_not, [cut, does_not.len()], limits);
        assert_eq!(got, (vec![], refused), "{cut}");
    }
}

#[test]
fn a_request_of_more_arguments_than_may_be_is_refused_by_its_head() {
    let limits = Limits { arguments_max: 12, ..Limits::default() };
    let whole = |count: usize| encode(&vec![b"1".to_vec(); count]);
    assert_eq!(decode(&whole(12), limits).0.len(), 1);
    let refused = Decoded::Error(ProtocolError::InvalidCount);
    for count in [13, 1000, 100_000] {
        assert_eq!(decode(&whole(count), limits), (vec![], refused), "{count}");
        assert_eq!(decode(format!("*{count}\r\n").as_bytes(), limits), (vec![], refused));
    }
    let most = format!("*{}\r\n", 1 << 24);
    assert_eq!(decode(most.as_bytes(), Limits::default()).0.len(), 0);
    let more = format!("*{}\r\n", (1 << 24) + 1);
    assert_eq!(decode(more.as_bytes(), Limits::default()), (vec![], refused));
}

#[test]
fn what_was_looked_at_of_one_request_is_not_passed_over_in_the_next() {
    let input = b"*1\r\n$1\r\nA\r\nX\nYY\n";
    for cut in 1..input.len() {
        let (requests, _) = decode_pieces(input, [cut, input.len()], Limits::default());
        assert_eq!(requests, [[b"A".to_vec()], [b"X".to_vec()], [b"YY".to_vec()]], "cut at {cut}");
    }
}

/// The corpus is what redis-server 7.0.15 answered; `corpus/record.py` recorded it.
#[test]
fn answers_the_corpus_as_redis_does() {
    let corpus = include_str!("corpus/redis-7.0.15.txt");
    for line in corpus.lines() {
        let [client, input, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line}");
        };
        // What is refused for its number of arguments is told in the documentation.
        let arguments_max = i32::MAX as usize;
        let authenticated = client == "open";
        let limits = Limits { authenticated, arguments_max, ..Limits::default() };
        let answer = answer(&unescape(input), limits);
        assert_eq!(
            answer.escape_ascii().to_string(),
            unescape(expected).escape_ascii().to_string(),
            "{input}"
        );
    }
    assert!(corpus.lines().count() > 100);
}

#[test]
fn tells_exactly_what_a_bulk_still_needs() {
    let mut decoder = Decoder::default();
    let mut arguments = ArgumentRanges::new();
    let mut buffer = b"*2\r\n$3\r\nGET\r\n$1000000\r\n".to_vec();
    assert_eq!(decoder.next(&buffer, &mut arguments), Decoded::Incomplete { needed: 1_000_002 });
    buffer.resize(buffer.len() + 1_000_001, b'x');
    assert_eq!(decoder.next(&buffer, &mut arguments), Decoded::Incomplete { needed: 1 });
    assert!(arguments.is_empty());
    buffer.push(b'\n');
    let consumed = buffer.len();
    assert_eq!(decoder.next(&buffer, &mut arguments), Decoded::Request { consumed });
    assert_eq!(arguments.ranges(), [(8, 3), (23, 1_000_000)]);
}

#[test]
fn a_header_reserves_no_more_than_a_bounded_list() {
    let mut decoder = Decoder::default();
    let mut arguments = ArgumentRanges::new();
    let decoded = decoder.next(b"*16777216\r\n", &mut arguments);
    assert_eq!(decoded, Decoded::Incomplete { needed: 1 });
    assert!(decoder.partial.capacity() <= 2 * RESERVED_ARGUMENTS_MAX);
}

#[test]
fn the_configured_bulk_limit_is_inclusive() {
    let limits = Limits { bulk_bytes_max: 1 << 20, ..Limits::default() };
    let (_, last) = decode(b"*1\r\n$1048576\r\n", limits);
    assert_eq!(last, Decoded::Incomplete { needed: 1_048_578 });
    let (_, last) = decode(b"*1\r\n$1048577\r\n", limits);
    assert_eq!(last, Decoded::Error(ProtocolError::InvalidLength));
}

#[test]
fn sessions_may_share_the_scratch_list() {
    let mut arguments = ArgumentRanges::new();
    let (mut first, mut second) = (Decoder::default(), Decoder::default());
    let incomplete = Decoded::Incomplete { needed: 1 };
    assert_eq!(first.next(b"*2\r\n$1\r\na\r\n", &mut arguments), incomplete);
    assert_eq!(second.next(b"PING\r\n", &mut arguments), Decoded::Request { consumed: 6 });
    let whole = b"*2\r\n$1\r\na\r\n$1\r\nb\r\n";
    assert_eq!(first.next(whole, &mut arguments), Decoded::Request { consumed: whole.len() });
    assert_eq!(arguments.iter(whole).collect::<Vec<_>>(), [b"a", b"b"]);
}

fn any_request() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..130), 1..13)
}

proptest! {
    #[test]
    fn a_pipeline_cut_at_every_byte_decodes_the_same(
        requests in proptest::collection::vec(any_request(), 1..4),
    ) {
        let mut input: Vec<u8> = Vec::new();
        for request in &requests {
            input.extend_from_slice(&encode(request));
        }
        let (whole, _) = decode(&input, Limits::default());
        prop_assert_eq!(&whole, &requests);
        let (pieces, _) = decode_pieces(&input, 1..=input.len(), Limits::default());
        prop_assert_eq!(&pieces, &requests);
        let step = (input.len() / 50).max(1);
        for cut in (1..input.len()).step_by(step) {
            let (pieces, _) = decode_pieces(&input, [cut, input.len()], Limits::default());
            prop_assert_eq!(&pieces, &requests);
        }
    }

    /// Bytes drawn mostly from those that mean something.
    #[test]
    fn any_bytes_decode_alike_whole_and_in_pieces(
        input in proptest::collection::vec(
            prop_oneof![
                4 => proptest::sample::select(&b"*$\r\n0123456789 -\"'\\x"[..]),
                1 => any::<u8>(),
                2 => Just(b'\r'), 2 => Just(b'\n'),
            ],
            0..200,
        ),
        authenticated in any::<bool>(),
    ) {
        let limits = Limits { authenticated, ..Limits::default() };
        let whole = decode(&input, limits);
        prop_assert_eq!(decode_pieces(&input, 1..=input.len(), limits).0, whole.0);
    }
}

/// Not a claim but a number: `cargo test --release -p resp -- --ignored --nocapture measure`.
#[test]
#[ignore = "prints a measurement"]
#[allow(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
fn measure_small_requests_per_second() {
    let requests: Vec<u8> = (0..1000)
        .flat_map(|number: u32| {
            let key = format!("key:{number:012}").into_bytes();
            encode(&[b"SET".to_vec(), key, b"xxx".to_vec()])
        })
        .collect();
    let mut decoder = Decoder::default();
    let mut arguments = ArgumentRanges::new();
    let rounds = 10_000;
    let started = std::time::Instant::now();
    let mut bytes = 0;
    for _ in 0..rounds {
        let mut rest = std::hint::black_box(&requests[..]);
        while let Decoded::Request { consumed } = decoder.next(rest, &mut arguments) {
            bytes += arguments.iter(rest).map(<[u8]>::len).sum::<usize>();
            rest = &rest[consumed..];
        }
    }
    let nanos = started.elapsed().as_nanos() as f64 / f64::from(rounds * 1000);
    println!("{nanos:.1} ns per request, {:.1} M/s, {bytes} bytes", 1000.0 / nanos);
}
