//! Snapshots in an object store: S3 and what speaks like it, Google's, Azure's, or a directory that
//! is used like one.
//!
//! A store has no locks and no renaming. It has create-only puts: of two that put one name, one is
//! told that it exists. Everything here rests upon that, as the log's records do.
//!
//! - *A name has one writer.* It puts its [`sign`] create-only, then looks that nothing lies behind
//!   the name. What was published there had its sign until it was published, so that look sees it.
//! - *A snapshot is published once.* The manifest is put create-only. "Exists already" may mean
//!   one's own manifest, whose answer was lost, so the bytes are compared.
//! - *A silent writer counts as dead.* A living one rewrites its sign every ten seconds. Whoever
//!   tidies up has watched the sign for a minute, by its own clock, and has seen no change. Neither
//!   the store's clock nor another machine's is asked.
//! - *Who counts as dead may live.* It may have been frozen or cut off, in the middle of anything.
//!   When it goes on, it must neither publish what was deleted nor touch what others write.
//!
//! # Tidying up, and a writer that wakes
//!
//! The writer, in this order:
//!
//! - `S` puts its sign, which it renews only while it is still its own;
//! - `P` puts the parts, and reads them back;
//! - `L` looks that the sign is still its own;
//! - `M` puts the manifest, create-only;
//! - `D` deletes the sign.
//!
//! Whoever tidies up, one or several, once the sign has been silent:
//!
//! - `T` puts a *tombstone* under the manifest's name, create-only;
//! - `C` lists the parts and deletes them;
//! - `E` deletes the sign;
//! - `R`, in a later call: if the listing shows the tombstone alone, without a sign and without a
//!   part, and has shown it so for ten minutes, deletes the tombstone.
//!
//! A store puts all requests for one name into one order, and whoever reads sees what was done.
//!
//! 1. *`M` before `T`.* `T` is told that a manifest exists. The snapshot is published; nothing but
//!    the sign is deleted. *`M` between `T` and `R`.* `M` is told that the tombstone exists. The
//!    writer gives up.
//! 2. *`M` behind `R`.* The listing before `R` showed no sign. A sign that is gone never comes
//!    back, so from then on `L` fails, and this writer's `L` was earlier. Its parts were all there
//!    before its `L`; the listing showed none; so they are deleted. The manifest names parts that
//!    are not there. It is a damaged snapshot from its first moment: nobody loads it, no log is
//!    trimmed for it, and it goes as damaged ones do. A writer that has the name by then is told
//!    that it is taken, and abandons its own parts alone.
//! 3. *`R` behind another's `R` and an `M`.* `R` then deletes a manifest. By 2 it is a damaged
//!    one.
//! 4. *Who tidies up dies* behind `T`, amid `C` or behind `E`. The tombstone stays. Whatever lies
//!    beside a tombstone is deleted by the next call of anybody, without a wait. Two that tidy up
//!    at once delete the same objects; one that is gone already is no error.
//! 5. *A part that lands behind `C`* lies beside the tombstone, where 4 deletes it. Behind `R` it
//!    lies alone: then it is watched for a minute as a sign is, and goes the same way. So does
//!    what a removal of a published snapshot leaves that dies behind the manifest. No other
//!    writer's part has that name, since each name contains its writer's random number.
//! 6. *A living writer* loses its snapshot only if it was silent for a minute, and nothing else.
//!
//! Where a store cannot replace an object on the condition that it is still the same (a directory
//! cannot), a renewal looks first and then puts. If it sleeps in between, a sign may come back
//! behind `E`. Beside a tombstone 4 deletes it again. Behind `R` the writer may go on, and publish
//! parts that it puts then, which are whole. Such a snapshot is deleted only by an `R` of somebody
//! who sleeps meanwhile between its look and its deletion.
//!
//! | file | holds |
//! |---|---|
//! | [`names`] | the objects' names |
//! | [`times`] | how long what is tried, and waited for |
//! | [`bucket`] | requests, their repetition, and what their answers leave open |
//! | [`sign`] | the sign of a writer that lives |
//! | [`draft`] | a snapshot in the making |
//! | [`upload`], [`download`] | a part that is written, or read |
//! | [`tidy`] | what dead writers left |
//! | [`claim`] | who takes the snapshots off the box |
//! | [`client_thread`] | the thread on which the client works |

mod bucket;
mod claim;
mod client_thread;
mod download;
mod draft;
mod names;
mod sign;
#[cfg(test)]
mod tests;
mod tidy;
mod times;
mod upload;

