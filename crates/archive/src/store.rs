//! Which snapshots there are, and how many stay.

use crate::archive::{Archive, Claim, Entry, Published, StoredPart, Unfinished};
use crate::branch::Parent;
use crate::directory::DirectoryArchive;
use crate::encrypted::EncryptedArchive;
use crate::limits::Limits;
use crate::log_store::LogStore;
use crate::manifest::{
    FORMAT_MAX, FORMAT_MIN, MANIFEST, MANIFEST_BYTES_MAX, Manifest, Part, SnapshotPoint,
};
use crate::names::{Content, names_of};
use crate::reader::PartReader;
use crate::writer::SnapshotWriter;
use base::{Disk, Incarnation, Position, Sequence};
use encryption::Keys;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The snapshots of one shard, in an archive.
#[derive(Clone)]
pub struct SnapshotStore {
    /// The archive, behind what encrypts and decrypts.
    pub(crate) archive: Arc<dyn Archive>,
    /// The same as it keeps bytes.
    stored: Arc<dyn Archive>,
    keys: Keys,
    limits: Limits,
    /// Snapshots whose parts turned out damaged when they were read, and how. Clones share it.
    refused: Arc<Mutex<BTreeMap<String, String>>>,
    /// The newest manifests, as they were read. Clones share it.
    manifests: Arc<Mutex<BTreeMap<String, ReadManifest>>>,
    /// How archives of parents are opened.
    parents: Option<OpenArchive>,
}

/// Opens the archive that a branch names as its parent's.
pub type OpenArchive = Arc<dyn Fn(&str, Access) -> io::Result<Arc<dyn Archive>> + Send + Sync>;

/// What an archive is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
}

/// A manifest that was read, and the version that the archive named.
struct ReadManifest {
    version: String,
    manifest: Box<Manifest>,
}

/// Manifests that are kept once they were read, at most, the newest ones: others are read each
/// time. Those of 10 GiB have some 20 KiB each.
pub(crate) const MANIFESTS_MAX: usize = 64;

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

/// What is published of one log, and what lies beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfLog {
    /// The log's, newest first; and the damaged ones, of which nobody can say whose they are.
    pub candidates: Vec<Candidate>,
    /// Names of the whole snapshots of other logs.
    pub foreign: Vec<String>,
}

impl Candidate {
    /// The record in the name of one that may be whole and cannot be read just now.
    pub(crate) fn unread(&self) -> Option<Sequence> {
        let Self::Damaged { name, may_be_whole: true, .. } = self else { return None };
        let digits = name.strip_prefix(Content::Snapshots.prefix())?.split('-').next()?;
        digits.parse().ok().map(Sequence)
    }

