//! Whether every member sees the snapshots, before the log is trimmed through them.
//!
//! What was trimmed from the log is in the snapshots and nowhere else. Servers whose configuration
//! names the same directory need not mean the same disk: on two hosts the same words may name two
//! directories, and then the log would be trimmed through what one machine alone has. So members
//! tell each other what they see:
//!
//! ```text
//! replica ── REPLCONF MEMBER: … the newest snapshot in its store ──▶ primary: may it trim?
//!         ◀─ … the newest in the primary's store ─                   replica: is it in mine?
//! ```
//! A snapshot is told by its place in the log and the time at which it began, which no second one
//! has: whoever sees it has that one, or a copy of it, and can start from it. A trim goes through
//! the older of the two that stay, so a replica that sees either of them can start behind it.
//!
//! Replicas that do not report are not waited for: one that is gone for good would stop trimming
//! for ever, and with nobody connected there is nobody to ask.

use super::{Outcome, Snapshots, submit};
use crate::server::Server;
use archive::{Candidate, RETAINED, SnapshotStore};
use base::{MonotonicNanos, Position, Sequence, UnixMillis};
use std::collections::BTreeMap;
use std::fmt;

/// Time between two looks of a replica at its store, in nanoseconds: a list and two manifests.
const LOOK_NANOS: u64 = 1_000_000_000;

/// Time between two judgements, in nanoseconds. A replica reports at least this often.
const JUDGE_NANOS: u64 = 1_000_000_000;

/// How long somebody may not see a snapshot before the stores count as apart, in nanoseconds.
/// Nobody trims meanwhile. File systems over a network show a new directory up to a minute late by
/// default (`acdirmax` of NFS); most show it at once, and a warning that comes too early is taken
/// back.
const UNSEEN_NANOS_MAX: u64 = 30_000_000_000;

/// A replica that has reported within this time is waited for, in nanoseconds.
const REPORTING_NANOS: u64 = 60_000_000_000;

/// Which snapshot it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// The last record that it holds.
    pub sequence: Sequence,
    pub began: UnixMillis,
}

/// What is known of one member that does not see the snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Unseen {
    since: MonotonicNanos,
    /// It was told of.
    is_apart: bool,
}

/// What has changed for a member.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Turn {
    Apart(String),
    Together(String),
}

/// What a server knows of its store and of those of others.
#[derive(Default)]
pub(super) struct Stores {
    /// The whole ones in the own store, newest first, as many as stay.
    own: Vec<Sighting>,
    is_looking: bool,
    looked_at: Option<MonotonicNanos>,
    judged_at: Option<MonotonicNanos>,
    /// Published, and not yet trimmed through.
    waiting: Option<Position>,
    /// Members that do not see what they should, by their address.
    unseen: BTreeMap<String, Unseen>,
}

impl Stores {
    /// Notes one that was just published.
    fn published(&mut self, sighting: Sighting) {
        self.own.insert(0, sighting);
        self.own.truncate(RETAINED);
    }

    fn is_due(since: Option<MonotonicNanos>, period: u64, now: MonotonicNanos) -> bool {
        since.is_none_or(|since| now.since(since) >= period)
    }

    /// Takes who sees the snapshots and who does not; what is new of it.
    fn judge(&mut self, members: Vec<(String, bool)>, now: MonotonicNanos) -> Vec<Turn> {
        let before = std::mem::take(&mut self.unseen);
        let mut turns = Vec::new();
        for (name, sees) in members {
            let known = before.get(&name).copied();
            if sees {
                if known.is_some_and(|it| it.is_apart) {
                    turns.push(Turn::Together(name));
                }
                continue;
            }
            let mut unseen = known.unwrap_or(Unseen { since: now, is_apart: false });
            if !unseen.is_apart && now.since(unseen.since) >= UNSEEN_NANOS_MAX {
                unseen.is_apart = true;
                turns.push(Turn::Apart(name.clone()));
            }
            self.unseen.insert(name, unseen);
        }
        turns
    }

    /// The trim that nobody stands against any more.
    fn take_trim(&mut self, trims_unconfirmed: bool) -> Option<Position> {
        if self.unseen.is_empty() || trims_unconfirmed { self.waiting.take() } else { None }
    }

    fn apart(&self) -> impl Iterator<Item = &str> {
        let apart = self.unseen.iter().filter(|(_, it)| it.is_apart);
        apart.map(|(name, _)| name.as_str())
    }
}

impl Sighting {
    /// Two words of a report, of nothing if there is none.
    pub fn words(of: Option<Self>) -> [String; 2] {
        match of {
            Some(Self { sequence, began }) => [sequence.to_string(), began.0.to_string()],
            None => ["-".to_owned(), "-".to_owned()],
        }
    }

