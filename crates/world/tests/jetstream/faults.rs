//! A writer whose servers are killed and stopped: what it was told to be durable is read back in
//! order, exactly once.

use super::cluster::{Cluster, entropy, fresh_name, log, now, pause, three_servers, unique_record};
use super::cluster::{PATIENCE, broken_log};
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use std::time::Duration;
use txlog::record::WriterId;
use txlog::remote::RemoteLog;
use txlog::{Chain, Consumed, Follower, Gate, Kind, LogEvent, Part, Stamper, TransactionLog};
use world::log::jetstream::Broken;

/// Records that must become durable between two faults, so that each finds the log at work.
const RECORDS_BETWEEN: usize = 100;

/// Longer than the longest election, which takes 9 s.
const LONG_PAUSE: Duration = Duration::from_secs(11);

/// Crashes of all servers after which a writer that is wrong must have been caught.
const CRASHES_MAX: usize = 20;

/// The only writer of a log.
struct Writer {
    log: RemoteLog,
    stamper: Stamper,
    at: Position,
    appended: Vec<Bytes>,
    /// Places of the records that are not yet durable; they shift when others are found void.
    durable: usize,
}

impl Writer {
    fn lead(log: RemoteLog) -> Self {
        let incarnation = log.incarnation();
        let at = Position { incarnation, sequence: Sequence::ZERO };
        let stamper = Stamper::new(WriterId(entropy()), Chain::start(incarnation), UnixMillis(0));
        let mut writer = Self { log, stamper, at, appended: Vec::new(), durable: 0 };
        let lead = writer.stamper.lead(60_000, &[], UnixMillis(1), Sequence::ZERO);
        writer.log.append(at, lead);
        writer.at = at.next();
        writer.until("the Lead is durable", |writer| writer.log.gate() == Gate::Open);
        writer
    }

    /// Appends as long as the log takes it, and looks at what became of it.
    fn turn(&mut self) {
        while self.log.gate() == Gate::Open {
            let payload = unique_record(200 + self.appended.len() % 7 * 9_000);
            let mut buffer = txlog::empty_record(payload.len());
            buffer.extend_from_slice(&payload);
            let (clock, durable) = (UnixMillis(1), Sequence::ZERO);
            let record = self.stamper.stamp(Kind::Data, Part::Whole, buffer, clock, durable);
            self.log.append(self.at, record);
            self.at = self.at.next();
            self.appended.push(payload);
        }
        let mut events = Vec::new();
        self.log.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Durable(position) => {
                    let left = (self.at.sequence.0 - position.sequence.0) as usize;
                    self.durable = self.appended.len() - left.min(self.appended.len());
                }
                LogEvent::Shifted { by } => self.at.sequence.0 += by,
                LogEvent::Failed(_, error) => panic!("nobody else writes, and yet: {error}"),
                _ => {}
            }
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let began = now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "never came: {what}; {:?}", self.log.gate());
            self.turn();
            pause(Duration::from_millis(1));
        }
    }

    fn go_on(&mut self) {
        let goal = self.durable + RECORDS_BETWEEN;
        self.until("more is durable", |writer| writer.durable >= goal);
    }

    fn work_for(&mut self, time: Duration) {
        let began = now();
        while began.elapsed() < time {
            self.turn();
            pause(Duration::from_millis(1));
        }
    }
}

/// Everything that counts in a log, read by a handle of its own: to a position at least, or to
/// where the log ends when patience does.
fn payloads(cluster: &Cluster, name: &str, at_least: Position, patience: Duration) -> Vec<Bytes> {
    let mut log = log(cluster, name);
    let incarnation = log.incarnation();
    let mut follower = Follower::new(Sequence::ZERO, Chain::start(incarnation));
    let mut payloads = Vec::new();
    log.read_from(Position { incarnation, sequence: Sequence(1) });
    let began = now();
    loop {
        let mut events = Vec::new();
        log.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Read(position, bytes) => {
                    let consumed = follower.consume(position.sequence, &bytes);
                    if let Consumed::Record(record) = consumed.expect("records can be read")
                        && record.header.kind == Kind::Data
                    {
                        payloads.push(record.payload);
                    }
                }
                // A copy may be behind.
                LogEvent::CaughtUp(position) if position >= at_least => return payloads,
                LogEvent::CaughtUp(_) => {}
                other => panic!("reading gave {other:?}"),
            }
        }
        if began.elapsed() > patience {
            return payloads;
        }
        pause(Duration::from_millis(1));
    }
}

