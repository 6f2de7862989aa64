//! One machine, through power cuts, failed syncs, full disks and bad networks.

mod gathering;
mod migrate;
mod tier;

use sim::campaign;
use sim::room::{Broken, Outcome, Plan, run};

/// Runs a seed.
fn survive(seed: u64) -> Result<Outcome, String> {
    let outcome = run(seed, Plan::default())?;
    let commands_are_many = outcome.commands >= 2000;
    let few_fail = (outcome.seen.errors - outcome.seen.refused) * 4 < outcome.commands;
    // A cut in place of every sync point.
    let cuts_are_all = outcome.seen.cuts == outcome.syncs && outcome.syncs > 75;
    if commands_are_many && few_fail && cuts_are_all {
        return Ok(outcome);
    }
    Err(format!("the run proves too little: {outcome:?}"))
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_revealed_early() {
    let seeds = campaign::seeds(|name| std::env::var(name).ok());
    sum_up(&campaign::survive(seeds, survive));
}

/// Says what was done, and that nothing was left out.
fn sum_up(outcomes: &[Outcome]) {
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    let happened = [
        ("snapshots", sum(|outcome| outcome.published)),
        ("cuts that left a snapshot in parts", sum(|outcome| outcome.seen.in_parts)),
        ("damaged snapshots passed over", sum(|outcome| outcome.seen.passed_over)),
        ("messages", sum(|outcome| outcome.seen.messages)),
        ("messages that had to arrive", sum(|outcome| outcome.seen.arrived)),
        ("answers of LOADING", sum(|outcome| outcome.seen.loading)),
        ("records beyond 32 KiB", sum(|outcome| outcome.seen.appended.large)),
        ("split units", sum(|outcome| outcome.seen.appended.split)),
        ("renewals amid such a unit", sum(|outcome| outcome.seen.appended.ahead)),
        ("inline commits", sum(|outcome| outcome.inline)),
        ("requests that ran amid sending", sum(|outcome| outcome.amid_sending)),
        ("times of eviction", sum(|outcome| outcome.phases[0])),
        ("times FLUSHALL", sum(|outcome| outcome.phases[1])),
        ("values spilled", sum(|outcome| outcome.spilling.spilled)),
        ("values fetched", sum(|outcome| outcome.spilling.fetched)),
    ];
    let commands = outcomes.iter().map(|outcome| outcome.commands);
    let (fewest, most) = (commands.clone().min(), commands.max());
    let syncs = sum(|outcome| outcome.syncs);
    let head = format!(
        ": {} to {} commands each; {syncs} sync points, {} power cuts in their place",
        fewest.unwrap_or(0),
        most.unwrap_or(0),
        sum(|outcome| outcome.seen.cuts),
    );
    campaign::sum_up(&head, outcomes.len(), &happened);
}

#[test]
fn the_same_seed_is_the_same_run() {
    campaign::repeats_itself(survive, |outcome| outcome.trace);
}

/// A build broken on purpose, which some of a few seeds must notice, and say so in these words: by
/// what a seed notices it first is chance.
fn is_caught(broken: Broken, words: &str) {
    let plan = Plan { commands: 1200, lives: 3, broken, ..Plan::default() };
    let complaints: Vec<String> = (1..=5).filter_map(|seed| run(seed, plan).err()).collect();
    let is_noticed = complaints.iter().any(|why| why.contains(words));
    assert!(is_noticed, "{broken:?} goes unnoticed: {complaints:?}");
}

#[test]
fn a_server_that_answers_before_the_log_is_durable_is_caught() {
    is_caught(Broken::HoldsNothing, "before");
}

#[test]
fn a_log_that_acknowledges_before_it_syncs_is_caught() {
    is_caught(Broken::AcknowledgesBeforeSync, "");
}

#[test]
fn a_stubbed_sync_is_caught() {
    is_caught(Broken::StubsSync, "");
}

#[test]
fn a_counter_used_twice_is_caught() {
    is_caught(Broken::ReusesCounters, "after");
}

#[test]
fn a_snapshot_that_knows_more_than_the_log_is_caught() {
    is_caught(Broken::PublishesEarly, "");
}

#[test]
fn subscriptions_that_are_lost_when_the_server_has_loaded_are_caught() {
    is_caught(Broken::ForgetsSubscribers, "a subscriber never heard");
}

#[test]
fn a_log_trimmed_through_the_newest_snapshot_is_caught() {
    is_caught(Broken::TrimsThroughNewest, "the data between them is gone");
}
