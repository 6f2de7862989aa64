//! The twin is what was written. Where the system allows no io_uring, or the file lies in memory,
//! threads read, and the same holds.

use crate::disk::RealDisk;
use crate::disk_pool::ThreadDiskPool;
use base::Disk;
use base::disk::{DIRECT_BLOCK_BYTES, DiskFile, DiskOutcome, DiskQueue, DiskRead, DiskTicket};
use base::driver::Waker;
use rustix::process::{getpriority_process, setpriority_process};
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const BLOCK: usize = DIRECT_BLOCK_BYTES;

/// Blocks of the file, and its last bytes, which are no whole block.
const BLOCKS: usize = 500;
const REST: usize = 100;

/// The name of the ring's thread.
const RING: &str = "ring-test-ring";

fn pool() -> ThreadDiskPool {
    let waker = Waker(Arc::new(|| {}));
    let mut pool = ThreadDiskPool::start("ring-test", 2, waker).expect("there are threads");
    if let Err(error) = pool.read_by_ring(RING) {
        eprintln!("threads read: {error}");
    }
    pool
}

/// A file without a name, and its bytes.
fn file() -> (Arc<dyn DiskFile>, Vec<u8>) {
    let file = RealDisk.create_nameless(&std::env::temp_dir()).expect("a file can be made");
    let number_of = |at: usize| at.wrapping_mul(2_654_435_761) >> 13;
    let bytes: Vec<u8> = (0..BLOCKS * BLOCK + REST).map(|at| number_of(at) as u8).collect();
    file.write_at(0, &bytes).expect("there is room");
    (file, bytes)
}

/// Bytes that were read, and whether by a ring.
type Found = (Vec<u8>, bool);

/// Has bytes read, whose outcome is what was [found](Found).
fn read(
    pool: &mut ThreadDiskPool,
    file: &Arc<dyn DiskFile>,
    offset: usize,
    length: usize,
) -> DiskTicket {
    pool.submit_read(DiskRead {
        file: Arc::clone(file),
        offset: offset as u64,
        length,
        end: Box::new(|read| -> DiskOutcome {
            let bytes = read.expect("it is whole").to_vec();
            let found: Found = (bytes, thread::current().name() == Some(RING));
            Box::new(found)
        }),
    })
}

#[test]
fn reads_that_are_begun_wake_the_loop_though_nobody_polls() {
    let (woken, wakes) = std::sync::mpsc::channel();
    let waker = Waker(Arc::new(move || woken.send(()).expect("the test listens")));
    let mut pool = ThreadDiskPool::start("ring-test", 2, waker).expect("there are threads");
    if let Err(error) = pool.read_by_ring(RING) {
        eprintln!("threads read: {error}");
    }
    let (file, bytes) = file();
    for _ in 0..3 {
        let ticket = read(&mut pool, &file, BLOCK, BLOCK);
        pool.begin_reads();
        wakes.recv_timeout(Duration::from_secs(60)).expect("it is read");
        let mut done = Vec::new();
        pool.poll(&mut done);
        let (ended, outcome) = done.pop().expect("it lies there");
        let (found, _) = *outcome.downcast::<Found>().expect("a read brings this");
        assert!(ended == ticket && found == bytes[BLOCK..2 * BLOCK]);
    }
}

#[test]
fn every_read_brings_what_was_written_there() {
    let (mut pool, (file, bytes)) = (pool(), file());
    let mut chance = 1_u64;
    let mut draw = |end: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (chance >> 33) as usize % end
    };
    let mut expected = BTreeMap::new();
    let mut done = Vec::new();
    for _ in 0..20_000 {
        let (offset, length) = match draw(20) {
            0 => (draw(bytes.len()), 1 + draw(3 * BLOCK)),
            1 => ((BLOCKS - draw(2)) * BLOCK, 2 * BLOCK),
            2 => ((BLOCKS + 7) * BLOCK, BLOCK),
            _ => (draw(BLOCKS) * BLOCK, (1 + draw(2)) * BLOCK),
        };
        let range = offset.min(bytes.len())..(offset + length).min(bytes.len());
        expected.insert(read(&mut pool, &file, offset, length), range);
        // More than can be under way, and fewer; and at times the ring's thread falls asleep.
        if draw(300) == 0 {
            pool.drain();
        }
        pool.poll(&mut done);
    }
    pool.drain();
    pool.poll(&mut done);
    assert_eq!(done.len(), 20_000);
    let mut by_ring = 0;
    for (ticket, outcome) in done {
        let range = expected.remove(&ticket).expect("each ends once");
        let (read, is_by_ring) = *outcome.downcast::<Found>().expect("what was found");
        assert!(read == bytes[range.clone()], "{range:?}");
        by_ring += u32::from(is_by_ring);
    }
    let can = pool.has_ring() && file.direct_place(0).is_some();
    assert_eq!(by_ring > 15_000, can, "{by_ring} by a ring");
}

