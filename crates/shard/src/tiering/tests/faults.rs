//! What fails is tried once more, and counted.

use super::*;

impl Tiered {
    fn given_up_segments(&self) -> u64 {
        self.keyspace.cold().expect("it has a tier").tier.figures().given_up_segments
    }
}

#[test]
fn a_segment_that_cannot_be_read_once_is_cleaned_all_the_same() {
    let mut tiered = Tiered::new();
    tiered.begin_cleaning();
    tiered.file.failing_reads.store(1, Ordering::Relaxed);
    tiered.settle();
    assert_eq!(tiered.tiering.statistics.failed_reads, 1);
    assert_eq!(tiered.given_up_segments(), 0);
    assert!(tiered.tiering.statistics.cleaned_segments > 0 && tiered.is_whole());
}

#[test]
fn a_segment_that_cannot_be_read_twice_is_given_up_and_counted() {
    let mut tiered = Tiered::new();
    tiered.begin_cleaning();
    tiered.file.failing_reads.store(2, Ordering::Relaxed);
    tiered.settle();
    assert_eq!(tiered.tiering.statistics.failed_reads, 2);
    assert_eq!(tiered.given_up_segments(), 1);
    tiered.flush();
    tiered.settle();
    assert_eq!(tiered.given_up_segments(), 0);
    assert!(tiered.is_whole());
}

#[test]
fn a_snapshot_counts_values_and_blocks_and_each_try_that_failed() {
    let mut tiered = Tiered::new();
    // Four to a block, of three neighbouring ones.
    for number in 0..12 {
        tiered.put(&format!("key{number}"), number);
    }
    tiered.settle();
    let counted = |tiered: &Tiered| {
        let TieringStatistics { reads, read_bytes, failed_reads, .. } = tiered.tiering.statistics;
        (reads, read_bytes, failed_reads)
    };
    let read = |tiered: &mut Tiered| {
        tiered.keyspace.begin_snapshot(NOW);
        while !tiered.keyspace.walk_snapshot(100, 1 << 20) {
            tiered.poll();
            tiered.reads.run();
        }
        tiered.keyspace.end_snapshot();
    };
    read(&mut tiered);
    assert_eq!(counted(&tiered), (12, 12 << 10, 0));
    // The block of all fails, and each value's own read helps.
    tiered.file.failing_reads.store(1, Ordering::Relaxed);
    read(&mut tiered);
    assert_eq!(counted(&tiered), (12 + 24, (12 << 10) + (12 << 10) + (48 << 10), 12));
    assert_eq!(tiered.keyspace.cold_failure(), None);
}

#[test]
fn the_end_of_the_file_is_given_back_though_that_failed_at_first() {
    let mut tiered = Tiered::new();
    let look = |tiered: &mut Tiered, number: u64| {
        let now = MonotonicNanos(number * SHRINK_NANOS);
        tiered.tiering.poll(&mut tiered.keyspace, now, &mut Vec::new());
        tiered.writes.run();
    };
    tiered.fill();
    look(&mut tiered, 1);
    let before = tiered.file.bytes().len();
    assert!(before > 0);
    tiered.flush();
    tiered.file.failing_cuts.store(1, Ordering::Relaxed);
    look(&mut tiered, 2);
    assert_eq!(tiered.file.bytes().len(), before);
    look(&mut tiered, 3);
    assert_eq!(tiered.file.bytes().len(), 0);
    assert_eq!(tiered.file.failing_cuts.load(Ordering::Relaxed), 0);
}
