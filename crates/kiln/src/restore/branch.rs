//! `kiln branch`: a new log of a moment, whose data stays in its parent's archive.

use super::ends::{Ends, Makers};
use super::{Options, Place, warn_of_clock};
use crate::snapshots;
use archive::Snapshot;
use std::error::Error;
use worker::Claimed;

pub fn run(options: &Options, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let ends = Ends::of(options, arguments)?;
    // Before anything is kept for it.
    snapshots::limits(&ends.into.settings).check(true, false)?;
    let snapshot = ends.make(Place::store, make)?;
    let named = snapshot.manifest.parent.as_ref().ok_or("the branch does not name its parent")?;
    tracing::info!(
        parent = named.store,
        record = named.point()?.position.sequence.0,
        "branched: servers may start on the new log"
    );
    warn_of_clock(&ends.into.settings, snapshot.point.clock);
    Ok(())
}

fn make(
    Ends { goal, into, .. }: &Ends,
    Makers { reading: mut parent, mut making, waker }: Makers,
    claimed: &mut Claimed,
) -> Result<Snapshot, Box<dyn Error>> {
    making.must_be_empty()?;
    let fork = parent.find_fork(*goal, claimed)?;
    let mut log = into.new_log(waker)?;
    // Before anything is kept for it.
    making.must_be_new(&mut log, claimed)?;
    let said = format!("a branch in {}", making.store.location());
    let named = parent.keep_for_branch(&fork, log.incarnation, &said, claimed)?;
    making.begin_branch(&fork, named, log, claimed)
}