    /// The snapshot, if it can be used.
    pub fn whole(&self) -> Option<&Snapshot> {
        match self {
            Self::Whole(snapshot) => Some(snapshot),
            Self::Damaged { .. } => None,
        }
    }

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
        let keys = Keys::none();
        let encrypted = EncryptedArchive::over(Arc::clone(&archive), keys.clone());
        Self {
            archive: Arc::new(encrypted),
            stored: archive,
            keys,
            limits: Limits::default(),
            refused: Arc::default(),
            manifests: Arc::default(),
            parents: None,
        }
    }

    /// The same store, which opens its parents' archives in this way.
    pub fn with_parents(self, open: OpenArchive) -> Self {
        Self { parents: Some(open), ..self }
    }

    /// The parent's store.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn parent(&self, parent: &Parent, access: Access) -> io::Result<Self> {
        let Some(open) = &self.parents else {
            let what = format!("the data is in {}, which is not opened here", parent.store);
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        };
        let archive = open(&parent.store, access)?;
        let store = Self::over(archive).with_keys(self.keys.clone());
        Ok(Self { parents: self.parents.clone(), ..store })
    }

    /// The parent's snapshot, and the store in which it is.
    ///
    /// # Errors
    /// It cannot be opened; the snapshot is damaged, gone, or another log's.
    pub fn parent_of(&self, parent: &Parent) -> io::Result<(Self, Snapshot)> {
        let store = self.parent(parent, Access::Read)?;
        let invalid = |what: String| {
            let what =
                format!("the parent's snapshot {} in {}: {what}", parent.snapshot, parent.store);
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let listed = store.list().map_err(|error| {
            io::Error::new(error.kind(), format!("the parent's archive {}: {error}", parent.store))
        })?;
        let found = listed.into_iter().find(|it| it.name() == parent.snapshot);
        let point = parent.point().map_err(invalid)?;
        match found {
            Some(Candidate::Whole(snapshot)) => {
                let at = snapshot.point.position;
                let is_the_one = at.incarnation == point.position.incarnation
                    && at.sequence == parent.pin(at.incarnation).behind;
                if !is_the_one {
                    return Err(invalid(format!("it is of record {}", at.sequence)));
                }
                Ok((store, snapshot))
            }
            Some(Candidate::Damaged { why, .. }) => Err(invalid(why)),
            None => Err(invalid("it is gone".to_owned())),
        }
    }

    /// Publishes the first snapshot of a branch: a manifest without parts.
    ///
    /// # Errors
    /// The archive's. Its format may not be written.
    pub fn publish_branch(
        &self,
        point: SnapshotPoint,
        rdb: u32,
        parent: Parent,
    ) -> io::Result<Snapshot> {
        let may = self.limits.check(true, self.keys.are_there());
        may.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let name = format!("{}000", names_of(point.position.sequence));
        let manifest = Manifest::of_branch(point, rdb, parent);
        self.archive.begin(&name)?.publish(&manifest.encode())?;
        Ok(Snapshot { name, point, manifest: Box::new(manifest) })
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
        let is_known = (FORMAT_MIN..=FORMAT_MAX).contains(&limits.format_max);
        assert!(is_known, "no format of this number is written");
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

    /// The archive, as it keeps bytes.
    pub fn archive(&self) -> Arc<dyn Archive> {
        Arc::clone(&self.stored)
    }

    /// The log in the same archive.
    pub fn log(&self) -> LogStore {
        LogStore::over(Arc::clone(&self.archive))
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
        let published = self.archive.published(Content::Snapshots)?;
        let kept = published.iter().rev().take(MANIFESTS_MAX).map(|it| it.name.as_str());
        let kept: BTreeSet<&str> = kept.collect();
        locked(&self.manifests).retain(|name, _| kept.contains(name.as_str()));
        let judge = |it: &Published| match self.judge(it, kept.contains(it.name.as_str())) {
            Ok(snapshot) => Candidate::Whole(snapshot),
            Err(Unusable { why, may_be_whole }) => {
                Candidate::Damaged { name: it.name.clone(), why, may_be_whole }
            }
        };
        Ok(published.iter().rev().map(judge).collect())
    }

    /// What is published of this log, newest first. An archive holds the snapshots of one shard;
    /// what a process put there that was given another shard's log counts for nothing here.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_of(&self, log: Incarnation) -> io::Result<OfLog> {
        let mut of = OfLog { candidates: Vec::new(), foreign: Vec::new() };
        for candidate in self.list()? {
            match candidate {
                Candidate::Whole(it) if it.point.position.incarnation != log => {
                    of.foreign.push(it.name);
                }
                candidate => of.candidates.push(candidate),
            }
        }
        Ok(of)
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
        let entries = self.archive.list(Content::Snapshots)?;
        let prefix = names_of(position.sequence);
        let number = |entry: &Entry| number_of(entry.name.strip_prefix(&prefix)?);
        // Behind those of the same record that are there, as it is newer.
        let next = entries.iter().filter_map(number).max().map_or(0, |newest| newest + 1);
        if next > NUMBER_MAX {
            return Err(io::Error::other("there are no more names for snapshots of this record"));
        }
        let name = format!("{prefix}{next:03}");
        SnapshotWriter::begin(&*self.archive, name, self.limits.format_max)
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
        locked(&self.refused).insert(name.to_owned(), why.to_owned());
    }

    /// The manifest of a snapshot. One that was read and is `kept` is not read again, unless the
    /// archive has another one under that name now, or cannot tell.
    fn manifest(&self, published: &Published, kept: bool) -> Result<Box<Manifest>, Unusable> {
        let Published { name, manifest_version, .. } = published;
        let version = manifest_version.as_ref().filter(|_| kept);
        if let Some(read) = locked(&self.manifests).get(name)
            && Some(&read.version) == version
        {
            return Ok(read.manifest.clone());
        }
        let bytes = self.archive.manifest(name, MANIFEST_BYTES_MAX)?;
        let manifest = Manifest::decode(&bytes).map_err(|why| format!("{MANIFEST}: {why}"))?;
        let manifest = Box::new(manifest);
        if let Some(version) = version {
            let read = ReadManifest { version: version.clone(), manifest: manifest.clone() };
            locked(&self.manifests).insert(name.clone(), read);
        }
        Ok(manifest)
    }

    fn judge(&self, published: &Published, kept: bool) -> Result<Snapshot, Unusable> {
        let name = &published.name;
        if let Some(why) = locked(&self.refused).get(name) {
            return Err(why.clone().into());
        }
        let manifest = self.manifest(published, kept)?;
        let lengths = match &published.parts {
            Ok(lengths) => lengths,
            Err(error) => return Err(Unusable::of(error)),
        };
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
        if !name.starts_with(&names_of(point.position.sequence)) {
            let sequence = point.position.sequence;
            return Err(format!("its manifest is that of record {sequence}").into());
        }
        Ok(Snapshot { name: name.to_owned(), point, manifest })
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // An insertion that panicked has changed nothing, or everything.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Unusable {
    fn of(error: &io::Error) -> Self {
        use io::ErrorKind::{InvalidData, NotFound};
        let may_be_whole = !matches!(error.kind(), NotFound | InvalidData);
        Self { why: error.to_string(), may_be_whole }
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::of(&error)
    }
}
