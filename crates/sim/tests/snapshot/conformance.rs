//! What every archive must keep, over the one in a directory of a simulated disk.

use archive::conformance::{Bench, run, run_encrypted};
use archive::{Archive, DirectoryArchive};
use sim::disk::SimDisk;
use std::path::Path;
use std::sync::Arc;

struct DirectoryBench(SimDisk);

impl Bench for DirectoryBench {
    fn reset(&mut self) {
        self.0 = SimDisk::new(7);
    }

    fn open(&mut self) -> Arc<dyn Archive> {
        let disk = Arc::new(self.0.for_process());
        let archive = DirectoryArchive::open(disk, Path::new("/snapshots"));
        Arc::new(archive.expect("the disk is well"))
    }

    /// Locks tell.
    fn pass_silence(&mut self) {}

    fn large_bytes(&self) -> usize {
        1 << 20
    }
}

#[test]
fn a_directory_keeps_what_every_archive_must() {
    run(&mut DirectoryBench(SimDisk::new(7)));
}

#[test]
fn so_does_one_that_is_encrypted() {
    run_encrypted(&mut DirectoryBench(SimDisk::new(7)));
}
