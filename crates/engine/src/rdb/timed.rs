//! Hashes with field expiries in the formats of Redis and of Valkey; and which of the two wrote a
//! file.
//!
//! ```text
//! Redis   24   earliest (i64) count (distance field value)…    time − earliest + 1; 0: none
//!         25   earliest (i64) listpack of field, value, time   sorted by time; 0: none
//! Valkey  22   count (field value time (i64))…                 −1: none
//! ```
//! Times are Unix times in milliseconds, little-endian.
//!
//! Source: payloads dumped by Valkey 9.1; for Redis, the format descriptions of programs that read
//! its files of releases since 7.4.

use super::{RdbError, Source, VERSION_READ, VERSION_VALKEY, kind};
use std::io::Read;

/// Valkey's time of a field that does not expire.
const NEVER: i64 = -1;

/// A field, its value and its expiry (Unix time in milliseconds).
pub(crate) type TimedField = (Vec<u8>, Vec<u8>, Option<i64>);

/// Whether files and payloads of this version are Valkey's; `None` if the version is not supported.
pub(crate) fn is_valkey(version: u32) -> Option<bool> {
    match version {
        1..=VERSION_READ => Some(false),
        VERSION_VALKEY => Some(true),
        _ => None,
    }
}

impl<R: Read> Source<R> {
    /// Reads the header of a file of Redis or Valkey; returns the version.
    ///
    /// # Errors
    /// [`RdbError`] if it is no such file, or of a version that is not supported.
    pub(crate) fn any_header(&mut self) -> Result<u32, RdbError> {
        let head: [u8; 9] = self.array()?;
        let of_redis = head.strip_prefix(b"REDIS");
        let digits = of_redis.or(head.strip_prefix(b"VALKEY"));
        let version = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let version: u32 = match version {
            Some(version @ 1..) => version,
            _ => return Err(self.damaged("no RDB header")),
        };
        match is_valkey(version) {
            Some(is_valkey) if is_valkey == of_redis.is_none() => {
                self.is_valkey = is_valkey;
                Ok(version)
            }
            _ => Err(self.unsupported(format!("RDB version {version}"))),
        }
    }

    /// Reads a field's expiry in Valkey's form.
    ///
    /// # Errors
    /// [`RdbError`] if it is none.
    pub(crate) fn field_time(&mut self) -> Result<Option<i64>, RdbError> {
        match i64::from_le_bytes(self.array()?) {
            NEVER => Ok(None),
            at @ 1.. => Ok(Some(at)),
            _ => Err(self.damaged("a time that cannot be")),
        }
    }

    /// Computes a field's expiry from its distance to the earliest one; 0 is no expiry.
    ///
    /// # Errors
    /// [`RdbError`] if it is none.
    pub(crate) fn time_from(&self, earliest: i64, distance: u64) -> Result<Option<i64>, RdbError> {
        let Some(distance) = distance.checked_sub(1) else { return Ok(None) };
        let at = earliest.checked_add_unsigned(distance).filter(|at| *at > 0);
        at.map(Some).ok_or_else(|| self.damaged("a time that cannot be"))
    }

    /// Reads the fields of a listpack that holds their times.
    ///
    /// # Errors
    /// [`RdbError`] if it is damaged.
    pub(crate) fn timed_fields(&mut self) -> Result<Vec<TimedField>, RdbError> {
        // The earliest time comes first, and is found again in the listpack.
        self.array::<8>()?;
        let mut words = self.words(kind::HASH_LISTPACK_EX)?.into_iter();
        let mut fields = Vec::with_capacity(words.len() / 3);
        while let Some(field) = words.next() {
            let (Some(value), Some(time)) = (words.next(), words.next()) else {
                return Err(self.damaged("a listpack of fields that ends amid one"));
            };
            let time = std::str::from_utf8(&time).ok().and_then(|time| time.parse::<i64>().ok());
            match time {
                Some(0) => fields.push((field, value, None)),
                Some(at @ 1..) => fields.push((field, value, Some(at))),
                _ => return Err(self.damaged("a time that cannot be")),
            }
        }
        Ok(fields)
    }
}
