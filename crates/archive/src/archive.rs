//! Where snapshots are kept: the trait behind which a store lies.
//!
//! ```text
//! begin(name) ─▶ Draft ── part(name) ─▶ NewPart: append …, finish      many parts
//!                  │ ──── read_back(part) ─▶ StoredPart: read_at …
//!                  └───── publish(manifest)    from here on it is a snapshot
//! published ─▶ names, parts ── manifest(name), open(name, part) ─▶ StoredPart: read_at …
//! ```
//! An archive knows names and bytes. What a manifest says, which snapshots stay and which are
//! damaged, the store decides ([`crate::SnapshotStore`]). Stretches of the log are kept in the same
//! way ([`crate::LogStore`]): where a snapshot is spoken of here, the same is true of them.
//!
//! Beside the snapshots there is one *claim*: who has it takes the snapshots, off the box, and says
//! in a few words how far it is. Two that take the same snapshots would waste one's work and lose
//! nothing, so a claim is no lock: one that was given up for dead may still be at work.

use crate::names::Content;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// An entry of an archive: a name, published or in the making.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    pub name: String,
    /// It has a manifest, or nobody can say. Without one it counts for nothing.
    pub is_published: bool,
}

/// A published snapshot, as far as an archive can say without reading it.
#[derive(Debug)]
pub struct Published {
    pub name: String,
    /// Another manifest under this name has another version. `None` where nothing tells that: the
    /// manifest must then be read each time.
    pub manifest_version: Option<String>,
    /// As [`Archive::parts`] says.
    pub parts: io::Result<BTreeMap<String, u64>>,
}

/// Keeps snapshots by name. Every call blocks: it belongs into a disk queue's jobs and into a
/// start, never into a turn of the loop.
///
/// What a writer was told is done must outlast a loss of power: a part that is finished, a snapshot
/// that is published. Names sort by age, which only their giver knows.
pub trait Archive: Send + Sync {
    /// Where it is, for people: a path or an address.
    fn location(&self) -> String;

    /// The entries of this content, published or in the making, each name once, sorted.
    ///
    /// # Errors
    /// The archive's.
    fn list(&self, of: Content) -> io::Result<Vec<Entry>>;

    /// The published entries of this content, by name: what [`Self::list`] and [`Self::parts`]
    /// say of it. An archive that can say so at once does, as every process of a shard asks for it
    /// again and again.
    ///
    /// # Errors
    /// The archive's.
    fn published(&self, of: Content) -> io::Result<Vec<Published>> {
        let entries = self.list(of)?.into_iter().filter(|entry| entry.is_published);
        let published = entries.map(|Entry { name, .. }| Published {
            parts: self.parts(&name),
            manifest_version: None,
            name,
        });
        Ok(published.collect())
    }

    /// Begins a snapshot under a name that nobody has. While the draft lives nobody's
    /// [`Self::remove_unpublished`] removes what is written to it.
    ///
    /// # Errors
    /// `AlreadyExists` if somebody has the name; `NotFound` or `WouldBlock` if somebody tidied it
    /// away while it was taken.
    fn begin(&self, name: &str) -> io::Result<Box<dyn Draft>>;

