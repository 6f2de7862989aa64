//! What is live, free, held and in memory, step by step.

use super::*;

fn put(driven: &mut Driven, keys: std::ops::Range<u64>, bytes: usize) {
    for key in keys {
        if driven.tier.figures().buffered_bytes > 40 << 10 {
            driven.write_all();
        }
        driven.set(key, content(key, bytes)).unwrap();
    }
}

#[test]
fn a_record_is_readable_before_during_and_after_its_write() {
    let mut driven = Driven::new(LIMITS, 16);
    let place = driven.set(1, content(1, 500)).unwrap();
    driven.check();
    assert!(driven.tier.next_write().is_none() && driven.tier.is_written());
    driven.tier.close_pieces();
    let write = driven.tier.next_write().unwrap();
    assert!(driven.tier.next_write().is_none(), "one at a time");
    driven.check();
    driven.write(&write, 0);
    driven.tier.failed(write.id());
    driven.check();
    let again = driven.tier.next_write().unwrap();
    assert!(again.offset() == write.offset() && again.id() != write.id());
    driven.write(&again, again.length());
    driven.tier.written(write.id());
    assert!(driven.tier.in_memory(place, &mut Vec::new()), "that attempt had ended");
    driven.tier.written(again.id());
    assert!(!driven.tier.in_memory(place, &mut Vec::new()));
    driven.check();
}

#[test]
fn contents_that_are_empty_or_too_long_are_refused() {
    let mut driven = Driven::new(LIMITS, 16);
    assert_eq!(driven.tier.put(1, b""), Err(Refused::Length));
    assert_eq!(driven.tier.put(1, &[1; (20 << 10) - 15]), Err(Refused::Length));
    driven.set(1, content(1, (20 << 10) - 16)).unwrap();
    driven.set(2, content(2, 1)).unwrap();
    driven.check();
}

#[test]
fn a_draft_is_a_buffer_until_it_is_put_and_no_longer_than_it_said() {
    let mut driven = Driven::new(LIMITS, 64);
    let buffered = |driven: &Driven| driven.tier.figures().buffered_bytes;
    let mut draft = driven.tier.begin_draft(18_000).unwrap();
    assert_eq!(buffered(&driven), 20 << 10);
    draft.write(|bytes| bytes.resize(bytes.len() + 6000, 7));
    let place = driven.tier.put_draft(1, draft).map_err(|(why, _)| why).unwrap();
    assert_eq!(buffered(&driven), 8 << 10, "what it did not need is given back");
    assert!(driven.tier.share(place).unwrap().content() == [7; 6000]);
    driven.keys.insert(1, (place, vec![7; 6000]));
    driven.check();
    driven.write_all();
    driven.check();
    assert!(driven.tier.share(place).is_none());
    assert_eq!(driven.tier.begin_draft(20 << 10).err(), Some(Refused::Length));
    let mut draft = driven.tier.begin_draft(5000).unwrap();
    draft.write(|bytes| bytes.resize(bytes.len() + 9000, 7));
    assert!(draft.is_over());
    let (why, draft) = driven.tier.put_draft(2, draft).unwrap_err();
    assert_eq!(why, Refused::Length);
    driven.tier.give_up_draft(draft);
    assert_eq!(buffered(&driven), 0);
    // None is begun for which there is no room.
    let drafts: Vec<Draft> = std::iter::from_fn(|| driven.tier.begin_draft(18_000).ok()).collect();
    assert_eq!(drafts.len(), 2);
    drafts.into_iter().for_each(|draft| driven.tier.give_up_draft(draft));
}

#[test]
fn small_records_lie_within_a_page_and_long_ones_begin_one() {
    let mut driven = Driven::new(LIMITS, 64);
    let mut dice = Dice(3);
    for key in 0..400 {
        driven.write_all();
        let place = driven.set(key, content(key, 1 + dice.below(6000) as usize)).unwrap();
        let read = driven.tier.read(place);
        match place.length() {
            ..=SMALL_BYTES_MAX => assert_eq!(read.length(), PAGE_BYTES),
            length if length > LIMITS.packed_bytes_max => assert_eq!(place.offset() % 4096, 0),
            length => assert!(read.length() <= length + 2 * PAGE_BYTES),
        }
    }
    driven.check();
}

#[test]
fn what_memory_has_no_room_for_is_refused_until_it_is_written() {
    let mut driven = Driven::new(LIMITS, 64);
    let refused = (0..1000).find_map(|key| driven.set(key, content(key, 500)).err());
    assert_eq!(refused, Some(Refused::Behind));
    // Cleaning has a piece of its own left.
    let survivor = driven.tier.put_survivor(7777, b"a survivor").unwrap();
    driven.keys.insert(7777, (survivor, b"a survivor".to_vec()));
    driven.check();
    driven.write_all();
    driven.set(5000, content(5000, 500)).unwrap();
    driven.check();
}

