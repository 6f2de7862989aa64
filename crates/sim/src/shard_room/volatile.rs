//! Answers about keys that expire. Each value is written once, so whoever was told that one is
//! gone, by expiry or by another value, must never be shown it again; nor may anybody who asks
//! afterwards, whomever he asks and whoever leads by then.
//!
//! ```text
//! SET v  ├───┤
//! GET           ├──┤ nothing: v is gone         ├──┤ v: it came back
//! ```
//! What a replica shows that was not asked for the newest may be old. So that it shows nothing
//! proves that a value is gone only to who has seen the value on the same connection; and that it
//! shows a value is wrong only for who has seen there that it is gone.

use super::chronicle::text;
use std::collections::{BTreeMap, BTreeSet};

type Bytes = Vec<u8>;

/// When something was asked and answered, in nanoseconds of true time.
type Asked = (u64, u64);

/// Values that one connection was shown, and then shown to be gone.
#[derive(Default)]
pub struct Witnessed {
    there: BTreeSet<Bytes>,
    gone: BTreeSet<Bytes>,
}

impl Witnessed {
    /// The connection is over.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// One value that is known to have been written.
struct Value {
    /// Since when that is known.
    since: u64,
    /// Since when it is known to be gone.
    gone: Option<u64>,
}

/// All values of all keys that expire.
#[derive(Default)]
pub struct Volatiles {
    values: BTreeMap<Bytes, BTreeMap<Bytes, Value>>,
}

impl Volatiles {
    /// A write was acknowledged; how many values are gone for that.
    pub fn written(&mut self, key: &[u8], value: &[u8], asked: Asked) -> u64 {
        let values = self.values.entry(key.to_vec()).or_default();
        let gone = lose(values, asked, |other| other != value);
        values.entry(value.to_vec()).or_insert(Value { since: asked.1, gone: None });
        gone
    }

    /// Nothing was read; how many values are gone for that.
    pub fn gone(&mut self, key: &[u8], asked: Asked, seen: &mut Witnessed, newest: bool) -> u64 {
        let values = self.values.entry(key.to_vec()).or_default();
        let (there, gone) = (&seen.there, &mut seen.gone);
        gone.extend(values.keys().filter(|value| there.contains(*value)).cloned());
        lose(values, asked, |value| newest || there.contains(value))
    }

    /// A value was read.
    ///
    /// # Errors
    /// It was gone.
    pub fn there(
        &mut self,
        key: &[u8],
        value: &[u8],
        asked: Asked,
        seen: &mut Witnessed,
        newest: bool,
    ) -> Result<(), String> {
        let values = self.values.entry(key.to_vec()).or_default();
        let found = values.entry(value.to_vec()).or_insert(Value { since: asked.1, gone: None });
        let was_gone = found.gone.is_some_and(|gone| gone < asked.0);
        if newest && was_gone || seen.gone.contains(value) {
            return Err(format!("{} was gone, and {} was read again", text(key), text(value)));
        }
        seen.there.insert(value.to_vec());
        Ok(())
    }
}

/// Values that were there when something was asked are gone when it was answered.
fn lose(
    values: &mut BTreeMap<Bytes, Value>,
    (asked, answered): Asked,
    is_meant: impl Fn(&[u8]) -> bool,
) -> u64 {
    let mut lost = 0;
    for (_, value) in values.iter_mut().filter(|(name, _)| is_meant(name)) {
        if value.since < asked && value.gone.is_none() {
            value.gone = Some(answered);
            lost += 1;
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_gone_is_read_by_nobody_who_asks_later() {
        let (mut volatiles, mut seen) = (Volatiles::default(), Witnessed::default());
        volatiles.written(b"k", b"v", (0, 1));
        assert_eq!(volatiles.gone(b"k", (2, 5), &mut seen, true), 1);
        assert!(volatiles.there(b"k", b"v", (4, 6), &mut seen, true).is_ok(), "both at once");
        assert!(volatiles.there(b"k", b"v", (6, 7), &mut seen, false).is_ok(), "an old replica");
        assert!(volatiles.there(b"k", b"v", (6, 7), &mut seen, true).is_err());
    }

    #[test]
    fn a_replica_that_is_behind_proves_nothing_but_to_who_saw_the_value_there() {
        let (mut volatiles, mut seen) = (Volatiles::default(), Witnessed::default());
        volatiles.written(b"k", b"v", (0, 1));
        assert_eq!(volatiles.gone(b"k", (2, 3), &mut seen, false), 0);
        assert!(volatiles.there(b"k", b"v", (4, 5), &mut seen, false).is_ok());
        assert_eq!(volatiles.gone(b"k", (6, 7), &mut seen, false), 1);
        assert!(volatiles.there(b"k", b"v", (6, 8), &mut seen, false).is_err());
        let mut other = Witnessed::default();
        assert!(volatiles.there(b"k", b"v", (8, 9), &mut other, false).is_ok());
        assert!(volatiles.there(b"k", b"v", (8, 9), &mut other, true).is_err());
    }

    #[test]
    fn another_value_takes_the_place_of_those_before_it() {
        let (mut volatiles, mut seen) = (Volatiles::default(), Witnessed::default());
        volatiles.written(b"k", b"v", (0, 1));
        volatiles.written(b"k", b"w", (2, 3));
        assert!(volatiles.there(b"k", b"v", (4, 5), &mut seen, true).is_err());
        assert!(volatiles.there(b"k", b"w", (4, 5), &mut seen, true).is_ok());
    }
}
