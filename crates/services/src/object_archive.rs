//! Snapshots in an object store: S3 and what speaks like it, Google's, Azure's, or a directory that
//! is used like one.
//!
//! A store has no locks and no renaming. What it has is create-only puts: of two that put one name,
//! one is told that it exists. Upon that everything here rests, as the log's records do.
//!
//! - *A name has one writer.* It begins with its [`sign`], put create-only, and a look that nothing
//!   stands behind the name: a published snapshot had its sign until it was published.
//! - *Publication is once.* The manifest is put create-only. "Exists already" may mean one's own
//!   manifest, whose answer was lost, so the bytes are compared.
//! - *A dead writer is a silent one.* A living one rewrites its sign every ten seconds. Whoever
//!   tidies up has watched the sign for a minute, by its own clock, and has seen no change. The
//!   store's clock and other machines' are not asked.
//! - *Who was given up for dead may live.* It may have been frozen, or cut off, and be in the middle
//!   of anything. Whatever it still does must neither publish what is being deleted nor touch what
//!   others write.
//!
//! # Tidying up, and a writer that wakes
//!
//! The writer does: `S` put sign · `P` put parts, read them back · `L` look that the sign is still
//! its own · `M` put manifest, create-only · `D` delete sign. Who tidies up (one or several): `T` put
//! a *tombstone* under the manifest's name, create-only · `C` list and delete the parts · `E` delete
//! the sign; and, in a later call that finds the tombstone *alone* (no sign, no part) and has watched
//! it for ten minutes, `R` remove the tombstone. A store keeps these in one order, whoever asks.
//!
//! 1. *`M` before `T`*: `T` is told "exists" and finds a manifest: it is published, and nothing but
//!    the sign is deleted. *`M` behind `T`, before `R`*: `M` is told "exists" and finds the tombstone:
//!    the writer gives up.
//! 2. *`M` behind `R`*: `R` follows a listing that showed neither sign nor part. A sign is put once
//!    and renewed only where it stands, so from `E` on every `L` fails: this writer's `L` was before
//!    `E`, its parts were all there before that, and that listing shows that they are gone. The
//!    manifest names parts that are not there: a damaged snapshot from its first moment, which is not
//!    loaded, for which no log is trimmed, and which goes as damaged ones do.
//! 3. *`R` behind another's `R` and an `M`*: `R` then deletes a manifest; by 2 it is a damaged one.
//! 4. *Who tidies up dies* behind `T`, amid `C`, or behind `E`: the tombstone stays, and under it
//!    everything goes in the next call of anybody, without a wait: the sentence is spoken. Two that
//!    tidy up at once delete the same; what is gone is no error.
//! 5. *A part that lands behind `C`* lies under the tombstone, or, behind `R`, alone: then it is
//!    watched for a minute as a sign is, and buried the same way. No other writer's part has its
//!    name: a writer's random number is in it.
//! 6. *A living writer is never buried unless it is silent for a minute*; and if it is, it loses its
//!    snapshot and nothing else. A removal of a published snapshot that dies half-way, behind the
//!    manifest, leaves what 5 leaves.
//!
//! In a directory a renewal cannot be made to depend on what stands there. It looks first; one that
//! sleeps behind its look puts the sign back. Under a tombstone that is 4; behind `R` it is a sign
//! that does not change, beside which 2 fails only if the same writer sleeps once more, behind `L`,
//! for as long as another upload and tidying take. Its parts are then whole.
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
//! | [`worker`] | the thread on which the client works |

mod bucket;
mod claim;
mod download;
mod draft;
mod names;
mod sign;
#[cfg(test)]
mod tests;
mod tidy;
mod times;
mod upload;
mod worker;

