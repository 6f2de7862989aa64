//! A bit that turns over in any file, at any place: what is served afterwards is what was there, or
//! nothing is, and the file is named.

use super::archived;
use super::moments::clocks;
use super::world::{LOG, Life, STORE, store};
use base::{Disk, Sequence};
use engine::digest::Digest;
use sim::disk::SimDisk;
use sim::random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use txlog::reader::Goal;

/// Places of a file that are tried. Short files are tried at every byte.
const PLACES: u64 = 16;

/// Few, as each flip is a start and a restore. Six of them with 24 places each have passed.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=1;

/// All files below a folder, and their lengths.
fn files(disk: &SimDisk, folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in disk.list(folder).expect("it is a directory") {
        let path = folder.join(&entry.name);
        match entry.is_directory {
            true => found.extend(files(disk, &path)),
            false => found.push((path, entry.length)),
        }
    }
    found
}

/// Places in each region of a file: its beginning, its end, and between them.
fn places(length: u64, random: &mut Random) -> Vec<u64> {
    if length <= PLACES {
        return (0..length).collect();
    }
    let between = (0..PLACES - 8).map(|_| random.within(0..length));
    (0..4).chain(length - 4..length).chain(between).collect()
}

#[test]
fn a_flipped_bit_never_becomes_other_data() {
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in SEEDS {
        let (disk, ledger) = archived::lived(seed);
        let states: BTreeMap<Sequence, Digest> = ledger.states().collect();
        let last = *states.last_key_value().expect("it was written to").1;
        let tail = clocks(&disk).last().expect("there are records").0;
        let mut random = Random::stream(seed, "flips");
        let stored = files(&disk, Path::new(STORE));
        assert!(stored.len() > 6, "{stored:?}");
        for (path, length) in stored.into_iter().chain(files(&disk, Path::new(LOG))) {
            let is_log = path.starts_with(LOG);
            for at in places(length, &mut random) {
                let flipped = disk.copy();
                flipped.damage(&path, at as usize, 1 << random.within(0..8));
                let what = format!("seed {seed}, {} at {at}", path.display());
                // Some moment, by log and archive.
                let goal = Sequence(random.within(1..tail.0 + 1));
                if let Ok(moment) = archived::load(&flipped, Goal::Through(goal)) {
                    let held = Digest::of_keyspace(&moment.engine.keyspace);
                    if let Some(expected) = states.get(&moment.position.sequence) {
                        assert_eq!(held, *expected, "{what}: record {goal}");
                    }
                }
                let started = store(&flipped).and_then(|it| Life::start_over(it, &flipped, seed));
                let outcome = match started {
                    Ok(life) => {
                        let held = Digest::of_keyspace(&life.server.core.shard.engine.keyspace);
                        // The end of a log that nobody marked as durable may have been torn.
                        let is_known = is_log && states.values().any(|state| *state == held);
                        assert!(held == last || is_known, "{what}: other data is served");
                        if held == last { "the same" } else { "a torn end" }
                    }
                    Err(why) => {
                        assert!(!why.is_empty(), "{what}");
                        // The log is all there is of itself. Snapshots there are two of.
                        assert!(is_log, "{what}: does not start: {why}");
                        "refused"
                    }
                };
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
    }
    assert!(outcomes["the same"] > 100 && outcomes["refused"] > 3, "{outcomes:?}");
}
