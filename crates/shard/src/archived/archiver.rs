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

    /// `true` if every moment of the restore window that ends at `now` is led to from here.
    fn reaches(&self, limits: &archive::Limits, now: UnixMillis) -> bool {
        self.at == Sequence::ZERO || limits.is_window_reached(self.clock, now)
    }
}

/// Who needs log in the archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A restore window that ends at this time, so all that leads back to its moments: the log from
    /// its beginning, to which one goes back without a snapshot, as long as no snapshot reaches the
    /// window; then the log behind the oldest one.
    Window(UnixMillis),
    /// Who begins with the snapshot of this record, or a later one. Where something is archived
    /// already, that goes on, so that no gap is left behind it.
    Behind(Sequence),
}

/// A copying under way. What was read of the log goes in, record by record.
pub struct Archiver {
    store: LogStore,
    stretch_bytes: usize,
    incarnation: Incarnation,
    through: Sequence,
    /// Behind the last record that was taken.
    behind: Beginning,
    /// When the restore window ends, if it is for one, and how long it is.
    window_ends: Option<UnixMillis>,
    limits: archive::Limits,
    /// What is archived, in order, but for what turned out to be of no use.
    extents: Vec<Extent>,
    useless: Vec<Extent>,
    /// Behind this record all is archived, up to where it stands.
    led_from: Sequence,
    /// Where else it may begin, if the log does not reach back: in order.
    beginnings: VecDeque<Beginning>,
    /// The stretch that is being gathered: where the chain stands before it, and its records.
    before: Beginning,
    records: Vec<u8>,
}

impl Archiver {
    /// Begins with what is needed first, or where the archive ends that begins there.
    ///
    /// # Errors
    /// The archive's.
    pub fn begin(
        store: &SnapshotStore,
        incarnation: Incarnation,
        need: Need,
        through: Sequence,
        stretch_bytes: usize,
    ) -> io::Result<Self> {
        let log = store.log();
        let extents = log.list()?;
        let mut beginnings = beginnings(store, incarnation, through)?;
        let limits = store.limits();
        let (mut is_needed_whole, mut window_ends) = (false, None);
        match need {
            Need::Behind(at) if extents.is_empty() => beginnings.retain(|it| it.at >= at),
            Need::Behind(_) => {}
            Need::Window(now) => {
                window_ends = Some(now);
                let oldest = beginnings.first();
                is_needed_whole = !oldest.is_some_and(|it| it.reaches(&limits, now));
            }
        }
        if is_needed_whole {
            let chain = Chain::start(incarnation);
            beginnings.insert(0, Beginning { chain, ..Beginning::START });
        }
        let mut archiver = Self {
            window_ends,
            limits,
            useless: Vec::new(),
            led_from: Sequence::ZERO,
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
        archiver.begin_next()?;
        Ok(archiver)
    }

    /// Begins behind the next snapshot, or where the archive ends that begins there.
    fn begin_next(&mut self) -> io::Result<()> {
        let Some(beginning) = self.beginnings.pop_front() else {
            return Err(io::Error::other("no snapshot is there that the log reaches back to"));
        };
        let behind = self.behind_archived(beginning)?;
        self.led_from = beginning.at;
        self.behind = behind;
        self.before = behind;
        self.records.clear();
        Ok(())
    }

    /// Whether everything is archived that was to be.
    pub fn is_done(&self) -> bool {
        self.behind.at >= self.through
    }

    /// The record behind which all is archived, up to the end. No snapshot leads to what is missing
    /// before it.
    pub fn led_from(&self) -> Sequence {
        self.led_from
    }

    /// Where the archive ends that begins there. What is of no use ends it: what that should hold
    /// is archived once more, if the log still has it.
    fn behind_archived(&mut self, beginning: Beginning) -> io::Result<Beginning> {
        let found = self.store.coverage(self.incarnation, beginning.at, &self.extents)?;
        for (extent, why) in found.useless {
            tracing::error!("archived log counts for nothing: {why}");
            self.extents.retain(|it| *it != extent);
            self.useless.push(extent);
        }
        Ok(found.last.map_or(beginning, |Stretch { facts, .. }| {
            let (chain, clock) = (chain_of(facts.behind), facts.clock);
            Beginning { at: facts.last, chain, clock }
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
        let written = self.store.write(facts, &self.records)?;
        if written.name != Extent::of(facts.first.sequence, facts.last).name() {
            tracing::warn!(
                name = written.name,
                "these records were archived before, and what was there is of no use"
            );
        }
        self.before = self.behind;
        self.records.clear();
        Ok(())
    }

    /// The log was trimmed and begins here: begins again behind the next snapshot that it reaches
    /// back to, or that the archive leads on from to where it does.
    ///
    /// # Errors
    /// There is no such snapshot; the archive's.
    pub fn trimmed(&mut self, first: Sequence) -> io::Result<()> {
        // What this process has written is there by now, and what whoever trimmed it has.
        self.extents = self.store.list()?;
        self.extents.retain(|it| !self.useless.contains(it));
        let extents = &self.extents;
        self.beginnings.push_front(self.before);
        self.beginnings.retain(|it| covered(extents, it.at).next() >= first);
        let (left, led_from) = (self.before.at, self.led_from);
        let next = self.beginnings.front().copied();
        self.begin_next()?;
        if self.led_from == left {
            self.led_from = led_from;
        }
        let reaches = |it: Beginning| self.window_ends.map(|now| it.reaches(&self.limits, now));
        // Whoever opens a window opens it for what is there.
        if left > Sequence::ZERO
            && covered(&self.extents, left).next() < first
            && next.and_then(reaches) != Some(true)
        {
            tracing::warn!(
                from = left.next().0,
                before = first.0,
                "these records were trimmed and are not in the archive: there is no way back to a \
                 moment among them"
            );
        }
        Ok(())
    }
}

/// Behind each whole snapshot of this log through a record, oldest first; before the first record,
/// if there is none.
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
    let mut found: Vec<Beginning> = ours.map(behind).filter(|it| it.at <= through).collect();
    found.sort_by_key(|it| it.at);
    if found.is_empty() {
        let chain = Chain::start(incarnation);
        found.push(Beginning { at: Sequence::ZERO, chain, clock: UnixMillis(0) });
    }
    Ok(found)
}

/// Archives what is needed of the log through a record, if it is not. Blocks. `rest` is called now
/// and then with the last record that was read, and told whether the log has to be waited for. The
/// record behind which all is archived then: no snapshot leads to what is missing before it.
///
/// # Errors
/// The log or the archive cannot be read or written.
pub fn archive(
    store: &SnapshotStore,
    mut log: OpenLog,
    need: Need,
    through: Sequence,
    rest: &mut dyn FnMut(Sequence, bool) -> Result<(), Failure>,
) -> Result<Sequence, Failure> {
    let mut archiver = Archiver::begin(store, log.incarnation, need, through, STRETCH_BYTES)?;
    if archiver.is_done() {
        return Ok(archiver.led_from());
    }
    log.handle.read_from(archiver.next());
    let mut events = Vec::new();
    loop {
        log.handle.poll(&mut events);
        let is_idle = events.is_empty();
        for event in events.drain(..) {
            match event {
                LogEvent::Read(position, bytes) if archiver.take(position, &bytes)? => {
                    return Ok(archiver.led_from());
                }
                LogEvent::Trimmed { first } => {
                    archiver.trimmed(first)?;
                    if archiver.is_done() {
                        return Ok(archiver.led_from());
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
