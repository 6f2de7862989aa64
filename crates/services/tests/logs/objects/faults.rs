//! A server that is killed and stopped under a writer, and a writer that is stopped in the middle
//! of a put while others go on and trim.

use super::places::Objects;
use super::wire::Wire;
use crate::driven::{Driven, first, get, trim};
use crate::outside::{clock, entropy, faults, fresh_name, tell, until};
use crate::place::{Place, polled};
use crate::writer::Writer;
use base::Sequence;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use txlog::remote::store::{Operation, Outcome};

/// The server that can be killed.
fn gateway() -> Option<Objects> {
    Objects::in_gateway().map(|place| place.trimming_after(60_000))
}

#[test]
fn a_killed_server_costs_nothing_that_was_acknowledged() {
    let Some(place) = gateway() else { return };
    Writer::lead(&place).survive(1, |writer, _| {
        tell("kill");
        writer.work_for(Duration::from_millis(500));
    });
}

/// As many faults as the environment asks for, of every kind, one after the other.
#[test]
fn many_faults_cost_nothing_that_was_acknowledged() {
    let (Some(place), Some(count)) = (gateway(), faults()) else { return };
    Writer::lead(&place).survive(count, |writer, chosen| {
        match chosen % 3 {
            0 => drop(tell("kill")),
            1 => drop(tell("pause")),
            _ => {
                tell("pause");
                writer.work_for(Duration::from_millis(chosen / 4 % 200));
                tell("kill");
            }
        }
        // At times longer than an attempt, at times longer than all of a put's.
        writer.work_for(Duration::from_millis(chosen / 1024 % 15_000));
    });
}

const TRIM_AGE_MS: u64 = 1000;
const CHILD_URL: &str = "KILN_TEST_WRITER_URL";

/// The process that is stopped. Not a test of its own.
#[test]
#[ignore = "started by the test below"]
fn a_writer_that_obeys() {
    let Ok(url) = std::env::var(CHILD_URL) else { return };
    let mut store = services::open(&url, clock(), polled(), entropy()).expect("the log opens");
    for order in std::io::stdin().lines() {
        let order = order.expect("the test lives");
        let (kind, number) = order.split_once(' ').expect("two words");
        assert_eq!(kind, "put");
        let sequence = Sequence(number.parse().expect("a number"));
        let record = Bytes::from(format!("paused {sequence}"));
        store.begin(Operation::Put { sequence, record });
        let mut outcomes = Vec::new();
        until("the put ends", || {
            store.poll(&mut outcomes);
            !outcomes.is_empty()
        });
        println!("outcome {:?}", outcomes[0].1);
    }
}

#[test]
fn a_put_that_slept_through_a_trimming_does_not_count() {
    let Some(place) = gateway() else { return };
    let place = place.trimming_after(TRIM_AGE_MS);
    // A stop that lasts longer than the child's patience leaves a doubt, which proves nothing.
    until("a round that does not end in doubt", || slept_through_a_trimming(&place));
}

/// One round. True if it showed what it is there to show.
fn slept_through_a_trimming(place: &Objects) -> bool {
    let name = fresh_name();
    let wire = Wire::to(place.endpoint());
    let mut other = Driven::open(place, &name).expect("the log opens");
    let mut paused = Paused::start(&place.url(&name).replace(place.endpoint(), &wire.endpoint()));
    for number in 1..=3 {
        paused.tell(&format!("put {number}"));
        assert_eq!(paused.hear(), "Stored");
    }
    wire.hold();
    paused.tell("put 4");
    wire.until_held("00000000000000000004");
    paused.signal(Signal::STOP);

    for sequence in [4, 5, 6] {
        let record = format!("other {sequence}");
        assert_eq!(other.put_and_see(sequence, record.as_bytes()), Outcome::Stored);
    }
    until("records grow old enough to be trimmed", || other.ask(trim(5)) == first(6));

    // Another one's first record is kept, or the server would take this one.
    assert!(!wire.release(), "the place is free");
    paused.signal(Signal::CONT);
    let outcome = paused.hear();
    assert!(outcome == "Misplaced" || outcome.starts_with("InDoubt"), "{outcome}");
    let mut third = Driven::open(place, &name).expect("the log opens");
    let trimmed = Outcome::Trimmed { first: Sequence(6) };
    assert_eq!(third.ask(get(4, false)), trimmed, "whatever lies there is not read");
    outcome == "Misplaced"
}

/// A writer in a process of its own.
struct Paused {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Paused {
    fn start(url: &str) -> Self {
        let this = std::env::current_exe().expect("this runs from a file");
        let name = "objects::faults::a_writer_that_obeys";
        let mut child = Command::new(this)
            .args(["--exact", name, "--ignored", "--nocapture"])
            .env(CHILD_URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this can be started once more");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, answers }
    }

    fn tell(&mut self, order: &str) {
        let orders = self.child.stdin.as_mut().expect("it is piped");
        writeln!(orders, "{order}").expect("the writer lives");
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.answers.read_line(&mut line).expect("the writer answers in UTF-8");
            assert!(length > 0, "the writer ended");
            // The first one stands behind the test's name.
            if let Some((_, outcome)) = line.trim().split_once("outcome ") {
                return outcome.to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the writer lives");
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // It may have ended, and this may be the end of a failed test: nobody is to be told.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
