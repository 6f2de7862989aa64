//! Scripts that run long: the primary keeps its lease, others are told BUSY, and what a script did
//! is there as a whole or not at all.

use crate::primary::{Appended, LEASE_MILLIS, Primary};
use crate::three::{Three, request};
use base::time::MILLISECOND;
use node::Stop;
use sim::network::SimClient;
use txlog::Kind;

/// How long a script runs before others are told, by default.
const BUSY_MILLIS: u64 = 5000;

/// What a stretch of a script takes here, in milliseconds. More than a turn may.
const STRETCH_MILLIS: u64 = 20;

const ENDLESS: &str = "while true do end";
const BUSY: &str =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
const KILLED: &str = "-ERR Script killed by user with SCRIPT KILL... script: ";

fn eval(script: &str, keys: &[&str]) -> String {
    let count = keys.len().to_string();
    let words: Vec<&str> = ["EVAL", script, &count].into_iter().chain(keys.to_vec()).collect();
    request(&words)
}

/// A script that does something, takes so many stretches, and does something else.
fn amid(before: &str, stretches: u64, after: &str) -> String {
    // Some 10,000 instructions are a stretch; a turn of this loop is about three.
    format!("{before} for i = 1, {} do local x = i end {after}", stretches * 5000)
}

struct Room {
    primary: Primary,
    other: SimClient,
}

impl Room {
    fn new() -> Self {
        let primary = Primary::new();
        let other = primary.network.connect("here");
        let mut room = Self { primary, other };
        room.run(100);
        room
    }

    /// Turns the loop for so long. Scripts take their time meanwhile.
    fn run(&mut self, millis: u64) {
        let primary = &mut self.primary;
        primary.millis.set(STRETCH_MILLIS);
        let until = primary.timeline.now().after_millis(millis);
        while primary.timeline.now() < until && primary.server.ended().is_none() {
            primary.timeline.pass(MILLISECOND);
            primary.turn();
        }
        primary.millis.set(0);
    }

    fn begin(&mut self, requests: &str) {
        self.primary.appended.borrow_mut().clear();
        self.primary.client.send(requests.as_bytes());
    }

    fn heard(&mut self) -> String {
        String::from_utf8(self.primary.client.received()).expect("replies are text")
    }

    /// What somebody else is answered within so long.
    fn ask(&mut self, requests: &str, millis: u64) -> String {
        self.other.send(requests.as_bytes());
        self.run(millis);
        String::from_utf8(self.other.received()).expect("replies are text")
    }

    fn appended(&self) -> Vec<Appended> {
        self.primary.appended.borrow().clone()
    }

    /// The keys of each record with data.
    fn data(&self) -> Vec<Vec<String>> {
        let appended = self.appended().into_iter();
        appended.filter(|(_, kind, ..)| *kind == Kind::Data).map(|(_, _, keys, _)| keys).collect()
    }
}

#[test]
fn an_endless_script_costs_nobody_the_lease_and_others_hear_of_it() {
    let mut room = Room::new();
    room.begin(&eval(ENDLESS, &[]));
    room.run(50);
    let answered = room.ask("SET k v\r\n", BUSY_MILLIS / 2);
    assert_eq!(answered, "", "as in Redis, others wait for a while");
    room.run(BUSY_MILLIS);
    let answered = String::from_utf8(room.other.received()).expect("replies are text");
    assert_eq!(answered, BUSY);
    room.run(20 * LEASE_MILLIS);
    assert_eq!(
        room.ask("GET k\r\nPING\r\nMULTI\r\nGET k\r\n", 200),
        [BUSY, BUSY, "+OK\r\n", BUSY].concat()
    );
    assert!(room.primary.server.core.leadership.roles.leads());
    assert!(!room.primary.server.core.leadership.is_lapsed, "the lease is held");
    let appended = room.appended();
    assert!(appended.len() as u64 >= 20, "it is renewed: {}", appended.len());
    let clock = appended[1].3;
    assert!(appended[1..].iter().all(|it| it.1 == Kind::Renew && it.3 == clock), "{appended:?}");
    assert_eq!(room.heard(), "");
    assert_eq!(room.ask("DISCARD\r\nSCRIPT KILL\r\n", 200), "+OK\r\n+OK\r\n");
    let heard = room.heard();
    assert!(heard.starts_with(KILLED), "{heard}");
    assert_eq!(
        room.ask("SET k v\r\nSCRIPT KILL\r\n", 200),
        "+OK\r\n-NOTBUSY No scripts in execution right now.\r\n"
    );
    assert!(room.appended().last().is_some_and(|it| it.3 > clock), "time goes on");
}

#[test]
fn who_connects_amid_a_script_is_told_and_may_end_it() {
    let mut room = Room::new();
    room.begin(&eval(ENDLESS, &[]));
    room.run(BUSY_MILLIS + 100);
    room.other = room.primary.network.connect("here");
    assert_eq!(room.ask("GET k\r\nSCRIPT KILL\r\n", 500), [BUSY, "+OK\r\n"].concat());
    assert_eq!(room.ask("GET k\r\n", 100), "$-1\r\n");
}

