//! Copies the log into the archive, in order, from where the archive ends.

use super::{at, chain_of, point_of};
use crate::loading::{Failure, OpenLog};
use archive::{
    Candidate, Extent, LogStore, Snapshot, SnapshotStore, Stretch, StretchFacts, covered,
};
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use txlog::record::{self, ChainValue};
use txlog::{Chain, LogEvent};

/// Bytes of records of one stretch, at which it ends: what is held in memory until it is written. A
/// guess between the costs of an object and those of one that has to be written again.
pub const STRETCH_BYTES: usize = 32 << 20;

/// Where a copying may begin: behind a record that the archive or a snapshot knows the chain of.
#[derive(Clone, Copy)]
struct Beginning {
    at: Sequence,
    chain: Chain,
    clock: UnixMillis,
}

impl Beginning {
    const START: Self = Self {
        at: Sequence::ZERO,
        chain: Chain { value: ChainValue(0), epoch: Epoch(0) },
        clock: UnixMillis(0),
    };
}

/// A copying under way. What was read of the log goes in, record by record.
pub struct Archiver {
    store: LogStore,
    stretch_bytes: usize,
    incarnation: Incarnation,
    through: Sequence,
    /// Behind the last record that was taken.
    behind: Beginning,
    /// What was archived when it began, in order.
    extents: Vec<Extent>,
    /// Where else it may begin, if the log does not reach back: in order.
    beginnings: VecDeque<Beginning>,
    /// The stretch that is being gathered: where the chain stands before it, and its records.
    before: Beginning,
    records: Vec<u8>,
}

impl Archiver {
    /// Begins with the log, to whose beginning one goes back without a snapshot, unless a snapshot
    /// reaches the restore window or something is `needed`; if the log was trimmed, behind the
    /// oldest snapshot, as to no earlier moment is there a way back. Or where the archive ends that
    /// begins there. With `needed`, if nothing is archived, it is the oldest snapshot of that or a
    /// later record. `None` if everything through `through` is archived.
    ///
    /// # Errors
    /// The archive's; it holds the log of another shard.
    pub fn begin(
        store: &SnapshotStore,
        incarnation: Incarnation,
        needed: Sequence,
        through: Sequence,
        stretch_bytes: usize,
    ) -> io::Result<Option<Self>> {
        let log = store.log();
        let extents = log.list()?;
        let mut beginnings = beginnings(store, incarnation, through)?;
        if extents.is_empty() {
            beginnings.retain(|it| it.at >= needed);
        }
        // A snapshot's clock for the present: what is archived in vain meanwhile is little.
        let (oldest, newest) = (beginnings.first(), beginnings.last());
        let is_reached = oldest.zip(newest).is_some_and(|(oldest, newest)| {
            oldest.at == Sequence::ZERO
                || store.limits().is_window_reached(oldest.clock, newest.clock)
        });
        if needed == Sequence::ZERO && !is_reached {
            let chain = Chain::start(incarnation);
            beginnings.insert(0, Beginning { chain, ..Beginning::START });
        }
        let mut archiver = Self {
            store: log,
            stretch_bytes,
            incarnation,
            through,
            behind: Beginning::START,
            extents,
            beginnings: beginnings.into(),
            before: Beginning::START,
            records: Vec::new(),
        };
        Ok(archiver.begin_next()?.then_some(archiver))
    }

