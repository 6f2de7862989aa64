//! The log that was trimmed, or will be, in an archive: stretches of records, one behind the other.
//!
//! Two processes may archive at once, and each may have died amid it: so stretches may overlap, and
//! what lies between two may be missing. What is there is never another history's: whoever archives
//! goes on where the chain of the last one ends.

use crate::archive::Archive;
use crate::branch::Pin;
use crate::manifest::{MANIFEST, MANIFEST_BYTES_MAX, Part};
use crate::names::{Content, Extent, extent_of};
use crate::reader::PartReader;
use crate::stretch::{Stretch, StretchFacts};
use base::{Incarnation, Sequence};
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// Bytes read back at once.
const VERIFY_BYTES: usize = 256 << 10;

/// The archived log of one shard.
#[derive(Clone)]
pub struct LogStore {
    archive: Arc<dyn Archive>,
}

/// How far a log is archived behind a record.
#[derive(Debug)]
pub struct Coverage {
    /// The stretch with which it ends; `None` if nothing is.
    pub last: Option<Stretch>,
    /// Stretches that would end it, but count for nothing, and why: they are damaged, or of another
    /// log. (One amid it is looked at by whoever reads it.)
    pub useless: Vec<(Extent, String)>,
}

/// The last record through which everything behind this one is archived: this one, if what follows
/// it is not. The extents are in order.
pub fn covered(extents: &[Extent], behind: Sequence) -> Sequence {
    let mut through = behind;
    for extent in extents {
        if extent.first <= through.next() {
            through = through.max(extent.last);
        }
    }
    through
}

impl LogStore {
    /// The log in this archive.
    pub fn over(archive: Arc<dyn Archive>) -> Self {
        Self { archive }
    }

    /// Where it is, for people.
    pub fn location(&self) -> String {
        self.archive.location()
    }

    /// What is published, in order.
    ///
    /// # Errors
    /// The archive's.
    pub fn list(&self) -> io::Result<Vec<Extent>> {
        let entries = self.archive.list(Content::Log)?.into_iter();
        let published = entries.filter(|entry| entry.is_published);
        let mut extents: Vec<_> = published.filter_map(|entry| extent_of(&entry.name)).collect();
        extents.sort();
        Ok(extents)
    }

    /// The stretch of these records.
    ///
    /// # Errors
    /// The archive's, with the stretch's name; `InvalidData` if its manifest is damaged.
    pub fn find(&self, extent: &Extent) -> io::Result<Stretch> {
        let name = extent.name();
        let named =
            |kind, what: String| io::Error::new(kind, format!("{name}: {MANIFEST}: {what}"));
        let bytes = self.archive.manifest(&name, MANIFEST_BYTES_MAX);
        let bytes = bytes.map_err(|error| named(error.kind(), error.to_string()))?;
        Stretch::decode(&name, &bytes).map_err(|why| named(ErrorKind::InvalidData, why))
    }

    /// How far `log` is archived behind a record, without a gap, by these of the published
    /// stretches, in order.
    ///
    /// # Errors
    /// The archive's.
    pub fn coverage(
        &self,
        log: Incarnation,
        behind: Sequence,
        extents: &[Extent],
    ) -> io::Result<Coverage> {
        let mut useful = extents.to_vec();
        let mut useless = Vec::new();
        loop {
            let through = covered(&useful, behind);
            let last = useful.iter().rposition(|it| it.last == through);
            let Some(index) = last.filter(|_| through > behind) else {
                return Ok(Coverage { last: None, useless });
            };
            let why = match self.find(&useful[index]) {
                Ok(stretch) if stretch.facts.first.incarnation == log => {
                    return Ok(Coverage { last: Some(stretch), useless });
                }
                Ok(stretch) => format!("{} is of another log", stretch.name),
                Err(error) if error.kind() == ErrorKind::InvalidData => error.to_string(),
                Err(error) => return Err(error),
            };
            useless.push((useful.remove(index), why));
        }
    }

    /// Its records, one behind the other, as a stream that checks itself.
    ///
    /// # Errors
    /// The archive's.
    pub fn open(&self, stretch: &Stretch) -> io::Result<PartReader> {
        let stored = self.archive.open(&stretch.name, &stretch.part.name)?;
        Ok(PartReader::new(stored, &stretch.part))
    }

