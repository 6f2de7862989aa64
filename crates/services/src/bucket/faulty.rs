//! An object store in memory that behaves badly on demand.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, future, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, UploadPart,
};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of the next create-only put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The condition is ignored.
    Overwrites,
    /// A conflict is reported, although nothing stands there.
    Conflicts,
    /// It is done, and the answer is lost.
    LosesAnswer,
    /// It is done, its answer is lost, and the client's own repetition is told that it exists.
    MeetsItself,
    /// It is not done, and that is not told.
    LosesRequest,
    IsFull,
}

/// Something that happens right before a request.
struct Hook {
    /// Requests until then.
    left: usize,
    work: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {} requests", self.left)
    }
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
    /// The next requests of any sort that fail.
    busy: AtomicUsize,
    /// Every so many requests one fails; 0: none.
    busy_every: AtomicUsize,
    /// Of two puts the first is done, and its answer is lost.
    is_forgetful: AtomicBool,
    /// The next updates that meet themselves, as [`Fault::MeetsItself`].
    updates_that_meet: AtomicUsize,
    puts: AtomicUsize,
    /// The next reads that end early.
    cut: AtomicUsize,
    slowness: Mutex<Duration>,
    hook: Mutex<Option<Hook>>,
    uploads: Arc<Uploads>,
}

/// What becomes of multipart uploads.
#[derive(Debug, Default)]
pub struct Uploads {
    /// The next pieces that are not stored.
    pub lost_pieces: AtomicUsize,
    /// The next completions whose answer is lost.
    pub lost_answers: AtomicUsize,
    /// Begun, and neither completed nor aborted.
    pub open: AtomicUsize,
    pub aborted: AtomicUsize,
    /// Pieces on their way, and the most that ever were.
    pub under_way: AtomicUsize,
    pub under_way_max: AtomicUsize,
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

    /// So many requests fail from here on.
    pub fn set_busy(&self, requests: usize) {
        self.busy.store(requests, Ordering::Relaxed);
    }

    /// Of so many requests one fails; of 0 none.
    pub fn set_busy_every(&self, requests: usize) {
        self.busy_every.store(requests, Ordering::Relaxed);
    }

    /// Whether every other put is done, and its answer lost.
    pub fn set_forgetful(&self, is_forgetful: bool) {
        self.is_forgetful.store(is_forgetful, Ordering::Relaxed);
    }

    /// So many updates meet themselves.
    pub fn let_updates_meet(&self, updates: usize) {
        self.updates_that_meet.store(updates, Ordering::Relaxed);
    }

    /// So many reads end early.
    pub fn cut_reads(&self, reads: usize) {
        self.cut.store(reads, Ordering::Relaxed);
    }

    /// How long every request takes.
    pub fn set_slow(&self, slowness: Duration) {
        *self.slowness.lock().expect("no test panics here") = slowness;
    }

    /// Does something right before the request that is the `at`th from now, counted from 1.
    pub fn interrupt(&self, at: usize, work: impl FnOnce() + Send + 'static) {
        let hook = Hook { left: at, work: Some(Box::new(work)) };
        *self.hook.lock().expect("no test panics here") = Some(hook);
    }

    pub fn uploads(&self) -> &Uploads {
        &self.uploads
    }

    /// What is in it, past all faults.
    pub fn inner(&self) -> &InMemory {
        &self.inner
    }

    fn forgets(&self) -> bool {
        self.is_forgetful.load(Ordering::Relaxed)
            && self.puts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
    }

    fn counted(
        &self,
        listed: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Err(error) = self.check() {
            return stream::once(future::ready(Err(error))).boxed();
        }
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
        if !is_record(path) {
            return self.next_fault();
        }
        let next = self.record_faults.lock().expect("no test panics here").pop_front();
        next.or_else(|| self.next_fault())
    }

