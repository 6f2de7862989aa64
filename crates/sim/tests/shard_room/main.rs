//! A primary, its replicas and a challenger on one log, through everything that can go wrong.
//!
//! A failure is replayed by
//! `KILN_SIM_FIRST=<seed> KILN_SIM_SEEDS=1 cargo test -p sim --test shard_room`.

mod addresses;
mod amid;
mod bid;
mod caching;
mod clocks;
mod durations;
mod functions;
mod hidden;
mod history;
mod libraries;
mod listeners;
mod long;
mod memory;
mod migrate;
mod off_box;
mod pipelines;
mod primary;
mod receiving;
mod scripts;
mod silence;
mod three;
mod trouble;
mod upgrade;

use shard::role::state::Broken as Rule;
use sim::campaign;
use sim::clock::Awakening;
use sim::shard_room::{Broken, Outcome, Plan, run};
use txlog::remote::Broken as LogRule;

/// Seeds of the campaign: many, because one in twenty leaves a void record behind, and some must.
const SEEDS: u64 = 2 * campaign::SEEDS;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_stale_is_read_whatever_fails() {
    let seeds = campaign::seeds_or(SEEDS, |name| std::env::var(name).ok());
    sum_up(&campaign::survive(seeds, |seed| run(seed, Plan::default())));
}

/// Says what was done, and that nothing was left out.
fn sum_up(outcomes: &[Outcome]) {
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    let happened = [
        ("writes", sum(|outcome| outcome.served.writes)),
        ("reads", sum(|outcome| outcome.served.reads)),
        ("reads from replicas", sum(|outcome| outcome.served.replica_reads)),
        ("reads of the newest", sum(|outcome| outcome.served.newest_reads)),
        ("keys seen to be gone", sum(|outcome| outcome.served.expired)),
        ("requests without an answer", sum(|outcome| outcome.served.unanswered)),
        ("MOVED", sum(|outcome| outcome.served.moved)),
        ("LOADING", sum(|outcome| outcome.served.loading)),
        ("other refusals", sum(|outcome| outcome.served.refused)),
        ("records that count", sum(|outcome| outcome.stored.counted)),
        ("void records", sum(|outcome| outcome.stored.void)),
        ("void records with data", sum(|outcome| outcome.stored.void_data)),
        ("split units", sum(|outcome| outcome.stored.split)),
        ("leads", sum(|outcome| outcome.stored.leads)),
        ("yields", sum(|outcome| outcome.stored.yields)),
        ("lives", sum(|outcome| outcome.seen.lives)),
        ("demotions", sum(|outcome| outcome.seen.demotions)),
        ("lapses", sum(|outcome| outcome.seen.lapses)),
        ("appends in doubt", sum(|outcome| outcome.seen.in_doubt)),
        ("conflicts", sum(|outcome| outcome.seen.conflicts)),
        ("shifts", sum(|outcome| outcome.seen.shifts)),
        ("trimmed readers", sum(|outcome| outcome.seen.trimmed_readers)),
        ("snapshots loaded", sum(|outcome| outcome.seen.snapshots_loaded)),
        ("pauses within a turn", sum(|outcome| outcome.seen.lingered)),
        ("commands longer than a lease", sum(|outcome| outcome.seen.long_commands)),
        ("records amid a command", sum(|outcome| outcome.seen.renewed_amid)),
        ("pauses", sum(|outcome| outcome.seen.pauses)),
        ("crashes", sum(|outcome| outcome.seen.crashes)),
        ("clean stops", sum(|outcome| outcome.seen.stops)),
        ("partitions", sum(|outcome| outcome.seen.cuts)),
        ("stalls", sum(|outcome| outcome.seen.stalls)),
        ("jumps of a wall clock", sum(|outcome| outcome.seen.jumps)),
        ("frozen machines", sum(|outcome| outcome.seen.freezes)),
        ("values spilled", sum(|outcome| outcome.spilling.spilled)),
        ("values fetched", sum(|outcome| outcome.spilling.fetched)),
        ("lives that ended because a value was lost", sum(|outcome| outcome.seen.lost_values)),
        ("values read while all waited", sum(|outcome| outcome.spilling.blocking)),
    ];
    campaign::sum_up("", outcomes.len(), &happened);
}

/// Nothing goes wrong but that commands take long.
fn calm() -> Plan {
    Plan { nodes: 3, is_calm: true, ..Plan::default() }
}

#[test]
fn no_command_deposes_its_own_primary() {
    let seeds = campaign::seeds(|name| std::env::var(name).ok());
    let outcomes = campaign::survive(seeds, |seed| run(seed, calm()));
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    let happened = [
        ("commands longer than a lease", sum(|outcome| outcome.seen.long_commands)),
        ("records amid a command", sum(|outcome| outcome.seen.renewed_amid)),
        ("writes", sum(|outcome| outcome.served.writes)),
    ];
    campaign::sum_up("", outcomes.len(), &happened);
}

#[test]
fn commands_that_renew_nothing_are_caught() {
    let plan = Plan { broken: Broken::RenewsNothingAmid, ..calm() };
    let why = is_caught(plan);
    assert!(why.contains("a healthy primary was deposed"), "{why}");
}

/// As [`calm`], where what all take for one directory is one for each.
fn apart(broken: Broken) -> Plan {
    Plan { are_stores_apart: true, broken, ..calm() }
}

