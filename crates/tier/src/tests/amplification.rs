//! How many bytes are written for each byte that is put.

use super::*;

/// Overwrites random keys of a tier that is filled as far as it may be, and tells how many bytes
/// were written for each byte put, once that is steady. So many percent of the keys are removed
/// first: what records leave unused varies, and a value is put before the old one is released.
fn amplification(spare_percent: u64, content_bytes: impl Fn(u64) -> usize) -> f64 {
    let limits = Limits { segment_bytes: 16 << 10, piece_bytes: 4 << 10, ..LIMITS };
    let limits = Limits { record_bytes_max: 16 << 10, ..limits };
    let mut driven = Driven::new(limits, 200);
    let mut dice = Dice(1);
    let mut keys = 0;
    let set = |driven: &mut Driven, key| {
        driven.clean();
        driven.write_all();
        driven.set(key, content(key, content_bytes(key)))
    };
    while set(&mut driven, keys).is_ok() {
        keys += 1;
    }
    assert!(keys > 500, "{keys} keys fit");
    let removed = keys * spare_percent / 100;
    (0..removed).for_each(|key| driven.remove(key));
    let counted = |driven: &Driven| {
        let put = driven.tier.figures().put_bytes as f64;
        (put, driven.written_bytes as f64, driven.moved_bytes as f64)
    };
    let mut before = counted(&driven);
    for step in 0..6 * keys {
        if step == 2 * keys {
            before = counted(&driven);
        }
        let key = removed + dice.below(keys - removed);
        let outcome = set(&mut driven, key);
        assert!(outcome.is_ok(), "cleaning makes room below the fill: {:?}", driven.tier);
    }
    driven.check();
    let after = counted(&driven);
    let put = after.0 - before.0;
    let (written, moved) = ((after.1 - before.1) / put, 1.0 + (after.2 - before.2) / put);
    println!("{keys} keys: each record is put {moved:.2} times, each byte written {written:.2}");
    written
}

#[test]
fn each_record_is_written_six_times_at_most_when_the_tier_is_full() {
    let small = amplification(2, |_| 500);
    assert!(small <= 6.0, "{small}");
    let mixed = amplification(2, |key| 16 + Dice(key).below(1000) as usize);
    assert!(mixed <= 6.0, "{mixed}");
}

#[test]
fn records_that_fill_pages_badly_do_not_keep_cleaning_busy() {
    // Two to a page, a third of which is lost: no segment is ever more than two thirds live.
    let bad = amplification(2, |_| 1376 - 16);
    assert!(bad <= 6.0, "{bad}");
}

#[test]
fn records_of_all_lengths_are_written_six_times_at_most_too() {
    // Up to seven eighths of a segment, and as many of each power of two. These leave more unused
    // at the ends of segments, now more and now less of it.
    let long =
        amplification(10, |key| (64 + Dice(key).below(64) as usize) << Dice(key + 1).below(8));
    assert!(long <= 6.0, "{long}");
}
