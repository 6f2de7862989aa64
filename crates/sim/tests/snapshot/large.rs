//! A unit many times larger than a record: read whole, or not at all.

use super::world::{Ledger, Life};
use sim::disk::{Faults, SimDisk};

/// Bytes of each of the unit's values. A record of these tests has 4 KiB, so the unit below is cut
/// into a hundred and fifty parts.
const VALUE_BYTES: usize = 200 << 10;

/// Turns that the unit is given to become durable, unless the power goes off first.
const TURNS_MAX: u32 = 20_000;

/// Values, a copy and a union in one unit.
fn transaction() -> Vec<u8> {
    let mut wire = b"MULTI\r\n".to_vec();
    for key in ["x", "y", "z"] {
        wire.extend_from_slice(format!("*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n").as_bytes());
        wire.extend_from_slice(format!("${VALUE_BYTES}\r\n").as_bytes());
        wire.resize(wire.len() + VALUE_BYTES, key.as_bytes()[0]);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"COPY z w\r\nSUNIONSTORE b a\r\nEXEC\r\n");
    wire
}

/// Runs the transaction; whether its reply came. The next start holds what it finds against the
/// ledger: the state behind the last whole unit.
fn run(disk: &SimDisk, ledger: &mut Ledger) -> bool {
    let Ok(mut life) = Life::start(disk, 1, ledger) else { return false };
    ask(&mut life, ledger, b"SADD a 1 2 3\r\n", b":3\r\n")
        && ask(&mut life, ledger, &transaction(), b":1\r\n:3\r\n")
}

/// Whether the requests are answered: false if the power goes off before.
fn ask(life: &mut Life, ledger: &mut Ledger, requests: &[u8], last_reply: &[u8]) -> bool {
    life.replies.clear();
    life.client.send(requests);
    for _ in 0..TURNS_MAX {
        if !life.turn(ledger) {
            return false;
        }
        if life.replies.ends_with(last_reply) {
            return true;
        }
    }
    panic!("no answer: {:?}", String::from_utf8_lossy(&life.replies));
}

fn keys(disk: &SimDisk, ledger: &mut Ledger) -> usize {
    let life = Life::start(disk, 2, ledger).expect("what was appended can be read");
    life.server.core.shard.engine.keyspace.len()
}

#[test]
fn a_unit_of_many_records_is_read_after_a_crash() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    assert!(run(&disk, &mut ledger));
    disk.cut_power();
    disk.restart();
    assert_eq!(keys(&disk, &mut ledger), 6);
}

#[test]
fn a_unit_that_a_crash_cut_in_two_is_not_there_at_all() {
    let disk = SimDisk::new(1);
    assert!(run(&disk, &mut Ledger::default()));
    let syncs = disk.syncs();
    let mut halves = 0;
    for cut in (1..syncs).step_by(syncs as usize / 12 + 1) {
        let disk = SimDisk::new(1);
        let mut ledger = Ledger::default();
        disk.set_faults(Faults { cut_at_sync: Some(cut), ..Faults::default() });
        let answered = run(&disk, &mut ledger);
        disk.cut_power();
        disk.restart();
        disk.set_faults(Faults::default());
        let found = keys(&disk, &mut ledger);
        assert!(found == 6 || !answered && found <= 1, "cut at {cut}: {found} keys");
        halves += u32::from(found == 1);
    }
    assert!(halves > 2, "the power went off within the unit {halves} times only");
}