    /// Writes records, reads them back, and publishes them as a stretch. Another process may have
    /// published the same ones: they are read through. What is there under their name and is of no
    /// use stays where it is, and they get the next one: who else repairs it could remove what this
    /// process publishes in its place.
    ///
    /// # Errors
    /// The archive's, or `InvalidData` if what was read back differs: nothing is published then.
    /// `AlreadyExists` while another process writes it.
    pub fn write(&self, facts: StretchFacts, records: &[u8]) -> io::Result<Stretch> {
        let mut extent = Extent::of(facts.first.sequence, facts.last);
        let mut draft = loop {
            match self.archive.begin(&extent.name()) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    match self.there(&extent, &facts)? {
                        Ok(there) => return Ok(there),
                        Err(_) if extent.attempt < Extent::ATTEMPT_MAX => extent.attempt += 1,
                        Err(why) => return Err(why),
                    }
                }
                begun => break begun?,
            }
        };
        let name = extent.name();
        let part_name = format!("{}.log", draft.part_name(0).trim_end_matches(".rdb"));
        let crc = crc32c::crc32c(records);
        let part = Part::new(&part_name, records.len() as u64, crc);
        let stretch = Stretch { name, facts, part };
        let written = (|| {
            let mut part = draft.part(&part_name)?;
            part.append(records)?;
            part.finish()?;
            read_through(PartReader::new(draft.read_back(&part_name)?, &stretch.part))?;
            draft.publish(&stretch.encode())
        })();
        if let Err(error) = written {
            // What made it fail says more than what comes of that.
            let _ = draft.abandon();
            return Err(error);
        }
        Ok(stretch)
    }

    /// The published stretch that has this name, or why it is of no use, now and later.
    fn there(
        &self,
        extent: &Extent,
        facts: &StretchFacts,
    ) -> io::Result<Result<Stretch, io::Error>> {
        let name = extent.name();
        let invalid =
            |what: &str| io::Error::new(ErrorKind::InvalidData, format!("{name}: {what}"));
        let there = match self.find(extent) {
            Err(error) if error.kind() == ErrorKind::InvalidData => return Ok(Err(error)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let what = format!("another process is writing {name}, or has left it so");
                return Err(io::Error::new(ErrorKind::AlreadyExists, what));
            }
            found => found?,
        };
        if there.facts.first.incarnation != facts.first.incarnation {
            return Ok(Err(invalid("it is of another log")));
        }
        if there.facts != *facts {
            return Err(invalid("it is there with other records"));
        }
        Ok(match self.open(&there).and_then(read_through) {
            Ok(()) => Ok(there),
            Err(error) if is_useless(&error) => Err(invalid(&error.to_string())),
            Err(error) => return Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
        })
    }

    /// Removes the stretches that end before this record and that no pin needs.
    ///
    /// # Errors
    /// The archive's, once all that it lets go is gone.
    pub(crate) fn prune(&self, needed: Sequence, pins: &[Pin]) -> io::Result<()> {
        let mut failure = None;
        for extent in self.list()? {
            let is_pinned = pins.iter().any(|pin| pin.needs(extent.first, extent.last));
            if extent.last < needed && !is_pinned {
                failure = self.archive.remove(&extent.name()).err().or(failure);
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// `true` if an error in reading a stretch says that the stretch is damaged or gone, for good.
pub fn is_useless(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::NotFound)
}

/// Reads a part through its end.
fn read_through(mut reader: PartReader) -> io::Result<()> {
    let mut buffer = vec![0; VERIFY_BYTES];
    while reader.read(&mut buffer)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_has_no_gap() {
        let extent = |(first, last)| Extent::of(Sequence(first), Sequence(last));
        let covered = |extents: &[(u64, u64)], behind| {
            let extents: Vec<Extent> = extents.iter().copied().map(extent).collect();
            covered(&extents, Sequence(behind)).0
        };
        assert_eq!(covered(&[], 7), 7);
        assert_eq!(covered(&[(1, 5), (4, 9), (10, 12)], 3), 12);
        assert_eq!(covered(&[(1, 5), (7, 12)], 3), 5, "6 is missing");
        assert_eq!(covered(&[(5, 12)], 3), 3, "4 is missing");
        assert_eq!(covered(&[(1, 12)], 11), 12);
        assert_eq!(covered(&[(1, 12)], 20), 20);
    }
}
