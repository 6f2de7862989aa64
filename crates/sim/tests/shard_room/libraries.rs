//! Libraries of functions that a start has to load: the loop does so a slice at a time.

use crate::primary::{LEASE_MILLIS, Primary};
use crate::three::request;
use base::time::MILLISECOND;

/// Each takes some stretches of [`STRETCH_MILLIS`]; all together several leases.
const LIBRARIES: usize = 20;

/// What a pause of a library's code takes here, in milliseconds. More than a turn may.
const STRETCH_MILLIS: u64 = 20;

/// A primary that has slow libraries and has compiled none of them, as after a start. Its client
/// has sent these requests before.
fn started(requests: &str) -> Primary {
    let mut primary = Primary::new();
    for number in 0..LIBRARIES {
        let code = format!(
            "#!lua name=lib{number}\nfor i = 1, 50000 do local x = i end\n\
             redis.register_function('f{number}', function() return {number} end)"
        );
        let (reply, _) = primary.ask(&request(&["FUNCTION", "LOAD", &code]), 0, 0);
        assert!(reply.starts_with('$'), "{reply}");
    }
    primary.ask(requests, 0, 0);
    primary.server.libraries = Default::default();
    primary.millis.set(STRETCH_MILLIS);
    primary
}

fn turn(primary: &mut Primary) -> String {
    primary.timeline.pass(MILLISECOND);
    primary.turn();
    assert!(primary.server.ended().is_none(), "it leads on");
    String::from_utf8(primary.client.received()).expect("replies are text")
}

/// Lets the loop turn until the client is answered; its answer, and how long that took.
fn answer(primary: &mut Primary) -> (String, u64) {
    let began = primary.timeline.now();
    let mut answer = String::new();
    while answer.is_empty() {
        answer = turn(primary);
    }
    (answer, primary.timeline.now().since(began) / MILLISECOND)
}

#[test]
fn a_start_with_many_slow_libraries_keeps_the_lease_and_answers_others() {
    let mut primary = started("");
    let other = primary.network.connect("here");
    primary.client.send(request(&["FCALL", "f3", "0"]).as_bytes());
    other.send(request(&["PING"]).as_bytes());
    let began = primary.timeline.now();
    let (mut answer, mut pongs) = (String::new(), 0);
    while answer.is_empty() {
        answer = turn(&mut primary);
        if !other.received().is_empty() {
            pongs += 1;
            other.send(request(&["PING"]).as_bytes());
        }
    }
    assert_eq!(answer, ":3\r\n");
    assert!(primary.timeline.now().since(began) / MILLISECOND > 2 * LEASE_MILLIS);
    assert!(pongs > LIBRARIES, "others were answered {pongs} times");
}

#[test]
fn a_stranger_is_refused_at_once_and_what_needs_no_function_runs() {
    let mut primary = started(&request(&["CONFIG", "SET", "requirepass", "x"]));
    let stranger = primary.network.connect("here");
    stranger.send(request(&["FCALL", "f3", "0"]).as_bytes());
    let requests = [&["FUNCTION", "STATS"][..], &["FUNCTION", "DELETE", "lib1"]];
    requests.iter().for_each(|words| primary.client.send(request(words).as_bytes()));
    let (reply, took) = answer(&mut primary);
    let figures = format!("libraries_count\r\n:{LIBRARIES}\r\n$15\r\nfunctions_count\r\n:0\r\n");
    assert!(
        reply.contains(&figures) && reply.ends_with("+OK\r\n") && took < LEASE_MILLIS / 2,
        "{reply}"
    );
    assert!(String::from_utf8_lossy(&stranger.received()).starts_with("-NOAUTH"));
    for (words, expected) in [
        (&["FCALL", "nowhere"][..], "-ERR wrong number of arguments for 'fcall' command\r\n"),
        (&["FCALL", "f1", "0"], "-ERR Function not found\r\n"),
        (&["FCALL", "f2", "0"], ":2\r\n"),
    ] {
        primary.client.send(request(words).as_bytes());
        assert_eq!(answer(&mut primary).0, expected);
    }
}

#[test]
fn a_transaction_with_a_function_waits_as_the_function_does() {
    let queued = [&["MULTI"][..], &["FCALL", "f3", "0"], &["FUNCTION", "DELETE", "lib3"]];
    let queued: String = queued.iter().map(|words| request(words)).collect();
    let mut primary = started(&queued);
    primary.client.send(request(&["EXEC"]).as_bytes());
    let (reply, took) = answer(&mut primary);
    assert_eq!(reply, "*2\r\n:3\r\n+OK\r\n");
    assert!(took > LEASE_MILLIS, "{took} ms");
    primary.client.send(request(&["FCALL", "f3", "0"]).as_bytes());
    assert_eq!(answer(&mut primary).0, "-ERR Function not found\r\n");
}