    /// Reads [`Self::words`]; `None` if they are none.
    pub fn parse(words: [&[u8]; 2]) -> Option<Option<Self>> {
        if words == [b"-", b"-"] {
            return Some(None);
        }
        let [sequence, began] = words.map(|word| std::str::from_utf8(word).ok());
        let sequence = Sequence(sequence?.parse().ok()?);
        Some(Some(Self { sequence, began: UnixMillis(began?.parse().ok()?) }))
    }
}

impl fmt::Display for Sighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the snapshot of record {}", self.sequence)
    }
}

/// The whole ones in a store, newest first.
fn look(store: &SnapshotStore) -> Vec<Sighting> {
    let candidates = store.list().unwrap_or_else(|error| {
        tracing::warn!("the snapshot store cannot be listed: {error}");
        Vec::new()
    });
    let whole = candidates.into_iter().filter_map(|candidate| match candidate {
        Candidate::Whole(it) => {
            Some(Sighting { sequence: it.place.position.sequence, began: it.place.began })
        }
        Candidate::Damaged { .. } => None,
    });
    whole.take(RETAINED).collect()
}

impl Snapshots {
    fn begin_look(&mut self, now: MonotonicNanos) {
        if self.stores.is_looking {
            return;
        }
        self.stores.is_looking = true;
        self.stores.looked_at = Some(now);
        let store = self.store.clone();
        submit(&mut *self.queue, move || Ok(Outcome::Looked(look(&store))));
    }
}

impl Server {
    /// The newest snapshot in the own store, as far as others should be able to see it.
    pub(crate) fn newest_snapshot(&self) -> Option<Sighting> {
        let snapshots = self.snapshots.as_ref().filter(|_| !self.settings.snapshots_are_private);
        snapshots.and_then(|it| it.stores.own.first().copied())
    }

    /// What a look has found.
    pub(super) fn looked_at_store(&mut self, found: Vec<Sighting>) {
        let is_following = self.is_following();
        let Some(Snapshots { stores, .. }) = &mut self.snapshots else { return };
        stores.is_looking = false;
        // What was published meanwhile may be missing in it.
        let known = stores.own.first().map_or(Sequence::ZERO, |it| it.sequence);
        if is_following || found.first().is_some_and(|it| it.sequence >= known) {
            stores.own = found;
        }
    }

    /// A snapshot was published: the log may be trimmed once every replica that reports sees it.
    pub(super) fn trim_when_seen(&mut self, sighting: Sighting, through: Option<Position>) {
        let Some(snapshots) = &mut self.snapshots else { return };
        snapshots.stores.published(sighting);
        // Whoever cannot read the snapshots needs the whole log.
        if !self.settings.snapshots_are_private {
            snapshots.stores.waiting = through.or(snapshots.stores.waiting);
        }
        snapshots.stores.judged_at = None;
        self.advance_stores();
    }

    /// Looks, judges, and trims what everybody sees.
    pub(super) fn advance_stores(&mut self) {
        let (now, leads) = (self.monotonic, self.roles.leads());
        let is_heard = self.members.lag().is_some();
        let Some(snapshots) = &mut self.snapshots else { return };
        let stores = &snapshots.stores;
        let looks = if leads {
            // What it publishes itself, it knows; but not what the primary before did last.
            !self.roles.is_alone() && (stores.looked_at.is_none() || !stores.unseen.is_empty())
        } else {
            is_heard
        };
        let looks = looks && Stores::is_due(stores.looked_at, LOOK_NANOS, now);
        let judges = Stores::is_due(stores.judged_at, JUDGE_NANOS, now);
        if looks {
            snapshots.begin_look(now);
        }
        if !judges || !leads && !is_heard {
            return;
        }
        snapshots.stores.judged_at = Some(now);
        let members = if leads { self.who_sees_snapshots() } else { self.sees_those_of_primary() };
        let Some(snapshots) = &mut self.snapshots else { return };
        for turn in snapshots.stores.judge(members, now) {
            tell(&turn, leads, &self.settings.snapshot_store.display());
        }
        if leads && let Some(through) = snapshots.stores.take_trim(snapshots.pace.trims_unconfirmed)
        {
            self.shard.trim(through);
        }
    }

    /// Of a primary: the replicas that report, and whether each sees a snapshot that stays.
    fn who_sees_snapshots(&self) -> Vec<(String, bool)> {
        if self.newest_snapshot().is_none() {
            return Vec::new();
        }
        let own = self.snapshots.as_ref().map_or(&[][..], |it| &it.stores.own);
        let reports = self.sessions().filter_map(|session| session.member.as_deref());
        let reports = reports.filter(|it| self.monotonic.since(it.at) <= REPORTING_NANOS);
        reports
            .map(|it| {
                let member = &it.report.member;
                let sees = it.report.snapshot.is_some_and(|seen| own.contains(&seen));
                (format!("{}:{}", member.host, member.port), sees)
            })
            .collect()
    }

