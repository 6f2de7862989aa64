//! A power cut in place of every sync while a master's data set is taken over: what a start finds
//! is the old data, the master's data, or a part that it knows to be one and shows to nobody.

use super::master::{DataSet, Master};
use super::world::{Ledger, Life, store};
use archive::Candidate;
use base::{HashKey, Position, UnixMillis};
use bytes::Bytes;
use engine::digest::Digest;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::settings::Settings;
use shard::snapshots::{Pace, SnapshotFile};
use sim::disk::{Faults, SimDisk};
use std::cell::Cell;
use std::rc::Rc;
use txlog::{Chain, Gate, Limits, LogEvent, Refusal, Ticket, TransactionLog};

/// How long a commit takes at least, in nanoseconds.
const COMMIT_NANOS: u64 = 50_000;

/// Turns after which something must be stuck.
const TURNS_MAX: u32 = 200_000;

const PARTIAL: &str = "-MASTERDOWN The transfer of a master's data set was cut short, and what is \
                       here is a part of it. All of it is taken anew once the master answers; \
                       REPLICAOF NO ONE keeps the part.\r\n";

pub const READ_ONLY: &str = "-READONLY You can't write against a read only replica.\r\n";

/// What the starts behind the power cuts found.
#[derive(Default, Debug)]
struct Found {
    old: u32,
    whole: u32,
    partial: u32,
    /// How often a snapshot knew that it held a part.
    in_snapshots: u32,
}

pub fn start(disk: &SimDisk, seed: u64) -> Life {
    let pace = Pace {
        step_keys: 1,
        step_bytes: 64,
        steps_max: 1,
        chunk_bytes: 512,
        backlog_bytes_max: 1 << 10,
        ..Pace::default()
    };
    Life::start_unchecked(COMMIT_NANOS, pace, disk, seed).expect("the disk is whole")
}

/// Says something and turns until the reply is there.
pub fn ask(life: &mut Life, request: &str) -> String {
    life.replies.clear();
    life.client.send(format!("{request}\r\n").as_bytes());
    for _ in 0..TURNS_MAX {
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
        if life.replies.ends_with(b"\r\n") {
            return String::from_utf8_lossy(&life.replies).into_owned();
        }
    }
    panic!("no reply to {request}");
}

pub fn digest(life: &Life) -> Digest {
    Digest::of_keyspace(&life.server.core.shard.engine.keyspace)
}

fn is_partial(life: &Life) -> bool {
    life.server.core.shard.engine.keyspace.is_partial()
}

/// Whether the shard follows the master that hands out the data.
fn follows(keyspace: &Keyspace) -> bool {
    keyspace.master() == engine::master::Master::new("master", 1).as_ref()
}

/// Turns master and replica until the replica has acknowledged, or its power is off. A snapshot is
/// taken meanwhile.
pub fn take_over(life: &mut Life, master: &mut Master<'_>, disk: &SimDisk) {
    let mut is_saved = false;
    for _ in 0..TURNS_MAX {
        master.turn();
        if life.server.link.is_loading() && !std::mem::replace(&mut is_saved, true) {
            // The log seems to have grown.
            life.server.core.shard.grown.bytes += 1 << 30;
        }
        if !life.turn(&mut Ledger::default()) || disk.is_off() || master.is_acknowledged {
            return;
        }
    }
    panic!("the master's data does not come over: {:?}", life.server.link.error());
}

/// Ends the process, and the power with it.
pub fn crash(life: Life, disk: &SimDisk) {
    drop(life);
    disk.cut_power();
    disk.restart();
    disk.set_faults(Faults::default());
}

/// Whether the newest snapshot says that it holds a part.
fn is_newest_snapshot_partial(disk: &SimDisk) -> bool {
    let store = store(disk).expect("there is a store");
    let candidates = store.list().expect("it can be listed");
    let Some(Candidate::Whole(snapshot)) = candidates.first() else { return false };
    let file = SnapshotFile::open(&store, snapshot.clone()).expect("it is there");
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(5));
    let loaded = Loader::new(file, UnixMillis(0)).load_all(&mut keyspace);
    loaded.expect("a published snapshot can be loaded");
    assert!(follows(&keyspace) || !keyspace.is_partial(), "a part that nobody completes");
    keyspace.is_partial()
}

