//! Workers take snapshots off the box beside a shard that everything happens to, while the archive
//! fails, and in the end archive and log alone are enough.

use super::{is_caught, is_caught_within};
use sim::campaign;
use sim::shard_room::{Broken, Outcome, Plan, run};

/// Seeds of the campaign: few, since each of them ends with several starts. All that is asked for
/// happens in them.
const SEEDS: u64 = 12;

/// A short run: the end, when all start again, takes as long as the faults.
fn plan(broken: Broken) -> Plan {
    Plan {
        nodes: 3,
        clients: 6,
        nanos: 5_000_000_000,
        log_growth_bytes: 8 << 10,
        has_workers: true,
        broken,
        ..Plan::default()
    }
}

#[test]
fn archive_and_log_alone_hold_every_acknowledged_write_whatever_fails() {
    let seeds = campaign::seeds_or(SEEDS, |name| std::env::var(name).ok());
    let outcomes = campaign::survive(seeds, |seed| run(seed, plan(Broken::Nothing)));
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    let happened = [
        ("snapshots of workers", sum(|outcome| outcome.seen.off_box.snapshots)),
        ("attempts that failed", sum(|outcome| outcome.seen.off_box.failures)),
        ("claims that were taken", sum(|outcome| outcome.seen.off_box.busy)),
        ("workers that died", sum(|outcome| outcome.seen.off_box.deaths)),
        ("faults of the archive", sum(|outcome| outcome.seen.off_box.faults)),
        ("losses of its power", sum(|outcome| outcome.seen.off_box.cuts)),
        ("starts that failed for that", sum(|outcome| outcome.seen.off_box.failed_starts)),
        ("logs that were trimmed", sum(|outcome| outcome.seen.off_box.trimmed_logs)),
        ("logs that were encrypted", sum(|outcome| outcome.seen.off_box.encrypted)),
        ("rotations of keys", sum(|outcome| outcome.seen.off_box.rotated)),
        ("moments gone back to", sum(|outcome| outcome.seen.off_box.moments)),
        ("snapshots loaded", sum(|outcome| outcome.seen.snapshots_loaded)),
        ("writes", sum(|outcome| outcome.served.writes)),
    ];
    campaign::sum_up("", outcomes.len(), &happened);
}

#[test]
fn the_same_seed_is_the_same_run_with_workers() {
    let plan = Plan { nanos: 1_000_000_000, ..plan(Broken::Nothing) };
    campaign::repeats_itself(|seed| run(seed, plan), |outcome| outcome.trace);
}

#[test]
fn a_log_trimmed_through_what_no_snapshot_holds_is_caught() {
    let why = is_caught(plan(Broken::TrimsUnheld));
    assert!(why.contains("is gone"), "{why}");
}

#[test]
fn a_worker_that_publishes_something_else_than_it_says_is_caught() {
    let broken = Broken::Worker(worker::Broken::WritesOtherDataUnproven);
    let why = is_caught_within(20, plan(broken));
    assert!(why.contains("holds no prefix") || why.contains("moment"), "{why}");
}
