//! Holds the trimming of the log back until every replica sees the snapshots that it goes through.
//! The primary's snapshots ask it after each publication; INFO and the server's log show who is
//! waited for.
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
//! has: whoever sees it has that one, or a copy of it, and can start from it. Of what lies in the
//! store, only the snapshots of the shard's own log are seen. A trim goes through
//! the older of the two that stay, so a replica that sees either of them can start behind it.
//!
//! A replica that has reported is waited for until it has been silent for a minute, also if its
//! connection broke meanwhile: it may be starting again, and need the log. One that is gone for
//! good would stop trimming for ever, so nobody is waited for longer. A process that has just taken
//! over trims nothing until the replicas had time to report to it. Who goes on reporting and never
//! sees the snapshots does stop it for ever, and the log grows: to trim then would leave what was
//! acknowledged to one machine's disk, so that is for an operator to decide. Who it is stands in
//! the server's log, again and again, with its real address, and in INFO.

use super::{Outcome, Snapshots, TurnFacts, submit};
use crate::shard::Shard;
use archive::{Candidate, OfLog, Snapshot, SnapshotStore};
use base::{Incarnation, MonotonicNanos, Position, Sequence, UnixMillis};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Time between two looks at the own store while somebody does not see the snapshots, in
/// nanoseconds. A replica looks so often as long as it does not see the newest one of its primary.
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

/// Replicas that are gone and still waited for, at most; the oldest is forgotten first. More than a
/// shard has, and a bound on what a client costs that connects again and again.
const DEPARTED_MAX: usize = 256;

/// A trim that has waited for so long is told of, and again after each further hour. In
/// nanoseconds.
const WAIT_TOLD_NANOS: u64 = 60_000_000_000;
const WAIT_TOLD_AGAIN_NANOS: u64 = 3_600_000_000_000;

/// Replicas, or snapshots of another log, that are named where there are many.
const NAMED_MAX: usize = 8;

/// Which snapshot it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// The last record that it holds.
    pub sequence: Sequence,
    pub began: UnixMillis,
}

/// A snapshot that was restored before it was published, and when that was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proven {
    pub snapshot: Sighting,
    pub at: UnixMillis,
}

/// What a look at a store has found.
pub(super) struct Looked {
    /// When it was asked for.
    pub asked_at: MonotonicNanos,
    /// The whole ones of the shard's log, newest first, as many as stay.
    pub own: Vec<Sighting>,
    /// The newest proven one of the shard's log.
    pub proven: Option<Proven>,
    /// Names of those of other logs.
    pub foreign: Vec<String>,
    /// What the claim's holder says, if that can be read.
    pub said: Option<Option<Vec<u8>>>,
}

/// What is known of one member that does not see the snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Blind {
    since: MonotonicNanos,
    /// It was told of.
    is_apart: bool,
}

/// What a member says of the snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberSighting {
    /// Where it says that it is.
    pub address: String,
    /// The newest snapshot that it sees; of a replica that reports of its primary, the newest that
    /// the primary has.
    pub snapshot: Option<Sighting>,
    /// When it said so.
    pub at: MonotonicNanos,
    /// Whose connection that is, for the log.
    pub client: String,
}

/// Who does not see the snapshots, for INFO.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Unseen {
    /// Their addresses.
    pub by: Vec<String>,
    /// A trim waits; and for so many seconds it has waited for somebody.
    pub trim_waits: bool,
    pub trim_waits_seconds: u64,
}

/// A member whose store turned out to be another one, or to be the same again.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Change {
    Apart(String),
    Together(String),
}

/// What a server knows of its store and of those of others.
#[derive(Default)]
pub(super) struct Stores {
    /// The whole ones in the own store, newest first, as many as stay.
    own: Vec<Sighting>,
    /// The newest proven one there.
    proven: Option<Proven>,
    /// Those of other logs beside them: told of already.
    foreign: Vec<String>,
    is_looking: bool,
    looked_at: Option<MonotonicNanos>,
    judged_at: Option<MonotonicNanos>,
    /// What no snapshot that stays needs, and no pin, and which is not yet trimmed.
    waiting: Option<Position>,
    /// Members that do not see what they should, by their address.
    unseen: BTreeMap<String, Blind>,
    /// Replicas whose connection is gone, as they last reported.
    departed: VecDeque<MemberSighting>,
    /// Since when this process leads.
    leads_since: Option<MonotonicNanos>,
    /// Since when a trim has waited for somebody without a break, and when that was last told.
    waits_since: Option<MonotonicNanos>,
    told_at: Option<MonotonicNanos>,
}

impl Stores {
    /// A snapshot was published, and so many stay.
    pub(super) fn published(&mut self, sighting: Sighting, retained: usize) {
        self.own.insert(0, sighting);
        self.own.truncate(retained);
        self.judged_at = None;
    }

