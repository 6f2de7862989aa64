//! What a tier is made of, and who makes it.

use base::disk::{DiskFile, DiskQueue};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tier::HeldKeys;

/// What a tier's file is made of.
pub struct TierFiles {
    /// A file without a name, or a device.
    pub file: Arc<dyn DiskFile>,
    /// Bytes that a device has room for; `u64::MAX` of a file, which grows as its file system lets.
    pub room_bytes: u64,
    /// Runs several jobs at once: the reads that clients wait for.
    pub reads: Box<dyn DiskQueue>,
    /// Runs one job after another: writes, and what cleaning reads.
    pub writes: Box<dyn DiskQueue>,
    /// Runs several jobs at once, as `reads` does: what nobody can wait for but by standing still.
    pub urgent: Box<dyn DiskQueue>,
    /// Random, for this file alone.
    pub keys: HeldKeys,
}

/// A tier to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierOrder<'a> {
    /// A directory, or a block device that has room for `bytes_max`.
    pub path: &'a Path,
    pub bytes_max: u64,
    /// Threads that read for those who wait, and as many for who stands still.
    pub readers: usize,
    /// Has the kernel's io_uring read what is short, where that can be had.
    pub by_ring: bool,
}

/// Makes a tier's file, and the threads that read and write it.
pub trait OpenTier: Send + Sync {
    /// Opens it as it is ordered.
    ///
    /// # Errors
    /// Nothing is there; no file can be made in the directory; the device is in use, too small, or
    /// has something on it that is not Kiln's; there is no thread to be had. Nothing is written to
    /// a device then.
    fn open(&self, order: &TierOrder<'_>) -> io::Result<TierFiles>;
}
