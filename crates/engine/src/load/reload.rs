//! Writes every key as bytes and reads it back, in memory: DEBUG RELOAD.

use super::Loader;
use crate::keyspace::{Database, Keyspace};
use crate::rdb::{Crc64, RdbError};
use crate::save::{checksum, put_database, put_end, put_entry, put_header};
use base::UnixMillis;
use std::ops::ControlFlow;

/// Why values were not replaced by what their bytes say.
#[derive(Debug)]
pub enum ReloadError {
    /// The bytes cannot be read back.
    Bytes(RdbError),
    /// A value is not in memory and cannot be read.
    Lost,
}

impl Keyspace {
    /// Replaces every value by what its bytes say. Nothing that a client can see changes but
    /// encodings, which follow the present settings, so there are no effects.
    ///
    /// # Errors
    /// The bytes cannot be read back, which is a bug, or a value is lost, which is noted; the
    /// keyspace is as before then.
    pub fn reload(&mut self, now: UnixMillis) -> Result<(), ReloadError> {
        let mut bytes = Vec::new();
        put_header(&mut bytes, self.file_version(), &[]);
        for (id, database) in self.databases() {
            put_database(&mut bytes, id);
            let looked = self.look_at_each(database.table().iter(), |entry| {
                put_entry(&mut bytes, entry, now, &self.settings, &self.work);
                ControlFlow::Continue(())
            });
            if looked.is_err() {
                return Err(ReloadError::Lost);
            }
        }
        put_end(&mut bytes);
        let mut crc = Crc64::default();
        crc.update(&bytes);
        bytes.extend_from_slice(&checksum(crc));
        let mut fresh = Self::with_hasher(self.settings.clone(), self.hasher);
        fresh.databases = self.databases.iter().map(|_| Database::new(self.hasher)).collect();
        Loader::new(&bytes[..], now).load_all(&mut fresh).map_err(ReloadError::Bytes)?;
        for database in std::mem::replace(&mut self.databases, fresh.databases) {
            self.dispose(database);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::settings::Settings;
    use base::HashKey;

    #[test]
    fn an_empty_keyspace_reloads() {
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(7));
        keyspace.reload(UnixMillis(1)).unwrap();
        assert!(keyspace.is_empty());
        assert_eq!(Digest::of_keyspace(&keyspace), Digest::default());
    }
}
