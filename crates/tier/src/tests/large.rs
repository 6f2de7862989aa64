//! A tier of more segments than one look for something to clean examines.

use super::*;

/// A page each, with two records.
const PAGES: Limits = Limits {
    segment_bytes: PAGE_BYTES,
    piece_bytes: PAGE_BYTES,
    packed_bytes_max: SMALL_BYTES_MAX,
    record_bytes_max: PAGE_BYTES,
    ..LIMITS
};

const SEGMENTS: u64 = 20_000;

fn capacity(segments: u64) -> u64 {
    segments * PAGE_BYTES as u64
}

#[test]
fn the_one_segment_worth_cleaning_is_found_among_many() {
    let mut tier = Tier::new(PAGES, capacity(SEGMENTS));
    let mut places = Vec::new();
    while let Ok(place) = tier.put(7, &content(7, SMALL_BYTES_MAX - 16)) {
        places.push(place);
        while let Some(write) = tier.next_write() {
            tier.written(write.id());
        }
    }
    tier.close_pieces();
    let write = tier.next_write().expect("the last page");
    tier.written(write.id());
    assert!(places.len() > 2 * 17_000);
    assert!(tier.begin_cleaning().is_none(), "enough are free");
    let used = tier.figures().file_bytes / PAGE_BYTES as u64;
    tier.set_capacity(capacity(used + 300));
    // Three looks see all, and find nothing; later ones do not look.
    assert!((0..10).all(|_| tier.begin_cleaning().is_none()));
    let released = places.remove(30_001);
    tier.release(released);
    let found: Vec<Cleaning> = (0..3).filter_map(|_| tier.begin_cleaning()).collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].range().contains(&released.offset()));
    assert!((0..10).all(|_| tier.begin_cleaning().is_none()), "it is being cleaned");
    tier.end_cleaning(&found[0]);
    assert_eq!((0..3).filter_map(|_| tier.begin_cleaning()).count(), 1, "not all of it moved");
    tier.check(places.into_iter());
}
