//! A log whose disk is full while a unit is larger than the room that is left: what needs nothing
//! of it goes on, and nothing of it is shown before all of it is durable.

use super::world::{DISK_NANOS, Ledger, Life};
use base::time::MILLISECOND;
use base::{Clock, Position, Sequence};
use bytes::Bytes;
use shard::snapshots::Pace;
use sim::disk::{Faults, SimDisk};
use sim::network::SimClient;
use sim::tapped_log::{Listener, TappedLog};
use std::cell::Cell;
use std::rc::Rc;
use txlog::record::decode_header;
use txlog::{LogEvent, Part};

const LEASE_MILLIS: u64 = 1000;

/// Keys of the large unit, each with a value of 1 KB: more than the log has prepared.
const KEYS: u32 = 200;

fn begin(disk: &SimDisk, seed: u64) -> Life {
    let life =
        Life::start_under_lease(LEASE_MILLIS, DISK_NANOS, Pace::default(), disk, seed, |_| {});
    life.expect("the disk is whole")
}

/// Turns the loop for so long, and lets time pass between the turns.
fn run(life: &mut Life, millis: u64) {
    let until = life.clock.monotonic().0 + millis * MILLISECOND;
    while life.clock.monotonic().0 < until && life.server.ended().is_none() {
        life.turn(&mut Ledger::default());
    }
}

/// What a new client is answered within 100 ms.
fn ask(life: &mut Life, requests: &str) -> String {
    let mut client = life.connect();
    client.send(requests.as_bytes());
    run(life, 100);
    heard(&mut client)
}

fn heard(client: &mut SimClient) -> String {
    String::from_utf8(client.received()).expect("replies are text")
}

/// A life with a key `a`, on a disk on which little is left, and the client that has just asked for
/// a unit that does not fit.
fn begin_full(disk: &SimDisk) -> (Life, SimClient) {
    fill(begin(disk, 1), disk)
}

fn fill(mut life: Life, disk: &SimDisk) -> (Life, SimClient) {
    assert_eq!(ask(&mut life, "SET a 1\r\n"), "+OK\r\n");
    let capacity_bytes = Some(disk.used_bytes() + 2_000);
    disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    let value = "v".repeat(1000);
    let sets: String = (0..KEYS).map(|key| format!("SET k:{key} {value}\r\n")).collect();
    let mut writer = life.connect();
    writer.send(format!("MULTI\r\n{sets}EXEC\r\n").as_bytes());
    run(&mut life, 100);
    let queued = format!("+OK\r\n{}", "+QUEUED\r\n".repeat(KEYS as usize));
    assert_eq!(heard(&mut writer), queued, "nothing is acknowledged");
    (life, writer)
}

const REFUSED: &str =
    "-MISCONF Errors writing to the transaction log: the disk of the transaction log is full\r\n";

#[test]
fn a_unit_that_does_not_fit_on_the_disk_stops_nobody_else() {
    let disk = SimDisk::new(1);
    let (mut life, mut writer) = begin_full(&disk);
    let mut reader = life.connect();
    reader.send(b"GET k:1\r\n");
    // What the log keeps in reserve is small here, and each renewal takes some of it.
    for _ in 0..3 {
        // Nobody watches, so an idle holder renews its lease when it is asked again.
        run(&mut life, 3 * LEASE_MILLIS / 2);
        assert_eq!(
            ask(&mut life, "PING\r\nGET a\r\nEXISTS none\r\n"),
            "+PONG\r\n$1\r\n1\r\n:0\r\n"
        );
        assert_eq!(ask(&mut life, "SET b 1\r\n"), REFUSED);
        assert_eq!(ask(&mut life, "EVAL \"return redis.call('GET', 'a')\" 0\r\n"), "$1\r\n1\r\n");
        let info = ask(&mut life, "INFO\r\n");
        let has_all = info.contains("loading:0") && info.contains("# Keyspace\r\nkiln_withheld:1");
        assert!(has_all, "{info}");
        assert_eq!(heard(&mut writer) + &heard(&mut reader), "", "nothing of the unit is shown");
    }
    let durable = life.server.core.shard.durable().sequence;

    // Who dies now has acknowledged nothing of it, and nothing of it is found.
    let copy = disk.copy();
    copy.set_faults(Faults::default());
    copy.restart();
    let mut other = begin(&copy, 2);
    assert_eq!(ask(&mut other, "GET a\r\nEXISTS k:0\r\nDBSIZE\r\n"), "$1\r\n1\r\n:0\r\n:1\r\n");

    disk.set_faults(Faults::default());
    run(&mut life, 2000);
    let replies = heard(&mut writer);
    assert_eq!(replies, format!("*{KEYS}\r\n{}", "+OK\r\n".repeat(KEYS as usize)));
    assert!(heard(&mut reader).starts_with("$1000\r\n"), "the read was answered with it");
    assert_eq!(ask(&mut life, "SET b 1\r\nDBSIZE\r\n"), format!("+OK\r\n:{}\r\n", KEYS + 2));
    assert!(life.server.core.shard.durable().sequence > Sequence(durable.0 + 1));
    drop(life);
    disk.kill_process();
    let mut life = begin(&disk, 3);
    assert_eq!(ask(&mut life, "GET a\r\nDBSIZE\r\n"), format!("$1\r\n1\r\n:{}\r\n", KEYS + 2));
}