#[test]
fn a_script_that_wrote_is_not_killed_and_leaves_nothing_where_the_server_ends() {
    let mut room = Room::new();
    room.begin(&eval(&format!("redis.call('SET', KEYS[1], 'v') {ENDLESS}"), &["k"]));
    room.run(BUSY_MILLIS + 100);
    let answered = room.ask("SCRIPT KILL\r\nSHUTDOWN\r\n", 100);
    let (first, second) = answered.split_once("\r\n").expect("two replies");
    assert!(first.starts_with("-UNKILLABLE Sorry the script already executed write"), "{first}");
    assert_eq!(second, BUSY);
    assert_eq!(room.data(), Vec::<Vec<String>>::new(), "a unit is whole, or nothing");
    assert_eq!(room.ask("SHUTDOWN NOSAVE\r\n", 200), "");
    assert_eq!(room.primary.server.ended(), Some(Stop::Clean));
    assert_eq!(room.heard(), "");
    assert_eq!(room.data(), Vec::<Vec<String>>::new());
}

#[test]
fn a_clean_stop_ends_a_script_that_only_reads_and_waits_for_one_that_wrote() {
    let mut room = Room::new();
    room.begin(&eval(ENDLESS, &[]));
    room.run(200);
    room.primary.network.ask_to_stop("here");
    room.run(500);
    assert!(room.heard().starts_with("-ERR the server stops"));
    assert_eq!(room.primary.server.ended(), Some(Stop::Clean));

    let mut room = Room::new();
    room.begin(&eval(&amid("redis.call('SET', 'a', 1)", 50, "redis.call('SET', 'b', 1)"), &[]));
    room.run(100);
    room.primary.network.ask_to_stop("here");
    room.run(200);
    assert_eq!((room.heard().as_str(), room.primary.server.ended()), ("", None));
    room.run(20_000);
    assert_eq!(room.heard(), "$-1\r\n");
    assert_eq!(room.primary.server.ended(), Some(Stop::Clean));
    assert_eq!(room.data(), [["a", "b"]]);

    let mut room = Room::new();
    room.begin(&eval(&format!("redis.call('SET', 'a', 1) {ENDLESS}"), &[]));
    room.run(100);
    room.primary.network.ask_to_stop("here");
    room.run(29_000);
    assert_eq!(room.primary.server.ended(), None);
    room.run(2_000);
    assert_eq!(room.primary.server.ended(), Some(Stop::Clean), "it does not wait for ever");
    assert_eq!((room.heard().as_str(), room.data().len()), ("", 0));
}

#[test]
fn what_a_long_script_did_is_one_unit_and_told_at_its_end() {
    let mut room = Room::new();
    let listener = room.primary.network.connect("here");
    let waiter = room.primary.network.connect("here");
    listener.send(b"SUBSCRIBE news\r\n");
    waiter.send(b"BLPOP queue 1\r\n");
    room.run(100);
    let hello = listener.received();
    assert!(hello.starts_with(b"*3"), "{}", hello.escape_ascii());
    let before = "redis.call('RPUSH', 'queue', 'job') redis.call('PUBLISH', 'news', 'x')";
    let script = amid(before, 100, "redis.call('SET', 'b', 1) return 'done'");
    room.begin(&format!("SET before 1\r\n{}GET b\r\n", eval(&script, &[])));
    room.run(1500);
    assert_eq!(room.heard(), "+OK\r\n", "what others wait for leaves");
    assert_eq!((listener.received(), waiter.received()), (vec![], vec![]));
    assert_eq!(room.data(), [["before"]]);
    room.run(30_000);
    assert_eq!(room.heard(), "$4\r\ndone\r\n$1\r\n1\r\n");
    let keys = room.data();
    assert_eq!(keys[0], ["before"]);
    assert_eq!(keys[1][..2], ["queue".to_owned(), "b".to_owned()], "one record: {keys:?}");
    assert_eq!(waiter.received(), b"*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n", "late, and served");
    assert!(listener.received().ends_with(b"$1\r\nx\r\n"));
}

#[test]
fn a_transaction_goes_on_behind_a_long_script_as_one_unit() {
    let mut room = Room::new();
    let long = |key: &str| {
        let write = format!("redis.call('SET', '{key}', 1)");
        eval(
            &amid(
                "redis.call('SELECT', 3)",
                30,
                &format!("redis.call('SELECT', 0) {write} return '{key}'"),
            ),
            &[],
        )
    };
    let (one, two) = (long("one"), long("two"));
    room.begin(&format!("MULTI\r\nSET a 1\r\n{one}INCR a\r\n{two}GET one\r\nEXEC\r\nGET two\r\n"));
    room.run(400);
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    assert_eq!(room.heard(), queued);
    assert_eq!(room.data().len(), 0);
    room.run(30_000);
    let expected = "*5\r\n+OK\r\n$3\r\none\r\n:2\r\n$3\r\ntwo\r\n$1\r\n1\r\n$1\r\n1\r\n";
    assert_eq!(room.heard(), expected);
    assert_eq!(room.data(), [["a", "one", "a", "two"]]);
}

