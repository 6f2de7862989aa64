//! Requests to the store, each tried for a while, and what their answers leave open.
//!
//! A request whose answer is lost may have been done. Reading, deleting and overwriting are simply
//! repeated. A create-only put that is repeated meets itself, so what stands there is compared with
//! what was to be put; whoever puts something writes bytes that nobody else writes. So it is with
//! updates, which replace what was last seen and nothing newer.

use super::names::{Names, Role};
use super::times::{Patience, Times};
use crate::bucket::{Service, found, is_full};
use archive::Content;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    UpdateVersion,
};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// Objects of an archive, at most: 100 snapshots of the most parts. More are no archive's.
const OBJECTS_MAX: usize = 500_000;

/// Bytes of a small object, at most: the longest manifest that is read.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// What stands where a writer that was given up for dead would publish.
pub const TOMBSTONE: &[u8] = b"{\"abandoned\":true}\n";

/// The store, the names in it, and how it is asked.
pub struct Bucket {
    pub store: Arc<dyn ObjectStore>,
    pub names: Names,
    pub times: Times,
    pub service: Service,
    /// The store replaces an object only if it is the one that was named. Where it cannot, one is
    /// looked at before it is replaced, and somebody else may be in between.
    pub has_versions: bool,
}

/// How a create-only put ended.
pub enum Created {
    Done(UpdateVersion),
    /// Somebody else's object is there.
    Exists(Bytes),
}

/// How an update ended.
pub enum Updated {
    Done(UpdateVersion),
    /// What is there is not one's own any more, or nothing is.
    Lost,
}

/// What an archive has of one snapshot.
#[derive(Default, Debug)]
pub struct Found {
    pub has_sign: bool,
    /// Bytes of the manifest, or of the tombstone in its place.
    pub manifest: Option<u64>,
    /// Differs where that object differs; `None` if the store does not tell.
    pub manifest_version: Option<String>,
    pub parts: BTreeMap<String, u64>,
}

/// What stands in a manifest's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManifestPlace {
    Nothing,
    Tombstone,
    Manifest,
}