    fn check(&self) -> Result<()> {
        let count = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let mut hook = self.hook.lock().expect("no test panics here");
        let mut work = None;
        if let Some(hook) = &mut *hook {
            hook.left = hook.left.saturating_sub(1);
            work = if hook.left == 0 { hook.work.take() } else { None };
        }
        drop(hook);
        if let Some(work) = work {
            work();
        }
        let every = self.busy_every.load(Ordering::Relaxed);
        if take(&self.busy) || (every > 0 && count.is_multiple_of(every)) {
            return Err(generic("503 Slow Down"));
        }
        let is_away = *self.is_away.lock().expect("no test panics here");
        if is_away { Err(generic("connection refused")) } else { Ok(()) }
    }

    async fn slow_check(&self) -> Result<()> {
        let slowness = *self.slowness.lock().expect("no test panics here");
        if !slowness.is_zero() {
            tokio::time::sleep(slowness).await;
        }
        self.check()
    }
}

/// Whether there is one left, which is then taken.
fn take(count: &AtomicUsize) -> bool {
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Whether a name is that of a log's record.
fn is_record(path: &Path) -> bool {
    path.as_ref().contains("/log/")
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
        self.slow_check().await?;
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
            Some(Fault::LosesAnswer | Fault::MeetsItself) | None => {}
        }
        let is_update = matches!(options.mode, PutMode::Update(_));
        let meets = is_update && take(&self.updates_that_meet);
        if meets || fault == Some(Fault::MeetsItself) {
            self.inner.put_opts(path, payload.clone(), options.clone()).await?;
        }
        let result = self.inner.put_opts(path, payload, options).await;
        let is_lost = fault == Some(Fault::LosesAnswer) || self.forgets();
        if is_lost { Err(generic("timed out")) } else { result }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.slow_check().await?;
        let inner = self.inner.put_multipart_opts(path, options).await?;
        let (uploads, slowness) =
            (Arc::clone(&self.uploads), *self.slowness.lock().expect("whole"));
        uploads.open.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(FaultyUpload { inner, uploads, slowness }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.slow_check().await?;
        let is_ranged = options.range.is_some();
        let mut result = self.inner.get_opts(path, options).await?;
        if is_ranged && take(&self.cut) {
            let meta = result.meta.clone();
            let (range, attributes) = (result.range.clone(), result.attributes.clone());
            let extensions = std::mem::take(&mut result.extensions);
            let bytes = result.bytes().await?;
            let half = Ok(bytes.slice(..bytes.len() / 2));
            let payload = GetResultPayload::Stream(stream::once(future::ready(half)).boxed());
            return Ok(GetResult { payload, meta, range, attributes, extensions });
        }
        Ok(result)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        if let Err(error) = self.check() {
            return stream::once(future::ready(Err(error))).boxed();
        }
        let keeps = self.keeps_records.load(Ordering::Relaxed);
        let allowed = paths.and_then(move |path| {
            let is_kept = keeps && is_record(&path);
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

/// A multipart upload that loses what it is told to lose.
#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    uploads: Arc<Uploads>,
    slowness: Duration,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        if take(&self.uploads.lost_pieces) {
            return Box::pin(future::ready(Err(generic("the piece was lost"))));
        }
        let (put, uploads) = (self.inner.put_part(data), Arc::clone(&self.uploads));
        let slowness = self.slowness;
        Box::pin(async move {
            let now = uploads.under_way.fetch_add(1, Ordering::Relaxed) + 1;
            uploads.under_way_max.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(slowness).await;
            let put = put.await;
            uploads.under_way.fetch_sub(1, Ordering::Relaxed);
            put
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let completed = self.inner.complete().await?;
        self.uploads.open.fetch_sub(1, Ordering::Relaxed);
        if take(&self.uploads.lost_answers) {
            Err(generic("no such upload"))
        } else {
            Ok(completed)
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.uploads.open.fetch_sub(1, Ordering::Relaxed);
        self.uploads.aborted.fetch_add(1, Ordering::Relaxed);
        self.inner.abort().await
    }
}
