//! Effects on strings.

use super::{Applied, Hashed};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::text::{Digits, STRING_BYTES_MAX, StringValue, payload_of};
use crate::value::{Value, type_name};
use base::DatabaseId;
use structures::entry::Payload;
use structures::heap::ByteVec;

/// Where bytes end that begin at this offset of a string, if a string can be as long. No command
/// lets it through, a damaged record might.
fn end_of(offset: u64, bytes: &[u8]) -> Result<usize, Refusal> {
    let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= STRING_BYTES_MAX);
    end.and_then(|end| usize::try_from(end).ok()).ok_or(Refusal::TOO_LONG)
}

impl Keyspace {
    pub(super) fn set_string(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        value: &[u8],
        expire_at: Option<i64>,
    ) -> Applied {
        if self.overwrite_string(database, key, value, expire_at) {
            return Applied::Changed;
        }
        self.put(database, key.hash, key.name, payload_of(value), expire_at)
    }

    /// Overwrites a string in its own allocation, if the new one fits and the expiry stays none.
    fn overwrite_string(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        value: &[u8],
        expire_at: Option<i64>,
    ) -> bool {
        let access = crate::access::fresh(self.now, &self.settings);
        let Self { databases, cold, .. } = self;
        let db = &mut databases[database.0 as usize];
        let Some(mut found) = db.table.find_mut(key.hash, key.name) else {
            return false;
        };
        if expire_at.is_some() || found.as_ref().expire_at().is_some() {
            return false;
        }
        if let Some(cold) = cold {
            db.placed -= cold.forget_copy(&mut found);
        }
        let written = match payload_of(value) {
            Payload::Bytes(bytes) => found.as_mut().set_bytes_in_place(bytes),
            Payload::Integer(integer) => found.as_mut().set_integer_in_place(integer),
            Payload::Boxed(_) | Payload::Cold(_) => false,
        };
        if written {
            found.as_ref().set_access(access);
        }
        written
    }

    pub(super) fn set_integer(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        value: i64,
    ) -> Result<Applied, Refusal> {
        let Hashed { hash, name } = key;
        let Some(mut found) = self.database_mut(database).table.find_mut(hash, name) else {
            return Ok(self.put(database, hash, name, Payload::Integer(value), None));
        };
        // No copy is kept of an integer: it is never spilled.
        if found.as_mut().set_integer_in_place(value) {
            return Ok(Applied::Changed);
        }
        if type_name(found.as_ref()) != "string" {
            return Err(Refusal::WRONG_TYPE);
        }
        let expire_at = found.as_ref().expire_at();
        Ok(self.put(database, hash, name, Payload::Integer(value), expire_at))
    }

    pub(super) fn append(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        bytes: &[u8],
    ) -> Result<Applied, Refusal> {
        self.fetch_to_change(database, key.name)?;
        let length = self.string_length(database, key)?;
        end_of(length, bytes)?;
        self.edit_text(database, key, |text| {
            debug_assert_eq!(text.len() as u64, length);
            text.extend_from_slice(bytes);
        })
    }

    pub(super) fn set_range(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Applied, Refusal> {
        self.fetch_to_change(database, key.name)?;
        self.string_length(database, key)?;
        let end = end_of(offset, bytes)?;
        let offset = end - bytes.len();
        self.edit_text(database, key, |text| {
            if text.len() < end {
                text.resize(end, 0);
            }
            text[offset..end].copy_from_slice(bytes);
        })
    }

    fn string_length(&self, database: DatabaseId, key: Hashed<'_>) -> Result<u64, Refusal> {
        let entry = self.entry(database, key.hash, key.name);
        let value = entry.map(StringValue::of).transpose()?;
        Ok(value.map_or(0, |value| value.len() as u64))
    }

    /// Lets `edit` change the string's bytes, boxed so that the next edit is in place.
    fn edit_text(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        edit: impl FnOnce(&mut ByteVec),
    ) -> Result<Applied, Refusal> {
        let Hashed { hash, name } = key;
        let Self { databases, cold, .. } = self;
        let db = &mut databases[database.0 as usize];
        let Some(mut found) = db.table.find_mut(hash, name) else {
            let mut text = ByteVec::new();
            edit(&mut text);
            let payload = Payload::Boxed(Box::new(Value::Text(text)));
            return Ok(self.put(database, hash, name, payload, None));
        };
        if let Some(cold) = cold {
            db.placed -= cold.forget_copy(&mut found);
        }
        if let Some(Value::Text(text)) = found.as_mut().into_boxed_mut() {
            let before = text.allocated_bytes();
            edit(text);
            let after = text.allocated_bytes();
            db.entry_bytes = db.entry_bytes + after - before;
            return Ok(Applied::Changed);
        }
        let mut text = StringValue::of(found.as_ref())?.bytes(&mut Digits::new()).into();
        let expire_at = found.as_ref().expire_at();
        edit(&mut text);
        let payload = Payload::Boxed(Box::new(Value::Text(text)));
        Ok(self.put(database, hash, name, payload, expire_at))
    }
}
