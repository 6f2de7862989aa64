//! Archived records in order, stretch after stretch.

use super::stretch::StretchReader;
use crate::loading::Failure;
use archive::{Extent, LogStore, is_useless};
use base::{Incarnation, Position, Sequence};
use bytes::Bytes;
use std::io::{self, ErrorKind};

/// Reads the archived log from a record on. Of stretches that hold a record it reads the one that
/// goes furthest, and of the same records the last attempt. Where one turns out to be damaged or
/// gone, another that has the record takes its place.
pub struct ArchivedRecords {
    store: LogStore,
    incarnation: Incarnation,
    /// The published stretches when the archive was last listed, without those in `useless`.
    extents: Vec<Extent>,
    useless: Vec<Extent>,
    reading: Option<(Extent, StretchReader)>,
    next: Sequence,
}

impl ArchivedRecords {
    /// Begins at this record; `None` if it is not archived.
    ///
    /// # Errors
    /// The archive's; `InvalidData` if all stretches that have it are damaged, or another log's.
    pub fn open(store: &LogStore, from: Position) -> io::Result<Option<Self>> {
        let Position { incarnation, sequence: next } = from;
        let (store, extents) = (store.clone(), store.list()?);
        let mut records =
            Self { store, incarnation, extents, useless: Vec::new(), reading: None, next };
        Ok(records.turn()?.then_some(records))
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
        let mut damaged = None;
        loop {
            if let Some((extent, mut reader)) = self.reading.take() {
                match reader.next() {
                    Ok(Some((position, record))) => {
                        self.reading = Some((extent, reader));
                        self.next = position.sequence.next();
                        return Ok(Some((position, record)));
                    }
                    Ok(None) => {}
                    Err(error) if is_useless(&error) => {
                        damaged = damaged.or(self.give_up(extent, error));
                    }
                    Err(error) => return Err(error),
                }
            }
            match (self.turn(), damaged.take()) {
                (Ok(true), first) => damaged = first,
                (Ok(false), None) => return Ok(None),
                (Err(error), None) | (_, Some(error)) => return Err(error),
            }
        }
    }

    /// Opens a stretch that holds the next record, at that record; whether there is one.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn turn(&mut self) -> io::Result<bool> {
        let mut damaged = None;
        for is_asked in [false, true] {
            if is_asked {
                self.extents = self.store.list()?;
                self.extents.retain(|it| !self.useless.contains(it));
            }
            let next = self.next;
            let holds = |it: &Extent| it.first <= next && next <= it.last;
            let mut holding: Vec<Extent> = self.extents.iter().copied().filter(holds).collect();
            holding.sort_by_key(|it| std::cmp::Reverse((it.last, it.attempt)));
            for extent in holding {
                let from = Position { incarnation: self.incarnation, sequence: next };
                match open_in(&self.store, &extent, from) {
                    Ok(reader) => {
                        self.reading = Some((extent, reader));
                        return Ok(true);
                    }
                    Err(error) if is_useless(&error) => {
                        damaged = damaged.or(self.give_up(extent, error));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        damaged.map_or(Ok(false), Err)
    }

    /// Reads no more in this stretch. The error, unless it only says that the stretch is gone.
    fn give_up(&mut self, extent: Extent, error: io::Error) -> Option<io::Error> {
        self.extents.retain(|it| *it != extent);
        self.useless.push(extent);
        if error.kind() == ErrorKind::NotFound {
            return None;
        }
        tracing::error!("archived log is not used: {error}");
        Some(error)
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
