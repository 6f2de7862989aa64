//! A snapshot in the making: its sign, its parts, its publication.

use super::bucket::{Bucket, Created, TOMBSTONE};
use super::client_thread::ClientThread;
use super::download::StoredObject;
use super::sign::{self, Sign, Writer};
use super::upload::NewObject;
use archive::{Draft, NewPart, StoredPart};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use tokio::task::AbortHandle;

pub struct ObjectDraft {
    thread: Arc<ClientThread>,
    bucket: Arc<Bucket>,
    name: String,
    writer: Writer,
    sign: Arc<Sign>,
    renewing: AbortHandle,
    /// The parts that were begun.
    parts: BTreeSet<String>,
    publication: Publication,
}

/// How far the manifest is.
enum Publication {
    None,
    /// A put of it failed, and may have been done all the same.
    InDoubt(Bytes),
    Done,
}

impl ObjectDraft {
    /// # Errors
    /// As [`Sign::begin`].
    pub fn begin(
        thread: &Arc<ClientThread>,
        bucket: &Arc<Bucket>,
        name: &str,
        writer: Writer,
    ) -> io::Result<Self> {
        let (thread, bucket) = (Arc::clone(thread), Arc::clone(bucket));
        let (asked, name) = (Arc::clone(&bucket), name.to_owned());
        let signed = name.clone();
        let (sign, version) =
            thread.wait(async move { Sign::begin(asked, &signed, writer).await })?;
        let renewing = thread.spawn(Arc::clone(&sign).renew(version));
        let (parts, publication) = (BTreeSet::new(), Publication::None);
        Ok(Self { thread, bucket, name, writer, sign, renewing, parts, publication })
    }
}

impl Drop for ObjectDraft {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Draft for ObjectDraft {
    fn part_name(&self, index: usize) -> String {
        format!("part-{index:04}-{:016x}.rdb", self.writer.0)
    }

    fn part(&mut self, name: &str) -> io::Result<Box<dyn NewPart>> {
        self.sign.check()?;
        if !self.parts.insert(name.to_owned()) {
            let what = format!("the part {name} was begun already");
            return Err(io::Error::new(ErrorKind::AlreadyExists, what));
        }
        let path = self.bucket.names.part(&self.name, name);
        Ok(Box::new(NewObject::new(&self.thread, &self.bucket, path)))
    }

    fn read_back(&self, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        self.sign.check()?;
        let path = self.bucket.names.part(&self.name, part);
        Ok(Arc::new(StoredObject::open(&self.thread, &self.bucket, path)?))
    }

    fn publish(&mut self, manifest: &[u8]) -> io::Result<()> {
        if let Publication::Done = self.publication {
            return Err(published(&self.name));
        }
        self.sign.check()?;
        let sign = Arc::clone(&self.sign);
        // The tidying counts on this look: see the module's head.
        self.thread.wait(async move { sign.look().await })?;
        let (bucket, name) = (Arc::clone(&self.bucket), self.name.clone());
        let bytes = Bytes::copy_from_slice(manifest);
        self.publication = Publication::InDoubt(bytes.clone());
        self.thread.wait(async move { publish(&bucket, &name, &bytes).await })?;
        self.publication = Publication::Done;
        let sign = Arc::clone(&self.sign);
        // One that stays beside a manifest says nothing: whoever tidies up removes it.
        let _ = self.thread.wait(async move { sign.remove().await });
        self.renewing.abort();
        Ok(())
    }

    fn abandon(self: Box<Self>) -> io::Result<()> {
        let in_doubt = match &self.publication {
            Publication::InDoubt(manifest) => Some(manifest.clone()),
            Publication::None | Publication::Done => None,
        };
        let (bucket, sign) = (Arc::clone(&self.bucket), Arc::clone(&self.sign));
        let (name, parts) = (self.name.clone(), self.parts.clone());
        self.thread.wait(async move {
            if let Some(manifest) = in_doubt {
                forbid(&bucket, &name, &manifest).await?;
            }
            let paths = parts.iter().map(|part| bucket.names.part(&name, part)).collect();
            let deleted = bucket.delete_all(paths).await;
            deleted.map_err(|error| bucket.told(&name, error))?;
            sign.remove().await
        })
    }
}

async fn publish(bucket: &Bucket, name: &str, manifest: &Bytes) -> io::Result<()> {
    let path = bucket.names.manifest(name);
    let created = bucket.create(&path, manifest).await;
    match created.map_err(|error| bucket.told(&format!("the manifest of {name}"), error))? {
        Created::Done(_) => Ok(()),
        Created::Exists(there) if there == TOMBSTONE => Err(sign::lost()),
        Created::Exists(_) => Err(published(name)),
    }
}

/// Makes sure that the manifest whose put is in doubt does not come late.
async fn forbid(bucket: &Bucket, name: &str, manifest: &Bytes) -> io::Result<()> {
    let told = |error| bucket.told(&format!("the manifest of {name}"), error);
    let path = bucket.names.manifest(name);
    match bucket.create(&path, &Bytes::from_static(TOMBSTONE)).await.map_err(told)? {
        Created::Exists(there) if there == *manifest => bucket.delete(&path).await.map_err(told),
        // Another's: its parts have other names.
        Created::Done(_) | Created::Exists(_) => Ok(()),
    }
}

fn published(name: &str) -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, format!("{name} is published already"))
}