/// What was told to be durable is there, in order, once; and nothing that was not appended.
fn check(cluster: &Cluster, name: &str, writer: &Writer, patience: Duration) {
    let undurable = (writer.appended.len() - writer.durable) as u64;
    let durable = writer.at.at(Sequence(writer.at.sequence.0 - undurable));
    let found = payloads(cluster, name, durable, patience);
    assert!(found.len() >= writer.durable, "{} of {}", found.len(), writer.durable);
    assert!(found == writer.appended[..found.len()], "the log holds other records");
}

fn kill_the_leader(cluster: &mut Cluster, name: &str) {
    let leader = cluster.tell(&format!("leader kiln-{name}"));
    cluster.tell(&format!("kill {leader}"));
}

#[test]
fn a_killed_leader_costs_nothing_that_was_acknowledged() {
    let Some(mut cluster) = three_servers() else { return };
    let name = fresh_name();
    let mut writer = Writer::lead(log(&cluster, &name));
    writer.go_on();
    kill_the_leader(&mut cluster, &name);
    writer.go_on();
    check(&cluster, &name, &writer, PATIENCE);
    cluster.tell("start");
    writer.go_on();
    check(&cluster, &name, &writer, PATIENCE);
}

/// As many faults as the environment asks for, of every kind, one after the other.
#[test]
fn many_faults_cost_nothing_that_was_acknowledged() {
    let Some(mut cluster) = three_servers() else { return };
    let Ok(count) = std::env::var("KILN_TEST_FAULTS") else { return };
    let count: u64 = count.parse().expect("KILN_TEST_FAULTS is a number");
    let name = fresh_name();
    let mut writer = Writer::lead(log(&cluster, &name));
    for round in 0..count {
        writer.go_on();
        let chosen = entropy();
        let server = chosen / 16 % 3;
        println!("fault {round}: {} at server {server}", chosen % 5);
        match chosen % 5 {
            0 => kill_the_leader(&mut cluster, &name),
            1 => drop(cluster.tell(&format!("kill {server}"))),
            2 => {
                let leader = cluster.tell(&format!("leader kiln-{name}"));
                cluster.tell(&format!("pause {leader}"));
                writer.work_for(LONG_PAUSE);
                cluster.tell(&format!("resume {leader}"));
            }
            3 => {
                cluster.tell(&format!("pause {server}"));
                writer.work_for(Duration::from_secs(chosen / 64 % 6));
                cluster.tell(&format!("resume {server}"));
            }
            _ => {
                for other in (0..3).filter(|other| *other != server) {
                    cluster.tell(&format!("kill {other}"));
                }
                writer.work_for(Duration::from_secs(chosen / 64 % 4));
            }
        }
        writer.work_for(Duration::from_millis(chosen / 1024 % 500));
        cluster.tell("start");
        writer.go_on();
        check(&cluster, &name, &writer, PATIENCE);
    }
}

#[test]
fn a_writer_that_assumes_the_best_is_noticed() {
    let Some(mut cluster) = three_servers() else { return };
    let name = fresh_name();
    let mut writer = Writer::lead(broken_log(&cluster, &name, Broken::AssumesTheBest));
    writer.go_on();
    let run = std::panic::AssertUnwindSafe(|| {
        for _ in 0..CRASHES_MAX {
            // Of what is under way, hardly ever all is stored.
            writer.turn();
            cluster.tell("crash");
            writer.work_for(Duration::from_secs(2));
            check(&cluster, &name, &writer, Duration::from_secs(10));
        }
    });
    assert!(std::panic::catch_unwind(run).is_err(), "lost records were not missed");
}