    /// The log may be trimmed through here, once every replica that reports sees what stays.
    pub(super) fn may_trim(&mut self, through: Option<Position>) {
        self.waiting = through;
        self.judged_at = None;
    }

    /// What a look has found.
    pub(super) fn looked(&mut self, found: Vec<Sighting>, proven: Option<Proven>, leads: bool) {
        self.is_looking = false;
        // What was published meanwhile may be missing in it.
        let known = self.own.first().map_or(Sequence::ZERO, |it| it.sequence);
        if !leads || found.first().is_some_and(|it| it.sequence >= known) {
            (self.own, self.proven) = (found, proven);
        }
    }

    /// Takes which snapshots of other logs a look has found; the names of those that are new, to be
    /// told.
    pub(super) fn note_foreign(&mut self, found: Vec<String>) -> Option<String> {
        let new = found.iter().filter(|it| !self.foreign.contains(it)).take(NAMED_MAX);
        let new: Vec<String> = new.map(|it| it.escape_debug().to_string()).collect();
        self.foreign = found;
        (!new.is_empty()).then(|| new.join(", "))
    }

    /// The members that should see the snapshots, and whether each does. Of a primary, that sees
    /// one that stays; of a replica, itself, that sees its primary's.
    fn who_sees(&mut self, reports: &[MemberSighting], turn: &TurnFacts) -> BTreeMap<String, bool> {
        let mut sees = BTreeMap::new();
        if turn.leads && (turn.is_private || self.own.is_empty()) {
            return sees;
        }
        let now = turn.monotonic;
        let mut said: Vec<(String, Option<Sighting>)> = reports
            .iter()
            .filter(|it| now.since(it.at) <= REPORTING_NANOS)
            .map(|it| (it.address.clone(), it.snapshot))
            .collect();
        if turn.leads {
            said.extend(self.departed(now).map(|it| (it.address.clone(), it.snapshot)));
        }
        for (address, snapshot) in said {
            // Several may call themselves by one address.
            let so = snapshot.is_some_and(|seen| self.own.contains(&seen));
            *sees.entry(address).or_insert(true) &= so;
        }
        sees
    }

    /// Says for whom a trim has waited for long, and from where they are really connected: what
    /// they call themselves need not be true.
    fn tell_of_wait(&self, reports: &[MemberSighting], now: MonotonicNanos, store: &SnapshotStore) {
        let names = |address: &String| {
            let connected = reports.iter().find(|it| it.address == *address);
            connected.map_or_else(
                || format!("{address} (gone)"),
                |it| format!("{address} ({})", it.client),
            )
        };
        let replicas: Vec<String> = self.unseen.keys().take(NAMED_MAX).map(names).collect();
        let (replicas, unseen) = (replicas.join(", "), self.unseen.len());
        let seconds = self.waits_since.map_or(0, |since| now.seconds_since(since));
        tracing::warn!(
            seconds,
            unseen,
            replicas,
            "the log is not trimmed and grows: these say that they are replicas, and do not see \
             the snapshots in {}",
            store.location()
        );
    }

    fn is_due(since: Option<MonotonicNanos>, period: u64, now: MonotonicNanos) -> bool {
        since.is_none_or(|since| now.since(since) >= period)
    }

    /// Takes who sees the snapshots and who does not; what is new of it.
    fn judge(&mut self, members: BTreeMap<String, bool>, now: MonotonicNanos) -> Vec<Change> {
        let before = std::mem::take(&mut self.unseen);
        let mut changes = Vec::new();
        for (name, sees) in members {
            let known = before.get(&name).copied();
            if sees {
                if known.is_some_and(|it| it.is_apart) {
                    changes.push(Change::Together(name));
                }
                continue;
            }
            let mut unseen = known.unwrap_or(Blind { since: now, is_apart: false });
            if !unseen.is_apart && now.since(unseen.since) >= UNSEEN_NANOS_MAX {
                unseen.is_apart = true;
                changes.push(Change::Apart(name.clone()));
            }
            self.unseen.insert(name, unseen);
        }
        changes
    }

    /// Notes whether a trim waits for somebody, whoever it is at the moment; whether that is to be
    /// told now.
    fn note_wait(&mut self, now: MonotonicNanos) -> bool {
        if self.waiting.is_none() || self.unseen.is_empty() {
            (self.waits_since, self.told_at) = (None, None);
            return false;
        }
        let since = *self.waits_since.get_or_insert(now);
        let is_due = match self.told_at {
            None => now.since(since) >= WAIT_TOLD_NANOS,
            Some(told_at) => now.since(told_at) >= WAIT_TOLD_AGAIN_NANOS,
        };
        if is_due {
            self.told_at = Some(now);
        }
        is_due
    }

