//! Power cuts during snapshots, publication and trimming.

use super::world::{Ledger, Life, STORE, check_snapshots, first_record, store};
use archive::Candidate;
use sim::disk::{Faults, SimDisk};
use sim::random::Random;
use std::path::Path;

/// Requests of a life, if the power stays on.
const ROUNDS: u32 = 60;

/// A few requests of any kind, as a client would pipeline them.
pub fn requests(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.within(1..8) {
        let key = format!("key:{}", random.within(0..120));
        let other = format!("key:{}", random.within(0..120));
        let value = "v".repeat(random.within(1..200) as usize);
        let line = match random.within(0..100) {
            0..8 => format!("DEL {key}\r\n"),
            8..16 => format!("RENAME {key} {other}\r\n"),
            16..22 => format!("COPY {key} {other} REPLACE\r\n"),
            22..26 => format!("PEXPIRE {key} 100000000\r\n"),
            26 => "FLUSHDB\r\n".to_owned(),
            27 => "SWAPDB 0 3\r\n".to_owned(),
            28..36 => "BGSAVE SCHEDULE\r\n".to_owned(),
            36..48 => format!("HSET hash:{key} {other} {value}\r\n"),
            48..60 => format!("SADD set:{key} {other} {value}\r\n"),
            60..70 => format!("RPUSH list:{key} {value}\r\n"),
            _ => format!("SET {key} {value}\r\n"),
        };
        bytes.extend_from_slice(line.as_bytes());
    }
    bytes
}

/// A life until its requests are over or the power goes off; whether it went to its end.
fn live(life: &mut Life, random: &mut Random, ledger: &mut Ledger) -> bool {
    for _ in 0..ROUNDS {
        life.client.send(&requests(random));
        for _ in 0..random.within(1..60) {
            if !life.turn(ledger) {
                return false;
            }
        }
    }
    let wrong = life.replies.windows(5).any(|bytes| bytes == b"-ERR " || bytes == b"-MISC");
    let replies = String::from_utf8_lossy(&life.replies);
    assert!(!wrong || replies.contains("-ERR no such key"), "{replies}");
    true
}

/// Several lives on one disk, each but the last with a power cut at one of its syncs.
fn campaign(seed: u64) -> Ledger {
    let disk = SimDisk::new(seed);
    let mut random = Random::stream(seed, "campaign");
    let mut ledger = Ledger::default();
    for number in 0..8 {
        let seed = seed * 100 + number;
        let is_last = number == 7;
        let cut = disk.syncs() + random.within(1..150);
        let cut_at_sync = (!is_last).then_some(cut);
        disk.set_faults(Faults { cut_at_sync, ..Faults::default() });
        match Life::start(&disk, seed, &mut ledger) {
            Ok(mut life) => {
                let lived = live(&mut life, &mut random, &mut ledger);
                assert!(lived || disk.is_off(), "{:?}", life.server.core.stopping);
            }
            Err(why) => assert!(disk.is_off(), "seed {seed}: it does not start: {why}"),
        }
        disk.cut_power();
        disk.restart();
        check_snapshots(&disk, &mut ledger).expect("every published snapshot is whole");
        ledger.trimmed = ledger.trimmed.max(first_record(&disk));
    }
    ledger
}

#[test]
fn a_power_cut_at_any_sync_leaves_the_state_of_the_log() {
    let (mut snapshots, mut trims, mut most_parts) = (0, 0, 0);
    for seed in 1..=40 {
        let ledger = campaign(seed);
        snapshots += ledger.snapshots_seen;
        most_parts = most_parts.max(ledger.most_parts);
        trims += u32::from(ledger.trimmed.0 > 1);
    }
    assert!(snapshots > 100, "only {snapshots} snapshots were published");
    assert!(trims > 10, "only {trims} logs were trimmed");
    assert!(most_parts > 3, "a snapshot has {most_parts} parts at most");
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
    for seed in 1..=10 {
        let disk = SimDisk::new(seed);
        let mut random = Random::stream(seed, "damage");
        let mut ledger = Ledger::default();
        let mut life = Life::start(&disk, seed, &mut ledger).expect("the disk is whole");
        while store(&disk).expect("there is a store").list().expect("it can be listed").len() < 2 {
            assert!(live(&mut life, &mut random, &mut ledger));
        }
        drop(life);
        disk.kill_process();
        let candidates = store(&disk).expect("there is a store").list().expect("it can be listed");
        let Candidate::Whole(newest) = &candidates[0] else { panic!("it was just published") };
        let part = random.choose(&newest.manifest.parts);
        let (file, length) = match seed % 2 {
            0 => ("manifest.json", newest.manifest.encode().len() as u64),
            _ => (part.name.as_str(), part.bytes),
        };
        let path = Path::new(STORE).join(&newest.name).join(file);
        disk.damage(&path, random.within(0..length) as usize, 0x04);
        // The start itself compares the state with the ledger.
        Life::start(&disk, seed + 1000, &mut ledger).expect("the disk is whole");
    }
}

