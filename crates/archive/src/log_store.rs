//! The log that was trimmed, or will be, in an archive: stretches of records, one behind the other.
//!
//! Two processes may archive at once, and each may have died amid it: so stretches may overlap, and
//! what lies between two may be missing. What is there is never another history's: whoever archives
//! goes on where the chain of the last one ends.

use crate::archive::{Archive, Content};
use crate::branch::Pin;
use crate::manifest::{MANIFEST, MANIFEST_BYTES_MAX, Part};
use crate::reader::PartReader;
use crate::stretch::{Stretch, StretchFacts, name_of, records_of};
use base::Sequence;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// Bytes read back at once.
const VERIFY_BYTES: usize = 256 << 10;

/// The archived log of one shard.
#[derive(Clone)]
pub struct LogStore {
    archive: Arc<dyn Archive>,
}

/// Records that are archived together, as the name says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Extent {
    pub first: Sequence,
    pub last: Sequence,
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
        let extents = published.filter_map(|entry| records_of(&entry.name));
        let mut extents: Vec<_> = extents.map(|(first, last)| Extent { first, last }).collect();
        extents.sort();
        Ok(extents)
    }

    /// The stretch that goes furthest; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn newest(&self) -> io::Result<Option<Stretch>> {
        let newest = self.list()?.into_iter().max_by_key(|extent| extent.last);
        newest.map(|extent| self.find(&extent)).transpose()
    }

    /// The stretch of these records.
    ///
    /// # Errors
    /// The archive's; `InvalidData` if its manifest or its part is damaged.
    pub fn find(&self, extent: &Extent) -> io::Result<Stretch> {
        let name = name_of(extent.first, extent.last);
        let invalid =
            |what: String| io::Error::new(ErrorKind::InvalidData, format!("{name}: {what}"));
        let bytes = self.archive.manifest(&name, MANIFEST_BYTES_MAX)?;
        let stretch = Stretch::decode(&name, &bytes);
        stretch.map_err(|why| invalid(format!("{MANIFEST}: {why}")))
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
    /// published the same ones.
    ///
    /// # Errors
    /// The archive's, or `InvalidData` if what was read back differs: nothing is published then.
    pub fn write(&self, facts: StretchFacts, records: &[u8]) -> io::Result<Stretch> {
        let name = name_of(facts.first.sequence, facts.last);
        let mut draft = match self.archive.begin(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let extent = Extent { first: facts.first.sequence, last: facts.last };
                let there = self.find(&extent)?;
                if there.facts == facts {
                    return Ok(there);
                }
                let what = format!("{name} is there with other records");
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
            begun => begun?,
        };
        let part_name = format!("{}.log", draft.part_name(0).trim_end_matches(".rdb"));
        let crc = crc32c::crc32c(records);
        let part = Part::new(&part_name, records.len() as u64, crc);
        let stretch = Stretch { name, facts, part };
        let written = (|| {
            let mut part = draft.part(&part_name)?;
            part.append(records)?;
            part.finish()?;
            let mut reader = PartReader::new(draft.read_back(&part_name)?, &stretch.part);
            let mut buffer = vec![0; VERIFY_BYTES];
            while reader.read(&mut buffer)? > 0 {}
            draft.publish(&stretch.encode())
        })();
        if let Err(error) = written {
            // What made it fail says more than what comes of that.
            let _ = draft.abandon();
            return Err(error);
        }
        Ok(stretch)
    }

    /// Removes the stretches that end before this record and that no pin needs.
    ///
    /// # Errors
    /// The archive's, once all that it lets go is gone.
    pub(crate) fn prune(&self, needed: Sequence, pins: &[Pin]) -> io::Result<()> {
        let mut failure = None;
        for Extent { first, last } in self.list()? {
            if last < needed && !pins.iter().any(|pin| pin.needs(first, last)) {
                failure = self.archive.remove(&name_of(first, last)).err().or(failure);
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
