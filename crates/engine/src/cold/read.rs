//! Contents of records for who cannot wait otherwise: what lies on the file is read at once.

use super::{ColdStore, add};
use crate::refusal::Refusal;
use tier::{Place, Read};

impl ColdStore {
    /// The content of a record if it need not be read from the file.
    pub fn in_memory(&self, place: Place) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        self.tier.in_memory(place, &mut content).then_some(content)
    }

    /// The contents of records, in their order, wherever they lie. Those on the file are read
    /// together, in the order of the file, which a disk may like better.
    ///
    /// # Errors
    /// One is lost, which is noted.
    pub(crate) fn contents_at(
        &self,
        places: impl Iterator<Item = Place>,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let (mut contents, mut reads) = (Vec::new(), Vec::new());
        for place in places {
            let content = self.in_memory(place);
            if content.is_none() {
                reads.push((self.tier.read(place), contents.len()));
            }
            contents.push(content.unwrap_or_default());
        }
        if reads.is_empty() {
            return Ok(contents);
        }
        reads.sort_unstable_by_key(|(read, _)| read.offset());
        let (asked, indices): (Vec<Read>, Vec<usize>) = reads.into_iter().unzip();
        let tried = self.source.read_all(&asked);
        assert_eq!(tried.len(), asked.len(), "each read has an outcome");
        for ((read, index), first) in asked.iter().zip(indices).zip(tried) {
            contents[index] = self.proven(read, first)?;
        }
        Ok(contents)
    }

    /// The content of a record that was read once. If that failed it is read once more.
    fn proven(&self, read: &Read, first: Result<Vec<u8>, String>) -> Result<Vec<u8>, Refusal> {
        self.count_try(read, &first);
        let content = first.or_else(|_| {
            let second = self.source.read(read);
            self.count_try(read, &second);
            second
        });
        content.map_err(|why| {
            self.fail(format!("a value that was moved to the tier is lost there: {why}"));
            Refusal::LOST
        })
    }

    fn count_try(&self, read: &Read, outcome: &Result<Vec<u8>, String>) {
        let statistics = &self.statistics;
        add(&statistics.blocking_reads, 1);
        add(&statistics.blocking_read_bytes, read.length() as u64);
        add(&statistics.failed_blocking_reads, u64::from(outcome.is_err()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use crate::keyspace::Keyspace;
    use crate::settings::Settings;
    use crate::testing::{ALL_COLD, MemoryFile};
    use base::{DatabaseId, HashKey, UnixMillis};

    const HERE: DatabaseId = DatabaseId(0);

    /// Two values on a file.
    fn two() -> (Keyspace, MemoryFile) {
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(7));
        let file = MemoryFile::default();
        file.serve(&mut keyspace, ALL_COLD);
        for key in [b"one", b"two"] {
            let effect = Effect::SetString { value: &[7; 500], expire_at: None };
            keyspace.apply(HERE, key, &effect).expect("it is a string");
        }
        keyspace.spill_all(UnixMillis(1));
        file.write(&mut keyspace);
        (keyspace, file)
    }

    /// Reads of the file, those that failed, and bytes.
    fn counted(keyspace: &Keyspace) -> (u64, u64, u64) {
        let statistics = &keyspace.cold().expect("it has a store").statistics;
        let failed = statistics.failed_blocking_reads.get();
        (statistics.blocking_reads.get(), failed, statistics.blocking_read_bytes.get())
    }

    #[test]
    fn a_read_that_fails_is_tried_once_more_and_counted() {
        let (mut keyspace, file) = two();
        file.failing_reads.set(1);
        keyspace.fetch_now(HERE, b"one").expect("the second try brings it");
        assert_eq!(counted(&keyspace), (2, 1, 8 << 10));
        assert_eq!(keyspace.cold_failure(), None);
        file.failing_reads.set(2);
        assert_eq!(keyspace.fetch_now(HERE, b"two"), Err(Refusal::LOST));
        assert_eq!(counted(&keyspace), (4, 3, 16 << 10));
        let why = keyspace.cold_failure().expect("it is noted");
        assert!(why.starts_with("a value that was moved to the tier is lost there: "), "{why}");
    }

    #[test]
    fn those_that_are_read_together_are_tried_again_each_by_itself() {
        let (mut keyspace, file) = two();
        let append = Effect::Append { bytes: b"more" };
        let effects = [(HERE, &b"one"[..], append), (HERE, b"two", append)];
        file.failing_reads.set(1);
        assert_eq!(keyspace.fetch_for_effects(&effects), Ok(2));
        assert_eq!(counted(&keyspace), (3, 1, 12 << 10));
        assert_eq!(keyspace.cold_keys(), 0);
    }

    #[test]
    fn a_look_tries_again_as_well() {
        let (keyspace, file) = two();
        file.failing_reads.set(2);
        let entries = keyspace.database(HERE).table().iter();
        let looked = keyspace.look_at_each(entries, |_| std::ops::ControlFlow::Continue(()));
        assert!(looked.is_ok());
        assert_eq!(counted(&keyspace), (4, 2, 16 << 10));
    }
}
