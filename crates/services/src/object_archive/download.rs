//! A part that is read: in blocks, and always the next one as well.
//!
//! Readers ask for some hundred KiB, one behind the other, and each request to a store is a journey
//! of some tens of milliseconds. So a block is fetched whole, and when it is asked for the fetching
//! of the next one begins.

use super::bucket::Bucket;
use super::client_thread::{ClientThread, ended};
use archive::StoredPart;
use bytes::Bytes;
use object_store::path::Path;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes fetched at once: at 100 MB/s it takes as long as two journeys.
pub const BLOCK_BYTES: u64 = 8 << 20;

/// Blocks that a part keeps: the one that is read, and the next one. Whoever reads in several
/// places at once fetches blocks more than once.
const BLOCKS_MAX: usize = 2;

/// A part in the store.
pub struct StoredObject {
    thread: Arc<ClientThread>,
    bucket: Arc<Bucket>,
    path: Path,
    length: u64,
    /// By their numbers, the one first that was begun first.
    blocks: Mutex<VecDeque<(u64, Arc<Block>)>>,
}

/// Bytes that are here, or on their way.
#[derive(Default)]
struct Block {
    fetched: Mutex<Option<Result<Bytes, (ErrorKind, String)>>>,
    arrived: Condvar,
}

impl StoredObject {
    /// # Errors
    /// `NotFound` if there is none; the store's.
    pub fn open(thread: &Arc<ClientThread>, bucket: &Arc<Bucket>, path: Path) -> io::Result<Self> {
        let (thread, bucket) = (Arc::clone(thread), Arc::clone(bucket));
        let (asked, of) = (Arc::clone(&bucket), path.clone());
        let length = thread.wait(async move {
            let length = asked.length(&of).await.map_err(|e| asked.told(of.as_ref(), e))?;
            let missing = || io::Error::new(ErrorKind::NotFound, format!("{of} is not there"));
            length.ok_or_else(missing)
        })?;
        Ok(Self { thread, bucket, path, length, blocks: Mutex::default() })
    }

    fn blocks(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<Block>)>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block that is here or on its way, and the next one on its way.
    fn block(&self, number: u64) -> Arc<Block> {
        let mut blocks = self.blocks();
        let block = self.begin(&mut blocks, number);
        if (number + 1) * BLOCK_BYTES < self.length {
            self.begin(&mut blocks, number + 1);
        }
        block
    }

    fn begin(&self, blocks: &mut VecDeque<(u64, Arc<Block>)>, number: u64) -> Arc<Block> {
        if let Some((_, block)) = blocks.iter().find(|(it, _)| *it == number) {
            return Arc::clone(block);
        }
        while blocks.len() >= BLOCKS_MAX {
            blocks.pop_front();
        }
        let block = Arc::new(Block::default());
        blocks.push_back((number, Arc::clone(&block)));
        let (bucket, path) = (Arc::clone(&self.bucket), self.path.clone());
        let range = number * BLOCK_BYTES..self.length.min((number + 1) * BLOCK_BYTES);
        let delivery = Delivery { block: Arc::clone(&block), bytes: None };
        self.thread.spawn(async move {
            let mut delivery = delivery;
            let fetched = bucket.fetch_range(&path, range).await;
            let told = |error| bucket.told(path.as_ref(), error);
            delivery.bytes = Some(fetched.map_err(told).map_err(|it| (it.kind(), it.to_string())));
        });
        block
    }

    /// A block that failed is fetched anew by whoever asks next.
    fn forget(&self, block: &Arc<Block>) {
        self.blocks().retain(|(_, it)| !Arc::ptr_eq(it, block));
    }
}

impl StoredPart for StoredObject {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() && offset + (filled as u64) < self.length {
            let at = offset + filled as u64;
            let block = self.block(at / BLOCK_BYTES);
            let bytes = block.wait().inspect_err(|_| self.forget(&block))?;
            let begins = usize::try_from(at % BLOCK_BYTES).expect("a block fits into memory");
            let count = (bytes.len() - begins).min(into.len() - filled);
            into[filled..filled + count].copy_from_slice(&bytes[begins..begins + count]);
            filled += count;
        }
        Ok(filled)
    }
}

impl Block {
    fn wait(&self) -> io::Result<Bytes> {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*fetched {
                Some(Ok(bytes)) => return Ok(bytes.clone()),
                Some(Err((kind, what))) => return Err(io::Error::new(*kind, what.clone())),
                None => {}
            }
            fetched = self.arrived.wait(fetched).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Tells those who wait for a block, whatever becomes of the task that fetches it.
struct Delivery {
    block: Arc<Block>,
    bytes: Option<Result<Bytes, (ErrorKind, String)>>,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let ended = || Err((ErrorKind::Other, ended().to_string()));
        let bytes = self.bytes.take().unwrap_or_else(ended);
        *self.block.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
        self.block.arrived.notify_all();
    }
}
