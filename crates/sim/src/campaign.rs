//! Many seeds of one room: what a test runs, and what it says in the end.
//!
//! `KILN_SIM_SEEDS` asks for more seeds, `KILN_SIM_FIRST` for the first of them: a failure is
//! replayed by `KILN_SIM_FIRST=<seed> KILN_SIM_SEEDS=1`.

use std::fmt::Debug;
use std::io::Write;
use std::ops::Range;

/// Seeds of a short campaign.
pub const SEEDS: u64 = 50;

/// The seeds that the environment asks for, where `asked` looks names up.
pub fn seeds(asked: impl Fn(&str) -> Option<String>) -> Range<u64> {
    seeds_or(SEEDS, asked)
}

/// As [`seeds`], with so many if the environment asks for none: more than [`SEEDS`] where something
/// happens so rarely that it may be missing in those.
pub fn seeds_or(usual: u64, asked: impl Fn(&str) -> Option<String>) -> Range<u64> {
    let number = |name| asked(name).and_then(|text| text.parse().ok());
    let first = number("KILN_SIM_FIRST").unwrap_or(1);
    first..first + number("KILN_SIM_SEEDS").unwrap_or(usual)
}

/// Runs every seed, and returns what came of them.
///
/// # Panics
/// When all have run, if one failed.
pub fn survive<O: Debug>(seeds: Range<u64>, run: impl Fn(u64) -> Result<O, String>) -> Vec<O> {
    let (mut outcomes, mut failed) = (Vec::new(), Vec::new());
    for seed in seeds {
        match run(seed) {
            Ok(outcome) => {
                println!("seed {seed}: {outcome:?}");
                outcomes.push(outcome);
            }
            Err(why) => {
                println!("seed {seed}: FAILED: {why}");
                failed.push(seed);
            }
        }
    }
    assert!(
        failed.is_empty(),
        "replay one with KILN_SIM_FIRST=<seed> KILN_SIM_SEEDS=1: {failed:?}"
    );
    outcomes
}

/// Says what happened how often, also where the harness keeps silent about tests that pass.
///
/// # Panics
/// Something never happened, though the campaign was not shortened.
pub fn sum_up(head: &str, seeds: usize, happened: &[(&str, u64)]) {
    let mut line = format!("{seeds} seeds{head}");
    for (what, times) in happened {
        line.push_str(&format!("; {times} {what}"));
        let is_too_rare = seeds as u64 >= SEEDS && *times == 0;
        assert!(!is_too_rare, "no {what} in {seeds} seeds");
    }
    // Not being told is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The same seed gives the same outcome, trace included, and another one another trace.
///
/// # Panics
/// It does not, or a seed fails.
pub fn repeats_itself<O: Debug + PartialEq, T: Debug + PartialEq>(
    run: impl Fn(u64) -> Result<O, String>,
    trace: impl Fn(O) -> T,
) {
    let survived = |seed| run(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    for seed in [3, 1003] {
        assert_eq!(survived(seed), survived(seed));
    }
    assert_ne!(trace(survived(1)), trace(survived(2)));
}