    /// Those that are gone and still waited for.
    fn departed(&mut self, now: MonotonicNanos) -> impl Iterator<Item = &MemberSighting> {
        self.departed.retain(|it| now.since(it.at) <= REPORTING_NANOS);
        self.departed.iter()
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

/// Looks which snapshots of this log are in a store, and what lies beside them.
fn look(store: &SnapshotStore, log: Incarnation, asked_at: MonotonicNanos) -> Looked {
    let said = store.claimed().inspect_err(|error| {
        tracing::warn!("the claim in the snapshot store cannot be read: {error}");
    });
    let listed = store.list_of(log).unwrap_or_else(|error| {
        tracing::warn!("the snapshot store cannot be listed: {error}");
        OfLog { candidates: Vec::new(), foreign: Vec::new() }
    });
    let OfLog { candidates, foreign } = listed;
    let whole = || candidates.iter().filter_map(Candidate::whole);
    let sighting = |it: &Snapshot| {
        let sequence = it.point.position.sequence;
        Sighting { sequence, began: it.point.began }
    };
    let own = whole().take(store.limits().retained).map(sighting).collect();
    let mut proofs = whole().filter_map(|it| Some((it, it.manifest.proof?)));
    let newest = proofs.next();
    let proven =
        newest.map(|(it, proof)| Proven { snapshot: sighting(it), at: UnixMillis(proof.at_ms) });
    Looked { asked_at, own, proven, foreign, said: said.ok() }
}

impl Snapshots {
    fn begin_look(&mut self, log: Incarnation, now: MonotonicNanos) {
        if self.stores.is_looking {
            return;
        }
        self.stores.is_looking = true;
        self.stores.looked_at = Some(now);
        let store = self.store.clone();
        submit(&mut *self.queue, move || Ok(Outcome::Looked(look(&store, log, now))));
    }

    /// The newest snapshot in the own store.
    pub fn newest(&self) -> Option<Sighting> {
        self.stores.own.first().copied()
    }

    /// The newest proven snapshot in the own store.
    pub fn proven(&self) -> Option<Proven> {
        self.stores.proven
    }

    /// The connection of a replica is gone. That one may be starting again, and need the log.
    pub fn note_departed(&mut self, report: MemberSighting) {
        let departed = &mut self.stores.departed;
        departed.push_back(report);
        if departed.len() > DEPARTED_MAX {
            departed.pop_front();
        }
    }

    /// Who does not see the snapshots, and what waits for them.
    pub fn unseen(&self, now: MonotonicNanos) -> Unseen {
        let stores = &self.stores;
        Unseen {
            by: stores.apart().map(str::to_owned).collect(),
            trim_waits: stores.waiting.is_some(),
            trim_waits_seconds: stores.waits_since.map_or(0, |since| now.seconds_since(since)),
        }
    }

    /// Looks at the store, if what it holds is not known and it is time.
    pub(super) fn look_when_due(&mut self, shard: &Shard, turn: &TurnFacts) {
        let (now, leads) = (turn.monotonic, turn.leads);
        let stores = &mut self.stores;
        stores.leads_since = if leads { stores.leads_since.or(Some(now)) } else { None };
        // A primary knows what it publishes itself, but not what others do; a replica is told what
        // its primary sees.
        let pause = if stores.unseen.is_empty() { self.pace.look_nanos } else { LOOK_NANOS };
        if (leads || turn.hears_primary) && Stores::is_due(stores.looked_at, pause, now) {
            self.begin_look(shard.appended().incarnation, now);
        }
    }

    /// Whether [`Self::judge`] is to be called now: about once a second.
    pub fn is_judgement_due(&self, turn: &TurnFacts) -> bool {
        let is_due = Stores::is_due(self.stores.judged_at, JUDGE_NANOS, turn.monotonic);
        is_due && (turn.leads || turn.hears_primary)
    }

    /// Judges who sees the snapshots, and lets the log be trimmed through what everybody sees.
    /// `reports` are, of a primary, those of the replicas that are connected; of a replica, one of
    /// its own that names the newest snapshot of its primary, if that has any.
    pub fn judge(&mut self, shard: &mut Shard, turn: &TurnFacts, reports: &[MemberSighting]) {
        let (now, leads) = (turn.monotonic, turn.leads);
        let Self { stores, store, pace, pruning, .. } = self;
        let has_published = stores.judged_at.is_none();
        stores.judged_at = Some(now);
        let members = stores.who_sees(reports, turn);
        for change in stores.judge(members, now) {
            tell(&change, leads, &store.location());
        }
        if leads && stores.note_wait(now) {
            stores.tell_of_wait(reports, now, store);
        }
        // The replicas that are there must have had time to report to this primary, which may have
        // taken over a moment ago with a snapshot that is due.
        let since = stores.leads_since.map_or(0, |since| now.since(since));
        let has_heard = since >= pace.report_nanos || pace.trims_unconfirmed;
        if leads
            && pruning.is_settled(shard)
            && (has_heard || !shard.is_watched())
            && let Some(through) = stores.take_trim(pace.trims_unconfirmed)
        {
            shard.trim(through);
        }
        if has_published {
            // Others may have published since: what is known of the store is looked at too.
            self.look_when_due(shard, turn);
        }
    }
}

/// Says by name whose store is another one.
fn tell(change: &Change, leads: bool, store: &impl fmt::Display) {
    match (change, leads) {
        (Change::Apart(name), true) => tracing::warn!(
            "the replica {name} does not see the snapshots in {store}: its snapshot-store is \
             another directory, perhaps of the same name; the log is not trimmed, because what is \
             trimmed is in the snapshots and nowhere else"
        ),
        (Change::Apart(_), false) => tracing::warn!(
            "the primary's newest snapshot is not in this server's snapshot-store {store}: that is \
             another directory than the primary's, perhaps of the same name; once the log is \
             trimmed, this server cannot start"
        ),
        (Change::Together(name), true) => {
            tracing::info!("the replica {name} sees the snapshots in {store} again");
        }
        (Change::Together(_), false) => {
            tracing::info!("the primary's newest snapshot is in the snapshot-store {store} again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::SECOND;

    fn at(seconds: u64) -> MonotonicNanos {
        MonotonicNanos(seconds * SECOND)
    }

    fn members(sees: [bool; 2]) -> BTreeMap<String, bool> {
        [("a:1".to_owned(), sees[0]), ("b:2".to_owned(), sees[1])].into()
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
        assert_eq!(stores.judge(BTreeMap::new(), at(103)), [], "they are gone");
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
        assert_eq!(told, [Change::Apart("b:2".to_owned()), Change::Together("b:2".to_owned())]);
    }

    #[test]
    fn a_trim_that_waits_is_told_of_whoever_it_waits_for() {
        let mut stores = Stores { waiting: Some(trim()), ..Stores::default() };
        let mut told = Vec::new();
        for second in 100..8000 {
            // Another name each time: nobody is unseen for long.
            let name = format!("liar:{second}");
            assert_eq!(stores.judge([(name, false)].into(), at(second)), []);
            told.extend(stores.note_wait(at(second)).then_some(second));
            assert_eq!(stores.take_trim(false), None);
        }
        assert_eq!(told, [160, 3760, 7360]);
        stores.judge(BTreeMap::new(), at(8000));
        assert!(!stores.note_wait(at(8000)) && stores.waits_since.is_none());
        assert_eq!(stores.take_trim(false), Some(trim()));
    }

    #[test]
    fn who_is_gone_is_waited_for_a_minute_longer() {
        let departed = |second| MemberSighting {
            at: at(second),
            address: "a:1".into(),
            snapshot: None,
            client: String::new(),
        };
        let mut stores =
            Stores { departed: [departed(100), departed(130)].into(), ..Stores::default() };
        for (second, count) in [(131, 2), (160, 2), (161, 1), (190, 1), (191, 0)] {
            assert_eq!(stores.departed(at(second)).count(), count, "{second}");
        }
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
    fn snapshots_of_another_log_are_named_once() {
        let mut stores = Stores::default();
        let names = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(stores.note_foreign(Vec::new()), None);
        assert_eq!(stores.note_foreign(names(&["b", "a"])).as_deref(), Some("b, a"));
        assert_eq!(stores.note_foreign(names(&["b", "a"])), None);
        assert_eq!(stores.note_foreign(names(&["c\n", "b"])).as_deref(), Some("c\\n"));
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let told = stores.note_foreign(many).expect("they are new");
        assert_eq!(told.split(", ").count(), NAMED_MAX);
    }

    #[test]
    fn a_primary_whose_store_does_not_answer_goes_on_with_the_proof_that_it_knows() {
        let snapshot = Sighting { sequence: Sequence(7), began: UnixMillis(1_000) };
        let proven = Some(Proven { snapshot, at: UnixMillis(2_000) });
        let mut stores = Stores::default();
        stores.looked(vec![snapshot], proven, true);
        assert_eq!(stores.proven, proven);
        stores.looked(Vec::new(), None, true);
        assert_eq!(stores.proven, proven, "it may be there");
        let newer = Sighting { sequence: Sequence(8), ..snapshot };
        stores.looked(vec![newer], None, true);
        assert_eq!(stores.proven, None, "it was removed");
    }

    #[test]
    fn as_many_are_known_as_stay() {
        let mut stores = Stores::default();
        let sighting = |n| Sighting { sequence: Sequence(n), began: UnixMillis(0) };
        (1..=5).for_each(|n| stores.published(sighting(n), 2));
        assert_eq!(stores.own, [sighting(5), sighting(4)]);
    }
}
