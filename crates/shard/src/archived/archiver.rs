//! Copies the log into the archive, in order, from where the archive ends.

use super::{at, chain_of, point_of};
use crate::loading::{Failure, OpenLog};
use archive::{Candidate, LogStore, Snapshot, SnapshotStore, StretchFacts};
use base::{Incarnation, Position, Sequence, UnixMillis};
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

/// A copying under way. What was read of the log goes in, record by record.
pub struct Archiver {
    store: LogStore,
    stretch_bytes: usize,
    incarnation: Incarnation,
    through: Sequence,
    /// Behind the last record that was taken.
    behind: Beginning,
    /// Where else it may begin, if the log does not reach back: in order.
    beginnings: Vec<Beginning>,
    /// The stretch that is being gathered: where the chain stands before it, and its records.
    before: Beginning,
    records: Vec<u8>,
}

impl Archiver {
    /// Begins where the archive ends; if it has nothing, behind the oldest snapshot of this record
    /// or a later one, as to no earlier moment is there a way back. `None` if everything through
    /// `through` is archived.
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
        let newest = log.list()?.into_iter().max_by_key(|extent| extent.last);
        if newest.as_ref().is_some_and(|extent| extent.last >= through) {
            return Ok(None);
        }
        let mut beginnings = beginnings(store, incarnation, through)?;
        if newest.is_none() {
            beginnings.retain(|it| it.at >= needed);
        }
        let Some(oldest) = beginnings.first().map(|it| it.at) else {
            let what = format!("no snapshot of record {needed} or a later one is there");
            return Err(io::Error::other(what));
        };
        if let Some(extent) = newest.filter(|extent| extent.last >= oldest) {
            match log.find(&extent) {
                Ok(stretch) if stretch.facts.first.incarnation != incarnation => {
                    let what = format!("{} is of another log", stretch.name);
                    return Err(io::Error::new(ErrorKind::InvalidData, what));
                }
                Ok(stretch) => {
                    let chain = chain_of(stretch.facts.behind);
                    let clock = stretch.facts.clock;
                    beginnings.retain(|it| it.at > extent.last);
                    beginnings.insert(0, Beginning { at: extent.last, chain, clock });
                }
                // What it holds is archived once more.
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    tracing::error!("the newest archived log is damaged: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        let first = beginnings.remove(0);
        Ok(Some(Self {
            store: log,
            stretch_bytes,
            incarnation,
            through,
            behind: first,
            beginnings,
            before: first,
            records: Vec::new(),
        }))
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
    /// back to.
    ///
    /// # Errors
    /// There is none.
    pub fn trimmed(&mut self, first: Sequence) -> io::Result<()> {
        self.beginnings.retain(|it| it.at.next() >= first && it.at < self.through);
        if self.beginnings.is_empty() {
            let what = format!("the log was trimmed and begins at record {first}");
            return Err(io::Error::other(what));
        }
        let next = self.beginnings.remove(0);
        tracing::warn!(
            from = self.behind.at.next().0,
            through = next.at.0,
            "these records were trimmed and are not in the archive: there is no way back to a \
             moment among them"
        );
        self.behind = next;
        self.before = next;
        self.records.clear();
        Ok(())
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
    let whole = store.list()?.into_iter().filter_map(|candidate| match candidate {
        Candidate::Whole(snapshot) => Some(snapshot),
        Candidate::Damaged { .. } => None,
    });
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
                    archiver.trimmed(first)?;
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
