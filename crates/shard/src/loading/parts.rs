//! The parts of a snapshot, loaded several at a time. Each is an RDB file, and no key stands in two
//! of them.

use super::Step;
use super::lanes::{JOB_BYTES, Job, Lane, PARTS_AHEAD};
use archive::{PartReader, Snapshot, SnapshotStore, SnapshotWriter};
use base::UnixMillis;
use base::disk::DiskQueue;
use engine::keyspace::Keyspace;
use engine::load::{Decoded, Decoder};
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
    lanes: Vec<Lane>,
    /// The lane whose turn it is.
    turn: usize,
    /// Parts that were handed to lanes: part `n` goes to lane `n` modulo their number.
    opened: usize,
    /// Of what was put in.
    keys: u64,
    bytes: u64,
    used_memory: u64,
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
    /// Begins with the first part. Idle times count against `now`. `queues` are the threads that
    /// read; they come back by [`Self::into_queues`]. Without any, reading is done while it is
    /// asked for.
    ///
    /// # Errors
    /// The part cannot be opened; the queues stay.
    pub fn open(
        source: &dyn PartSource,
        snapshot: Snapshot,
        queues: &mut Vec<Box<dyn DiskQueue>>,
        keyspace: &Keyspace,
        now: UnixMillis,
    ) -> io::Result<Self> {
        let first = source.open_part(&snapshot, 0)?;
        let mut lanes: Vec<Lane> = queues.drain(..).map(|it| Lane::new(Some(it))).collect();
        if lanes.is_empty() {
            lanes.push(Lane::new(None));
        }
        // The first part says how many keys all of them have, and tables are laid out for those.
        let keys = snapshot.manifest.keys.min(snapshot.manifest.bytes() / ENTRY_BYTES_MIN);
        lanes[0].push(0, Decoder::of_own_file(first, keys, now, keyspace));
        let (turn, keys, bytes, used_memory) = (0, 0, 0, 0);
        Ok(Self { snapshot, lanes, turn, opened: 1, keys, bytes, used_memory, now })
    }

    /// Bytes of all parts that were put in so far.
    pub fn offset(&self) -> u64 {
        self.bytes
    }

    /// Bytes of memory that the data took where it was written; 0 while that is not known.
    pub fn used_memory(&self) -> u64 {
        self.used_memory
    }

    /// Puts more keys in: what one job has read, which is about `entries_max` keys at most.
    /// [`Step::Wait`] if a thread is to be waited for, which wakes whoever has its waker.
    ///
    /// # Errors
    /// The snapshot cannot be loaded; what was loaded of it is of no use.
    pub fn load(
        &mut self,
        source: &dyn PartSource,
        keyspace: &mut Keyspace,
        entries_max: u64,
    ) -> Result<Step, PartsError> {
        let job = Job { keys_max: entries_max, bytes_max: JOB_BYTES };
        self.hand_over(source, keyspace)?;
        self.lanes.iter_mut().for_each(|lane| lane.go_on(job));
        let count = self.lanes.len();
        let next = (0..count).map(|ahead| (self.turn + ahead) % count);
        let Some(turn) = next.into_iter().find(|lane| self.lanes[*lane].parts > 0) else {
            return self.end();
        };
        self.turn = turn;
        let Some((index, read)) = self.lanes[turn].take(job) else { return Ok(Step::Wait) };
        self.turn += 1;
        self.put_in(read, keyspace)
            .map_err(|error| PartsError::of(&self.snapshot.manifest.parts[index].name, error))?;
        Ok(Step::More)
    }

    /// Opens parts for the lanes, each one ahead.
    fn hand_over(
        &mut self,
        source: &dyn PartSource,
        keyspace: &Keyspace,
    ) -> Result<(), PartsError> {
        let (parts, count) = (self.snapshot.manifest.parts.len(), self.lanes.len());
        while self.opened < parts && self.lanes[self.opened % count].parts < PARTS_AHEAD {
            let part = source.open_part(&self.snapshot, self.opened).map_err(PartsError::Gone)?;
            let decoder = Decoder::of_own_file(part, 0, self.now, keyspace);
            self.lanes[self.opened % count].push(self.opened, decoder);
            self.opened += 1;
        }
        Ok(())
    }

    fn put_in(
        &mut self,
        read: Result<Decoded, RdbError>,
        keyspace: &mut Keyspace,
    ) -> Result<(), RdbError> {
        let decoded = read?;
        self.keys += decoded.keys();
        self.bytes += decoded.bytes;
        self.used_memory = decoded.used_memory().unwrap_or(self.used_memory);
        keyspace.take_in(decoded)
    }

    fn end(&self) -> Result<Step, PartsError> {
        let (loaded, keys) = (self.keys, self.snapshot.manifest.keys);
        if loaded != keys {
            return Err(PartsError::Damaged(format!("it holds {loaded} keys instead of {keys}")));
        }
        Ok(Step::Done)
    }

    /// The threads, which have nothing left to do.
    pub fn into_queues(self) -> Vec<Box<dyn DiskQueue>> {
        self.lanes.into_iter().filter_map(Lane::into_queue).collect()
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
