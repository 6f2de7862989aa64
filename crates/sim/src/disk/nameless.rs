//! Files without a name, and what a bad device gives to who reads them.
//!
//! Such a file is gone with its last handle or with the process, whatever was synced. There is no
//! log to compare it with, so whoever reads it must notice damage alone. Here a read fails, ends
//! early, has a wrong bit, or gives what was there before the last write, as on a device that lost
//! that write. A fault is one of the read: the next read may find what was written.

use super::file::SimFile;
use super::node::Node;
use super::{NodeId, SimDisk, State};
use crate::random::Random;
use base::disk::{DIRECT_BLOCK_BYTES, DiskFile};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Weak};

/// How many of a thousand reads of files without a name meet which fault.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadOdds {
    /// The read fails.
    pub failed: u64,
    /// Fewer bytes are read than there are.
    pub short: u64,
    /// One bit is wrong.
    pub flipped: u64,
    /// One block is as it was before the last write to it.
    pub stale: u64,
}

impl ReadOdds {
    /// Each fault is absent or more or less frequent.
    pub fn draw(random: &mut Random) -> Self {
        let mut per_mille = || if random.chance(40) { 0 } else { random.within(1..100) };
        Self { failed: per_mille(), short: per_mille(), flipped: per_mille(), stale: per_mille() }
    }
}

/// How many reads met which fault. One read may meet several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadFaults {
    pub failed: u64,
    pub short: u64,
    pub flipped: u64,
    pub stale: u64,
}

/// The faults of reads, as they come.
#[derive(Clone)]
pub(super) struct Reads {
    odds: ReadOdds,
    /// How many of a thousand writes to files without a name fail.
    failed_writes: u64,
    met: ReadFaults,
    random: Random,
}

/// What a file without a name has beside its bytes.
#[derive(Clone)]
pub(super) struct Nameless {
    /// The life of the process that created it.
    life: u64,
    /// All its handles.
    handles: Weak<()>,
    /// Blocks as they were before the last write to them, by their number.
    earlier: BTreeMap<usize, Vec<u8>>,
}

impl SimDisk {
    /// From now on reads of files without a name meet faults this often, through restarts too.
    pub fn set_read_odds(&self, odds: ReadOdds) {
        self.state().reads.odds = odds;
    }

    /// From now on so many of a thousand writes to files without a name fail, through restarts too.
    pub fn set_failed_writes(&self, per_mille: u64) {
        self.state().reads.failed_writes = per_mille;
    }

    /// Does something that reads files without a name, all of them rightly.
    pub fn read_rightly<T>(&self, read: impl FnOnce() -> T) -> T {
        let odds = std::mem::take(&mut self.state().reads.odds);
        let given = read();
        self.state().reads.odds = odds;
        given
    }

    /// Reads of files without a name that met a fault.
    pub fn read_faults(&self) -> ReadFaults {
        self.state().reads.met
    }

    /// As [`base::disk::Disk::create_nameless`].
    pub(super) fn create_file_without_name(
        &self,
        directory: &Path,
    ) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.enter_for_names()?;
        if !state.directories.contains(directory) {
            return Err(ErrorKind::NotFound.into());
        }
        let life = state.life;
        state.nodes.retain(|_, node| node.nameless.as_ref().is_none_or(Nameless::is_open));
        let handle = Arc::new(());
        let handles = Arc::downgrade(&handle);
        let nameless = Some(Nameless { life, handles, earlier: BTreeMap::new() });
        let id = state.add(Node { nameless, ..Node::default() });
        Ok(Arc::new(SimFile { disk: self.clone(), id, life, handle: Some(handle) }))
    }
}

impl Nameless {
    fn is_open(&self) -> bool {
        self.handles.strong_count() > 0
    }

    /// Whether it takes space in this life.
    pub(super) fn is_there(&self, life: u64) -> bool {
        self.life == life && self.is_open()
    }

