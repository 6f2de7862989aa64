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