#[test]
fn a_full_tier_refuses_and_keeps_what_cleaning_needs() {
    let mut driven = Driven::new(LIMITS, 16);
    let refused = (0..10_000).find_map(|key| {
        driven.write_all();
        driven.set(key, content(key, 500)).err()
    });
    assert_eq!(refused, Some(Refused::Full));
    let figures = driven.tier.figures();
    // 90 % of the 12 segments beside those that are kept free.
    assert!(figures.occupied_bytes > 10 * (64 << 10) && figures.occupied_bytes < 11 * (64 << 10));
    assert!(driven.tier.free_segments() >= 4 && figures.file_bytes <= figures.capacity_bytes);
    driven.remove(1);
    driven.remove(2);
    driven.set(1, content(1, 500)).unwrap();
    driven.check();
}

#[test]
fn the_last_free_segments_are_for_survivors() {
    let mut driven = Driven::new(LIMITS, 16);
    let mut dice = Dice(5);
    let refused = (0..10_000).find_map(|_| {
        driven.write_all();
        let key = dice.below(1000);
        driven.set(key, content(key, 500)).err()
    });
    assert_eq!(refused, Some(Refused::Full), "what is dead was not cleaned");
    assert_eq!(driven.tier.free_segments(), LIMITS.reserve_segments);
    driven.clean();
    driven.write_all();
    assert!(driven.tier.free_segments() >= LIMITS.free_segments_min);
    driven.set(1, content(1, 500)).unwrap();
    driven.check();
}

#[test]
fn all_segments_are_free_when_all_is_released_and_written() {
    let mut driven = Driven::new(LIMITS, 16);
    put(&mut driven, 0..500, 700);
    (0..500).for_each(|key| driven.remove(key));
    driven.close();
    driven.check();
    let figures = driven.tier.figures();
    assert_eq!((figures.live_bytes, figures.buffered_bytes), (0, 0));
    assert_eq!(driven.tier.free_segments(), 16);
    assert!(driven.tier.begin_cleaning().is_none());
}

#[test]
fn what_is_held_stays_readable_and_its_room_comes_back() {
    let mut driven = Driven::new(LIMITS, 16);
    put(&mut driven, 0..300, 700);
    let before = driven.keys.clone();
    let (first, second) = (driven.tier.hold(), driven.tier.hold());
    driven.tier.release_all();
    driven.keys.clear();
    driven.close();
    driven.check();
    put(&mut driven, 0..300, 600);
    assert!(driven.tier.figures().held_bytes >= 3 * (64 << 10));
    // What was released since belongs to neither of them.
    let third = driven.tier.hold();
    before.iter().for_each(|(key, (place, value))| driven.assert_has(*place, *key, value));
    driven.tier.unhold(first);
    before.iter().for_each(|(key, (place, value))| driven.assert_has(*place, *key, value));
    driven.tier.unhold(second);
    assert_eq!(driven.tier.figures().held_bytes, 0);
    driven.tier.unhold(third);
    driven.check();
}

#[test]
fn after_a_reset_old_writes_change_nothing() {
    let mut driven = Driven::new(LIMITS, 16);
    let old = driven.set(1, content(1, 3000)).unwrap();
    driven.tier.close_pieces();
    let stale = driven.tier.next_write().unwrap();
    let read = driven.tier.read(old);
    driven.tier.reset();
    driven.keys.clear();
    driven.check();
    let new = driven.set(2, content(2, 3000)).unwrap();
    assert_eq!(new, old);
    assert!(!driven.tier.is_current(&read));
    driven.tier.close_pieces();
    assert!(driven.tier.next_write().is_none(), "the old write could come after the new one");
    driven.write(&stale, stale.length());
    driven.tier.failed(stale.id());
    driven.check();
    driven.write_all();
    driven.check();
    let mut pages = driven.bytes(read.offset(), read.length());
    assert!(read.open(&driven.sealer, &mut pages).is_err());
}

#[test]
fn a_tier_that_shrinks_moves_what_lies_beyond() {
    let mut driven = Driven::new(LIMITS, 32);
    put(&mut driven, 0..1000, 700);
    (0..1000).filter(|key| key % 3 > 0).for_each(|key| driven.remove(key));
    driven.tier.set_capacity(10 * (64 << 10) + 5);
    assert!(driven.tier.is_over_capacity());
    driven.close();
    driven.clean();
    driven.check();
    assert!(!driven.tier.is_over_capacity());
    assert_eq!(driven.tier.figures().file_bytes, 10 * (64 << 10));
    driven.tier.set_capacity(0);
    assert_eq!(driven.tier.put(1, b"no room"), Err(Refused::Full));
    driven.close();
    driven.clean();
    driven.check();
    driven.tier.set_capacity(32 * (64 << 10));
    put(&mut driven, 0..1000, 700);
    driven.check();
}