/// Sends requests and turns until `until` holds.
fn settle(life: &mut Life, ledger: &mut Ledger, requests: &str, until: impl Fn(&Life) -> bool) {
    life.client.send(requests.as_bytes());
    for _ in 0..100_000 {
        if until(life) {
            return;
        }
        assert!(life.turn(ledger), "{:?}", life.server.core.stopping);
    }
    panic!("it does not settle: {}", String::from_utf8_lossy(&life.replies));
}

fn saves(life: &Life) -> u64 {
    life.server.core.saving().published
}

#[test]
fn a_snapshot_that_failed_gives_its_space_back() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, 1, &mut ledger).expect("the disk is whole");
    let sets = (0..200).map(|key| format!("SET key:{key} {}\r\n", "v".repeat(100)));
    let sets: String = sets.collect();
    settle(&mut life, &mut ledger, &sets, |life| life.replies.len() == 200 * "+OK\r\n".len());
    // The log has space prepared; the snapshot does not.
    let capacity_bytes = Some(disk.used_bytes() + 2_000);
    disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    settle(&mut life, &mut ledger, "BGSAVE\r\n", |life| !life.server.core.saving().is_last_ok);
    let left = base::Disk::list(&disk, Path::new(STORE)).expect("it can be listed");
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_damaged_snapshot_does_not_stay_in_the_place_of_a_whole_one() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, 1, &mut ledger).expect("the disk is whole");
    for count in 1..=2 {
        let requests = format!("SET key {}\r\nBGSAVE\r\n", "v".repeat(3000));
        settle(&mut life, &mut ledger, &requests, |life| saves(life) == count);
    }
    let damage_newest = || {
        let store = store(&disk).expect("there is a store");
        let candidates = store.list().expect("it can be listed");
        let path = Path::new(STORE).join(candidates[0].name()).join("part-0000.rdb");
        // Its length stays, so its manifest does not tell.
        disk.damage(&path, 30, 0x04);
    };
    drop(life);
    disk.kill_process();
    damage_newest();
    let mut life = Life::start(&disk, 2, &mut ledger).expect("an older snapshot is whole");
    settle(&mut life, &mut ledger, "SET key v\r\nBGSAVE\r\n", |life| saves(life) == 1);
    drop(life);
    disk.kill_process();
    damage_newest();
    // The one from before the first damage is still there, and the log behind it.
    Life::start(&disk, 3, &mut ledger).expect("an older snapshot is whole");
}

#[test]
fn a_transaction_for_which_memory_runs_short_on_the_way_is_executed_whole() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, 1, &mut ledger).expect("the disk is whole");
    let requests = "MULTI\r\nCONFIG SET maxmemory 1\r\nSET key v\r\nEXEC\r\nGET key\r\n";
    settle(&mut life, &mut ledger, requests, |life| life.replies.ends_with(b"$1\r\nv\r\n"));
    let replies = String::from_utf8_lossy(&life.replies).into_owned();
    assert!(replies.contains("*2\r\n+OK\r\n+OK\r\n"), "{replies}");
}

#[test]
fn a_transaction_whose_own_client_had_a_watched_key_evicted_is_aborted() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, 1, &mut ledger).expect("the disk is whole");
    let requests = "CONFIG SET maxmemory-policy allkeys-lru\r\nSET key v\r\nWATCH key\r\n\
                    CONFIG SET maxmemory 1\r\nMULTI\r\nPING\r\nEXEC\r\nEXISTS key\r\n";
    settle(&mut life, &mut ledger, requests, |life| life.replies.ends_with(b":0\r\n"));
    let replies = String::from_utf8_lossy(&life.replies).into_owned();
    assert!(replies.ends_with("+QUEUED\r\n*-1\r\n:0\r\n"), "{replies}");
}

#[test]
fn a_wait_that_a_transaction_ends_is_answered_once_that_is_durable() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    // Longer than bytes are under way, so that what leaves too early arrives too early.
    let life = Life::start_with_commits_of(1_000_000, &disk, 1, &mut ledger);
    let mut life = life.expect("the disk is whole");
    let waiter = life.connect();
    waiter.send(b"CLIENT ID\r\nBLPOP key 0\r\n");
    let mut heard = Vec::new();
    while heard.is_empty() {
        assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
        heard = waiter.received();
    }
    let id = String::from_utf8_lossy(&heard[1..]).trim().to_owned();
    let before = life.server.core.shard.appended().sequence;
    let requests = format!("MULTI\r\nSET x 1\r\nCLIENT UNBLOCK {id}\r\nEXEC\r\n");
    life.client.send(requests.as_bytes());
    let mut heard = Vec::new();
    while heard.is_empty() {
        assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
        heard = waiter.received();
    }
    assert_eq!(heard, b"*-1\r\n");
    let durable = life.server.core.shard.tracker.durable();
    assert!(durable > before, "the answer came at record {durable}, behind {before}");
}