use crate::bucket::location::{Location, Store};
use crate::bucket::probe::{keeps_versions, probe};
use crate::bucket::{Purpose, Service};
use crate::opening::OpeningArchive;
use archive::{Archive, Claim, Content, Draft, Entry, Published, StoredPart, Unfinished};
use base::Clock;
use bucket::{Bucket, Found, ManifestPlace};
use client_thread::ClientThread;
use download::StoredObject;
use draft::ObjectDraft;
use names::Names;
use object_store::{BackoffConfig, Error, RetryConfig};
use sign::Writer;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidy::Watch;
use times::Times;

/// An archive moves much at a time and nobody waits for a reply meanwhile.
const ARCHIVE: Purpose = Purpose {
    owner: "the snapshot store",
    content: "snapshots",
    services: &[Service::S3, Service::Google, Service::Azure],
    options: &[],
    // A piece of 8 MiB at 140 KB/s. Small requests have less ([`Times`]).
    request_wait: "60s",
    connect_wait: "5s",
    // A store that is restarted, or that says "slow down", costs no snapshot. Credentials are not
    // renewed meanwhile, so it is less than the five minutes for which a signature counts.
    retries: RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        // Time alone is to end them: the pauses are random, and mostly short.
        max_retries: 1000,
        retry_timeout: Duration::from_secs(80),
    },
};

/// How long opening may take.
const OPEN_WAIT: Duration = Duration::from_secs(30);

/// Opens the archive at `url`. To read it, the store is not asked yet.
///
/// # Errors
/// The URL is none of this kind; the store cannot be reached, refuses, or does not keep create-only
/// puts apart.
pub fn open(url: &str, opening: OpeningArchive) -> io::Result<Arc<dyn Archive>> {
    let OpeningArchive { clock, entropy, renewal } = opening;
    let renewal = renewal.unwrap_or(Times::DEFAULT.renewal);
    let times = Times { renewal, ..Times::DEFAULT };
    let (location, _) = Location::parse(url, &ARCHIVE)?;
    let store = location.store(entropy.is_some(), &ARCHIVE)?;
    Ok(Arc::new(match entropy {
        Some(entropy) => ObjectArchive::open(url, store, clock, entropy, times)?,
        None => {
            let bucket = ObjectArchive::over(store, times, false);
            ObjectArchive::new(url, bucket, clock, None)?
        }
    }))
}

/// Snapshots as objects.
pub struct ObjectArchive {
    url: String,
    thread: Arc<ClientThread>,
    bucket: Arc<Bucket>,
    clock: Arc<dyn Clock>,
    watch: Arc<Watch>,
    /// Where the claim is watched: the tidying forgets what is no snapshot.
    claim_watch: Arc<Watch>,
    /// The state of a generator of writers' names; `None`: opened to read.
    entropy: Option<Mutex<u64>>,
}

impl ObjectArchive {
    fn over(store: Store, times: Times, has_versions: bool) -> Bucket {
        let Store { objects: store, prefix, service, .. } = store;
        Bucket { store, names: Names::new(prefix), times, service, has_versions }
    }

    fn new(
        url: &str,
        bucket: Bucket,
        clock: Arc<dyn Clock>,
        entropy: Option<u64>,
    ) -> io::Result<Self> {
        Ok(Self {
            url: url.to_owned(),
            thread: Arc::new(ClientThread::start("archive-objects")?),
            bucket: Arc::new(bucket),
            clock,
            watch: Arc::default(),
            claim_watch: Arc::default(),
            entropy: entropy.map(Mutex::new),
        })
    }

    fn open(
        url: &str,
        store: Store,
        clock: Arc<dyn Clock>,
        entropy: u64,
        times: Times,
    ) -> io::Result<Self> {
        let mut bucket = Self::over(store, times, false);
        let thread = ClientThread::start("archive-objects")?;
        let (store, path) = (Arc::clone(&bucket.store), bucket.names.probe(entropy));
        let service = bucket.service;
        bucket.has_versions = thread.wait(async move {
            let asked = async {
                probe(&*store, &path, service, &ARCHIVE).await?;
                Ok(keeps_versions(&*store, &path).await)
            };
            let late = || io::Error::new(ErrorKind::TimedOut, "the object store did not answer");
            tokio::time::timeout(OPEN_WAIT, asked).await.unwrap_or_else(|_| Err(late()))
        })?;
        Self::new(url, bucket, clock, Some(entropy))
    }