    /// The manifest of a published snapshot.
    ///
    /// # Errors
    /// `NotFound` if there is none, `InvalidData` if it has more than `bytes_max` bytes.
    fn manifest(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// The parts that a snapshot has, and their lengths in bytes. Other files may be among them.
    ///
    /// # Errors
    /// The archive's.
    fn parts(&self, name: &str) -> io::Result<BTreeMap<String, u64>>;

    /// Opens a part, to be read by ranges. Whether an open part can still be read when its snapshot
    /// was removed depends on the archive.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    fn open(&self, name: &str, part: &str) -> io::Result<Arc<dyn StoredPart>>;

    /// Removes a snapshot, published or not, whoever writes it: its manifest first, so that one
    /// that is half removed is none. One that is not there is no error.
    ///
    /// # Errors
    /// The archive's; what is left is removed by the next attempt.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Removes what no process will finish, and nothing that a process may be writing.
    ///
    /// # Errors
    /// The archive's, once all that it lets go is gone.
    fn remove_unpublished(&self, of: Unfinished) -> io::Result<()>;

    /// Takes the claim and says so; `None` while somebody else has it. Whoever waits for it asks
    /// again every few seconds: an archive without locks finds a holder dead by its silence, and by
    /// nothing but this clock, so only after it was asked for [`CLAIM_SILENCE`].
    ///
    /// # Errors
    /// The archive's. More than [`CLAIM_BYTES_MAX`] were to be said.
    fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>>;

    /// The last words of the claim's holder; `None` if nobody took it, or it was given up. Whether
    /// a holder lives shows in what it says: it says something new at least every
    /// [`CLAIM_RENEWAL`].
    ///
    /// # Errors
    /// The archive's.
    fn claimed(&self) -> io::Result<Option<Vec<u8>>>;
}

/// A holder of the claim says something new at least this often.
pub const CLAIM_RENEWAL: Duration = Duration::from_secs(5);

/// A holder that has said nothing new for so long is dead: it may be frozen, or cut off.
pub const CLAIM_SILENCE: Duration = Duration::from_secs(30);

/// Bytes that a holder may say at once, at most.
pub const CLAIM_BYTES_MAX: usize = 4096;

/// The claim to take an archive's snapshots. Dropped it is free as soon as the archive notices.
pub trait Claim: Send {
    /// Says something new; whether this process still holds the claim.
    ///
    /// # Errors
    /// The archive's; the claim may be held or not.
    fn renew(&mut self, said: &[u8]) -> io::Result<bool>;

    /// Gives it up.
    ///
    /// # Errors
    /// The archive's; it is then free as if it had been dropped.
    fn release(self: Box<Self>) -> io::Result<()>;
}

/// Those whose unfinished snapshots are to be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfinished {
    /// Writers that show themselves by a sign, and are seen to be dead.
    Signed,
    /// Those of releases that made no sign as well: none of them writes, the caller knows.
    All,
}

/// A snapshot in the making, under a name of its own. Dropped before it is published it leaves what
/// [`Archive::remove_unpublished`] clears away.
pub trait Draft: Send {
    /// The name of the part of this number. An archive in which a writer that was given up for dead
    /// can still write has names in it that no other writer gives.
    fn part_name(&self, index: usize) -> String {
        format!("part-{index:04}.rdb")
    }

    /// Begins a part. Several may be written at a time, on several threads.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one of this name.
    fn part(&mut self, name: &str) -> io::Result<Box<dyn NewPart>>;

    /// Opens a part that is finished. What is read is what the archive keeps, not what a cache on
    /// this machine remembers of the writing.
    ///
    /// # Errors
    /// The archive's.
    fn read_back(&self, part: &str) -> io::Result<Arc<dyn StoredPart>>;

    /// Makes the finished parts a snapshot, all at once. Never replaces what is published.
    ///
    /// # Errors
    /// `AlreadyExists` if it is published already. After any other error it may be published or
    /// not, and must be abandoned.
    fn publish(&mut self, manifest: &[u8]) -> io::Result<()>;

    /// Removes what was written.
    ///
    /// # Errors
    /// The archive's; what is left [`Archive::remove_unpublished`] clears away.
    fn abandon(self: Box<Self>) -> io::Result<()>;
}

/// A part that is being written, from its beginning to its end.
pub trait NewPart: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// The archive's; the snapshot must then be abandoned.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all of it durable.
    ///
    /// # Errors
    /// As [`Self::append`]. A failure is final.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A part that can be read. Methods may be called from several threads.
pub trait StoredPart: Send + Sync {
    /// Reads at `offset` until `into` is full or the part ends; the count of bytes read.
    ///
    /// Readers ask for ranges of some hundred KiB, one behind the other: an archive to which each
    /// request is a journey reads ahead.
    ///
    /// # Errors
    /// The archive's.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}
