//! A part that is written: one put if it is small, else a multipart upload of which some pieces are
//! on their way at a time.

use super::bucket::Bucket;
use super::client_thread::{ClientThread, ended};
use archive::NewPart;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStoreExt, PutPayload};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::mpsc as asynchronous;
use tokio::task::JoinSet;

/// Bytes of all pieces but the last. S3 takes 10,000 of them, so a part ends at 80 GiB.
pub const PIECE_BYTES: usize = 8 << 20;

/// Pieces of one part on their way. One more waits, and one is being filled: 40 MiB.
const PIECES_MAX: usize = 3;

/// A part that is being written. Dropped before it is finished it leaves nothing, if the store can
/// be told.
pub struct NewObject {
    thread: Arc<ClientThread>,
    bucket: Arc<Bucket>,
    path: Path,
    piece: Vec<u8>,
    /// Since more than one piece was there.
    upload: Option<Upload>,
}

/// The way to the task that uploads.
struct Upload {
    pieces: asynchronous::Sender<Piece>,
    outcome: Receiver<io::Result<()>>,
}

enum Piece {
    Next(Bytes),
    Last(Bytes),
}

impl NewObject {
    pub fn new(thread: &Arc<ClientThread>, bucket: &Arc<Bucket>, path: Path) -> Self {
        let (thread, bucket) = (Arc::clone(thread), Arc::clone(bucket));
        Self { thread, bucket, path, piece: Vec::new(), upload: None }
    }

    fn send_piece(&mut self) -> io::Result<()> {
        let piece = Piece::Next(std::mem::take(&mut self.piece).into());
        let upload = self.upload.get_or_insert_with(|| {
            // Room for one, so that the next is filled while all others are on their way.
            let (pieces, queue) = asynchronous::channel(1);
            let (tell, outcome) = sync_channel(1);
            let (bucket, path) = (Arc::clone(&self.bucket), self.path.clone());
            self.thread.spawn_to_the_end(upload(bucket, path, queue, tell));
            Upload { pieces, outcome }
        });
        upload.send(piece)
    }
}

impl Upload {
    /// Waits while too many pieces are on their way.
    fn send(&self, piece: Piece) -> io::Result<()> {
        match self.pieces.blocking_send(piece) {
            Ok(()) => Ok(()),
            // It has failed.
            Err(_) => self.outcome(),
        }
    }

    fn outcome(&self) -> io::Result<()> {
        self.outcome.recv().map_err(|_| ended())?
    }
}

impl NewPart for NewObject {
    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // A full piece goes when more comes: what is one piece in all is one put.
            if self.piece.len() == PIECE_BYTES {
                self.send_piece()?;
            }
            let room = PIECE_BYTES - self.piece.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        if let Some(upload) = &self.upload {
            upload.send(Piece::Last(piece))?;
            return upload.outcome();
        }
        let (bucket, path) = (Arc::clone(&self.bucket), self.path.clone());
        self.thread.wait(async move {
            bucket.put(&path, piece).await.map_err(|error| bucket.told(path.as_ref(), error))
        })
    }
}

/// Uploads what comes, and says how it ended. A queue that ends without a last piece means that
/// nobody wants it any more.
async fn upload(
    bucket: Arc<Bucket>,
    path: Path,
    mut queue: asynchronous::Receiver<Piece>,
    tell: SyncSender<io::Result<()>>,
) {
    let begin = || bucket.store.put_multipart(&path);
    let outcome = match bucket.persist(bucket.times.small, begin).await {
        Ok(mut upload) => {
            let outcome = send_all(&bucket, &path, &mut *upload, &mut queue).await;
            if !matches!(outcome, Ok(true)) {
                abort(&bucket, &path, &mut *upload).await;
            }
            outcome
        }
        Err(error) => Err(error),
    };
    // Nobody waits if it was dropped.
    let told = outcome.map(|_| ()).map_err(|error| bucket.told(path.as_ref(), error));
    let _ = tell.send(told);
}

/// Frees what its pieces occupy, if the store answers soon. Else they stay until the bucket's own
/// rule for incomplete uploads removes them.
async fn abort(bucket: &Bucket, path: &Path, upload: &mut dyn MultipartUpload) {
    let ended = tokio::time::timeout(bucket.times.small.attempt, upload.abort()).await;
    if !matches!(ended, Ok(Ok(()))) {
        let path = path.as_ref();
        tracing::warn!(path, "an upload could not be aborted: its pieces stay in the bucket");
    }
}

/// Whether the last piece came, and all are one object now.
async fn send_all(
    bucket: &Bucket,
    path: &Path,
    upload: &mut dyn MultipartUpload,
    queue: &mut asynchronous::Receiver<Piece>,
) -> Result<bool, Error> {
    let mut sending = JoinSet::new();
    let mut length = 0;
    loop {
        while sending.len() >= PIECES_MAX {
            joined(&mut sending).await?;
        }
        let (piece, is_last) = match queue.recv().await {
            Some(Piece::Next(piece)) => (piece, false),
            Some(Piece::Last(piece)) => (piece, true),
            None => return Ok(false),
        };
        length += piece.len() as u64;
        if !piece.is_empty() {
            sending.spawn(upload.put_part(PutPayload::from_bytes(piece)));
        }
        if is_last {
            break;
        }
    }
    while !sending.is_empty() {
        joined(&mut sending).await?;
    }
    match upload.complete().await {
        Ok(_) => Ok(true),
        // An answer that was lost is asked for again, and then there is no such upload any more.
        // What the object holds is read back before it is published.
        Err(error) => match bucket.length(path).await {
            Ok(Some(there)) if there == length => Ok(true),
            _ => Err(error),
        },
    }
}

/// Waits for one piece.
async fn joined(sending: &mut JoinSet<Result<(), Error>>) -> Result<(), Error> {
    match sending.join_next().await {
        Some(Ok(sent)) => sent,
        Some(Err(error)) => Err(Error::JoinError { source: error }),
        None => Ok(()),
    }
}
