//! What is removed of an archive: snapshots and archived log that nobody needs any more.

use crate::branch::{Parent, Pin};
use crate::manifest::{MANIFEST_BYTES_MAX, Manifest};
use crate::names::Content;
use crate::retention;
use crate::store::{Access, Candidate, OfLog, Snapshot, SnapshotStore};
use base::{Incarnation, Position, Sequence, UnixMillis};
use std::io;

/// What pruning did.
#[derive(Debug)]
pub struct Pruned {
    /// The position through which nobody needs the log any more, but for its archive; `None` while
    /// fewer snapshots are there than are to stay. The record behind which the oldest one stands is
    /// needed: by it a start tells that the log is the one that the snapshot was taken of. With a
    /// restore window it does not go beyond what is archived.
    pub trim: Option<Position>,
    /// The last record of the log that is archived, if any is.
    pub archived: Option<Sequence>,
    /// Why something could not be removed.
    pub failure: Option<io::Error>,
}

/// The log that is kept for the snapshots that stay.
struct Kept {
    /// The snapshot that must find its log there; `None` if the whole log must stay.
    held: Option<Position>,
    /// The oldest one of which the archive must have the log.
    needed: Sequence,
    failure: Option<io::Error>,
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl SnapshotStore {
    /// Removes all but the newest [`Limits::retained`](crate::Limits::retained) whole snapshots,
    /// those that the restore window needs at `now`, for each of `pins` the newest whole one at or
    /// before that record, those that are `named`, and those that branches pin; the damaged ones
    /// older than those go too, unless the archive cannot be asked about them. Then the archived
    /// log that none of those needs. As far as the archive lets. All of that is about the snapshots
    /// of `log`: others are neither counted nor removed, and while any are there, damaged ones and
    /// the archived log stay, as they may be of that kind.
    ///
    /// Whoever trims has looked whether the log is archived, and found that it is behind
    /// `archived_behind`: no snapshot leads to what is missing before that.
    ///
    /// # Errors
    /// The archive's, if it does not say what there is.
    pub fn prune(
        &self,
        log: Incarnation,
        pins: &[Sequence],
        named: &[String],
        now: UnixMillis,
        archived_behind: Sequence,
    ) -> io::Result<Pruned> {
        let limits = self.limits();
        let OfLog { candidates, foreign } = self.list_of(log)?;
        let is_whole = |candidate: &&Candidate| matches!(candidate, Candidate::Whole(_));
        if candidates.iter().filter(is_whole).count() < limits.retained {
            return Ok(Pruned { trim: None, archived: None, failure: None });
        }
        // Who pins looks for this mark afterwards: it sees the mark, or its pin is seen here.
        let mark = match self.archive.begin(&Pin::mark(log, now).name()) {
            Ok(mark) => Some(mark),
            // Removing is what gives space back; and where there is none for a mark, there is none
            // for a pin.
            Err(error) if is_full(&error) => None,
            Err(error) => return Err(error),
        };
        let pruned = self.prune_marked(log, pins, named, now, (candidates, foreign));
        let unmarked = mark.and_then(|mark| mark.abandon().err());
        let Kept { held, needed, failure } = pruned?;
        let archived = match self.limits().window_seconds {
            0 => None,
            _ => self.archived(log, needed.max(archived_behind))?,
        };
        let trim = held.map(|held| {
            let before = Sequence(held.sequence.0.saturating_sub(1));
            held.at(match self.limits().window_seconds {
                0 => before,
                _ => before.min(archived.unwrap_or_default()),
            })
        });
        Ok(Pruned { trim, archived, failure: failure.or(unmarked) })
    }

    fn prune_marked(
        &self,
        log: Incarnation,
        pins: &[Sequence],
        named: &[String],
        now: UnixMillis,
        (candidates, foreign): (Vec<Candidate>, Vec<String>),
    ) -> io::Result<Kept> {
        let limits = self.limits();
        let branches = self.pins()?;
        let whole = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot),
            Candidate::Damaged { .. } => None,
        });
        let whole: Vec<&Snapshot> = whole.collect();
        let oldest = whole[limits.retained - 1];
        let at_or_before =
            |pin: &Sequence| whole.iter().find(|it| it.point.position.sequence <= *pin);
        let pinned: Vec<&&Snapshot> = pins.iter().filter_map(at_or_before).collect();
        let in_window = retention::in_window(&whole, &limits, now);
        let is_needed = |Snapshot { name, .. }: &Snapshot| {
            let is_pinned = pinned.iter().any(|it| it.name == *name);
            is_pinned || named.contains(name) || in_window.contains(&name.as_str())
        };
        let mut failure = None;
        let mut left = limits.retained;
        let mut needed = oldest.point;
        // One that cannot be read just now may be what leads to a moment of the window.
        let unread = candidates.iter().filter_map(Candidate::unread).min();
        for candidate in &candidates {
            let removed = match candidate {
                Candidate::Whole(snapshot) if left > 0 || is_needed(snapshot) => {
                    let points = (needed, snapshot.point);
                    needed = std::cmp::min_by_key(points.0, points.1, |it| it.position.sequence);
                    left = left.saturating_sub(1);
                    Ok(())
                }
                // Its log stays through the branch's record alone.
                it if branches.iter().any(|pin| pin.is_of(it.name())) => Ok(()),
                Candidate::Whole(snapshot) => self.remove(snapshot, log),
                Candidate::Damaged { .. } if left > 0 => Ok(()),
                Candidate::Damaged { name, may_be_whole: false, .. } if foreign.is_empty() => {
                    self.remove_damaged(name, log)
                }
                Candidate::Damaged { name, why, .. } => {
                    let name = name.escape_debug();
                    Err(io::Error::other(format!("{name} stays, nobody can read it: {why}")))
                }
            };
            // What stays behind costs space. The log can be trimmed all the same.
            failure = removed.err().or(failure);
        }
        // While no snapshot is as old as the window, the log may reach back to its beginning.
        let is_all_known = foreign.is_empty() && (limits.window_seconds == 0 || unread.is_none());
        if is_all_known && limits.is_window_reached(needed.clock, now) {
            let pruned = self.log().prune(needed.position.sequence, &branches);
            failure = pruned.err().or(failure);
        }
        let pinned_at = pinned.iter().map(|it| it.point.position);
        let held = pinned_at.fold(oldest.point.position, |held, at| held.min(at));
        let needed = unread.unwrap_or(Sequence(u64::MAX)).min(needed.position.sequence);
        Ok(Kept { held: (pinned.len() == pins.len()).then_some(held), needed, failure })
    }

    /// The record through which this log is archived, without a gap, behind this one, or with it,
    /// if it is.
    fn archived(&self, log: Incarnation, behind: Sequence) -> io::Result<Option<Sequence>> {
        let stretches = self.log();
        let extents = stretches.list()?;
        for behind in [behind, Sequence(behind.0.saturating_sub(1))] {
            if let Some(last) = stretches.coverage(log, behind, &extents)?.last {
                return Ok(Some(last.facts.last));
            }
        }
        Ok(None)
    }

    /// Removes a snapshot, and what it keeps of a parent's archive first: behind it nobody would
    /// know of that.
    fn remove(&self, snapshot: &Snapshot, log: Incarnation) -> io::Result<()> {
        if let Some(parent) = &snapshot.manifest.parent {
            self.release(parent, log)?;
        }
        self.archive.remove(&snapshot.name)
    }

    /// Removes one that cannot be used. It may be the first of a branch, which cannot be used
    /// either where its parent's data is damaged: as [`Self::remove`]. That one has no parts; so
    /// where there are none, and the manifest does not tell whose archive keeps what, it stays.
    fn remove_damaged(&self, name: &str, log: Incarnation) -> io::Result<()> {
        let read = self.archive.manifest(name, MANIFEST_BYTES_MAX);
        let decoded = read.map(|bytes| Manifest::decode(&bytes));
        match decoded {
            Ok(Ok(Manifest { parent: Some(parent), .. })) => self.release(&parent, log)?,
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => {
                if !self.archive.parts(name).is_ok_and(|parts| !parts.is_empty()) {
                    let name = name.escape_debug();
                    let what = "it may be the first snapshot of a branch, and its manifest, which \
                                tells whose archive keeps data for it, cannot be read";
                    return Err(io::Error::other(format!("{name} stays: {what}")));
                }
            }
        }
        self.archive.remove(name)
    }

    fn release(&self, parent: &Parent, log: Incarnation) -> io::Result<()> {
        let released = self.parent(parent, Access::Write).and_then(|store| {
            let (pin, there) = (parent.pin(log), store.pins()?);
            // An archive that has neither is not the one: it may lie on a disk that is not mounted.
            let is_it = || -> io::Result<bool> {
                Ok(store.list()?.iter().any(|it| it.name() == parent.snapshot))
            };
            match there.contains(&pin) {
                true => store.unpin(&pin),
                false if is_it()? => Ok(()),
                false => {
                    Err(io::Error::new(io::ErrorKind::NotFound, "it does not know the branch"))
                }
            }
        });
        released.map_err(|error| {
            let what = format!("the branch's parent {} keeps what it needs: {error}", parent.store);
            io::Error::new(error.kind(), what)
        })
    }

    /// What branches need of this archive.
    ///
    /// # Errors
    /// The archive's.
    pub fn pins(&self) -> io::Result<Vec<Pin>> {
        let entries = self.archive.list(Content::Pins)?.into_iter();
        let published = entries.filter(|entry| entry.is_published);
        Ok(published.filter_map(|entry| Pin::of(&entry.name)).collect())
    }

    /// Whether somebody removes old snapshots just now, and may not have seen a pin.
    ///
    /// # Errors
    /// The archive's.
    pub fn is_being_pruned(&self) -> io::Result<bool> {
        let entries = self.archive.list(Content::Pins)?;
        let is_mark = |name: &str| Pin::of(name).is_some_and(|pin| pin.is_mark());
        Ok(entries.iter().any(|entry| !entry.is_published && is_mark(&entry.name)))
    }

    /// Keeps for a branch what it needs of this archive, once nobody removes old snapshots who has
    /// not seen it ([`Self::is_being_pruned`]). `said` is for people: whose it is. Whether it is
    /// new.
    ///
    /// # Errors
    /// The archive's.
    pub fn pin(&self, pin: &Pin, said: &[u8]) -> io::Result<bool> {
        match self.archive.begin(&pin.name()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match self.pins()?.contains(pin) {
                    true => Ok(false),
                    false => Err(error),
                }
            }
            begun => begun?.publish(said).map(|()| true),
        }
    }

    /// The branch needs nothing of this archive any more.
    ///
    /// # Errors
    /// The archive's.
    pub fn unpin(&self, pin: &Pin) -> io::Result<()> {
        self.archive.remove(&pin.name())
    }
}
