//! The file, or the device, of values that memory has no room for, and the threads that read and
//! write it.

use base::Disk;
use base::disk::DiskFile;
use base::driver::Waker;
use shard::tiering::{OpenTier, TierFiles, TierOrder, device};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use tier::Keys;
use world::block_device;
use world::disk::RealDisk;
use world::disk_pool::ThreadDiskPool;
use world::disk_queue::{ThreadDiskQueue, Urgency};
use world::entropy::fill_random;
use world::secret_page::SecretPage;

/// Opens tiers on this machine's disks.
pub struct RealTier {
    /// Wakes the loop when something was read or written.
    pub waker: Waker,
}

impl OpenTier for RealTier {
    fn open(&self, order: &TierOrder<'_>) -> io::Result<TierFiles> {
        let TierOrder { path, bytes_max, readers, by_ring } = *order;
        let start = |name| ThreadDiskPool::start(name, readers, self.waker.clone());
        let mut reads = start("tier-read")?;
        if by_ring && let Err(error) = reads.read_by_ring("tier-ring") {
            tracing::info!(%error, "threads read the tier: io_uring is not to be had");
        }
        let mut urgent = start("tier-urgent")?;
        let mut writes = ThreadDiskQueue::start("tier-write", Urgency::Prompt, self.waker.clone())?;
        let keys = SecretPage::new(|| {
            let mut key = [0; 64];
            fill_random(&mut key);
            Keys::new(&key)
        })?;
        // Last: a device is marked.
        let (file, room_bytes) = open_file(path, bytes_max)?;
        if !block_device::is_block_device(path)? {
            // A disk that hangs must not keep who leads no more from following. A device is held by
            // one process until nothing is under way on it, and the next life wants it.
            (reads, urgent, writes) = (reads.detached(), urgent.detached(), writes.detached());
        }
        let (reads, writes) = (Box::new(reads), Box::new(writes));
        let (urgent, keys) = (Box::new(urgent), Box::new(keys));
        Ok(TierFiles { file, room_bytes, reads, writes, urgent, keys })
    }
}

/// Where values lie, and [`TierFiles::room_bytes`].
fn open_file(path: &Path, bytes_max: u64) -> io::Result<(Arc<dyn DiskFile>, u64)> {
    if block_device::is_block_device(path)? {
        return device::take(block_device::open(path)?, path, bytes_max);
    }
    match RealDisk.create_nameless(path) {
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(io::Error::new(error.kind(), "it is neither a directory nor a block device"))
        }
        created => Ok((created?, u64::MAX)),
    }
}
