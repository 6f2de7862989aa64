//! Removes the snapshots that nobody needs, and says how much of the log those that stay need.
//!
//! It is done behind each publication, and once more when pins change ([`Shard::pin`],
//! [`Shard::pin_snapshot`]): what was planned with other pins does not trim the log.

use super::{Outcome, Snapshots, TurnFacts, submit};
use crate::shard::Shard;
use archive::{Candidate, Pruned, Unfinished};
use base::{Position, Sequence};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a primary knows of it.
#[derive(Default)]
pub(super) struct Pruning {
    /// A snapshot was published since it was last done.
    pub is_due: bool,
    is_under_way: bool,
    /// What the pins had changed when it was last begun; `None` if it never was.
    changes: Option<u64>,
    /// Where the newest snapshot of this process stands.
    pub newest: Option<Position>,
}

impl Pruning {
    fn is_due(&self, shard: &Shard) -> bool {
        let is_other = |changes: u64| changes != shard.pins().changes();
        self.is_due || self.changes.is_some_and(is_other)
    }

    /// Whether what it said last still holds.
    pub fn is_settled(&self, shard: &Shard) -> bool {
        !self.is_under_way && !self.is_due(shard)
    }
}

impl Snapshots {
    pub(super) fn prune_when_due(&mut self, shard: &Shard, turn: &TurnFacts) {
        let pruning = &mut self.pruning;
        if pruning.is_under_way || !pruning.is_due(shard) {
            return;
        }
        pruning.is_due = false;
        pruning.is_under_way = true;
        pruning.changes = Some(shard.pins().changes());
        let pins: Vec<Sequence> = shard.pins().iter().map(|(_, at)| at).collect();
        let named: Vec<String> = shard.pins().snapshots().map(|(_, it)| it.to_owned()).collect();
        let (store, now) = (self.store.clone(), turn.now);
        let log = shard.appended().incarnation;
        let has_window = store.limits().window_seconds > 0;
        let archive_log = self.archive_log.clone().filter(|_| has_window);
        let is_over = Arc::clone(&self.is_over);
        submit(&mut *self.queue, move || {
            // What fails here costs space, nothing else. What was cut short is removed here too: a
            // start that finds others at the log removes nothing.
            let unremoved = store.remove_unpublished(Unfinished::Signed).err();
            // Who published the newest snapshot may have archived nothing, or not all that there
            // was. Nobody knows better than who looks whether the log still has its beginning.
            let unarchived = archive_log.and_then(|archive_log| {
                let candidates = match store.list_of(log) {
                    Ok(of_log) => of_log.candidates,
                    Err(error) => return Some(error.to_string()),
                };
                let newest = candidates.iter().find_map(Candidate::whole)?;
                archive_log(&store, newest.point.position.sequence, &is_over).err()
            });
            let pruned = store.prune(log, &pins, &named, now);
            let Pruned { mut trim, archived, failure } = pruned.unwrap_or_else(|error| Pruned {
                trim: None,
                archived: None,
                failure: Some(error),
            });
            if let Some(error) = failure.or(unremoved) {
                tracing::warn!("old snapshots cannot be removed: {error}");
            }
            if let Some(why) = unarchived {
                trim = None;
                if !is_over.load(Ordering::Relaxed) {
                    tracing::error!("the log is not trimmed, as it cannot be archived: {why}");
                }
            }
            Ok(Outcome::Pruned(trim, archived))
        });
    }

    /// It is done. The log may be trimmed once every replica that reports sees what stays.
    pub(super) fn pruned(
        &mut self,
        shard: &Shard,
        turn: &TurnFacts,
        through: Option<Position>,
        archived: Option<Sequence>,
    ) {
        self.status.archived = archived.or(self.status.archived);
        self.pruning.is_under_way = false;
        if let Some((name, at)) = shard.pins().oldest() {
            tracing::info!(name, record = at.0, "old snapshots and the log behind them are pinned");
        }
        let through = match self.pruning.newest {
            Some(newest) if self.pace.trims_through_newest => Some(newest),
            _ if self.pace.trims_unheld => Some(shard.durable()),
            _ => through,
        };
        // Whoever cannot read the snapshots needs the whole log.
        self.stores.may_trim(through.filter(|_| !turn.is_private));
    }
}
