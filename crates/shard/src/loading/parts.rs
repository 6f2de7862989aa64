//! The parts of a snapshot, loaded one after the other. Each is an RDB file, and no key stands in
//! two of them.

use archive::{PartReader, Snapshot, SnapshotStore, SnapshotWriter};
use base::UnixMillis;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::rdb::RdbError;
use std::io::{self, ErrorKind};

/// Bytes of the shortest entry of a snapshot: its type, and lengths of an empty key and value. A
/// manifest that claims more keys than there is room for takes no memory for them.
const ENTRY_BYTES_MIN: u64 = 3;

/// Where the parts of a snapshot are read.
pub trait PartSource {
    /// # Errors
    /// The archive's.
    fn open_part(&self, snapshot: &Snapshot, index: usize) -> io::Result<PartReader>;
}

impl PartSource for SnapshotStore {
    fn open_part(&self, snapshot: &Snapshot, index: usize) -> io::Result<PartReader> {
        Self::open_part(self, snapshot, index)
    }
}

/// One that is not published yet, as it was written.
impl PartSource for SnapshotWriter {
    fn open_part(&self, snapshot: &Snapshot, index: usize) -> io::Result<PartReader> {
        self.read_back(&snapshot.manifest.parts[index])
    }
}

/// A snapshot that is being loaded.
pub struct Parts {
    pub snapshot: Snapshot,
    /// The part that is being loaded, and its number.
    loader: Loader<PartReader>,
    index: usize,
    /// Of the parts before it.
    keys_before: u64,
    bytes_before: u64,
    now: UnixMillis,
}

/// Why a snapshot cannot be loaded.
pub enum PartsError {
    /// A part cannot be opened any more.
    Gone(io::Error),
    /// The archive does not answer. What it has may be whole.
    Unread(String),
    Damaged(String),
    /// It holds what this release does not know.
    Unsupported(String),
}

impl Parts {
    /// Begins with the first part. Idle times count against `now`.
    ///
    /// # Errors
    /// The part cannot be opened.
    pub fn open(source: &dyn PartSource, snapshot: Snapshot, now: UnixMillis) -> io::Result<Self> {
        // The first part says how many keys all of them have, and tables are laid out for those.
        let keys = snapshot.manifest.keys.min(snapshot.manifest.bytes() / ENTRY_BYTES_MIN);
        let loader = Loader::of_own_file(source.open_part(&snapshot, 0)?, keys, now);
        Ok(Self { snapshot, loader, index: 0, keys_before: 0, bytes_before: 0, now })
    }

    /// Bytes of all parts used so far.
    pub fn offset(&self) -> u64 {
        self.bytes_before + self.loader.offset()
    }

    /// Loads about `entries_max` more keys; whether that was the last of them.
    ///
    /// # Errors
    /// The snapshot cannot be loaded; what was loaded of it is of no use.
    pub fn load(
        &mut self,
        source: &dyn PartSource,
        keyspace: &mut Keyspace,
        entries_max: u64,
    ) -> Result<bool, PartsError> {
        let parts = &self.snapshot.manifest.parts;
        let name = &parts[self.index].name;
        if !self.loader.load(keyspace, entries_max).map_err(|error| PartsError::of(name, error))? {
            return Ok(false);
        }
        let loaded = self.keys_before + self.loader.keys_loaded;
        if self.index + 1 < parts.len() {
            let part =
                source.open_part(&self.snapshot, self.index + 1).map_err(PartsError::Gone)?;
            self.bytes_before += parts[self.index].bytes;
            self.keys_before = loaded;
            self.index += 1;
            self.loader = Loader::of_own_file(part, 0, self.now);
            return Ok(false);
        }
        let keys = self.snapshot.manifest.keys;
        if loaded != keys {
            return Err(PartsError::Damaged(format!("it holds {loaded} keys instead of {keys}")));
        }
        Ok(true)
    }
}

impl PartsError {
    fn of(part: &str, error: RdbError) -> Self {
        match error {
            // It was removed meanwhile, so there is a newer one, unless nobody else is there.
            RdbError::Io(error) if error.kind() == ErrorKind::NotFound => Self::Gone(error),
            // A disk that cannot read a sector has lost it. A service may answer the next time.
            RdbError::Io(error)
                if error.raw_os_error().is_none()
                    && !matches!(
                        error.kind(),
                        ErrorKind::InvalidData | ErrorKind::UnexpectedEof
                    ) =>
            {
                Self::Unread(format!("{part}: {error}"))
            }
            RdbError::Unsupported { .. } => Self::Unsupported(format!("{part}: {error}")),
            error => Self::Damaged(format!("{part}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_does_not_answer_has_no_damaged_snapshot() {
        let of = |kind: ErrorKind| PartsError::of("part-0000.rdb", RdbError::Io(kind.into()));
        assert!(matches!(of(ErrorKind::NotFound), PartsError::Gone(_)));
        assert!(matches!(of(ErrorKind::InvalidData), PartsError::Damaged(_)));
        assert!(matches!(of(ErrorKind::UnexpectedEof), PartsError::Damaged(_)));
        let sector = PartsError::of("part-0000.rdb", RdbError::Io(io::Error::from_raw_os_error(5)));
        assert!(matches!(sector, PartsError::Damaged(_)), "EIO");
        for kind in [ErrorKind::TimedOut, ErrorKind::Other, ErrorKind::ConnectionReset] {
            assert!(matches!(of(kind), PartsError::Unread(_)), "{kind}");
        }
    }
}
