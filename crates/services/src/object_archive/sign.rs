//! The sign of a writer that lives: an object that is there before the snapshot's others, and that
//! is rewritten with a larger count as long as the draft lives.
//!
//! Only its own writer renews it, and only if it is still there: who was tidied away learns of it
//! by the next renewal, or when it publishes, and stops.

use super::bucket::{Bucket, Created, Updated};
use bytes::Bytes;
use object_store::UpdateVersion;
use object_store::path::Path;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;

/// Who writes a draft: random, so that no two writers have one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer(pub u64);

/// What stands in a sign.
pub(super) fn content(writer: Writer, renewed: u64) -> Bytes {
    format!("{{\"writer\":\"{:016x}\",\"renewed\":{renewed}}}\n", writer.0).into()
}

/// Whether a sign is this writer's, whatever its count.
fn is_of(writer: Writer, bytes: &[u8]) -> bool {
    bytes.starts_with(format!("{{\"writer\":\"{:016x}\",", writer.0).as_bytes())
}

/// The sign of one draft.
pub struct Sign {
    bucket: Arc<Bucket>,
    path: Path,
    writer: Writer,
    /// Somebody else has removed it.
    is_lost: AtomicBool,
    /// Held by who puts or removes it: what was on its way when it was removed would bring it back.
    changing: Mutex<()>,
}

impl Sign {
    /// Puts it under a name that nobody has; with it, its version.
    ///
    /// # Errors
    /// `AlreadyExists` if somebody writes under this name, or has written; the store's.
    pub async fn begin(
        bucket: Arc<Bucket>,
        name: &str,
        writer: Writer,
    ) -> io::Result<(Arc<Self>, UpdateVersion)> {
        let path = bucket.names.sign(name);
        let taken = || io::Error::new(ErrorKind::AlreadyExists, format!("{name} is taken"));
        let told = |error| bucket.told(&format!("the sign of {name}"), error);
        let version = match bucket.create(&path, &content(writer, 0)).await.map_err(told)? {
            Created::Done(version) => version,
            Created::Exists(_) => return Err(taken()),
        };
        let is_lost = AtomicBool::new(false);
        let sign = Self { bucket, path, writer, is_lost, changing: Mutex::default() };
        // Whoever published under this name before had a sign there until then, so that it is seen
        // by a look behind this sign's own beginning.
        let within = sign.bucket.within(name).await;
        match within.map_err(|error| sign.bucket.told(name, error))? {
            found if found.manifest.is_none() && found.parts.is_empty() => {}
            _ => {
                sign.remove().await?;
                return Err(taken());
            }
        }
        Ok((Arc::new(sign), version))
    }

    /// Renews it until it is lost.
    pub async fn renew(self: Arc<Self>, mut version: UpdateVersion) {
        let mut renewed = 0;
        loop {
            tokio::time::sleep(self.bucket.times.renewal).await;
            renewed += 1;
            let bytes = content(self.writer, renewed);
            let ours = |there: &[u8]| is_of(self.writer, there);
            let _changing = self.changing.lock().await;
            match self.bucket.update(&self.path, &bytes, &version, ours).await {
                Ok(Updated::Done(newer)) => version = newer,
                Ok(Updated::Lost) => {
                    self.is_lost.store(true, Ordering::Relaxed);
                    return;
                }
                // The next one may succeed.
                Err(error) => tracing::warn!(%error, "a snapshot's sign could not be renewed"),
            }
        }
    }

    /// # Errors
    /// It is known to be lost.
    pub fn check(&self) -> io::Result<()> {
        if self.is_lost.load(Ordering::Relaxed) { Err(lost()) } else { Ok(()) }
    }

    /// # Errors
    /// It is lost, or nobody can say.
    pub async fn look(&self) -> io::Result<()> {
        let there = self.bucket.fetch(&self.path).await;
        match there.map_err(|error| self.bucket.told(self.path.as_ref(), error))? {
            Some((bytes, _)) if is_of(self.writer, &bytes) => Ok(()),
            _ => Err(lost()),
        }
    }

    /// Removes it, unless it is another's.
    ///
    /// # Errors
    /// The store's.
    pub async fn remove(&self) -> io::Result<()> {
        let told = |error| self.bucket.told(self.path.as_ref(), error);
        let _changing = self.changing.lock().await;
        match self.bucket.fetch(&self.path).await.map_err(told)? {
            Some((bytes, _)) if is_of(self.writer, &bytes) => {
                self.bucket.delete(&self.path).await.map_err(told)
            }
            _ => Ok(()),
        }
    }
}

/// What a writer is told that others took for dead.
pub fn lost() -> io::Error {
    let what = "the snapshot was tidied away: its writer could not renew its sign for too long";
    io::Error::new(ErrorKind::NotFound, what)
}
