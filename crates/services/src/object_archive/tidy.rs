//! Removes what writers have left that died: the steps of the argument in the module's head.

use super::bucket::{Bucket, Created, Found, ManifestPlace, TOMBSTONE};
use archive::Content;
use base::{Clock, MonotonicNanos};
use bytes::Bytes;
use object_store::Error;
use object_store::path::Path;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What this process has seen of unfinished snapshots, over several calls.
#[derive(Default)]
pub struct Watch(Mutex<BTreeMap<String, Seen>>);

/// Something that has not changed since.
struct Seen {
    what: Bytes,
    since: MonotonicNanos,
}

/// When something was looked at, by this process's clock: at some time in between.
#[derive(Clone, Copy)]
pub struct Look {
    pub began: MonotonicNanos,
    pub ended: MonotonicNanos,
}

impl Watch {
    /// For how long, at least, this has been seen as it is now.
    pub fn unchanged(&self, name: &str, what: Bytes, look: Look) -> Duration {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(name) {
            Some(seen) if seen.what == what => Duration::from_nanos(look.began.since(seen.since)),
            _ => {
                seen.insert(name.to_owned(), Seen { what, since: look.ended });
                Duration::ZERO
            }
        }
    }

    /// Forgets what is gone.
    fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|name, _| is_there(name));
    }
}

/// Tidies up once.
///
/// # Errors
/// The store's, once all that it lets go is gone.
pub async fn tidy(bucket: &Bucket, clock: &dyn Clock, watch: &Watch) -> io::Result<()> {
    let began = clock.monotonic();
    let mut there = BTreeMap::new();
    for content in Content::ALL {
        let listed = bucket.listed(content).await;
        there.extend(listed.map_err(|error| bucket.told("the archive", error))?);
    }
    watch.retain(|name| there.contains_key(name));
    let mut failure = Ok(());
    for (name, found) in there {
        let tidying = Tidying { bucket, clock, watch, name: &name, began };
        if let Err(error) = tidying.look_at(&found).await {
            failure = Err(bucket.told(&name, error));
        }
    }
    failure
}

/// One snapshot, looked at.
struct Tidying<'a> {
    bucket: &'a Bucket,
    clock: &'a dyn Clock,
    watch: &'a Watch,
    name: &'a str,
    /// When the listing began.
    began: MonotonicNanos,
}

impl Tidying<'_> {
    async fn look_at(&self, found: &Found) -> Result<(), Error> {
        let Self { bucket, name, .. } = *self;
        let silence = bucket.times.silence;
        match bucket.manifest_place(name, found.manifest).await? {
            ManifestPlace::Manifest if found.has_sign => self.remove_sign().await,
            ManifestPlace::Manifest => Ok(()),
            ManifestPlace::Tombstone if found.has_sign || !found.parts.is_empty() => {
                self.clear().await
            }
            ManifestPlace::Tombstone => {
                if self.unchanged(TOMBSTONE.into(), self.began) < bucket.times.tombstone {
                    return Ok(());
                }
                bucket.delete(&bucket.names.manifest(name)).await
            }
            ManifestPlace::Nothing if found.has_sign => {
                let began = self.clock.monotonic();
                match bucket.fetch(&bucket.names.sign(name)).await? {
                    Some((sign, _)) if self.unchanged(sign.clone(), began) >= silence => {
                        self.bury().await
                    }
                    // Its writer may live; or it has just published, or given up.
                    _ => Ok(()),
                }
            }
            // Left by whoever died while it removed a snapshot, or by a writer that had been tidied
            // away while its parts were on their way.
            ManifestPlace::Nothing => {
                let parts = format!("{:?}", found.parts);
                match self.unchanged(parts.into(), self.began) >= silence {
                    true => self.bury().await,
                    false => Ok(()),
                }
            }
        }
    }

    /// For how long something has been seen as it is; `began` is from before it was looked at.
    fn unchanged(&self, what: Bytes, began: MonotonicNanos) -> Duration {
        let look = Look { began, ended: self.clock.monotonic() };
        self.watch.unchanged(self.name, what, look)
    }

    /// Makes sure that the dead writer does not publish, and removes what it wrote.
    async fn bury(&self) -> Result<(), Error> {
        let manifest = self.bucket.names.manifest(self.name);
        match self.bucket.create(&manifest, &Bytes::from_static(TOMBSTONE)).await? {
            Created::Exists(there) if there != TOMBSTONE => self.remove_sign().await,
            Created::Exists(_) | Created::Done(_) => self.clear().await,
        }
    }

    /// Removes all but the tombstone, what came since the listing as well.
    async fn clear(&self) -> Result<(), Error> {
        let Self { bucket, name, .. } = *self;
        let found = bucket.within(name).await?;
        let paths: Vec<Path> =
            found.parts.keys().map(|part| bucket.names.part(name, part)).collect();
        bucket.delete_all(paths).await?;
        self.remove_sign().await
    }

    async fn remove_sign(&self) -> Result<(), Error> {
        self.bucket.delete(&self.bucket.names.sign(self.name)).await
    }
}
