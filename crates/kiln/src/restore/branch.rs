//! `kiln branch`: a new log of a moment, whose data stays in its parent's archive.

use super::{Absent, BUSY, Options, Place, position, reader, warn_of_clock};
use crate::configuration;
use crate::sleep::Sleep;
use crate::snapshots;
use crate::work;
use archive::Snapshot;
use base::driver::Waker;
use std::error::Error;
use txlog::reader::Goal;
use worker::{Claimed, Worker};

pub fn run(options: &Options, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let goal = options.goal()?;
    let from = Place::of(arguments, options.from.as_deref(), options.archive.as_deref())?;
    position::check(&from, options.to_position.as_deref())?;
    let into = Place::to_make(options, arguments)?;
    // Before anything is kept for it.
    snapshots::limits(&into.settings).check(true, false)?;
    configuration::set_up_log(&into.settings)?;
    let (_, waker) = Sleep::new();
    let mut parent = reader(&from, from.store()?, &waker)?;
    let absent = Absent::of(&into.settings.snapshot_store);
    let mut making = work::worker(&into.config, &into.settings, into.store()?, &waker)?;
    let mut claimed = making.claim()?.ok_or(BUSY)?;
    let made = make(&mut parent, &mut making, goal, &into, waker, &mut claimed);
    claimed.release();
    let snapshot = made.inspect_err(|_| absent.remove_empty())?;
    let named = snapshot.manifest.parent.as_ref().ok_or("the branch does not name its parent")?;
    tracing::info!(
        parent = named.store,
        record = named.point()?.position.sequence.0,
        "branched: servers may start on the new log"
    );
    warn_of_clock(&into.settings, snapshot.point.clock);
    Ok(())
}

fn make(
    parent: &mut Worker,
    making: &mut Worker,
    goal: Goal,
    into: &Place,
    waker: Waker,
    claimed: &mut Claimed,
) -> Result<Snapshot, Box<dyn Error>> {
    making.must_be_empty()?;
    let fork = parent.find_fork(goal, claimed)?;
    let mut log = into.new_log(waker)?;
    // Before anything is kept for it.
    making.must_be_new(&mut log, claimed)?;
    let said = format!("a branch in {}", making.store.location());
    let named = parent.keep_for_branch(&fork, log.incarnation, &said, claimed)?;
    making.begin_branch(&fork, named, log, claimed)
}
