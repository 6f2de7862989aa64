//! Looks at many entries with their values, one after another, which fetches none of them.

use super::{add, cold_place};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::EntryRef;
use std::ops::ControlFlow;
use tier::Place;

/// Entries whose values are read together, and bytes of these as they lie in the store; one value
/// may exceed them. They are in memory meanwhile, and nobody counts them.
const LOOKED_AT_ONCE: usize = 256;
const LOOKED_BYTES_MAX: usize = 1 << 20;

impl Keyspace {
    /// Calls back with each of these entries and its value, until it breaks. Values that are not in
    /// memory are read several at a time, and stay where they are.
    ///
    /// # Errors
    /// One is lost, which is noted.
    pub fn look_at_each<'a>(
        &'a self,
        mut entries: impl Iterator<Item = EntryRef<'a>>,
        mut each: impl FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Refusal> {
        if self.cold_keys() == 0 {
            return Ok(entries.try_for_each(each));
        }
        let mut batch = Vec::with_capacity(LOOKED_AT_ONCE);
        loop {
            let mut bytes = 0;
            while batch.len() < LOOKED_AT_ONCE
                && bytes < LOOKED_BYTES_MAX
                && let Some(entry) = entries.next()
            {
                bytes += cold_place(entry).map_or(0, Place::length);
                batch.push(entry);
            }
            if batch.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            let mut contents = self.read_together(&batch)?.into_iter();
            for entry in batch.drain(..) {
                let looked_at = match entry.is_cold() {
                    false => each(entry),
                    true => {
                        let content = contents.next().ok_or(Refusal::LOST)?;
                        let whole = self.decoded(entry, &content).ok_or(Refusal::LOST)?;
                        each(whole.as_ref())
                    }
                };
                if looked_at.is_break() {
                    return Ok(looked_at);
                }
            }
        }
    }

    /// The contents of those of these entries whose values are not in memory, in their order.
    fn read_together(&self, entries: &[EntryRef<'_>]) -> Result<Vec<Vec<u8>>, Refusal> {
        let Some(cold) = self.cold.as_deref() else { return Ok(Vec::new()) };
        let contents = cold.contents_at(entries.iter().filter_map(|entry| cold_place(*entry)))?;
        add(&cold.statistics.looked_at, contents.len() as u64);
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use crate::keyspace::Keyspace;
    use crate::settings::Settings;
    use crate::testing::{ALL_COLD, MemoryFile};
    use crate::value::StringValue;
    use base::{DatabaseId, HashKey, UnixMillis};
    use std::collections::BTreeMap;

    const HERE: DatabaseId = DatabaseId(0);

    /// Four times as many values as are read together; every fifth is in memory.
    fn thousand() -> (Keyspace, MemoryFile) {
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(7));
        let file = MemoryFile::default();
        file.serve(&mut keyspace, ALL_COLD);
        for number in 0..1000_u32 {
            let effect = Effect::SetString { value: &value(number), expire_at: None };
            keyspace.apply(HERE, &number.to_le_bytes(), &effect).expect("it is a string");
        }
        keyspace.spill_all(UnixMillis(1));
        file.write(&mut keyspace);
        for number in (0..1000_u32).step_by(5) {
            keyspace.fetch_now(HERE, &number.to_le_bytes()).expect("it is there");
        }
        (keyspace, file)
    }

    fn value(number: u32) -> Vec<u8> {
        number.to_le_bytes().repeat(50)
    }

    fn blocking_reads(keyspace: &Keyspace) -> u64 {
        keyspace.cold().expect("it has a store").statistics.blocking_reads.get()
    }

    #[test]
    fn many_values_are_looked_at_and_stay_where_they_are() {
        let (keyspace, _file) = thousand();
        let before = blocking_reads(&keyspace);
        let mut seen = BTreeMap::new();
        let looked = keyspace.look_at_each(keyspace.database(HERE).table().iter(), |entry| {
            let text = StringValue::of(entry).expect("it is a string").to_vec();
            assert!(seen.insert(entry.key().to_vec(), text).is_none(), "each comes once");
            ControlFlow::Continue(())
        });
        assert_eq!(looked, Ok(ControlFlow::Continue(())));
        let all = (0..1000_u32).map(|number| (number.to_le_bytes().to_vec(), value(number)));
        assert_eq!(seen, all.collect());
        assert_eq!((keyspace.cold_keys(), blocking_reads(&keyspace) - before), (800, 800));
    }

    #[test]
    fn who_has_seen_enough_is_shown_no_more() {
        let (keyspace, _file) = thousand();
        let mut seen = 0;
        let looked = keyspace.look_at_each(keyspace.database(HERE).table().iter(), |_| {
            seen += 1;
            if seen == 300 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((looked, seen), (Ok(ControlFlow::Break(())), 300));
    }

    #[test]
    fn a_value_that_is_lost_ends_the_looking_and_is_noted() {
        let (keyspace, file) = thousand();
        file.bytes.borrow_mut().fill(0);
        let looked = keyspace.look_at_each(keyspace.database(HERE).table().iter(), |entry| {
            assert!(StringValue::of(entry).is_ok(), "no value is made up");
            ControlFlow::Continue(())
        });
        assert_eq!(looked, Err(Refusal::LOST));
        assert!(keyspace.cold_failure().is_some());
    }
}