#[test]
fn a_key_keeps_its_time_while_a_unit_that_saw_it_has_no_room() {
    let disk = SimDisk::new(1);
    let mut life = begin(&disk, 1);
    let requests = "SET lives v PX 5000\r\nSET goes v PX 5000\r\n";
    assert_eq!(ask(&mut life, requests), "+OK\r\n+OK\r\n");
    let capacity_bytes = Some(disk.used_bytes() + 2_000);
    disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    let value = "v".repeat(1000);
    let sets: String = (0..KEYS).map(|key| format!("SET k:{key} {value}\r\n")).collect();
    let writer = life.connect();
    writer.send(format!("MULTI\r\nPERSIST lives\r\n{sets}EXEC\r\n").as_bytes());
    run(&mut life, 6000);
    // By the clock of the records, no time has passed since the unit.
    let clock = life.server.core.shard.newest_clock();
    run(&mut life, 2 * LEASE_MILLIS);
    assert_eq!(life.server.core.shard.newest_clock(), clock, "renewals say the unit's time");
    assert_eq!(ask(&mut life, "EXISTS goes\r\n"), ":1\r\n");
    disk.set_faults(Faults::default());
    run(&mut life, 2000);
    assert_eq!(ask(&mut life, "EXISTS lives\r\nEXISTS goes\r\n"), ":1\r\n:0\r\n");
}

#[test]
fn much_that_waits_for_a_full_disk_leaves_pings_answered() {
    let disk = SimDisk::new(1);
    let (mut life, _writer) = begin_full(&disk);
    let held_bytes_max = life.server.core.process.options.limits.held_bytes_max;
    let mut readers = Vec::new();
    let gets = "GET k:1\r\n".repeat(2000);
    for _ in 0..=held_bytes_max / (2000 * 1000) {
        let reader = life.connect();
        reader.send(gets.as_bytes());
        readers.push(reader);
        run(&mut life, 100);
    }
    assert_eq!(ask(&mut life, "PING\r\nGET a\r\n"), format!("+PONG\r\n{REFUSED}"));
    assert_eq!(ask(&mut life, "MULTI\r\nGET a\r\nDISCARD\r\n"), format!("+OK\r\n{REFUSED}+OK\r\n"));
    disk.set_faults(Faults::default());
    run(&mut life, 2000);
    assert_eq!(ask(&mut life, "PING\r\nGET a\r\n"), "+PONG\r\n$1\r\n1\r\n");
}

#[test]
fn a_stop_waits_for_a_full_disk_only_so_long() {
    let disk = SimDisk::new(1);
    let (mut life, _writer) = begin_full(&disk);
    let client = life.connect();
    client.send(b"SHUTDOWN NOSAVE\r\n");
    run(&mut life, 60_000);
    assert!(life.server.ended().is_some(), "30 s are over");
}

/// Asserts of each record that the place that it names as durable is known to be, and counts parts
/// of units.
struct Marks {
    durable: Position,
    /// What became durable is not told.
    is_deaf: Rc<Cell<bool>>,
    told: Sequence,
    parts: Rc<Cell<u32>>,
}

impl Listener for Marks {
    fn appends(&mut self, place: Sequence, record: &Bytes) {
        let header = decode_header(record, false).expect("a record of our own");
        assert!(header.durable <= self.told, "record {place} says {}", header.durable);
        if header.part != Part::Whole {
            self.parts.set(self.parts.get() + 1);
        }
    }

    fn told(&mut self, events: &mut Vec<LogEvent>) {
        for event in events.extract_if(.., |event| matches!(event, LogEvent::Durable(_))) {
            if let LogEvent::Durable(at) = event {
                self.durable = at;
            }
        }
        if !self.is_deaf.get() && self.told < self.durable.sequence {
            self.told = self.durable.sequence;
            events.push(LogEvent::Durable(self.durable));
        }
    }
}

/// A start takes a record that is missing below a place that was durable for damage. A renewal that
/// goes ahead is on its way when the disk has room again, and the parts that follow it say how far
/// the log is durable: not through the renewal.
#[test]
fn parts_behind_a_renewal_that_is_under_way_do_not_say_that_it_is_durable() {
    let disk = SimDisk::new(1);
    let mut life = begin(&disk, 1);
    let durable = life.server.core.shard.durable();
    let (is_deaf, parts): (Rc<Cell<bool>>, Rc<Cell<u32>>) = Default::default();
    life.server.core.shard.wrap_log(|log| {
        let (is_deaf, parts) = (Rc::clone(&is_deaf), Rc::clone(&parts));
        let listener = Marks { durable, is_deaf, told: durable.sequence, parts };
        Box::new(TappedLog { log, listener })
    });
    let (mut life, mut writer) = fill(life, &disk);
    run(&mut life, 3 * LEASE_MILLIS);
    assert!(!life.server.core.shard.is_in_log(), "the log has made durable what it took");
    is_deaf.set(true);
    // A request makes the idle holder renew, ahead of what is held.
    let reader = life.connect();
    reader.send(b"PING\r\n");
    while !life.server.core.shard.is_in_log() {
        run(&mut life, 1);
    }
    parts.set(0);
    disk.set_faults(Faults::default());
    run(&mut life, 2000);
    assert!(parts.get() > 0, "parts are handed over while the renewal is under way");
    is_deaf.set(false);
    run(&mut life, 3000);
    let replies = heard(&mut writer);
    assert_eq!(replies, format!("*{KEYS}\r\n{}", "+OK\r\n".repeat(KEYS as usize)));
}