    /// Of a replica: whether it sees the newest snapshot of its primary, if that has any.
    fn sees_those_of_primary(&self) -> Vec<(String, bool)> {
        let Some(newest) = self.members.primary_snapshot() else { return Vec::new() };
        let own = self.snapshots.as_ref().map_or(&[][..], |it| &it.stores.own);
        let member = self.member();
        vec![(format!("{}:{}", member.host, member.port), own.contains(&newest))]
    }

    /// For INFO: who does not see the snapshots, and whether a trim waits for somebody.
    pub(crate) fn snapshots_unseen(&self) -> (String, bool) {
        let Some(Snapshots { stores, .. }) = &self.snapshots else { return Default::default() };
        (stores.apart().collect::<Vec<_>>().join(","), stores.waiting.is_some())
    }
}

/// Says by name whose store is another one.
fn tell(turn: &Turn, leads: bool, store: &impl fmt::Display) {
    match (turn, leads) {
        (Turn::Apart(name), true) => tracing::warn!(
            "the replica {name} does not see the snapshots in {store}: its snapshot-store is \
             another directory, perhaps of the same name; the log is not trimmed, because what is \
             trimmed is in the snapshots and nowhere else"
        ),
        (Turn::Apart(_), false) => tracing::warn!(
            "the primary's newest snapshot is not in this server's snapshot-store {store}: that is \
             another directory than the primary's, perhaps of the same name; once the log is \
             trimmed, this server cannot start"
        ),
        (Turn::Together(name), true) => {
            tracing::info!("the replica {name} sees the snapshots in {store} again");
        }
        (Turn::Together(_), false) => {
            tracing::info!("the primary's newest snapshot is in the snapshot-store {store} again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> MonotonicNanos {
        MonotonicNanos(seconds * SECOND)
    }

    fn members(sees: [bool; 2]) -> Vec<(String, bool)> {
        vec![("a:1".to_owned(), sees[0]), ("b:2".to_owned(), sees[1])]
    }

    fn trim() -> Position {
        Position { sequence: Sequence(7), ..Position::default() }
    }

    #[test]
    fn a_trim_waits_for_everybody_who_reports() {
        let mut stores = Stores { waiting: Some(trim()), ..Stores::default() };
        assert_eq!(stores.judge(members([true, false]), at(100)), []);
        assert_eq!(stores.take_trim(false), None);
        assert_eq!(stores.judge(members([true, true]), at(101)), []);
        assert_eq!(stores.take_trim(false), Some(trim()));
        assert_eq!(stores.take_trim(false), None, "once");
        stores.waiting = Some(trim());
        assert_eq!(stores.judge(members([false, false]), at(102)), []);
        assert_eq!(stores.judge(Vec::new(), at(103)), [], "they are gone");
        assert_eq!(stores.take_trim(false), Some(trim()));
    }

    #[test]
    fn who_does_not_see_the_snapshots_is_named_once_and_taken_back_once() {
        let mut stores = Stores::default();
        let mut told = Vec::new();
        for second in 100..200 {
            told.extend(stores.judge(members([true, second >= 150]), at(second)));
            let is_apart = (130..150).contains(&second);
            assert_eq!(stores.apart().collect::<Vec<_>>(), ["b:2"][..usize::from(is_apart)]);
        }
        assert_eq!(told, [Turn::Apart("b:2".to_owned()), Turn::Together("b:2".to_owned())]);
    }

    #[test]
    fn a_sighting_is_read_as_it_was_told() {
        let sighting = Sighting { sequence: Sequence(77), began: UnixMillis(1_700_000_000_001) };
        for of in [None, Some(sighting)] {
            let words = Sighting::words(of);
            assert_eq!(Sighting::parse([words[0].as_bytes(), words[1].as_bytes()]), Some(of));
        }
        for words in [[&b"-"[..], b"1"], [b"1", b"-"], [b"", b""], [b"1", b"x"], [b"\xff", b"1"]] {
            assert_eq!(Sighting::parse(words), None);
        }
    }

    #[test]
    fn as_many_are_known_as_stay() {
        let mut stores = Stores::default();
        let sighting = |n| Sighting { sequence: Sequence(n), began: UnixMillis(0) };
        (1..=5).for_each(|n| stores.published(sighting(n)));
        assert_eq!(stores.own, [sighting(5), sighting(4)]);
    }
}