    /// The next writer's name: SplitMix64, so that no two of one process are the same.
    fn writer(&self) -> io::Result<Writer> {
        let Some(entropy) = &self.entropy else { return Err(only_read()) };
        let mut state = entropy.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(Writer(mixed ^ (mixed >> 31)))
    }

    fn check_may_write(&self) -> io::Result<()> {
        if self.entropy.is_some() { Ok(()) } else { Err(only_read()) }
    }

    /// Asks the store, and waits for its answer.
    fn ask<T, F>(
        &self,
        about: &str,
        work: impl FnOnce(Arc<Bucket>) -> F + Send + 'static,
    ) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send,
    {
        let (bucket, about) = (Arc::clone(&self.bucket), about.to_owned());
        self.thread.wait(async move {
            work(Arc::clone(&bucket)).await.map_err(|error| bucket.told(&about, error))
        })
    }
}

fn only_read() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "the snapshot store was opened to be read")
}

impl Archive for ObjectArchive {
    /// The URL, which carries no secret.
    fn location(&self) -> String {
        self.url.clone()
    }

    fn list(&self, of: Content) -> io::Result<Vec<Entry>> {
        self.ask("the archive", move |bucket| async move {
            let mut entries = Vec::new();
            for (name, found) in bucket.listed(of).await? {
                let is_published = bucket.may_be_published(&name, &found).await;
                entries.push(Entry { name, is_published });
            }
            Ok(entries)
        })
    }

    fn published(&self, of: Content) -> io::Result<Vec<Published>> {
        self.ask("the archive", move |bucket| async move {
            let mut published = Vec::new();
            for (name, found) in bucket.listed(of).await? {
                if bucket.may_be_published(&name, &found).await {
                    let Found { manifest_version, parts, .. } = found;
                    published.push(Published { name, manifest_version, parts: Ok(parts) });
                }
            }
            Ok(published)
        })
    }

    fn begin(&self, name: &str) -> io::Result<Box<dyn Draft>> {
        let writer = self.writer()?;
        Ok(Box::new(ObjectDraft::begin(&self.thread, &self.bucket, name, writer)?))
    }

    fn manifest(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let path = self.bucket.names.manifest(name);
        let fetched = self.ask(name, |bucket| async move { bucket.fetch(&path).await })?;
        match fetched {
            Some((bytes, _)) if bytes.len() as u64 > bytes_max => {
                Err(io::Error::new(ErrorKind::InvalidData, "it is too long"))
            }
            Some((bytes, _)) if bytes != bucket::TOMBSTONE => Ok(bytes.to_vec()),
            _ => {
                let what = format!("{name} is not published");
                Err(io::Error::new(ErrorKind::NotFound, what))
            }
        }
    }

    fn parts(&self, name: &str) -> io::Result<BTreeMap<String, u64>> {
        let of = name.to_owned();
        Ok(self.ask(name, |bucket| async move { bucket.within(&of).await })?.parts)
    }

    /// An open part cannot be read when its snapshot was removed.
    fn open(&self, name: &str, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        let path = self.bucket.names.part(name, part);
        Ok(Arc::new(StoredObject::open(&self.thread, &self.bucket, path)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.check_may_write()?;
        let of = name.to_owned();
        self.ask(name, |bucket| async move {
            let found = bucket.within(&of).await?;
            // A tombstone stays while anything else is there: who tidies up removes it.
            if bucket.manifest_place(&of, found.manifest).await? == ManifestPlace::Manifest {
                bucket.delete(&bucket.names.manifest(&of)).await?;
            }
            let paths = found.parts.keys().map(|part| bucket.names.part(&of, part)).collect();
            bucket.delete_all(paths).await?;
            bucket.delete(&bucket.names.sign(&of)).await
        })
    }

    /// No release has written here without a sign, so `of` makes no difference.
    fn remove_unpublished(&self, _: Unfinished) -> io::Result<()> {
        self.check_may_write()?;
        let (bucket, clock) = (Arc::clone(&self.bucket), Arc::clone(&self.clock));
        let watch = Arc::clone(&self.watch);
        self.thread.wait(async move { tidy::tidy(&bucket, &*clock, &watch).await })
    }

    fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        let holder = self.writer()?;
        let Self { thread, bucket, clock, claim_watch, .. } = self;
        let claim = claim::take(thread, bucket, clock, claim_watch, holder, said)?;
        Ok(claim.map(|claim| Box::new(claim) as Box<dyn Claim>))
    }

    fn claimed(&self) -> io::Result<Option<Vec<u8>>> {
        let bucket = Arc::clone(&self.bucket);
        self.thread.wait(async move { claim::claimed(&bucket).await })
    }
}