/// A node with some data, which begins to follow a master.
fn begin(disk: &SimDisk, seed: u64) -> (Life, Digest) {
    let mut life = start(disk, seed);
    for number in 0..10 {
        assert_eq!(ask(&mut life, &format!("SET old:{number} value")), "+OK\r\n");
    }
    let old = digest(&life);
    life.client.send(b"REPLICAOF master 1\r\n");
    (life, old)
}

/// Every way out of a part. The process that found it goes on following.
fn leave(mut life: Life, disk: &SimDisk, data: &DataSet, way: u64) {
    for request in ["GET old:1", "DBSIZE", "BGSAVE", "PSYNC ? -1"] {
        assert_eq!(ask(&mut life, request), PARTIAL, "{request}");
    }
    for request in ["SET a b", "FLUSHALL"] {
        assert_eq!(ask(&mut life, request), READ_ONLY, "{request}");
    }
    assert!(ask(&mut life, "INFO replication").contains("kiln_data_is_partial:1"));
    let expected = match way % 3 {
        0 => {
            assert_eq!(ask(&mut life, "REPLICAOF NO ONE"), "+OK\r\n");
            assert_eq!(ask(&mut life, "FLUSHALL"), "+OK\r\n");
            Digest::default()
        }
        1 => {
            let part = digest(&life);
            assert_eq!(ask(&mut life, "REPLICAOF NO ONE"), "+OK\r\n");
            part
        }
        _ => {
            let mut master = Master::new(life.listen("master"), data, 4096);
            take_over(&mut life, &mut master, disk);
            data.digest
        }
    };
    assert!(!is_partial(&life) && digest(&life) == expected, "way {way}");
    crash(life, disk);
    let mut life = start(disk, 99);
    assert!(!is_partial(&life) && digest(&life) == expected, "way {way}, after a start");
    let reply = if way % 3 == 2 { READ_ONLY } else { "+OK\r\n" };
    assert_eq!(ask(&mut life, "SET a b"), reply, "way {way}");
}

/// A transfer with a power cut in place of the sync `cut` syncs after its beginning. False if it
/// ended before that.
fn cut_at(cut: u64, seed: u64, data: &DataSet, found: &mut Found) -> bool {
    let disk = SimDisk::new(seed);
    let (mut life, old) = begin(&disk, seed);
    let mut master = Master::new(life.listen("master"), data, 200 + 300 * seed as usize);
    master.hangs_up_at = (seed == 2).then_some(data.file.len() / 2);
    let cut_at_sync = Some(disk.syncs() + cut);
    disk.set_faults(Faults { cut_at_sync, ..Faults::default() });
    take_over(&mut life, &mut master, &disk);
    let (is_acknowledged, is_cut) = (master.is_acknowledged, disk.is_off());
    drop(master);
    crash(life, &disk);
    found.in_snapshots += u32::from(is_newest_snapshot_partial(&disk));
    let mut life = start(&disk, seed + 50);
    let is_told = follows(&life.server.core.shard.engine.keyspace);
    let has_begun = is_partial(&life) || digest(&life) != old;
    assert!(is_told || !has_begun, "cut {cut}, seed {seed}: a master's data, and no master");
    let reply = if is_told { READ_ONLY } else { "+OK\r\n" };
    if is_partial(&life) {
        assert!(!is_acknowledged, "cut {cut}, seed {seed}: acknowledged in part");
        found.partial += 1;
        leave(life, &disk, data, cut);
    } else if digest(&life) == data.digest {
        found.whole += 1;
        assert_eq!(ask(&mut life, "SET a b"), reply);
    } else {
        assert!(digest(&life) == old, "cut {cut}, seed {seed}: a part that passes for the whole");
        assert!(!is_acknowledged, "cut {cut}, seed {seed}: acknowledged and lost");
        found.old += 1;
        assert_eq!(ask(&mut life, "SET a b"), reply, "cut {cut}, seed {seed}");
    }
    is_cut
}

