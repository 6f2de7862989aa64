//! Removes the snapshots that nobody needs, and says how much of the log those that stay need.
//!
//! It is done behind each publication, and once more when pins change ([`Shard::pin`],
//! [`Shard::pin_snapshot`]): what was planned with other pins does not trim the log. With a restore
//! window the log is archived before ([`super::archiving`]); one that cannot be is not trimmed, and
//! it is tried again.

use super::{Outcome, RETRY_NANOS, Snapshots, TurnFacts, submit, tell_unarchived};
use crate::shard::Shard;
use archive::{Pruned, Unfinished};
use base::{MonotonicNanos, Position, Sequence};

/// What a primary knows of it.
#[derive(Default)]
pub(super) struct Pruning {
    /// A snapshot was published since it was last begun.
    pub is_due: bool,
    step: Step,
    /// When it is begun again, because the log could not be archived.
    again_at: Option<MonotonicNanos>,
    /// What the pins had changed when snapshots were last removed; `None` if they never were.
    changes: Option<u64>,
    /// Where the newest snapshot of this process stands.
    pub newest: Option<Position>,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    #[default]
    None,
    /// The log is being archived, as there is a restore window.
    Archiving,
    /// That is over; behind which record all is archived, if it could be.
    Archived(Option<Sequence>),
    /// Snapshots and archived log are being removed.
    Removing,
}

impl Pruning {
    fn is_due(&self, shard: &Shard, turn: &TurnFacts) -> bool {
        let is_other = |changes: u64| changes != shard.pins().changes();
        let is_time = |again_at: MonotonicNanos| again_at <= turn.monotonic;
        self.is_due || self.changes.is_some_and(is_other) || self.again_at.is_some_and(is_time)
    }

    /// Whether what it said last still holds. So it does while the log is archived once more.
    pub fn is_settled(&self, shard: &Shard) -> bool {
        self.step != Step::Removing && self.changes == Some(shard.pins().changes())
    }
}

impl Snapshots {
    pub(super) fn prune_when_due(&mut self, shard: &Shard, turn: &TurnFacts) {
        match self.pruning.step {
            Step::None if self.pruning.is_due(shard, turn) => {
                self.pruning.is_due = false;
                self.pruning.again_at = None;
                match self.archiving.as_mut().filter(|_| self.store.limits().window_seconds > 0) {
                    Some(archiving) => {
                        self.pruning.step = Step::Archiving;
                        let log = shard.appended().incarnation;
                        archiving.begin(self.store.clone(), log, turn.now);
                    }
                    None => self.prune(shard, turn, Some(Sequence::ZERO)),
                }
            }
            Step::Archived(behind) => self.prune(shard, turn, behind),
            Step::None | Step::Archiving | Step::Removing => {}
        }
    }

    /// The log is archived, or cannot be.
    pub(super) fn archived(&mut self, turn: &TurnFacts, archived: Result<Sequence, String>) {
        self.pruning.step = Step::Archived(archived.as_ref().ok().copied());
        if let Err(why) = archived {
            tell_unarchived(&why);
            self.pruning.again_at = Some(MonotonicNanos(turn.monotonic.0 + RETRY_NANOS));
        }
    }

    /// Removes what nobody needs, by the pins of now. If the log is not archived, it is not
    /// trimmed.
    fn prune(&mut self, shard: &Shard, turn: &TurnFacts, archived_behind: Option<Sequence>) {
        let pruning = &mut self.pruning;
        pruning.step = Step::Removing;
        pruning.changes = Some(shard.pins().changes());
        let pins: Vec<Sequence> = shard.pins().iter().map(|(_, at)| at).collect();
        let named: Vec<String> = shard.pins().snapshots().map(|(_, it)| it.to_owned()).collect();
        let (store, now) = (self.store.clone(), turn.now);
        let log = shard.appended().incarnation;
        submit(&mut *self.queue, move || {
            // What fails here costs space, nothing else. What was cut short is removed here too: a
            // start that finds others at the log removes nothing.
            let unremoved = store.remove_unpublished(Unfinished::Signed).err();
            let pruned = store.prune(log, &pins, &named, now, archived_behind.unwrap_or_default());
            let Pruned { trim, archived, failure } = pruned.unwrap_or_else(|error| Pruned {
                trim: None,
                archived: None,
                failure: Some(error),
            });
            if let Some(error) = failure.or(unremoved) {
                tracing::warn!("old snapshots cannot be removed: {error}");
            }
            Ok(Outcome::Pruned(trim.filter(|_| archived_behind.is_some()), archived))
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
        self.pruning.step = Step::None;
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
