//! Which snapshots there are, and how many stay.

use crate::archive::{Archive, Claim, Content, Entry, Published, StoredPart, Unfinished};
use crate::directory::DirectoryArchive;
use crate::limits::Limits;
use crate::log_store::LogStore;
use crate::manifest::{MANIFEST, MANIFEST_BYTES_MAX, Manifest, Part, SnapshotPoint};
use crate::reader::PartReader;
use crate::retention;
use crate::writer::SnapshotWriter;
use base::{Disk, Incarnation, Position, Sequence, UnixMillis};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The snapshots of one shard, in an archive.
#[derive(Clone)]
pub struct SnapshotStore {
    archive: Arc<dyn Archive>,
    limits: Limits,
    /// Snapshots whose parts turned out damaged when they were read, and how. Clones share it.
    refused: Arc<Mutex<BTreeMap<String, String>>>,
    /// The newest manifests, as they were read. Clones share it.
    manifests: Arc<Mutex<BTreeMap<String, ReadManifest>>>,
}

/// A manifest that was read, and the version that the archive named.
struct ReadManifest {
    version: String,
    manifest: Box<Manifest>,
}

/// Manifests that are kept once they were read, at most, the newest ones: others are read each
/// time. Those of 10 GiB have some 20 KiB each.
const MANIFESTS_MAX: usize = 64;

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

/// What pruning did.
#[derive(Debug)]
pub struct Pruned {
    /// The position through which nobody needs the log any more, but for its archive; `None` while
    /// fewer snapshots are there than are to stay. The record behind which the oldest one stands is
    /// needed: by it a start tells that the log is the one that the snapshot was taken of. With a
    /// restore window it does not go beyond what is archived.
    pub trim: Option<Position>,
    /// The last record of the log that is archived, if any is.
    pub archived: Option<Sequence>,
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
        Self {
            archive,
            limits: Limits::default(),
            refused: Arc::default(),
            manifests: Arc::default(),
        }
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
        SnapshotWriter::begin(&*self.archive, name, self.limits.format)
    }

    /// Removes all but the newest [`Limits::retained`] whole snapshots, those that the restore
    /// window needs at `now`, for each of `pins` the newest whole one at or before that record, and
    /// those that are `named`; the damaged ones older than those go too, unless the archive cannot
    /// be asked about them. Then the archived log that none of those needs. As far as the archive
    /// lets. All of that is about the snapshots of `log`: others are neither counted nor removed,
    /// and while any are there, damaged ones and the archived log stay, as they may be of that kind.
    ///
    /// # Errors
    /// The archive's, if it does not say what there is.
    pub fn prune(
        &self,
        log: Incarnation,
        pins: &[Sequence],
        named: &[String],
        now: UnixMillis,
    ) -> io::Result<Pruned> {
        let OfLog { candidates, foreign } = self.list_of(log)?;
        let whole = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot),
            Candidate::Damaged { .. } => None,
        });
        let whole: Vec<&Snapshot> = whole.collect();
        let Some(oldest) = whole.get(self.limits.retained - 1) else {
            return Ok(Pruned { trim: None, archived: None, failure: None });
        };
        let at_or_before =
            |pin: &Sequence| whole.iter().find(|it| it.point.position.sequence <= *pin);
        let pinned: Vec<&&Snapshot> = pins.iter().filter_map(at_or_before).collect();
        let in_window = retention::in_window(&whole, &self.limits, now);
        let stays = |candidate: &Candidate| match candidate {
            Candidate::Damaged { may_be_whole, .. } => *may_be_whole || !foreign.is_empty(),
            Candidate::Whole(Snapshot { name, .. }) => {
                pinned.iter().any(|it| it.name == *name)
                    || named.contains(name)
                    || in_window.contains(&name.as_str())
            }
        };
        let mut failure = None;
        let mut left = self.limits.retained;
        let mut needed = oldest.point;
        for candidate in &candidates {
            // What stays behind costs space. The log can be trimmed all the same.
            if left == 0 && !stays(candidate) {
                failure = self.archive.remove(candidate.name()).err().or(failure);
            } else if left == 0
                && let Candidate::Damaged { name, why, .. } = candidate
            {
                let name = name.escape_debug();
                failure =
                    Some(io::Error::other(format!("{name} stays, nobody can read it: {why}")));
            } else if let Candidate::Whole(snapshot) = candidate {
                needed = std::cmp::min_by_key(needed, snapshot.point, |it| it.position.sequence);
            }
            left -= usize::from(left > 0 && matches!(candidate, Candidate::Whole(_)));
        }
        let stretches = self.log();
        // While no snapshot is as old as the window, the log may reach back to its beginning.
        if foreign.is_empty() && retention::is_before_window(&needed, &self.limits, now) {
            failure = stretches.prune(needed.position.sequence).err().or(failure);
        }
        let positions = pinned.iter().chain([&oldest]).map(|it| it.point.position);
        let held = positions.min_by_key(|at| at.sequence).unwrap_or(oldest.point.position);
        let before = |sequence: Sequence| held.at(Sequence(sequence.0.saturating_sub(1)));
        let mut trim = before(held.sequence);
        let mut archived = None;
        if self.limits.window_seconds > 0 {
            let newest = stretches.newest()?.map(|stretch| stretch.facts);
            archived = newest.filter(|it| it.first.incarnation == log).map(|it| it.last);
            let through = archived
                .map_or(Sequence::ZERO, |last| last)
                .max(before(needed.position.sequence).sequence);
            trim = trim.min(held.at(through));
        }
        // Whoever has no snapshot to begin with needs the log from its beginning.
        let trim = (pinned.len() == pins.len()).then_some(trim);
        Ok(Pruned { trim, archived, failure })
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

/// What the names of all snapshots of one record begin with.
fn names_of(sequence: Sequence) -> String {
    format!("{}{:020}-", Content::Snapshots.prefix(), sequence.0)
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
