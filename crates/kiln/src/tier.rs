//! The file of values that memory has no room for, and the threads that read and write it.

use base::Disk;
use base::driver::Waker;
use shard::tiering::{OpenTier, TierFiles};
use std::io;
use std::path::Path;
use tier::Keys;
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
    fn open(&self, directory: &Path, readers: usize) -> io::Result<TierFiles> {
        let file = RealDisk.create_nameless(directory)?;
        let reads = ThreadDiskPool::start("tier-read", readers, self.waker.clone())?;
        let urgent = ThreadDiskPool::start("tier-urgent", readers, self.waker.clone())?;
        let writes = ThreadDiskQueue::start("tier-write", Urgency::Prompt, self.waker.clone())?;
        let keys = SecretPage::new(|| {
            let mut key = [0; 64];
            fill_random(&mut key);
            Keys::new(&key)
        })?;
        let (reads, writes) = (Box::new(reads), Box::new(writes));
        Ok(TierFiles { file, reads, writes, urgent: Box::new(urgent), keys: Box::new(keys) })
    }
}
