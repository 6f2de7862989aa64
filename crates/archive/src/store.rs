//! Which snapshots there are, and how many stay.

use crate::archive::{Archive, Claim, Entry, PREFIX, StoredPart, Unfinished};
use crate::directory::DirectoryArchive;
use crate::encrypted::EncryptedArchive;
use crate::limits::Limits;
use crate::manifest::{MANIFEST, MANIFEST_BYTES_MAX, Manifest, Part, SnapshotPoint};
use crate::reader::PartReader;
use crate::writer::SnapshotWriter;
use base::{Disk, Position, Sequence};
use encryption::Keys;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The snapshots of one shard, in an archive.
#[derive(Clone)]
pub struct SnapshotStore {
    /// The archive, behind what encrypts and decrypts.
    archive: Arc<dyn Archive>,
    /// The same as it keeps bytes.
    stored: Arc<dyn Archive>,
    keys: Keys,
    limits: Limits,
    /// Snapshots whose parts turned out damaged when they were read, and how. Clones share it.
    refused: Arc<Mutex<BTreeMap<String, String>>>,
}

/// A published snapshot whose manifest is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub name: String,
    pub point: SnapshotPoint,
    pub manifest: Box<Manifest>,
}

/// A published entry of the archive: a whole snapshot, or one that cannot be used, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Candidate {
    /// Its manifest is whole and its parts are there; their bytes are checked as they are read.
    Whole(Snapshot),
    /// It cannot be used, and why.
    Damaged {
        name: String,
        why: String,
        /// The archive did not answer just now, so nothing is known of it: it stays.
        may_be_whole: bool,
    },
}

/// What pruning did.
#[derive(Debug)]
pub struct Pruned {
    /// The position through which no snapshot that stays needs the log, and no pin; `None` while
    /// fewer are there than are to stay. The record behind which the oldest one stands is needed:
    /// by it a start tells that the log is the one that the snapshot was taken of.
    pub trim: Option<Position>,
    /// Why something could not be removed.
    pub failure: Option<io::Error>,
}

impl Candidate {
    /// Its name in the archive.
    pub fn name(&self) -> &str {
        match self {
            Self::Whole(snapshot) => &snapshot.name,
            Self::Damaged { name, .. } => name,
        }
    }
}

