//! Bytes that are not what was written: they are found, and never taken for another value.

use super::*;
use proptest::prelude::*;

/// Lengths of contents on both sides of every rule.
const LENGTHS: &[usize] = &[1, 16, 17, 500, 2031, 2032, 2033, 4080, 4081, 9000, 20_000];

/// A tier with a record of each length on its file, and none in memory.
fn written() -> Driven {
    let mut driven = Driven::new(LIMITS, 16);
    for (key, &length) in LENGTHS.iter().enumerate() {
        driven.set(key as u64, content(key as u64, length)).unwrap();
    }
    driven.close();
    driven.check();
    driven
}

#[test]
fn a_bit_that_flipped_anywhere_in_a_record_is_found() {
    let driven = written();
    for (place, expected) in driven.keys.values() {
        let read = driven.tier.read(*place);
        let pages = driven.bytes(read.offset(), read.length());
        let start = (place.offset() - read.offset()) as usize;
        let step = 1 + pages.len() / 300;
        for at in (0..pages.len()).step_by(step).chain(start..start + 16) {
            let mut damaged = pages.clone();
            damaged[at] ^= 1 << (at % 8);
            let opened = read.open(&driven.sealer, &mut damaged);
            if (start..start + place.length()).contains(&at) {
                assert!(opened.is_err(), "byte {at} of {place:?}");
            } else {
                assert!(damaged[opened.unwrap()] == *expected);
            }
        }
    }
}

#[test]
fn pages_in_each_others_place_are_found() {
    let mut driven = Driven::new(LIMITS, 16);
    // Two to a page: each page has records at the same places.
    for key in 0..8 {
        driven.set(key, content(key, 2000)).unwrap();
    }
    driven.close();
    let before = driven.file.clone();
    let (one, other) = driven.file[..2 * PAGE_BYTES].split_at_mut(PAGE_BYTES);
    one.swap_with_slice(other);
    for key in 0..8 {
        assert_eq!(driven.fetch(driven.keys[&key].0).is_err(), key < 4);
    }
    // Even if one could decrypt them: the checksum has the place.
    driven.file = before;
    let first = driven.keys[&0].0;
    let mut pages = driven.bytes(0, PAGE_BYTES);
    driven.sealer.open(0, 1, &mut pages, 0..PAGE_BYTES);
    driven.sealer.seal(1, 1, &mut pages);
    let moved = Place::new(first.offset() + 4096, first.length());
    assert_eq!(driven.tier.read(moved).open(&driven.sealer, &mut pages), Err(Damaged::Checksum));
}

#[test]
fn pages_of_a_segments_former_life_are_found() {
    let mut driven = written();
    let before = driven.file.clone();
    driven.tier.reset();
    for (place, _) in std::mem::take(&mut driven.keys).into_values() {
        let key = driven.keys.len() as u64;
        let again = driven.set(key, content(key, LENGTHS[key as usize])).unwrap();
        assert_eq!(again, place);
    }
    driven.close();
    driven.check();
    driven.file = before;
    for (place, _) in driven.keys.values() {
        assert!(driven.fetch(*place).is_err());
    }
}

#[test]
fn pages_that_are_missing_are_found() {
    let driven = written();
    for (place, _) in driven.keys.values() {
        let read = driven.tier.read(*place);
        let mut pages = driven.bytes(read.offset(), read.length());
        for length in [0, 1, 15, 4095, pages.len() - 1] {
            let short = &mut pages[..length];
            assert_eq!(read.open(&driven.sealer, short), Err(Damaged::Short));
        }
    }
}

#[test]
fn another_key_opens_nothing_and_no_content_is_on_the_file() {
    let driven = written();
    let other = sealer(1);
    for (place, _) in driven.keys.values() {
        let read = driven.tier.read(*place);
        let mut pages = driven.bytes(read.offset(), read.length());
        assert!(read.open(&other, &mut pages).is_err());
    }
    assert!(!driven.file.windows(MARK.len()).any(|bytes| bytes == MARK));
    assert!(!format!("{:?}", driven.tier).contains("plain"));
}