    /// Begins behind the next snapshot, or where the archive ends that begins there; whether there
    /// is anything to be archived.
    fn begin_next(&mut self) -> io::Result<bool> {
        let Some(beginning) = self.beginnings.pop_front() else {
            return Err(io::Error::other("no snapshot is there that the log reaches back to"));
        };
        let mut behind = beginning;
        let archived = covered(&self.extents, beginning.at);
        if archived > beginning.at
            && let Some(extent) = self.extents.iter().find(|it| it.last == archived)
        {
            match self.store.find(extent) {
                Ok(Stretch { name, facts, .. }) if facts.first.incarnation != self.incarnation => {
                    let what = format!("{name} is of another log");
                    return Err(io::Error::new(ErrorKind::InvalidData, what));
                }
                Ok(Stretch { facts, .. }) => {
                    let (at, chain, clock) = (archived, chain_of(facts.behind), facts.clock);
                    behind = Beginning { at, chain, clock };
                }
                // What it holds is archived once more.
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    tracing::error!("archived log is damaged: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        self.behind = behind;
        self.before = behind;
        self.records.clear();
        Ok(behind.at < self.through)
    }

    /// The record that is to be taken next.
    pub fn next(&self) -> Position {
        at(self.incarnation, self.behind.at.next())
    }

    /// The record through which it is to go.
    pub fn through(&self) -> Sequence {
        self.through
    }

    /// Takes the next record; whether that was the last one, and everything is published.
    ///
    /// # Errors
    /// It is damaged, or of another history; the archive's.
    pub fn take(&mut self, position: Position, bytes: &[u8]) -> io::Result<bool> {
        let invalid = |what: String| {
            let what = format!("record {}: {what}", position.sequence);
            io::Error::new(ErrorKind::InvalidData, what)
        };
        if position != self.next() {
            return Err(invalid(format!("record {} was expected", self.next().sequence)));
        }
        let header = record::decode_header(bytes, true);
        let header = header.map_err(|error| invalid(error.to_string()))?;
        let Beginning { at, chain, clock } = &mut self.behind;
        if chain.contradicts(&header) {
            return Err(invalid(txlog::ANOTHER_HISTORY.to_owned()));
        }
        if chain.admits(&header) {
            chain.extend(&header, bytes);
            *clock = header.clock;
        }
        *at = position.sequence;
        self.records.extend_from_slice(bytes);
        let is_last = position.sequence >= self.through;
        if is_last || self.records.len() >= self.stretch_bytes {
            self.write()?;
        }
        Ok(is_last)
    }

    fn write(&mut self) -> io::Result<()> {
        let facts = StretchFacts {
            first: at(self.incarnation, self.before.at.next()),
            last: self.behind.at,
            before: point_of(self.before.chain),
            behind: point_of(self.behind.chain),
            clock: self.behind.clock,
        };
        self.store.write(facts, &self.records)?;
        self.before = self.behind;
        self.records.clear();
        Ok(())
    }

    /// The log was trimmed and begins here: begins again behind the next snapshot that it reaches
    /// back to; whether there is anything to be archived.
    ///
    /// # Errors
    /// There is none.
    pub fn trimmed(&mut self, first: Sequence) -> io::Result<bool> {
        self.beginnings.retain(|it| it.at.next() >= first);
        let from = self.behind.at.next();
        let goes_on = self.begin_next()?;
        // Whoever opens a window opens it for what is there.
        if from > Sequence::ZERO.next() {
            tracing::warn!(
                from = from.0,
                before = first.0,
                "these records were trimmed and are not in the archive: there is no way back to a \
                 moment among them"
            );
        }
        Ok(goes_on)
    }
}

/// Behind each whole snapshot of this log, oldest first; before the first record, if there is none.
fn beginnings(
    store: &SnapshotStore,
    incarnation: Incarnation,
    through: Sequence,
) -> io::Result<Vec<Beginning>> {
    let behind = |snapshot: Snapshot| {
        let point = snapshot.point;
        let chain = Chain { value: ChainValue(point.chain), epoch: point.epoch };
        Beginning { at: point.position.sequence, chain, clock: point.clock }
    };
    let mut whole = Vec::new();
    for candidate in store.list()? {
        match candidate {
            Candidate::Whole(snapshot) => whole.push(snapshot),
            // Perhaps the oldest, whose log must not be left out.
            Candidate::Damaged { name, why, may_be_whole: true } => {
                return Err(io::Error::other(format!("{name} cannot be read: {why}")));
            }
            Candidate::Damaged { .. } => {}
        }
    }
    let whole = whole.into_iter();
    let ours = whole.filter(|it| it.point.position.incarnation == incarnation);
    let mut found: Vec<Beginning> = ours.map(behind).filter(|it| it.at < through).collect();
    found.sort_by_key(|it| it.at);
    if found.is_empty() {
        let chain = Chain::start(incarnation);
        found.push(Beginning { at: Sequence::ZERO, chain, clock: UnixMillis(0) });
    }
    Ok(found)
}

/// Archives the log through a record, if it is not; of nothing before `needed` must there be
/// anything. Blocks. `rest` is called now and then with the
/// last record that was read, and told whether the log has to be waited for.
///
/// # Errors
/// The log or the archive cannot be read or written.
pub fn archive(
    store: &SnapshotStore,
    mut log: OpenLog,
    needed: Sequence,
    through: Sequence,
    rest: &mut dyn FnMut(Sequence, bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let begun = Archiver::begin(store, log.incarnation, needed, through, STRETCH_BYTES)?;
    let Some(mut archiver) = begun else { return Ok(()) };
    log.handle.read_from(archiver.next());
    let mut events = Vec::new();
    loop {
        log.handle.poll(&mut events);
        let is_idle = events.is_empty();
        for event in events.drain(..) {
            match event {
                LogEvent::Read(position, bytes) if archiver.take(position, &bytes)? => {
                    return Ok(());
                }
                LogEvent::Trimmed { first } => {
                    if !archiver.trimmed(first)? {
                        return Ok(());
                    }
                    log.handle.read_from(archiver.next());
                }
                LogEvent::Lost => return Err("the log was deleted or cut".into()),
                LogEvent::ReadFailed(what) => return Err(what.into()),
                _ => {}
            }
        }
        rest(archiver.behind.at, is_idle)?;
    }
}