impl SnapshotStore {
    /// Opens the store in `directory`, which is created if absent.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(disk: Arc<dyn Disk>, directory: &Path) -> io::Result<Self> {
        Ok(Self::over(Arc::new(DirectoryArchive::open(disk, directory)?)))
    }

    /// The store in this archive.
    pub fn over(archive: Arc<dyn Archive>) -> Self {
        let (keys, limits, refused) = (Keys::none(), Limits::default(), Arc::default());
        let encrypted = EncryptedArchive::over(Arc::clone(&archive), keys.clone());
        Self { archive: Arc::new(encrypted), stored: archive, keys, limits, refused }
    }

    /// The same store, read and written with these keys. Whoever loads the shard reads its log with
    /// them too.
    pub fn with_keys(self, keys: Keys) -> Self {
        let archive = EncryptedArchive::over(Arc::clone(&self.stored), keys.clone());
        Self { archive: Arc::new(archive), keys, ..self }
    }

    /// The keys of the shard.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The same store, in which what is written and pruned from here on has these limits.
    pub fn with_limits(self, limits: Limits) -> Self {
        assert!(limits.retained > 0 && limits.parts_max > 0, "the newest snapshot always stays");
        Self { limits, ..self }
    }

    /// The limits of what is written and pruned.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes the claim: see [`Archive::claim`].
    ///
    /// # Errors
    /// The archive's.
    pub fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        self.archive.claim(said)
    }

    /// What the claim's holder said last: see [`Archive::claimed`].
    ///
    /// # Errors
    /// The archive's.
    pub fn claimed(&self) -> io::Result<Option<Vec<u8>>> {
        self.archive.claimed()
    }

    /// Where it is, for people.
    pub fn location(&self) -> String {
        self.archive.location()
    }

    /// What is published, newest first.
    ///
    /// # Errors
    /// The archive's. A damaged snapshot is no error, it is said to be one.
    pub fn list(&self) -> io::Result<Vec<Candidate>> {
        let mut entries = self.archive.list()?;
        entries.retain(|entry| entry.is_published);
        let judge = |name: String| match self.judge(&name) {
            Ok(snapshot) => Candidate::Whole(snapshot),
            Err(Unusable { why, may_be_whole }) => Candidate::Damaged { name, why, may_be_whole },
        };
        Ok(entries.into_iter().rev().map(|entry| judge(entry.name)).collect())
    }

    /// Removes what no process will finish. What a process is writing just now stays: one that was
    /// deposed may still have a thread at it. See [`Archive::remove_unpublished`].
    ///
    /// # Errors
    /// The archive's, once all that it lets go is gone.
    pub fn remove_unpublished(&self, of: Unfinished) -> io::Result<()> {
        self.archive.remove_unpublished(of)
    }

    /// Begins a snapshot of the state at `position`.
    ///
    /// # Errors
    /// The archive's. No more names: a thousand were taken of this record.
    pub fn begin(&self, position: Position) -> io::Result<SnapshotWriter> {
        let entries = self.archive.list()?;
        let prefix = format!("{PREFIX}{:020}-", position.sequence.0);
        let number = |entry: &Entry| number_of(entry.name.strip_prefix(&prefix)?);
        // Behind those of the same record that are there, as it is newer.
        let next = entries.iter().filter_map(number).max().map_or(0, |newest| newest + 1);
        if next > NUMBER_MAX {
            return Err(io::Error::other("there are no more names for snapshots of this record"));
        }
        let name = format!("{prefix}{next:03}");
        SnapshotWriter::begin(&*self.archive, name, self.limits.format)
    }

    /// Removes all but the newest [`Limits::retained`] whole snapshots, for each of `pins` the
    /// newest whole one at or before that record, and those that are `named`; the damaged ones
    /// older than those go too, unless the archive cannot be asked about them. As far as the
    /// archive lets.
    ///
    /// # Errors
    /// The archive's, if it does not say what there is.
    pub fn prune(&self, pins: &[Sequence], named: &[String]) -> io::Result<Pruned> {
        let candidates = self.list()?;
        let whole = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot),
            Candidate::Damaged { .. } => None,
        });
        let whole: Vec<&Snapshot> = whole.collect();
        let Some(oldest) = whole.get(self.limits.retained - 1) else {
            return Ok(Pruned { trim: None, failure: None });
        };
        let at_or_before =
            |pin: &Sequence| whole.iter().find(|it| it.point.position.sequence <= *pin);
        let pinned: Vec<&&Snapshot> = pins.iter().filter_map(at_or_before).collect();
        let stays = |candidate: &Candidate| match candidate {
            Candidate::Damaged { may_be_whole, .. } => *may_be_whole,
            Candidate::Whole(Snapshot { name, .. }) => {
                pinned.iter().any(|it| it.name == *name) || named.contains(name)
            }
        };
        let mut failure = None;
        let mut left = self.limits.retained;
        for candidate in &candidates {
            // What stays behind costs space. The log can be trimmed all the same.
            if left == 0 && !stays(candidate) {
                failure = self.archive.remove(candidate.name()).err().or(failure);
            } else if left == 0
                && let Candidate::Damaged { name, why, .. } = candidate
            {
                failure =
                    Some(io::Error::other(format!("{name} stays, nobody can read it: {why}")));
            }
            left -= usize::from(left > 0 && matches!(candidate, Candidate::Whole(_)));
        }
        let positions = pinned.iter().chain([&oldest]).map(|it| it.point.position);
        let needed = positions.min_by_key(|at| at.sequence).unwrap_or(oldest.point.position);
        let before = needed.at(Sequence(needed.sequence.0.saturating_sub(1)));
        // Whoever has no snapshot to begin with needs the log from its beginning.
        Ok(Pruned { trim: (pinned.len() == pins.len()).then_some(before), failure })
    }

    /// A part of a snapshot, as a stream that checks itself.
    ///
    /// # Errors
    /// The archive's.
    pub fn open_part(&self, snapshot: &Snapshot, index: usize) -> io::Result<PartReader> {
        let part = &snapshot.manifest.parts[index];
        Ok(PartReader::new(self.open_stored(snapshot, index)?, part))
    }

    /// A part, to be read by ranges. Nothing checks what is read.
    ///
    /// # Errors
    /// The archive's.
    fn open_stored(&self, snapshot: &Snapshot, index: usize) -> io::Result<Arc<dyn StoredPart>> {
        self.archive.open(&snapshot.name, &snapshot.manifest.parts[index].name)
    }

    /// From now on a snapshot counts as damaged: its parts were read and are not what its manifest
    /// says. A manifest alone does not tell, and a damaged snapshot must not stay in the place of
    /// one that can be loaded.
    pub fn refuse(&self, name: &str, why: &str) {
        self.refused().insert(name.to_owned(), why.to_owned());
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // An insertion that panicked has changed nothing, or everything.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, name: &str) -> Result<Snapshot, Unusable> {
        if let Some(why) = self.refused().get(name) {
            return Err(why.clone().into());
        }
        let bytes = self.archive.manifest(name, MANIFEST_BYTES_MAX)?;
        let manifest = Manifest::decode(&bytes).map_err(|why| format!("{MANIFEST}: {why}"))?;
        let lengths = self.archive.parts(name)?;
        for Part { name, bytes, .. } in &manifest.parts {
            match lengths.get(name) {
                Some(length) if length == bytes => {}
                Some(length) => {
                    return Err(format!("{name} has {length} bytes instead of {bytes}").into());
                }
                None => return Err(format!("{name} is missing").into()),
            }
        }
        let point = manifest.point()?;
        // A copy under another name would take the place of a real one.
        if !name.starts_with(&format!("{PREFIX}{:020}-", point.position.sequence.0)) {
            let sequence = point.position.sequence;
            return Err(format!("its manifest is that of record {sequence}").into());
        }
        Ok(Snapshot { name: name.to_owned(), point, manifest: Box::new(manifest) })
    }
}

/// The last snapshot of one record: names sort by age, so all numbers have three digits.
const NUMBER_MAX: u32 = 999;

fn number_of(digits: &str) -> Option<u32> {
    let are_three = digits.len() == 3 && digits.bytes().all(|it| it.is_ascii_digit());
    digits.parse().ok().filter(|_| are_three)
}

/// Why an entry cannot be used.
struct Unusable {
    why: String,
    may_be_whole: bool,
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self { why, may_be_whole: false }
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, NotFound};
        let may_be_whole = !matches!(error.kind(), NotFound | InvalidData);
        Self { why: error.to_string(), may_be_whole }
    }
}
