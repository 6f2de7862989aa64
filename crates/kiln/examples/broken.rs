//! `kiln` with one rule broken on purpose: `broken RULE server …`. Never part of a release.
//!
//! The campaigns of `tests/failover` run it to prove that they would notice.
#![forbid(unsafe_code)]

use kiln::Broken;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(rule) = words.next().as_deref().and_then(Broken::named) else {
        eprintln!("usage: broken {} server …", Broken::NAMES.map(|(name, _)| name).join("|"));
        return ExitCode::from(2);
    };
    kiln::run(words, Some(rule))
}
