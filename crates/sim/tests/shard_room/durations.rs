//! What was to take so long takes so long, whatever the clock shows meanwhile: when a process takes
//! over, its time jumps from its machine's clock to the shard's, and a clock that is put right by
//! and by runs a quarter faster or slower.

use crate::three::Three;
use sim::network::{ClientState, SimClient};

const HOUR_MICROS: i64 = 3_600_000_000;

/// Turns in which a request is answered.
const TURNS: u64 = 10;

/// By how many milliseconds a test may be late: turns of three members that have nothing to do.
const LATE_MILLIS: u64 = 600;

/// What a client is told from now on, having sent these lines.
fn ask(three: &mut Three, client: &SimClient, lines: &str) -> String {
    client.send(lines.as_bytes());
    three.pass(TURNS);
    told(client)
}

fn told(client: &SimClient) -> String {
    String::from_utf8_lossy(&client.received()).into_owned()
}

/// Member 0 leads, and the clock of member 1, which follows, is wrong by so much.
fn with_wrong_clock(wrong_micros: i64, line: &[&str]) -> Three {
    let mut three = Three::new(line);
    assert_eq!(three.leader_after(3), Some(0));
    three.end(1);
    three.restart(1, wrong_micros, line);
    assert_eq!(three.leader_after(1), Some(0));
    three
}

/// Member 1 takes over: its time jumps by what it was wrong.
fn promote(three: &mut Three) {
    let (began, before) = (three.millis(), three.member(1).core.turn.now.0);
    three.end(0);
    three.end(2);
    while !three.member(1).core.leadership.roles.leads() {
        three.pass(1);
        assert!(three.millis() - began < 5000, "nobody leads");
    }
    let jumped = three.member(1).core.turn.now.0.abs_diff(before);
    assert!(jumped > 3_500_000, "its time jumped by {jumped} ms only");
}

/// The number behind a word.
fn number_behind(text: &str, word: &str) -> f64 {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("no {word}: {text}"));
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !"-.".contains(letter));
    rest[..end.unwrap_or(rest.len())].parse().expect("a number")
}

#[test]
fn clients_are_as_old_and_as_idle_after_a_promotion_as_before() {
    for wrong in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = with_wrong_clock(wrong, &["--timeout", "60"]);
        let (idle, asking) = (three.connect(1), three.connect(1));
        let began = three.millis();
        assert_eq!(ask(&mut three, &idle, "PING\r\n"), "+PONG\r\n");
        assert!(ask(&mut three, &asking, "AUTH nobody x\r\n").starts_with("-WRONGPASS"));
        let asked = three.millis();
        promote(&mut three);
        assert_eq!(idle.state(), ClientState::Open);
        let clients = ask(&mut three, &asking, "CLIENT LIST\r\n");
        let denied = ask(&mut three, &asking, "ACL LOG\r\n");
        let line = clients.lines().find(|line| line.contains("cmd=ping")).expect("it is listed");
        let (_, age) = denied.split_once("age-seconds\r\n").expect("it says so");
        let (least, most) = ((three.millis() - asked) / 1000 - 1, (three.millis() - began) / 1000);
        let ages =
            [number_behind(line, "age="), number_behind(line, "idle="), number_behind(age, "\r\n")];
        for age in ages {
            assert!((least as f64..=most as f64 + 1.0).contains(&age), "{wrong}: {age}: {line}");
        }
        // It is disconnected when its own minute is over.
        three.elapse(began + 60_000 - three.millis() - LATE_MILLIS);
        assert_eq!(idle.state(), ClientState::Open, "{wrong}");
        three.elapse(1_000 + 3 * LATE_MILLIS);
        assert_eq!(idle.state(), ClientState::Closed, "{wrong}");
    }
}

#[test]
fn a_pause_lasts_as_long_after_a_promotion_as_it_was_to() {
    for wrong in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = with_wrong_clock(wrong, &[]);
        let client = three.connect(1);
        let began = three.millis();
        assert_eq!(ask(&mut three, &client, "CLIENT PAUSE 9000\r\nPING\r\n"), "+OK\r\n");
        promote(&mut three);
        three.elapse(began + 9_000 - three.millis() - LATE_MILLIS);
        assert_eq!(told(&client), "", "{wrong}: it is over too early");
        three.elapse(3 * LATE_MILLIS);
        assert_eq!(told(&client), "+PONG\r\n", "{wrong}: it is not over");
    }
}

#[test]
fn a_read_of_the_newest_waits_for_a_promotion() {
    for wrong in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = with_wrong_clock(wrong, &[]);
        let (writer, reader) = (three.connect(0), three.connect(1));
        assert_eq!(ask(&mut three, &writer, "SET k v\r\n"), "+OK\r\n");
        let said = ask(&mut three, &reader, "READONLY\r\nCLIENT READS LINEARIZABLE\r\n");
        assert_eq!(said, "+OK\r\n+OK\r\n");
        three.end(0);
        reader.send(b"GET k\r\n");
        promote(&mut three);
        assert_eq!(ask(&mut three, &reader, ""), "$1\r\nv\r\n", "{wrong}");
    }
}

#[test]
fn a_replica_shows_what_time_keys_have_left_by_the_shard_s_clock() {
    for wrong in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = with_wrong_clock(wrong, &[]);
        let (writer, reader) = (three.connect(0), three.connect(1));
        assert_eq!(ask(&mut three, &writer, "SET k v PX 100000\r\n"), "+OK\r\n");
        let shown = ask(&mut three, &reader, "INFO keyspace\r\n");
        let left = number_behind(&shown, "avg_ttl=");
        assert!((90_000.0..=100_000.0).contains(&left), "{wrong}: {shown}");
    }
}

#[test]
fn clients_wait_as_long_as_they_asked_to_while_the_clock_is_put_right() {
    for step in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = Three::new(&[]);
        assert_eq!(three.leader_after(3), Some(0));
        three.step_wall(0, step);
        let clients = [0; 3].map(|number| three.connect(number));
        let requests =
            ["BLPOP list 20\r\n", "WAIT 5 20000\r\n", "CLIENT PAUSE 20000 WRITE\r\nSET k v\r\n"];
        let began = three.millis();
        for (client, request) in clients.iter().zip(requests) {
            let said = ask(&mut three, client, request);
            assert_eq!(said, if request.starts_with("CLIENT") { "+OK\r\n" } else { "" });
        }
        three.elapse(began + 20_000 - three.millis() - LATE_MILLIS);
        assert_eq!(clients.each_ref().map(told), ["", "", ""], "{step}: it is over too early");
        three.elapse(4_000);
        let expected = ["*-1\r\n", ":0\r\n", "+OK\r\n"];
        assert_eq!(clients.each_ref().map(told), expected, "{step}: it is not over");
        let shown = ask(&mut three, &clients[0], "INFO server\r\n");
        let uptime = number_behind(&shown, "uptime_in_seconds:") as u64;
        assert!(uptime.abs_diff(three.millis() / 1000) <= 2, "{step}: {uptime}");
    }
}