/// A segment's worth of pages that were sealed as they are, with some plausible headers in them.
fn any_plain_pages() -> impl Strategy<Value = Vec<u8>> {
    let header = (0_usize..1024, prop_oneof![0_u32..5000, any::<u32>()], any::<bool>());
    let headers = proptest::collection::vec(header, 0..40);
    (headers, any::<u64>(), 1_usize..5).prop_map(|(headers, seed, pages)| {
        let mut bytes = vec![0; pages * PAGE_BYTES];
        for (unit, length, is_right) in headers {
            let at = unit * 16 % bytes.len();
            let length = (length as usize).min(bytes.len() - at);
            if is_right && length > 32 {
                let place = Place::new(at as u64, length / 16 * 16);
                let mut record = Vec::new();
                let text = content(seed, place.length() - 16);
                record::append(&mut record, place, 1, seed, &text);
                bytes[at..at + record.len()].copy_from_slice(&record);
            } else {
                bytes[at + 4..at + 8].copy_from_slice(&(length as u32).to_le_bytes());
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_read_panic_or_succeed(
        pages in proptest::collection::vec(any::<u8>(), 0..3 * 4096),
        unit in 0_u64..256,
        length in 1_usize..300,
    ) {
        let mut tier = Tier::new(LIMITS, 16 << 16);
        tier.put(1, b"a value").unwrap();
        let read = tier.read(Place::new(unit * 16, length * 16));
        let mut pages = pages;
        prop_assert!(read.open(&sealer(0), &mut pages).is_err());
        let mut decrypted = pages.clone();
        sealer(0).seal(0, 1, &mut decrypted[..pages.len() / 4096 * 4096]);
        prop_assert!(read.open(&sealer(0), &mut decrypted).is_err());
    }

    #[test]
    fn no_pages_make_a_walk_over_records_panic_or_go_on_for_ever(
        plain in any_plain_pages(),
        chunk_pages in 1_usize..3,
        cut in 0_usize..4096,
    ) {
        let sealer = sealer(0);
        let mut sealed = plain;
        sealer.seal(0, 1, &mut sealed);
        let taken = segment::Taken { index: 0, generation: 1 };
        let cleaning = Cleaning::new(taken, 0, sealed.len(), chunk_pages * PAGE_BYTES);
        let mut records = Vec::new();
        let mut next = Some(cleaning.first());
        let mut chunks = 0;
        while let Some(chunk) = next {
            chunks += 1;
            prop_assert!(chunks <= 2 * sealed.len() / PAGE_BYTES);
            let from = chunk.offset() as usize;
            let mut bytes = sealed[from..from + chunk.length()].to_vec();
            let short = &mut bytes.clone()[..chunk.length() - 1 - cut % chunk.length()];
            prop_assert_eq!(chunk.open(&sealer, short, &mut Vec::new()), Err(Damaged::Short));
            match chunk.open(&sealer, &mut bytes, &mut records) {
                Ok(then) => next = then,
                Err(_) => break,
            }
        }
        let mut places: Vec<Place> = records.iter().map(|found| found.place).collect();
        places.dedup();
        prop_assert_eq!(places.len(), records.len());
    }
}

#[test]
fn what_another_tier_left_on_the_file_does_not_pass_for_what_is_there_now() {
    let generations = Generations::default();
    let mut driven = Driven::new(LIMITS, 8);
    let lay = |driven: &mut Driven| {
        let capacity = 8 * LIMITS.segment_bytes as u64;
        driven.tier = Tier::after(LIMITS, capacity, generations.clone());
    };
    lay(&mut driven);
    let place = driven.set(1, content(1, 500)).expect("there is room");
    driven.tier.close_pieces();
    driven.write_all();
    assert!(driven.fetch(place).is_ok());

    lay(&mut driven);
    let same = driven.set(1, content(2, 500)).expect("there is room");
    assert_eq!(same, place, "the file is used from its beginning");
    driven.tier.close_pieces();
    // The device says that this was written, and did not.
    let write = driven.tier.next_write().expect("a piece is full");
    driven.tier.written(write.id());
    assert!(driven.fetch(place).is_err());
}