    /// Keeps the blocks of `live` that are about to be written to.
    pub(super) fn keep_earlier(&mut self, live: &[u8], start: usize, end: usize) {
        for number in start / DIRECT_BLOCK_BYTES..end.div_ceil(DIRECT_BLOCK_BYTES) {
            let from = (number * DIRECT_BLOCK_BYTES).min(live.len());
            let to = (from + DIRECT_BLOCK_BYTES).min(live.len());
            let mut block = live[from..to].to_vec();
            block.resize(DIRECT_BLOCK_BYTES, 0);
            self.earlier.insert(number, block);
        }
    }

    /// Makes one block of what was read from `start` on what it was; whether one could be.
    fn put_back(&self, start: usize, read: &mut [u8], random: &mut Random) -> bool {
        let numbers = start / DIRECT_BLOCK_BYTES..(start + read.len()).div_ceil(DIRECT_BLOCK_BYTES);
        let known: Vec<_> = self.earlier.range(numbers).collect();
        if known.is_empty() {
            return false;
        }
        let (number, block) = *random.choose(&known);
        let at = number * DIRECT_BLOCK_BYTES;
        let (from, to) = (at.max(start), (at + block.len()).min(start + read.len()));
        read[from - start..to - start].copy_from_slice(&block[from - at..to - at]);
        true
    }
}

impl Reads {
    pub(super) fn new(seed: u64) -> Self {
        let random = Random::stream(seed, "nameless reads");
        Self { odds: ReadOdds::default(), failed_writes: 0, met: ReadFaults::default(), random }
    }

    fn meets(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.random.within(0..1000) < per_mille
    }

    /// Does to a read what the odds say; how many bytes of it are given out.
    fn disturb(&mut self, file: &Nameless, start: usize, read: &mut [u8]) -> io::Result<usize> {
        let odds = self.odds;
        if self.meets(odds.failed) {
            self.met.failed += 1;
            return Err(io::Error::other("simulated I/O error"));
        }
        if self.meets(odds.stale) && file.put_back(start, read, &mut self.random) {
            self.met.stale += 1;
        }
        if self.meets(odds.flipped) {
            self.met.flipped += 1;
            let bit = self.random.within(0..read.len() as u64 * 8) as usize;
            read[bit / 8] ^= 1 << (bit % 8);
        }
        if self.meets(odds.short) {
            self.met.short += 1;
            return Ok(self.random.within(0..read.len() as u64) as usize);
        }
        Ok(read.len())
    }
}

impl State {
    /// Whether a write to a file without a name fails.
    pub(super) fn will_fail_write(&mut self, id: NodeId) -> bool {
        let failed = self.reads.failed_writes;
        self.nodes[&id].nameless.is_some() && self.reads.meets(failed)
    }