#[test]
fn a_file_ends_behind_what_is_in_use() {
    let mut driven = Driven::new(LIMITS, 64);
    put(&mut driven, 0..2000, 700);
    driven.close();
    let full = driven.file.len();
    driven.shrink();
    assert_eq!(driven.file.len(), full, "all of it is in use");
    // One segment at its end comes and goes.
    (1950..2000).for_each(|key| driven.remove(key));
    driven.shrink();
    assert_eq!(driven.file.len(), full);
    (100..1950).for_each(|key| driven.remove(key));
    driven.shrink();
    driven.write_all();
    driven.shrink();
    assert!(driven.file.len() <= full / 8, "{} of {full}", driven.file.len());
    driven.check();
    put(&mut driven, 100..2000, 700);
    driven.close();
    driven.check();
    (0..2000).for_each(|key| driven.remove(key));
    driven.shrink();
    driven.write_all();
    driven.shrink();
    assert_eq!((driven.file.len(), driven.tier.figures().file_bytes), (0, 0));
}

#[test]
fn the_first_free_segment_is_taken() {
    let mut segments = crate::segments::Segments::new(LIMITS, crate::Generations::default());
    segments.set_capacity(8);
    assert!((0..6).all(|_| segments.take(0).is_some()));
    [4, 1, 5, 2].into_iter().for_each(|index| segments.close(index, 0));
    let taken: Vec<_> = (0..6).filter_map(|_| Some(segments.take(0)?.index)).collect();
    assert_eq!(taken, [1, 2, 4, 5, 6, 7]);
}

/// Ends each cleaning that is begun, of segments with records that stay, and releases these then.
fn end_all(end: impl Fn(&mut Tier, &Cleaning), given_up_each: u64) {
    let mut driven = Driven::new(LIMITS, 16);
    put(&mut driven, 0..800, 700);
    driven.close();
    (0..800).filter(|key| key % 5 > 0).for_each(|key| driven.remove(key));
    let mut keys = 1000..;
    while driven.tier.free_segments() >= 4 {
        let key = keys.next().unwrap();
        put(&mut driven, key..key + 1, 700);
    }
    driven.close();
    let mut ended = Vec::new();
    while let Some(cleaning) = driven.tier.begin_cleaning() {
        assert!(!ended.contains(&cleaning) && driven.tier.is_being_cleaned(&cleaning));
        end(&mut driven.tier, &cleaning);
        assert!(!driven.tier.is_being_cleaned(&cleaning));
        ended.push(cleaning);
    }
    assert!(!ended.is_empty());
    let given_up_segments = |driven: &Driven| driven.tier.figures().given_up_segments;
    assert_eq!(given_up_segments(&driven), given_up_each * ended.len() as u64);
    driven.check();
    driven.keys.keys().copied().collect::<Vec<_>>().into_iter().for_each(|key| driven.remove(key));
    driven.close();
    assert_eq!(driven.tier.free_segments(), 16);
    assert_eq!(given_up_segments(&driven), 0);
    driven.check();
}

#[test]
fn a_cleaning_that_is_given_up_is_not_repeated() {
    end_all(Tier::give_up_cleaning, 1);
}

#[test]
fn a_segment_that_is_left_is_not_cleaned_again_and_no_damage() {
    end_all(Tier::leave_cleaning, 0);
}

#[test]
fn a_tier_that_shrinks_does_not_outgrow_its_device() {
    for (device, is_room) in [(u64::MAX, true), (6, false)] {
        let file_bytes_max = device.saturating_mul(LIMITS.segment_bytes as u64);
        let limits = Limits { file_bytes_max, ..LIMITS };
        let mut segments = crate::segments::Segments::new(limits, crate::Generations::default());
        segments.set_capacity(6);
        assert!((0..6).all(|_| segments.take(0).is_some()));
        segments.set_capacity(3);
        assert_eq!(segments.take_for_survivors().is_some(), is_room, "{device} segments");
    }
}

#[test]
fn no_draft_is_begun_that_would_have_no_segment_in_the_end() {
    let mut driven = Driven::new(LIMITS, 16);
    let mut dice = Dice(5);
    let mut refused = None;
    while refused != Some(Refused::Full) {
        driven.write_all();
        let key = dice.below(1000);
        refused = driven.set(key, content(key, 500)).err();
    }
    driven.close();
    (0..100).for_each(|key| driven.remove(key));
    assert_eq!(driven.tier.free_segments(), LIMITS.reserve_segments);
    assert!(
        driven.tier.figures().occupied_bytes < 10 * (64 << 10),
        "fill is not what is in the way"
    );
    assert_eq!(driven.tier.begin_draft(18_000).err(), Some(Refused::Full));
    assert_eq!(driven.tier.figures().buffered_bytes, 0);
    // A segment that is cleaned, or held, will be free.
    let cleaning = driven.tier.begin_cleaning().unwrap();
    assert_eq!(driven.tier.begin_draft(18_000).err(), Some(Refused::Behind));
    driven.tier.end_cleaning(&cleaning);
    driven.clean();
    driven.write_all();
    let draft = driven.tier.begin_draft(18_000).unwrap();
    driven.tier.give_up_draft(draft);
    driven.check();
}
