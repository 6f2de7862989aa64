//! An object store in memory that behaves badly on demand.

use crate::objects::names::Names;
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, future};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What becomes of the next create-only put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The condition is ignored.
    Overwrites,
    /// A conflict is reported, although nothing stands there.
    Conflicts,
    /// It is done, and the answer is lost.
    LosesAnswer,
    /// It is not done, and that is not told.
    LosesRequest,
    IsFull,
}

#[derive(Debug, Default)]
pub struct Faulty {
    inner: InMemory,
    faults: Mutex<VecDeque<Fault>>,
    is_away: Mutex<bool>,
    /// What becomes of the next record's put, whatever is put before.
    record_faults: Mutex<VecDeque<Fault>>,
    requests: AtomicUsize,
    /// Objects named in listings.
    listed: Arc<AtomicUsize>,
    keeps_records: AtomicBool,
}

impl Faulty {
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().expect("no test panics here").extend(faults);
    }

    pub fn fail_next_record(&self, faults: impl IntoIterator<Item = Fault>) {
        self.record_faults.lock().expect("no test panics here").extend(faults);
    }

    /// Requests so far, of all sorts.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Objects that listings named so far.
    pub fn listed(&self) -> usize {
        self.listed.load(Ordering::Relaxed)
    }

    /// Whether records can be deleted; else it fails, and deletes nothing.
    pub fn set_deletes(&self, deletes: bool) {
        self.keeps_records.store(!deletes, Ordering::Relaxed);
    }

    fn counted(
        &self,
        listed: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let count = Arc::clone(&self.listed);
        let count = move |_: &Result<ObjectMeta>| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        listed.inspect(count).boxed()
    }

    /// Whether every request fails.
    pub fn set_away(&self, is_away: bool) {
        *self.is_away.lock().expect("no test panics here") = is_away;
    }

    fn next_fault(&self) -> Option<Fault> {
        self.faults.lock().expect("no test panics here").pop_front()
    }

    fn next_fault_of(&self, path: &Path) -> Option<Fault> {
        if !Names::is_record(path) {
            return self.next_fault();
        }
        let next = self.record_faults.lock().expect("no test panics here").pop_front();
        next.or_else(|| self.next_fault())
    }

    fn check(&self) -> Result<()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_away = *self.is_away.lock().expect("no test panics here");
        if is_away { Err(generic("connection refused")) } else { Ok(()) }
    }
}

fn generic(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "faulty", source: what.into() }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        self.check()?;
        let is_create = options.mode == PutMode::Create;
        let fault = if is_create { self.next_fault_of(path) } else { None };
        match fault {
            Some(Fault::Overwrites) => options.mode = PutMode::Overwrite,
            Some(Fault::Conflicts) => {
                let source = "409 Conflict".into();
                return Err(Error::AlreadyExists { path: path.to_string(), source });
            }
            Some(Fault::LosesRequest) => return Err(generic("timed out")),
            Some(Fault::IsFull) => {
                return Err(generic(io::Error::from(io::ErrorKind::StorageFull)));
            }
            Some(Fault::LosesAnswer) | None => {}
        }
        let result = self.inner.put_opts(path, payload, options).await;
        if fault == Some(Fault::LosesAnswer) { Err(generic("timed out")) } else { result }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.check()?;
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let keeps = self.keeps_records.load(Ordering::Relaxed);
        let allowed = paths.and_then(move |path| {
            let is_kept = keeps && Names::is_record(&path);
            future::ready(if is_kept { Err(generic("deletion failed")) } else { Ok(path) })
        });
        self.inner.delete_stream(allowed.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counted(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        // Where a listing begins is the store's work.
        self.counted(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
