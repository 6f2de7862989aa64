//! Archived records in order, stretch after stretch.

use super::stretch::StretchReader;
use archive::{Extent, LogStore};
use base::{Incarnation, Position, Sequence};
use bytes::Bytes;
use std::io::{self, ErrorKind};

/// Reads the archived log from a record on.
pub struct ArchivedRecords {
    store: LogStore,
    incarnation: Incarnation,
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
        let Some(reader) = open_at(store, from)? else { return Ok(None) };
        Ok(Some(Self { store: store.clone(), incarnation, reader, next }))
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
            match open_at(&self.store, from)? {
                Some(reader) => self.reader = reader,
                None => return Ok(None),
            }
        }
    }
}

/// Opens the stretch that holds a record, at that record; of several the one that goes furthest.
fn open_at(store: &LogStore, from: Position) -> io::Result<Option<StretchReader>> {
    let sequence = from.sequence;
    let extents = store.list()?.into_iter();
    let holds = |it: &Extent| it.first <= sequence && sequence <= it.last;
    let Some(extent) = extents.filter(holds).max_by_key(|it| it.last) else { return Ok(None) };
    let stretch = store.find(&extent)?;
    if stretch.facts.first.incarnation != from.incarnation {
        let what = format!("{} is of another log", stretch.name);
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    let mut reader = StretchReader::new(&stretch, store.open(&stretch)?);
    for _ in extent.first.0..sequence.0 {
        reader.next()?;
    }
    Ok(Some(reader))
}