#[test]
fn what_a_replica_does_not_see_in_snapshots_stays_in_the_log() {
    let outcomes = campaign::survive(1..9, |seed| run(seed, apart(Broken::Nothing)));
    let loaded = outcomes.iter().map(|outcome| outcome.seen.snapshots_loaded).sum::<u64>();
    assert!(loaded > 0, "nobody has a snapshot");
}

#[test]
fn a_log_trimmed_through_what_a_replica_does_not_see_is_caught() {
    let why = is_caught(apart(Broken::TrimsUnseen));
    assert!(why.contains("does not start") && why.contains("is gone"), "{why}");
}

#[test]
fn a_new_primary_that_trims_before_replicas_can_report_is_caught() {
    let why = is_caught(apart(Broken::TrimsBeforeReports));
    assert!(why.contains("does not start") && why.contains("is gone"), "{why}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    campaign::repeats_itself(|seed| run(seed, Plan::default()), |outcome| outcome.trace);
}

/// Seeds of which one must notice a build that is broken on purpose.
const BROKEN_SEEDS: u64 = 100;

/// As many where what is broken matters in few runs: void records with data are rare.
const RARE_SEEDS: u64 = 400;

fn with(broken: Broken) -> Plan {
    Plan { broken, ..Plan::default() }
}

/// How a build that is broken on purpose is noticed.
fn is_caught(plan: Plan) -> String {
    is_caught_within(BROKEN_SEEDS, plan)
}

fn is_caught_within(seeds: u64, plan: Plan) -> String {
    let caught = (1..=seeds).find_map(|seed| Some((seed, run(seed, plan).err()?)));
    let (seed, why) = caught.unwrap_or_else(|| panic!("{:?} goes unnoticed", plan.broken));
    println!("{:?} is caught in seed {seed}: {why}", plan.broken);
    why
}

#[test]
fn a_primary_that_serves_without_a_lease_is_caught() {
    let why = is_caught(with(Broken::Role(Rule::ServesWithoutLease)));
    assert!(why.contains("answers as the primary of epoch"), "{why}");
}

#[test]
fn a_primary_that_trusts_a_clock_that_stood_still_is_caught() {
    let why = is_caught(with(Broken::Role(Rule::TrustsMonotonic)));
    assert!(why.contains("answers as the primary of epoch"), "{why}");
}

/// Machines freeze, wake with a wall clock that is right, and have it set back soon.
fn set_back(broken: Broken) -> Plan {
    Plan { awakening: Some(Awakening::WallIsSetBack), broken, ..Plan::default() }
}

#[test]
fn a_freeze_that_was_shown_stays_known_when_the_wall_clock_is_set_back() {
    let outcomes = campaign::survive(1..33, |seed| run(seed, set_back(Broken::Nothing)));
    let frozen = outcomes.iter().map(|outcome| outcome.seen.freezes).sum::<u64>();
    assert!(frozen > 0, "no machine was frozen");
}

#[test]
fn a_primary_that_forgets_a_freeze_when_its_wall_clock_is_set_back_is_caught() {
    let why = is_caught(set_back(Broken::ForgetsFreezes));
    assert!(why.contains("answers as the primary of epoch"), "{why}");
}

/// The assumption that no code can keep: if nothing tells that a machine was frozen, it serves.
#[test]
fn a_freeze_that_nothing_tells_of_is_caught() {
    let plan = Plan { awakening: Some(Awakening::NothingTells), ..Plan::default() };
    let why = (1..=BROKEN_SEEDS).find_map(|seed| run(seed, plan).err());
    let why = why.expect("it is noticed");
    assert!(why.contains("answers as the primary of epoch"), "{why}");
}

#[test]
fn a_challenger_that_does_not_wait_is_caught() {
    let why = is_caught(with(Broken::Role(Rule::WaitsForNobody)));
    assert!(why.contains("answers as the primary of epoch"), "{why}");
}

#[test]
fn a_lease_counted_from_when_a_record_is_durable_is_caught() {
    let why = is_caught(with(Broken::Role(Rule::CountsFromDurable)));
    assert!(why.contains("answers as the primary of epoch"), "{why}");
}

#[test]
fn replies_before_their_record_is_durable_are_caught() {
    let why = is_caught(with(Broken::HoldsNothing));
    assert!(why.contains("before it is durable"), "{why}");
}

#[test]
fn keys_hidden_by_a_clock_that_no_record_has_are_caught() {
    let why = is_caught(with(Broken::HidesByItsOwnClock));
    assert!(why.contains("was gone"), "{why}");
}

#[test]
fn readers_that_count_void_records_are_caught() {
    let why = is_caught_within(RARE_SEEDS, with(Broken::CountsVoidRecords));
    // Its state shows it, or a value in it that no record holds which counts, or one that was
    // replaced or gone and comes back; or it stops, because a void part of a split unit is none by
    // itself.
    let signs = [
        "holds no prefix",
        "before it is durable",
        "before it can",
        "was read again",
        "this replica stops",
    ];
    assert!(signs.iter().any(|it| why.contains(it)), "{why}");
}

#[test]
fn a_counter_used_twice_is_caught() {
    let why = is_caught(with(Broken::ReusesCounters));
    assert!(why.contains("a counter has two meanings"), "{why}");
}

#[test]
fn a_log_that_counts_what_is_in_doubt_is_caught() {
    is_caught(with(Broken::Log(LogRule::AssumesTheBest)));
}

#[test]
fn a_log_that_goes_on_behind_a_foreign_lead_is_caught() {
    is_caught(with(Broken::Log(LogRule::IgnoresLeads)));
}
