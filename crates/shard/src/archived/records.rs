//! Archived records in order, stretch after stretch.

use super::stretch::StretchReader;
use crate::loading::Failure;
use archive::{Extent, LogStore};
use base::{Incarnation, Position, Sequence};
use bytes::Bytes;
use std::io::{self, ErrorKind};

/// Reads the archived log from a record on.
pub struct ArchivedRecords {
    store: LogStore,
    incarnation: Incarnation,
    /// What was archived when it was last asked.
    extents: Vec<Extent>,
    reader: StretchReader,
    next: Sequence,
}

impl ArchivedRecords {
    /// Begins at this record; `None` if it is not archived.
    ///
    /// # Errors
    /// The archive's; `InvalidData` if the stretch is damaged, or another log's.
    pub fn open(store: &LogStore, from: Position) -> io::Result<Option<Self>> {
        let Position { incarnation, sequence: next } = from;
        let extents = store.list()?;
        let Some(reader) = open_at(store, &extents, from)? else { return Ok(None) };
        Ok(Some(Self { store: store.clone(), incarnation, extents, reader, next }))
    }

    /// The record that comes next.
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// The next record; `None` if it is not archived.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn next(&mut self) -> io::Result<Option<(Position, Bytes)>> {
        loop {
            if let Some((position, record)) = self.reader.next()? {
                self.next = position.sequence.next();
                return Ok(Some((position, record)));
            }
            let from = Position { incarnation: self.incarnation, sequence: self.next };
            if let Some(reader) = open_at(&self.store, &self.extents, from)? {
                self.reader = reader;
                continue;
            }
            self.extents = self.store.list()?;
            match open_at(&self.store, &self.extents, from)? {
                Some(reader) => self.reader = reader,
                None => return Ok(None),
            }
        }
    }
}

/// Reads what is archived from a record through another, and forgets it. `rest` is called now and
/// then.
///
/// # Errors
/// Something of it is damaged or missing.
pub fn verify(
    store: &LogStore,
    from: Position,
    through: Sequence,
    rest: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    if from.sequence > through {
        return Ok(());
    }
    let missing = |at: Sequence| format!("record {at} is not archived");
    let records = ArchivedRecords::open(store, from)?;
    let mut records = records.ok_or_else(|| missing(from.sequence))?;
    while records.next_sequence() <= through {
        let next = records.next_sequence();
        records.next()?.ok_or_else(|| missing(next))?;
        if next.0.is_multiple_of(1024) {
            rest()?;
        }
    }
    Ok(())
}

/// Opens a stretch that holds a record, at that record: of several the one that goes furthest and
/// is whole, and of the same records the last attempt, as those before it are damaged.
fn open_at(
    store: &LogStore,
    extents: &[Extent],
    from: Position,
) -> io::Result<Option<StretchReader>> {
    let sequence = from.sequence;
    let holds = |it: &&Extent| it.first <= sequence && sequence <= it.last;
    let mut holding: Vec<&Extent> = extents.iter().filter(holds).collect();
    holding.sort_by_key(|it| std::cmp::Reverse((it.last, it.attempt)));
    let mut damaged = None;
    for extent in holding {
        match open_in(store, extent, from) {
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                tracing::error!("archived log is not used: {error}");
                damaged = damaged.or(Some(error));
            }
            opened => return opened.map(Some),
        }
    }
    damaged.map_or(Ok(None), Err)
}

fn open_in(store: &LogStore, extent: &Extent, from: Position) -> io::Result<StretchReader> {
    let stretch = store.find(extent)?;
    if stretch.facts.first.incarnation != from.incarnation {
        let what = format!("{} is of another log", stretch.name);
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    let mut reader = StretchReader::new(&stretch, store.open(&stretch)?);
    for _ in extent.first.0..from.sequence.0 {
        reader.next()?;
    }
    Ok(reader)
}
