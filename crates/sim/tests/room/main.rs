//! One machine, through power cuts, failed syncs, full disks and bad networks.

use sim::room::{Broken, Outcome, Plan, run};

/// Seeds of a short campaign; `KILN_SIM_SEEDS` asks for more.
const SEEDS: u64 = 50;

fn survive(seed: u64) -> Outcome {
    let outcome = run(seed, Plan::default());
    let outcome = outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    assert!(outcome.replies >= 2000, "seed {seed}: {outcome:?}");
    assert!(outcome.errors * 2 < outcome.replies, "seed {seed}: {outcome:?}");
    assert!(outcome.cuts > 100, "seed {seed}: {outcome:?}");
    outcome
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_revealed_early() {
    let seeds = std::env::var("KILN_SIM_SEEDS").ok().and_then(|text| text.parse().ok());
    let mut cuts = 0;
    for seed in 1..=seeds.unwrap_or(SEEDS) {
        cuts += survive(seed).cuts;
    }
    println!("{cuts} power cuts");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 1003] {
        assert_eq!(survive(seed), survive(seed));
    }
    assert_ne!(survive(1).trace, survive(2).trace);
}

/// A build broken on purpose, which some of a few seeds must notice.
fn is_caught(broken: Broken) -> String {
    let plan = Plan { replies: 1200, lives: 3, broken };
    let caught = (1..=5).find_map(|seed| run(seed, plan).err());
    caught.unwrap_or_else(|| panic!("{broken:?} goes unnoticed"))
}

#[test]
fn a_server_that_answers_before_the_log_is_durable_is_caught() {
    let why = is_caught(Broken::HoldsNothing);
    assert!(why.contains("before"), "{why}");
}

#[test]
fn a_log_that_acknowledges_before_it_syncs_is_caught() {
    is_caught(Broken::AcknowledgesBeforeSync);
}

#[test]
fn a_stubbed_sync_is_caught() {
    is_caught(Broken::StubsSync);
}

#[test]
fn a_counter_used_twice_is_caught() {
    let why = is_caught(Broken::ReusesCounters);
    assert!(why.contains("after"), "{why}");
}