#[test]
fn a_script_ends_though_its_client_is_gone() {
    let mut room = Room::new();
    room.begin(&eval(&amid("redis.call('SET', 'a', 1)", 50, "redis.call('SET', 'b', 1)"), &[]));
    room.run(100);
    room.primary.client.reset();
    room.run(20_000);
    assert_eq!(room.data(), [["a", "b"]]);
    assert_eq!(room.ask("GET b\r\n", 200), "$1\r\n1\r\n");
    assert_eq!(room.primary.server.core.client_count(), 1);
}

#[test]
fn time_stands_still_amid_a_script() {
    let mut room = Room::new();
    assert_eq!(room.ask("SET k v PX 300\r\n", 100), "+OK\r\n");
    let script =
        amid("local a = redis.call('GET', 'k')", 100, "return {a, redis.call('GET', 'k')}");
    room.begin(&eval(&script, &[]));
    room.run(30_000);
    assert_eq!(room.heard(), "*2\r\n$1\r\nv\r\n$1\r\nv\r\n");
    assert_eq!(room.ask("GET k\r\n", 100), "$-1\r\n");
}

#[test]
fn a_script_that_changes_too_much_is_ended_by_name() {
    let mut room = Room::new();
    let grow = "local s = string.rep('x', 8 * 1024 * 1024) \
                while true do pcall(redis.call, 'SET', 'k', s) end";
    room.begin(&eval(grow, &[]));
    room.run(60_000);
    let heard = room.heard();
    assert!(heard.starts_with("-ERR the script changes more than one unit"), "{heard}");
    assert_eq!(room.ask("STRLEN k\r\n", 200), ":8388608\r\n", "what it did stands, as in Redis");
}

#[test]
fn a_script_that_tells_without_end_keeps_little() {
    let mut room = Room::new();
    let monitor = room.primary.network.connect("here");
    monitor.send(b"MONITOR\r\n");
    room.run(100);
    assert_eq!(monitor.received(), b"+OK\r\n");
    room.begin(&eval("return redis.call('GET', 'k')", &[]));
    room.run(1000);
    let lines = String::from_utf8(monitor.received()).expect("lines are text");
    let (first, second) = lines.split_once("\r\n").expect("two lines");
    assert!(first.contains("\"EVAL\"") && second.contains("[0 lua] \"GET\" \"k\""), "{lines}");
}

#[test]
fn a_replica_ends_an_endless_script_so_that_it_can_lead() {
    let mut three = Three::new(&[]);
    let leader = three.leader_after(10).expect("one leads");
    let (replica, third) = ((leader + 1) % 3, (leader + 2) % 3);
    three.end(third);
    three.member(replica).core.process.options.limits.script_pauses_max = 1;
    let reader = three.connect(replica);
    reader.send(request(&["READONLY"]).as_bytes());
    // The minute is that of all of a transaction.
    reader.send(request(&["MULTI"]).as_bytes());
    (0..3).for_each(|_| reader.send(request(&["EVAL_RO", ENDLESS, "0"]).as_bytes()));
    reader.send(request(&["EXEC"]).as_bytes());
    three.elapse(500);
    assert_eq!(reader.received(), b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    three.end(leader);
    three.stride(50_000);
    assert_eq!(reader.received(), b"");
    assert_eq!(three.leader_after(1), None, "as amid any long command");
    three.stride(15_000);
    let heard = String::from_utf8(reader.received()).expect("an error is text");
    let refusals =
        heard.matches("-ERR the script or transaction kept a replica from following").count();
    assert!(heard.starts_with("*3\r\n-") && refusals == 3, "{heard}");
    assert_eq!(three.leader_after(5), Some(replica));
}

/// Each function of a library has its name beside its own, and all are compared when it goes.
#[test]
fn a_library_with_a_name_of_megabytes_is_refused() {
    let mut room = Room::new();
    for (bytes, is_refused) in [(64 << 10, false), ((64 << 10) + 1, true)] {
        let name = "n".repeat(bytes);
        let code = format!("#!lua name={name}\nredis.register_function('f{bytes}', redis.log)");
        let answer = room.ask(&request(&["FUNCTION", "LOAD", &code]), 100);
        let expected = match is_refused {
            true => "-ERR the name of a library may not be longer than 65536 bytes\r\n".to_owned(),
            false => format!("${bytes}\r\n{name}\r\n"),
        };
        assert!(answer == expected, "{:.100}", answer);
    }
}