#[test]
fn a_transfer_that_a_power_cut_ends_never_passes_for_the_whole() {
    let data = DataSet::new();
    let mut found = Found::default();
    for seed in 1..=3 {
        let mut cut = 1;
        while cut_at(cut, seed, &data, &mut found) {
            cut += 1;
        }
    }
    let Found { old, whole, partial, in_snapshots } = found;
    assert!(old > 1 && whole > 0 && partial > 30 && in_snapshots > 5, "{found:?}");
}

/// A log whose gate can be shut.
struct GatedLog {
    log: Box<dyn TransactionLog>,
    is_shut: Rc<Cell<bool>>,
}

impl TransactionLog for GatedLog {
    fn limits(&self) -> Limits {
        self.log.limits()
    }

    fn gate(&self) -> Gate {
        if self.is_shut.get() { Gate::Refuse(Refusal::DiskFull) } else { self.log.gate() }
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        assert!(!self.is_shut.get(), "nothing is appended to a log that refuses");
        self.log.append(after, record)
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        self.log.poll(events);
    }

    fn is_busy(&self) -> bool {
        self.log.is_busy()
    }

    fn read_from(&mut self, from: Position) {
        self.log.read_from(from);
    }

    fn wait_nanos(&self) -> Option<u64> {
        self.log.wait_nanos()
    }

    fn stop_reading(&mut self) {
        self.log.stop_reading();
    }

    fn probe_holder(&mut self) {
        self.log.probe_holder();
    }

    fn is_watched(&mut self) -> bool {
        self.log.is_watched()
    }

    fn tail(&mut self) -> Ticket {
        self.log.tail()
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        self.log.compare(position, chain)
    }

    fn trim(&mut self, through: Position) {
        self.log.trim(through);
    }

    fn first(&mut self) -> Ticket {
        self.log.first()
    }
}

#[test]
fn a_transfer_that_the_log_refuses_leaves_nothing_to_be_read() {
    let data = DataSet::new();
    let disk = SimDisk::new(4);
    let (mut life, _) = begin(&disk, 4);
    let is_shut = Rc::new(Cell::new(false));
    let of_log = Rc::clone(&is_shut);
    life.server.core.shard.wrap_log(|log| Box::new(GatedLog { log, is_shut: of_log }));
    let mut master = Master::new(life.listen("master"), &data, 500);
    while digest(&life) == Digest::default() || !life.server.link.is_loading() {
        master.turn();
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
    is_shut.set(true);
    while life.server.link.is_loading() {
        master.turn();
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
    let error = life.server.link.error().unwrap_or_default();
    assert!(error.contains("takes no writes"), "{error}");
    assert!(digest(&life) != Digest::default(), "there is a part to be read");
    assert_eq!(ask(&mut life, "GET new:1"), PARTIAL);
    let refused = ask(&mut life, "REPLICAOF NO ONE");
    assert!(refused.starts_with("-MISCONF"), "the log must know: {refused}");
    drop(master);
    crash(life, &disk);
    let life = start(&disk, 5);
    assert!(is_partial(&life));
    leave(life, &disk, &data, 1);
}

#[test]
fn a_pause_in_the_stream_leaves_the_place_in_it_known() {
    let data = DataSet::new();
    let disk = SimDisk::new(6);
    let (mut life, _) = begin(&disk, 6);
    let mut master = Master::new(life.listen("master"), &data, 4096);
    master.stream = b"CLIENT PAUSE 5000 WRITE\r\nINCR count\r\n".to_vec();
    let all = master.stream.len() as u64;
    take_over(&mut life, &mut master, &disk);
    let before = life.server.core.turn.now.0;
    while ask(&mut life, "EXISTS count") == ":0\r\n" {
        master.turn();
    }
    // Some of it is over when the transfer is acknowledged.
    assert!(life.server.core.turn.now.0 - before >= 2000, "it waits for the end of the pause");
    assert_eq!(ask(&mut life, "GET count"), "$1\r\n1\r\n");
    assert_eq!(life.server.link.offset(), Some(all), "what was executed is not asked for again");
}