impl Bucket {
    /// Repeats what may succeed the next time.
    pub async fn persist<T, F>(&self, patience: Patience, work: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut last = None;
        let attempts = async {
            let mut pause = patience.pause;
            loop {
                match tokio::time::timeout(patience.attempt, work()).await {
                    Ok(Err(error)) if may_pass(&error) => last = Some(error),
                    Ok(result) => return result,
                    Err(_) => last = last.take().or_else(|| Some(late())),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(patience.pause * 10);
            }
        };
        let ended = tokio::time::timeout(patience.all, attempts).await;
        ended.unwrap_or_else(|_| Err(last.unwrap_or_else(late)))
    }

    /// Puts an object that nobody has put.
    pub async fn create(&self, path: &Path, bytes: &Bytes) -> Result<Created, Error> {
        let put = || async {
            let payload = PutPayload::from_bytes(bytes.clone());
            let error = match self.store.put_opts(path, payload, PutMode::Create.into()).await {
                Ok(put) => return Ok(Created::Done(put.into())),
                // It may stand there and not be durable, and whoever asked again would not be told.
                Err(error) if self.service == Service::Directory && may_pass(&error) => {
                    let what = format!("it may be there and not be durable: {error}");
                    return Err(Final::error(ErrorKind::Other, what));
                }
                Err(error @ Error::AlreadyExists { .. }) => error,
                Err(error) => return Err(error),
            };
            // A store may say so about a name where nothing stands: S3 does if two requests for
            // one name meet, or one meets a deletion.
            match self.fetch_once(path).await? {
                Some((there, version)) if there == *bytes => Ok(Created::Done(version)),
                Some((there, _)) => Ok(Created::Exists(there)),
                None => Err(conflict(error)),
            }
        };
        self.persist(self.times.small, put).await
    }

    /// Replaces what is one's own, which `ours` says of its bytes.
    pub async fn update(
        &self,
        path: &Path,
        bytes: &Bytes,
        version: &UpdateVersion,
        ours: impl Fn(&[u8]) -> bool,
    ) -> Result<Updated, Error> {
        let payload = || PutPayload::from_bytes(bytes.clone());
        let put = || async {
            if self.has_versions {
                let mode = PutMode::Update(version.clone());
                match self.store.put_opts(path, payload(), mode.into()).await {
                    Ok(put) => return Ok(Updated::Done(put.into())),
                    Err(Error::Precondition { .. } | Error::NotFound { .. }) => {}
                    Err(error @ Error::AlreadyExists { .. }) => return Err(conflict(error)),
                    Err(error) => return Err(error),
                }
            }
            // The version may be that of an earlier put of one's own, whose answer was lost.
            let version = match self.fetch_once(path).await? {
                Some((there, version)) if there == *bytes => return Ok(Updated::Done(version)),
                Some((there, version)) if ours(&there) => version,
                _ => return Ok(Updated::Lost),
            };
            let mode = match self.has_versions {
                true => PutMode::Update(version),
                false => PutMode::Overwrite,
            };
            match self.store.put_opts(path, payload(), mode.into()).await {
                Ok(put) => Ok(Updated::Done(put.into())),
                Err(error @ (Error::Precondition { .. } | Error::AlreadyExists { .. })) => {
                    Err(conflict(error))
                }
                Err(Error::NotFound { .. }) => Ok(Updated::Lost),
                Err(error) => Err(error),
            }
        };
        self.persist(self.times.small, put).await
    }

    /// A small object, and its version.
    pub async fn fetch(&self, path: &Path) -> Result<Option<(Bytes, UpdateVersion)>, Error> {
        self.persist(self.times.small, || self.fetch_once(path)).await
    }

    async fn fetch_once(&self, path: &Path) -> Result<Option<(Bytes, UpdateVersion)>, Error> {
        let Some(object) = found(self.store.get(path).await)? else { return Ok(None) };
        let ObjectMeta { e_tag, version, size, .. } = object.meta.clone();
        if size > SMALL_BYTES_MAX {
            let what = format!("{path} has {size} bytes, which no small object of Kiln's has");
            return Err(Final::error(ErrorKind::InvalidData, what));
        }
        let bytes = object.bytes().await?;
        Ok(Some((bytes, UpdateVersion { e_tag, version })))
    }

    /// An object's length in bytes.
    pub async fn length(&self, path: &Path) -> Result<Option<u64>, Error> {
        let look = || async { found(self.store.head(path).await) };
        Ok(self.persist(self.times.small, look).await?.map(|meta| meta.size))
    }

    /// A range of a part, whole: one that comes short is asked for again.
    pub async fn fetch_range(&self, path: &Path, range: Range<u64>) -> Result<Bytes, Error> {
        let wanted = range.end - range.start;
        let fetch = || async {
            let options =
                GetOptions { range: Some(GetRange::Bounded(range.clone())), ..Default::default() };
            let bytes = self.store.get_opts(path, options).await?.bytes().await?;
            if bytes.len() as u64 == wanted {
                return Ok(bytes);
            }
            let what = format!("{path}: {} of {wanted} bytes came", bytes.len());
            Err(Error::Generic { store: "archive", source: what.into() })
        };
        self.persist(self.times.large, fetch).await
    }

    /// Puts an object, whatever stands there.
    pub async fn put(&self, path: &Path, bytes: Bytes) -> Result<(), Error> {
        let put = || async {
            self.store.put(path, PutPayload::from_bytes(bytes.clone())).await.map(|_| ())
        };
        self.persist(self.times.large, put).await
    }

    pub async fn delete(&self, path: &Path) -> Result<(), Error> {
        self.delete_all(vec![path.clone()]).await
    }

    /// Deletes those that are there.
    pub async fn delete_all(&self, paths: Vec<Path>) -> Result<(), Error> {
        let delete = || async {
            let paths = futures_util::stream::iter(paths.clone()).map(Ok).boxed();
            let mut deleted = self.store.delete_stream(paths);
            let mut failure = Ok(());
            // One that cannot be deleted must not keep the others.
            while let Some(result) = deleted.next().await {
                failure = found(result).map(|_| ()).and(failure);
            }
            failure
        };
        if paths.is_empty() { Ok(()) } else { self.persist(self.times.small, delete).await }
    }

    /// What there is of these, by name.
    pub async fn listed(&self, content: Content) -> Result<BTreeMap<String, Found>, Error> {
        let list = || async {
            let before = self.names.before(content);
            let listed = self.store.list_with_offset(Some(self.names.prefix()), &before);
            self.collect(content, listed).await
        };
        self.persist(self.times.small, list).await
    }

    /// What there is of one snapshot, but its sign.
    pub async fn within(&self, name: &str) -> Result<Found, Error> {
        let within = self.names.within(name);
        let Some(content) = Content::of(name) else { return Ok(Found::default()) };
        let list = || async { self.collect(content, self.store.list(Some(&within))).await };
        Ok(self.persist(self.times.small, list).await?.remove(name).unwrap_or_default())
    }

    async fn collect(
        &self,
        content: Content,
        listed: impl futures_util::Stream<Item = Result<ObjectMeta, Error>>,
    ) -> Result<BTreeMap<String, Found>, Error> {
        // Stores list in the order of names, and others may follow; a directory in no order.
        let is_sorted = self.service != Service::Directory;
        let is_of = |meta: &ObjectMeta| self.names.is_of(content, &meta.location);
        let listed = listed.try_take_while(|meta| future::ready(Ok(!is_sorted || is_of(meta))));
        let mut listed = std::pin::pin!(listed);
        let mut snapshots: BTreeMap<String, Found> = BTreeMap::new();
        let mut count = 0;
        while let Some(meta) = listed.try_next().await? {
            let ObjectMeta { location, size, e_tag, last_modified, .. } = meta;
            let Some((name, role)) = self.names.read(&location) else { continue };
            if Content::of(name) != Some(content) {
                continue;
            }
            count += 1;
            if count > OBJECTS_MAX {
                let what = format!("more than {OBJECTS_MAX} objects lie in the archive");
                return Err(Final::error(ErrorKind::Other, what));
            }
            let found = snapshots.entry(name.to_owned()).or_default();
            match role {
                Role::Sign => found.has_sign = true,
                Role::Manifest => {
                    found.manifest = Some(size);
                    found.manifest_version =
                        e_tag.map(|tag| format!("{tag} {size} {last_modified}"));
                }
                Role::Part(part) => drop(found.parts.insert(part.to_owned(), size)),
            }
        }
        Ok(snapshots)
    }

    /// What stands in the place of a manifest that has so many bytes.
    pub async fn manifest_place(
        &self,
        name: &str,
        bytes: Option<u64>,
    ) -> Result<ManifestPlace, Error> {
        match bytes {
            None => return Ok(ManifestPlace::Nothing),
            Some(bytes) if bytes != TOMBSTONE.len() as u64 => return Ok(ManifestPlace::Manifest),
            Some(_) => {}
        }
        Ok(match self.fetch(&self.names.manifest(name)).await? {
            None => ManifestPlace::Nothing,
            Some((bytes, _)) if bytes == TOMBSTONE => ManifestPlace::Tombstone,
            Some(_) => ManifestPlace::Manifest,
        })
    }

    /// Whether it is published, or nobody can say: one that cannot be asked about must not hide the
    /// others, and its reader is told why.
    pub async fn may_be_published(&self, name: &str, found: &Found) -> bool {
        let manifest_place = self.manifest_place(name, found.manifest).await;
        manifest_place.map_or(true, |it| it == ManifestPlace::Manifest)
    }

    /// An error about something, for its caller.
    pub fn told(&self, about: &str, error: Error) -> io::Error {
        if is_full(&error) {
            return io::Error::new(ErrorKind::StorageFull, format!("{about}: {error}"));
        }
        let kind = match &error {
            Error::NotFound { .. } => ErrorKind::NotFound,
            Error::AlreadyExists { .. } => ErrorKind::AlreadyExists,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                return crate::bucket::explained(error, self.service);
            }
            Error::NotImplemented { .. } | Error::NotSupported { .. } => ErrorKind::Unsupported,
            Error::Generic { source, .. } => {
                let known = source.downcast_ref::<Final>().map(|it| it.0.kind());
                let told = source.downcast_ref::<io::Error>().map(io::Error::kind);
                known.or(told).unwrap_or(ErrorKind::Other)
            }
            _ => ErrorKind::Other,
        };
        io::Error::new(kind, format!("{about}: {error}"))
    }
}

/// Whether a repetition may end otherwise.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Generic { source, .. } => !is_full(error) && !source.is::<Final>(),
        Error::JoinError { .. } => true,
        _ => false,
    }
}

/// An error that no repetition mends.
#[derive(Debug)]
struct Final(io::Error);

impl Final {
    fn error(kind: ErrorKind, what: String) -> Error {
        Error::Generic { store: "archive", source: Box::new(Self(io::Error::new(kind, what))) }
    }
}

impl fmt::Display for Final {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Final {}

/// The store met somebody else's request for the same name: the next attempt tells.
fn conflict(error: Error) -> Error {
    Error::Generic { store: "archive", source: error.to_string().into() }
}

fn late() -> Error {
    let what = io::Error::new(ErrorKind::TimedOut, "the object store did not answer in time");
    Error::Generic { store: "archive", source: what.into() }
}
