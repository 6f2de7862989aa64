//! Every input that is worth keeping, through the fuzzer's targets, without the fuzzer.
//!
//! `fuzz/seeds` holds a folder per target: valid inputs, and what once was, or nearly would be,
//! read wrongly. A finding of the fuzzer joins them when it is mended, so that it stays mended.

use sim::hostile::{TARGETS, Target};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use structures::twin::{play_collections, play_listpack, play_table};

/// Bytes of one seed. Small ones are what a fuzzer mutates well, and what a reader can read.
const SEED_BYTES_MAX: u64 = 70_000;

/// Bytes of all seeds together.
const SEEDS_BYTES_MAX: u64 = 500_000;

/// The targets below `sim`.
const STRUCTURES: [Target; 3] =
    [("collections", play_collections), ("listpack", play_listpack), ("table", play_table)];

/// Targets of crates that stand beside `sim`, which replay their own seeds.
const ELSEWHERE: [&str; 1] = ["tls"];

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("names are UTF-8");
    entries.map(|entry| name(entry.expect("a folder can be listed"))).collect()
}

#[expect(clippy::disallowed_methods, reason = "seeds are files of the repository")]
fn replay(target: &str) {
    let all = TARGETS.iter().chain(&STRUCTURES);
    let (_, body) = all.clone().find(|(name, _)| *name == target).expect("the target exists");
    let folder = fuzz_folder().join("seeds").join(target);
    let seeds = names(&folder);
    assert!(seeds.len() >= 5, "{target} has too few seeds");
    for seed in seeds {
        println!("{target}/{seed}");
        body(&fs::read(folder.join(seed)).expect("a seed can be read"));
    }
}

#[test]
fn requests_of_the_seeds_are_survived() {
    replay("resp");
}

#[test]
fn records_of_the_seeds_are_survived() {
    replay("record");
}

#[test]
fn logs_of_the_seeds_are_survived() {
    replay("log_segment");
}

#[test]
fn effects_of_the_seeds_are_survived() {
    replay("effects");
}

#[test]
fn snapshots_of_the_seeds_are_survived() {
    replay("snapshot");
}

#[test]
fn configurations_of_the_seeds_are_survived() {
    replay("config");
}

#[test]
fn scripts_of_the_seeds_are_survived() {
    replay("lua");
}

#[test]
fn streams_of_the_seeds_are_survived() {
    replay("streams");
}

#[test]
fn files_of_other_servers_of_the_seeds_are_survived() {
    replay("intake");
}

#[test]
fn archives_of_the_seeds_are_survived() {
    replay("archive");
}

#[test]
fn structures_of_the_seeds_equal_their_twins() {
    STRUCTURES.iter().for_each(|(target, _)| replay(target));
}

/// A target that is not listed would never be run, and one without seeds not be replayed.
#[test]
fn every_target_is_built_has_seeds_and_is_replayed() {
    let here = TARGETS.iter().chain(&STRUCTURES).map(|(name, _)| *name);
    let listed: BTreeSet<String> = here.chain(ELSEWHERE).map(str::to_owned).collect();
    assert_eq!(names(&fuzz_folder().join("seeds")), listed);
    let sources = names(&fuzz_folder().join("fuzz_targets"));
    let stems = sources.iter().map(|name| name.trim_end_matches(".rs").to_owned());
    assert_eq!(stems.collect::<BTreeSet<_>>(), listed);
}

#[test]
fn seeds_are_small() {
    let mut total = 0;
    for target in names(&fuzz_folder().join("seeds")) {
        let folder = fuzz_folder().join("seeds").join(target);
        for seed in names(&folder) {
            let bytes = fs::metadata(folder.join(&seed)).expect("a seed has a length").len();
            assert!(bytes <= SEED_BYTES_MAX, "{seed} has {bytes} bytes");
            total += bytes;
        }
    }
    assert!(total <= SEEDS_BYTES_MAX, "the seeds have {total} bytes together");
}