    /// What becomes of the bytes that were read of a file from `start` on; how many are given out.
    pub(super) fn disturb_read(
        &mut self,
        id: NodeId,
        start: usize,
        read: &mut [u8],
    ) -> io::Result<usize> {
        match &self.nodes[&id].nameless {
            Some(file) if !read.is_empty() => self.reads.disturb(file, start, read),
            _ => Ok(read.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Faults;
    use super::*;
    use base::disk::{Disk, create_removed};

    const BLOCK: usize = DIRECT_BLOCK_BYTES;

    fn disk(seed: u64) -> SimDisk {
        let disk = SimDisk::new(seed);
        disk.create_directory(Path::new("/tier")).expect("the disk is whole");
        disk
    }

    fn nameless(disk: &SimDisk) -> Arc<dyn DiskFile> {
        disk.create_nameless(Path::new("/tier")).expect("the directory is there")
    }

    /// Blocks 0 to 3 are written twice, first as 1 and then as 2; blocks 4 to 7 never.
    fn written_twice(disk: &SimDisk) -> Arc<dyn DiskFile> {
        let file = nameless(disk);
        file.allocate(0, 8 * BLOCK as u64).expect("there is space");
        file.write_at(0, &[1; 4 * BLOCK]).expect("there is space");
        file.write_at(0, &[2; 4 * BLOCK]).expect("there is space");
        file
    }

    /// What a hundred reads of the first two blocks give.
    fn reads(file: &dyn DiskFile) -> Vec<Result<Vec<u8>, String>> {
        let read = || {
            let mut into = vec![9; 2 * BLOCK];
            let count = file.read_at(0, &mut into).map_err(|error| error.to_string())?;
            into.truncate(count);
            Ok(into)
        };
        (0..100).map(|_| read()).collect()
    }

    #[test]
    fn a_file_without_a_name_ends_with_its_process_and_leaves_no_name() {
        let disk = disk(1);
        let file = nameless(&disk);
        file.write_at(0, &[1; 5000]).expect("there is space");
        file.sync_data().expect("the disk is whole");
        let mut into = [0; 8];
        assert_eq!(file.read_at(4996, &mut into).expect("it is there"), 4);
        assert_eq!(disk.list(Path::new("/tier")).expect("it is there"), []);
        assert_eq!(disk.used_bytes(), 5000);
        disk.kill_process();
        assert!(file.read_at(0, &mut into).is_err());
        assert_eq!(disk.used_bytes(), 0);
        let file = nameless(&disk);
        disk.cut_power();
        disk.restart();
        assert!(file.read_at(0, &mut into).is_err());
        assert!(disk.create_nameless(Path::new("/missing")).is_err());
    }

    #[test]
    fn its_space_comes_back_with_its_last_handle() {
        let disk = disk(1);
        disk.set_faults(Faults { capacity_bytes: Some(10_000), ..Faults::default() });
        let (first, second) = (nameless(&disk), nameless(&disk));
        first.write_at(0, &[1; 6000]).expect("there is space");
        let full = second.write_at(0, &[1; 6000]).expect_err("there is none");
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        drop(first);
        second.write_at(0, &[1; 6000]).expect("there is space again");
        drop(second);
        assert_eq!(disk.used_bytes(), 0);
        nameless(&disk);
        assert_eq!(disk.state().nodes.len(), 1, "the bytes of those before are kept");
    }

    #[test]
    fn a_disk_that_knows_no_such_files_takes_a_name_away() {
        let disk = disk(1);
        let taken = Path::new("/tier/.kiln-tier-0");
        disk.create_new(taken).expect("nobody has the name");
        let file = create_removed(&disk, Path::new("/tier")).expect("another name is free");
        file.write_at(0, b"here").expect("there is space");
        let left = disk.list(Path::new("/tier")).expect("it is there");
        assert_eq!(left.len(), 1);
        assert!(disk.exists(taken).expect("the disk is whole"));
    }

    #[test]
    fn nothing_is_wrong_with_a_good_device_or_a_file_with_a_name() {
        let disk = disk(1);
        let file = written_twice(&disk);
        let right = Ok(vec![2; 2 * BLOCK]);
        assert!(reads(&*file).iter().all(|read| *read == right));
        let named = disk.create_new(Path::new("/named")).expect("nobody has the name");
        named.write_at(0, &[2; 2 * BLOCK]).expect("there is space");
        disk.set_read_odds(ReadOdds { failed: 1000, short: 1000, flipped: 1000, stale: 1000 });
        let mut into = vec![0; 2 * BLOCK];
        assert_eq!(named.read_at(0, &mut into).expect("it is there"), into.len());
        assert_eq!((Ok(into), disk.read_faults()), (right, ReadFaults::default()));
    }

    #[test]
    fn each_fault_is_met_as_often_as_it_is_asked_for() {
        let check = |odds: ReadOdds, is_fault: fn(&Result<Vec<u8>, String>) -> bool| {
            let disk = disk(2);
            let file = written_twice(&disk);
            disk.set_read_odds(odds);
            let reads = reads(&*file);
            let faults = reads.iter().filter(|read| is_fault(read)).count();
            assert!((20..80).contains(&faults), "{odds:?}: {faults}");
            let right = Ok(vec![2; 2 * BLOCK]);
            assert!(reads.iter().all(|read| is_fault(read) || *read == right), "{odds:?}");
            let ReadFaults { failed, short, flipped, stale } = disk.read_faults();
            assert_eq!((failed + short + flipped + stale) as usize, faults);
            disk.set_read_odds(ReadOdds::default());
            let mut into = vec![0; 2 * BLOCK];
            file.read_at(0, &mut into).expect("the file itself is as it was");
            assert_eq!(Ok(into), right);
        };
        check(ReadOdds { failed: 500, ..ReadOdds::default() }, |read| {
            read.as_ref().is_err_and(|why| why == "simulated I/O error")
        });
        check(ReadOdds { short: 500, ..ReadOdds::default() }, |read| {
            read.as_ref().is_ok_and(|it| it.len() < 2 * BLOCK && it.iter().all(|byte| *byte == 2))
        });
        check(ReadOdds { flipped: 500, ..ReadOdds::default() }, |read| {
            let wrong = |it: &Vec<u8>| it.iter().map(|byte| (byte ^ 2).count_ones()).sum::<u32>();
            read.as_ref().is_ok_and(|it| it.len() == 2 * BLOCK && wrong(it) == 1)
        });
        check(ReadOdds { stale: 500, ..ReadOdds::default() }, |read| {
            let older = |block: &[u8]| block.iter().all(|byte| *byte == 1);
            read.as_ref().is_ok_and(|it| older(&it[..BLOCK]) != older(&it[BLOCK..]))
        });
    }

    #[test]
    fn a_stale_read_of_what_was_written_once_gives_what_was_there_before() {
        let disk = disk(3);
        let file = nameless(&disk);
        file.write_at(0, &[1; 100]).expect("there is space");
        disk.set_read_odds(ReadOdds { stale: 1000, ..ReadOdds::default() });
        let mut into = [9; 50];
        assert_eq!(file.read_at(40, &mut into).expect("it is there"), 50);
        assert_eq!(into, [0; 50]);
        // A block that nobody wrote has no earlier state.
        file.allocate(0, 2 * BLOCK as u64).expect("there is space");
        let before = disk.read_faults();
        file.read_at(BLOCK as u64, &mut into).expect("it is there");
        assert_eq!(disk.read_faults(), before);
    }

    #[test]
    fn writes_to_a_file_without_a_name_fail_as_often_as_it_is_asked_for() {
        let disk = disk(4);
        let file = nameless(&disk);
        disk.set_failed_writes(500);
        let failed = (0..100).filter(|_| file.write_at(0, &[1; BLOCK]).is_err()).count();
        assert!((20..80).contains(&failed), "{failed}");
        let named = disk.create_new(Path::new("/named")).expect("nobody has the name");
        disk.set_failed_writes(1000);
        named.write_at(0, &[1; BLOCK]).expect("it has a name");
        assert!(file.write_at(0, &[1; BLOCK]).is_err());
    }

    #[test]
    fn reads_are_right_where_a_test_looks_by_itself() {
        let disk = disk(5);
        let file = written_twice(&disk);
        disk.set_read_odds(ReadOdds { failed: 1000, ..ReadOdds::default() });
        let right = Ok(vec![2; 2 * BLOCK]);
        assert!(disk.read_rightly(|| reads(&*file)).iter().all(|read| *read == right));
        assert!(reads(&*file).iter().all(Result::is_err));
    }

    #[test]
    fn the_seed_decides_how_often_and_when() {
        let odds = |seed| ReadOdds::draw(&mut Random::from_seed(seed));
        assert_eq!(odds(1), odds(1));
        let drawn: Vec<_> = (0..50).map(odds).collect();
        assert!(drawn.iter().any(|it| it.stale > 0) && drawn.iter().any(|it| it.stale == 0));
        let run = |seed| {
            let disk = disk(seed);
            let file = written_twice(&disk);
            disk.set_read_odds(ReadOdds { failed: 200, short: 200, flipped: 200, stale: 200 });
            reads(&*file)
        };
        assert!(run(1) == run(1));
        assert!(run(1) != run(2));
    }
}