#[test]
fn a_ring_that_has_slept_is_woken() {
    let (mut pool, (file, bytes)) = (pool(), file());
    for block in 0..50 {
        let ticket = read(&mut pool, &file, block * BLOCK, BLOCK);
        pool.drain();
        let mut done = Vec::new();
        pool.poll(&mut done);
        let (of, outcome) = done.pop().expect("it has ended");
        let (read, _) = *outcome.downcast::<Found>().expect("what was found");
        assert!(of == ticket && read == bytes[block * BLOCK..][..BLOCK]);
        thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn its_thread_goes_before_the_loop_where_that_is_allowed() {
    let (mut pool, (file, _)) = (pool(), file());
    let nice = || getpriority_process(None).expect("each thread has one");
    let end = move |_: io::Result<&mut [u8]>| -> DiskOutcome {
        Box::new((nice(), thread::current().name() == Some(RING)))
    };
    pool.submit_read(DiskRead { file, offset: 0, length: BLOCK, end: Box::new(end) });
    pool.drain();
    let mut done = Vec::new();
    pool.poll(&mut done);
    // Whether it is allowed is tried by a thread that reads nothing through a ring.
    pool.submit(Box::new(move || {
        let _ = setpriority_process(None, -20);
        Box::new((nice(), false))
    }));
    pool.drain();
    pool.poll(&mut done);
    let mut outcomes = done.into_iter().map(|(_, outcome)| *outcome.downcast().expect("both do"));
    let (of_reader, is_ring): (i32, bool) = outcomes.next().expect("the read has ended");
    let (possible, _): (i32, bool) = outcomes.next().expect("the job has ended");
    assert!(!is_ring || of_reader == possible, "{of_reader} instead of {possible}");
}

#[test]
fn dropping_a_pool_lets_its_reads_end() {
    let (mut pool, (file, _)) = (pool(), file());
    let ended = Arc::new(AtomicUsize::new(0));
    for block in 0..BLOCKS {
        let ended = Arc::clone(&ended);
        pool.submit_read(DiskRead {
            file: Arc::clone(&file),
            offset: (block * BLOCK) as u64,
            length: BLOCK,
            end: Box::new(move |_| Box::new(ended.fetch_add(1, Ordering::SeqCst))),
        });
    }
    drop(pool);
    assert_eq!(ended.load(Ordering::SeqCst), BLOCKS);
}

#[test]
fn nobody_waits_for_ever_for_a_read_whose_end_panicked() {
    let (mut pool, (file, _)) = (pool(), file());
    let ended = Arc::new(AtomicUsize::new(0));
    for block in 0..BLOCKS {
        let ended = Arc::clone(&ended);
        let end = move || match block {
            100 => panic!("this one is meant"),
            _ => ended.fetch_add(1, Ordering::SeqCst),
        };
        pool.submit_read(DiskRead {
            file: Arc::clone(&file),
            offset: (block * BLOCK) as u64,
            length: BLOCK,
            end: Box::new(move |_| Box::new(end())),
        });
    }
    assert!(catch_unwind(AssertUnwindSafe(|| pool.drain())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| pool.poll(&mut Vec::new()))).is_err());
    drop(pool);
    assert!(ended.load(Ordering::SeqCst) >= BLOCKS - 2, "those under way end all the same");
}