use crate::bucket::location::{Location, Store};
use crate::bucket::probe::{create, probe};
use crate::bucket::{Purpose, Service};
use crate::opening::OpeningArchive;
use archive::{Archive, Claim, Draft, Entry, StoredPart, Unfinished};
use base::Clock;
use bucket::{Bucket, Standing};
use download::StoredObject;
use draft::ObjectDraft;
use names::Names;
use object_store::{
    BackoffConfig, Error, ObjectStoreExt, PutMode, PutPayload, RetryConfig, UpdateVersion,
};
use sign::Writer;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidy::Watch;
use times::Times;
use worker::Worker;

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
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: 30,
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
    worker: Arc<Worker>,
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
            worker: Arc::new(Worker::start("archive-objects")?),
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
        let worker = Worker::start("archive-objects")?;
        let (store, path) = (Arc::clone(&bucket.store), bucket.names.probe(entropy));
        let service = bucket.service;
        bucket.has_versions = worker.wait(async move {
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
        self.worker.wait(async move {
            work(Arc::clone(&bucket)).await.map_err(|error| bucket.told(&about, error))
        })
    }
}

/// Whether the store replaces an object only if it is the one that was named. The object at `path`
/// comes and goes.
async fn keeps_versions(
    store: &dyn object_store::ObjectStore,
    path: &object_store::path::Path,
) -> bool {
    let tried = async {
        let first: UpdateVersion = create(store, path, b"first".to_vec()).await?.into();
        let update = |bytes: &'static [u8]| {
            let mode = PutMode::Update(first.clone());
            store.put_opts(path, PutPayload::from_static(bytes), mode.into())
        };
        let newer = update(b"second").await;
        let older = update(b"third").await;
        let refused = matches!(older, Err(Error::Precondition { .. }));
        Ok::<bool, Error>(newer.is_ok() && refused)
    };
    let keeps = tried.await.unwrap_or(false);
    if let Err(error) = store.delete(path).await {
        tracing::warn!(%error, "the object that an update was tried with could not be deleted");
    }
    keeps
}

fn only_read() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "the snapshot store was opened to be read")
}

impl Archive for ObjectArchive {
    /// The URL, which carries no secret.
    fn location(&self) -> String {
        self.url.clone()
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.ask("the archive", |bucket| async move {
            let mut entries = Vec::new();
            for (name, found) in bucket.snapshots().await? {
                // One that cannot be asked about must not hide the others: whoever reads it is told.
                let standing = bucket.standing(&name, found.manifest).await;
                let is_published = standing.map_or(true, |it| it == Standing::Manifest);
                entries.push(Entry { name, is_published });
            }
            Ok(entries)
        })
    }

    fn begin(&self, name: &str) -> io::Result<Box<dyn Draft>> {
        let writer = self.writer()?;
        Ok(Box::new(ObjectDraft::begin(&self.worker, &self.bucket, name, writer)?))
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
        Ok(Arc::new(StoredObject::open(&self.worker, &self.bucket, path)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.writer()?;
        let of = name.to_owned();
        self.ask(name, |bucket| async move {
            let found = bucket.within(&of).await?;
            // A tombstone stays while anything else is there: who tidies up removes it.
            if bucket.standing(&of, found.manifest).await? == Standing::Manifest {
                bucket.delete(&bucket.names.manifest(&of)).await?;
            }
            let paths = found.parts.keys().map(|part| bucket.names.part(&of, part)).collect();
            bucket.delete_all(paths).await?;
            bucket.delete(&bucket.names.sign(&of)).await
        })
    }

    /// No release has written here without a sign, so `of` makes no difference.
    fn remove_unpublished(&self, _: Unfinished) -> io::Result<()> {
        self.writer()?;
        let (bucket, clock) = (Arc::clone(&self.bucket), Arc::clone(&self.clock));
        let watch = Arc::clone(&self.watch);
        self.worker.wait(async move { tidy::tidy(&bucket, &*clock, &watch).await })
    }

    fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        let holder = self.writer()?;
        let Self { worker, bucket, clock, claim_watch, .. } = self;
        let claim = claim::take(worker, bucket, clock, claim_watch, holder, said)?;
        Ok(claim.map(|claim| Box::new(claim) as Box<dyn Claim>))
    }

    fn claimed(&self) -> io::Result<Option<Vec<u8>>> {
        let bucket = Arc::clone(&self.bucket);
        self.worker.wait(async move { claim::claimed(&bucket).await })
    }
}
