//! The table against `std` twins, under random operations and unkind hashes.

use std::collections::BTreeSet;

use super::packed::Buckets;
use super::twin::{Hashing, Pair, Probe, key_of};
use super::*;
use crate::twin::Dice;

fn run_against_twin(hashing: Hashing, seed: u64, keys: u64, steps: u64) {
    for is_packed in [false, true] {
        run_one_against_twin(hashing, seed, keys, steps, is_packed);
    }
}

fn run_one_against_twin(hashing: Hashing, seed: u64, keys: u64, steps: u64, is_packed: bool) {
    let mut pair = Pair::new(hashing);
    let mut dice = Dice::new(seed);
    for step in 0..steps {
        if is_packed && step > steps / 20 {
            pair.pack();
        }
        // Phases of growth and of decay.
        let grows = (step * 6 / steps).is_multiple_of(2);
        let key = dice.roll() % keys;
        match dice.roll() % 8 {
            0..=4 if grows => pair.insert(key, step),
            0..=4 => pair.remove(key),
            5 => pair.insert(key, step),
            6 => pair.remove(key),
            _ => pair.change(key, step),
        }
        let probe = dice.roll() % keys;
        let found = pair.table.find(pair.hash(probe), &probe.to_le_bytes());
        assert_eq!(found.map(|probe| probe.1), pair.twin.get(&probe).copied());
        if step % (steps / 20) == 0 {
            pair.check();
        }
    }
    for key in 0..keys {
        pair.remove(key);
    }
    pair.check();
    assert_eq!(pair.table.allocated_bytes(), 0, "an empty table owns nothing");
}

#[test]
fn behaves_like_its_twin() {
    run_against_twin(Hashing::Good, 1, 60_000, 250_000);
    run_against_twin(Hashing::Good, 2, 60, 20_000);
}

#[test]
fn behaves_like_its_twin_when_all_hashes_are_neighbours() {
    run_against_twin(Hashing::Corner, 3, 20_000, 200_000);
}

#[test]
fn behaves_like_its_twin_when_hashes_cannot_tell_keys_apart() {
    run_against_twin(Hashing::Few, 4, 3_000, 40_000);
}

#[test]
fn a_large_table_has_no_holes_between_its_buckets() {
    let mut pair = Pair::new(Hashing::Good);
    let (mut was_packed, mut spare_most) = (false, 0);
    for key in 0..400_000 {
        pair.insert(key, key);
        if let Some(packed) = &pair.table.packed {
            was_packed = true;
            spare_most = spare_most.max(packed.spare_bytes());
        }
    }
    assert!(was_packed && pair.table.segments.len() > 512);
    // Seven arrays of each size at most, the lists of blocks and owners.
    assert!(spare_most < 150 << 10, "{spare_most}");
    pair.check();
    for key in (0..400_000).filter(|key| key % 50 != 0) {
        pair.remove(key);
    }
    pair.check();
    // 8,000 elements, and what is spare.
    assert!(pair.table.allocated_bytes() < 300 << 10, "{}", pair.table.allocated_bytes());
    for key in 0..400_000 {
        pair.remove(key);
    }
    assert_eq!(pair.table.allocated_bytes(), 0, "an empty table owns nothing");
}

#[test]
fn a_table_that_is_laid_out_beforehand_is_packed_as_well() {
    let mut pair = Pair::new(Hashing::Good);
    pair.table.reserve(200_000);
    assert!(pair.table.packed.is_some());
    pair.check();
    (0..200_000).for_each(|key| pair.insert(key, key));
    pair.check();
}

#[test]
fn who_has_kept_a_hash_finds_no_key_of_another_one() {
    let one = 0x1234_5678_0000_0055;
    // No slot has this bit.
    let other = one | 1 << 20;
    let mut table = Table::new(KeyHasher::fixed(0));
    table.insert(one, Probe::new(one, 1, 10));
    assert!(table.find_likely(other, |_| true).is_some());
    assert!(table.find_where(other, |_| true).is_none());
    assert!(table.find_mut_where(other, |_| true).is_none());
    table.insert(other, Probe::new(other, 2, 20));
    for (hash, value) in [(one, 10), (other, 20)] {
        assert_eq!(table.find_where(hash, |_| true).map(|probe| probe.1), Some(value));
        let found = table.find_mut_where(hash, |_| true).expect("it is there");
        assert_eq!(found.as_ref().1, value);
    }
}

#[test]
fn scan_returns_what_stays_whatever_comes_and_goes() {
    for seed in 1..=20 {
        let mut dice = Dice::new(seed * 77 + 1);
        let mut pair = Pair::new(Hashing::Good);
        let lasting = dice.roll() % 3_000;
        (0..lasting).for_each(|key| pair.insert(key, 0));
        let mut seen = BTreeSet::new();
        let (mut cursor, mut calls) = (0, 0);
        loop {
            cursor = pair.table.scan(cursor, 10, |probe| {
                seen.insert(key_of(probe));
            });
            calls += 1;
            if cursor == 0 {
                break;
            }
            // Others come in waves and go in waves, so that the table splits and merges.
            for _ in 0..dice.roll() % 200 {
                let other = lasting + dice.roll() % 20_000;
                if (calls / 40 % 2) == 0 { pair.insert(other, 1) } else { pair.remove(other) }
            }
        }
        assert!((0..lasting).all(|key| seen.contains(&key)), "seed {seed}");
        pair.check();
    }
}

#[test]
fn scan_of_a_quiet_table_returns_each_element_once() {
    let mut pair = Pair::new(Hashing::Good);
    (0..5_000).for_each(|key| pair.insert(key, key));
    for count in [1, 7, 100, 10_000] {
        let mut seen = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = pair.table.scan(cursor, count, |probe| seen.push(key_of(probe)));
            if cursor == 0 {
                break;
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..5_000).collect::<Vec<_>>());
    }
}

#[test]
fn any_number_is_accepted_as_a_cursor() {
    let mut pair = Pair::new(Hashing::Good);
    (0..1_000).for_each(|key| pair.insert(key, key));
    for cursor in [1, u64::MAX >> 16, (u64::MAX >> 16) + 1, u64::MAX] {
        pair.table.scan(cursor, 10, |_| {});
    }
    assert_eq!(pair.table.scan(u64::MAX, 10, |_| {}), 0);
}

#[test]
fn random_picks_are_even() {
    for len in [3, 20, 300, 4_000] {
        let mut pair = Pair::new(Hashing::Good);
        (0..len).for_each(|key| pair.insert(key, key));
        let mut picks = vec![0u32; len as usize];
        let mut dice = Dice::new(9);
        let each = 200;
        for _ in 0..len * each {
            let picked = pair.table.random(dice.roll()).expect("the table is not empty");
            picks[key_of(picked) as usize] += 1;
        }
        let each = each as f64;
        let chi_square: f64 = picks.iter().map(|&n| (f64::from(n) - each).powi(2) / each).sum();
        let freedom = len as f64 - 1.0;
        // Mean and standard deviation of the distribution; five deviations never happen.
        assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{len}: {chi_square}");
    }
}

#[test]
fn walk_visits_the_state_at_its_beginning_once_each_beside_writes() {
    for seed in 1..=30 {
        let mut dice = Dice::new(seed * 1_234_567 + 5);
        let mut pair = Pair::new(if seed % 3 == 0 { Hashing::Corner } else { Hashing::Good });
        let keys = 1 + dice.roll() % 6_000;
        (0..keys / 2).for_each(|key| pair.insert(key, 0));
        for round in 1..4 {
            let expected = pair.twin.clone();
            let mut visited = Vec::new();
            pair.table.begin_walk();
            loop {
                for step in 0..dice.roll() % 60 {
                    let key = dice.roll() % keys;
                    let hash = pair.hash(key);
                    pair.table.visit_unwalked(hash, |p| visited.push((key_of(p), p.1)));
                    match dice.roll() % (3 + round) {
                        0 => pair.remove(key),
                        1 => pair.change(key, step),
                        _ => pair.insert(key, step),
                    }
                }
                if pair.table.walk(20, |probe| visited.push((key_of(probe), probe.1))) {
                    break;
                }
            }
            visited.sort_unstable();
            assert_eq!(visited, expected.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
        pair.check();
    }
}

#[test]
fn element_is_gone_when_its_update_panics() {
    let mut pair = Pair::new(Hashing::Good);
    (0..10).for_each(|key| pair.insert(key, key));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pair.table.update(Hashing::Good.hash(3), &3u64.to_le_bytes(), |_| panic!("on purpose"))
    }));
    assert!(panics.is_err());
    pair.twin.remove(&3);
    pair.check();
}

#[test]
fn structure_costs_at_most_twelve_and_a_half_bytes_an_item() {
    let mut table = Table::new(KeyHasher::fixed(1));
    let (mut worst, mut total, mut samples) = (0.0f64, 0.0, 0);
    for key in 0..400_000u64 {
        let hash = Hashing::Good.hash(key);
        table.insert_new(hash, Probe::new(hash, key, 0));
        if key > 50_000 && key % 1_000 == 0 {
            let each = table.allocated_bytes() as f64 / table.len() as f64;
            worst = worst.max(each);
            total += each;
            samples += 1;
        }
    }
    let mean = total / f64::from(samples);
    let overflow: usize = table.segments.iter().map(Segment::overflow_len).sum();
    println!("mean {mean:.2}, worst {worst:.2} bytes an item; {overflow} in overflow");
    assert!(mean <= 12.5 && worst <= 13.5, "mean {mean:.2}, worst {worst:.2}");
}

#[test]
fn small_tables_are_small() {
    let mut table = Table::new(KeyHasher::fixed(1));
    assert_eq!(table.allocated_bytes(), 0);
    for key in 0..600u64 {
        let hash = Hashing::Good.hash(key);
        table.insert_new(hash, Probe::new(hash, key, 0));
        match key + 1 {
            1 => assert!(table.allocated_bytes() <= 160, "{}", table.allocated_bytes()),
            128 => assert!(table.allocated_bytes() <= 128 * 16, "{}", table.allocated_bytes()),
            600 => assert!(table.allocated_bytes() <= 600 * 14, "{}", table.allocated_bytes()),
            _ => {}
        }
    }
}

#[test]
fn a_reserved_table_takes_what_it_was_reserved_for_and_grows_beyond_it() {
    for reserved in [1, 7, 200, 3_000, 20_000] {
        let mut pair = Pair::new(Hashing::Good);
        pair.table.reserve(reserved);
        let segments = pair.table.segments.len();
        pair.check();
        (0..reserved as u64).for_each(|key| pair.insert(key, key));
        assert_eq!(pair.table.segments.len(), segments, "no segment splits");
        pair.check();
        let each = pair.table.allocated_bytes() as f64 / reserved as f64;
        assert!(reserved < 200 || each <= 13.5, "{each:.2} bytes an item of {reserved}");
        pair.table.reserve(1_000_000);
        assert_eq!(pair.table.segments.len(), segments, "it is not empty any more");
        (0..3 * reserved as u64).for_each(|key| pair.insert(key, key));
        pair.check();
        (0..3 * reserved as u64).for_each(|key| pair.remove(key));
        assert_eq!(pair.table.allocated_bytes(), 0, "an empty table owns nothing");
    }
}

#[test]
fn a_reserved_table_is_scanned_and_walked_while_it_is_nearly_empty() {
    let mut pair = Pair::new(Hashing::Good);
    pair.table.reserve(50_000);
    pair.table.begin_walk();
    (0..10).for_each(|key| {
        pair.table.visit_unwalked(pair.hash(key), |_| panic!("nothing was there"));
        pair.insert(key, key);
    });
    while !pair.table.walk(100, |_| panic!("what comes later came after the beginning")) {}
    let mut seen = BTreeSet::new();
    let mut cursor = pair.table.scan(0, 10, |probe| assert!(seen.insert(key_of(probe))));
    while cursor != 0 {
        cursor = pair.table.scan(cursor, 10, |probe| assert!(seen.insert(key_of(probe))));
    }
    assert_eq!(seen.len(), 10);
    assert!(pair.table.random(3).is_some());
    pair.check();
}

#[test]
fn table_shrinks_with_its_content() {
    let mut pair = Pair::new(Hashing::Good);
    (0..100_000).for_each(|key| pair.insert(key, key));
    (100..100_000).for_each(|key| pair.remove(key));
    pair.check();
    assert!(pair.table.allocated_bytes() < 8_192, "{}", pair.table.allocated_bytes());
    let mut calls = 0;
    let mut cursor = 0;
    loop {
        cursor = pair.table.scan(cursor, 10, |_| {});
        calls += 1;
        if cursor == 0 {
            break;
        }
    }
    assert!(calls < 30, "{calls} calls for 100 elements");
}

#[test]
fn tags_computed_anew_leave_every_entry_where_it_is() {
    for seed in 0..50 {
        let hasher = KeyHasher::fixed(seed);
        // Six levels below its base, and crowded: some entries lie beside, some in the overflow.
        let mut segment = Segment::new(6, 0, 0b10_1101, Buckets::alone(4));
        let hash = |number: u64| 0b10_1101 << 58 | hasher.hash(&number.to_le_bytes()) >> 6;
        for number in 1..=28 {
            let tag = segment.tag_of_hash(hash(number));
            segment.add(Stored::new(number, tag, fingerprint(hash(number))));
        }
        segment.check();
        let before: Vec<_> = segment.iter().map(Stored::raw).collect();
        let bytes = segment.allocated_bytes();
        segment.rebase(hash);
        segment.check();
        assert_eq!(segment.base, 6);
        assert!(segment.iter().map(Stored::raw).eq(before));
        assert_eq!(segment.allocated_bytes(), bytes);
        for number in 1..=28 {
            let found = segment.find(hash(number), |raw| raw == number);
            assert!(found.is_some(), "{number} of {seed}");
        }
    }
}

#[test]
fn walk_goes_on_in_a_table_that_was_taken() {
    let mut pair = Pair::new(Hashing::Good);
    (0..5_000).for_each(|key| pair.insert(key, key));
    let mut visited = BTreeSet::new();
    pair.table.begin_walk();
    assert!(!pair.table.walk(1_000, |probe| assert!(visited.insert(key_of(probe)))));
    let mut taken = pair.table.take();
    pair.twin.clear();
    assert!(!pair.table.is_walking());
    pair.insert(1, 1);
    while !taken.walk(1_000, |probe| assert!(visited.insert(key_of(probe)))) {}
    assert_eq!(visited.len(), 5_000);
    pair.check();
}

/// What it takes to find each of the keys, in a table of them.
fn steps(keys: impl Iterator<Item = Vec<u8>>, hash: impl Fn(&[u8]) -> u64) -> u64 {
    let mut table = Table::new(KeyHasher::fixed(0));
    for (n, key) in keys.enumerate() {
        table.insert(hash(&key), Probe::named(hash(&key), n as u64, key));
    }
    table.lookup_steps()
}

#[test]
fn chosen_keys_cost_what_random_keys_cost() {
    for seed in [1, 0x5eed_0000_0000, u64::MAX] {
        let hasher = KeyHasher::fixed(seed);
        for (name, make) in crate::chosen::FAMILIES {
            let chosen = steps((0..20_000).map(make), |key| hasher.hash(key));
            let random = steps(crate::chosen::random_like(make, 20_000), |key| hasher.hash(key));
            assert!(chosen <= 2 * random, "{name}: {chosen} steps, random keys {random}");
        }
    }
}

#[test]
fn the_measure_of_chosen_keys_notices_a_hash_that_fails() {
    // The upper half is the sum of the key's words, which keeps no order; the lower is good.
    let sum = |key: &[u8]| {
        let words = key.chunks_exact(8).map(|word| word.try_into().expect("eight bytes"));
        let sum = words.fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(word)));
        sum.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let permuted = crate::chosen::FAMILIES[9].1;
    assert!(steps((0..4_000).map(permuted), sum) > 1_000 * 4_000);
    let random = crate::chosen::random_like(permuted, 4_000);
    assert!(steps(random, sum) < 2 * 4_000);
}

#[test]
fn keys_found_by_search_to_share_upper_bits_are_told_apart_by_the_others() {
    let hasher = KeyHasher::fixed(3);
    let keys = || (0..20_000_u64).map(|n| n.to_le_bytes().to_vec());
    let steps_of = |bits: u32| steps(keys(), |key| hasher.hash(key) >> bits);
    let random = steps_of(0);
    // Five million trial writes, and twenty. Three hundred million would fill one overflow.
    assert!(steps_of(8) <= 2 * random, "{} steps, random keys {random}", steps_of(8));
    assert!(steps_of(10) <= 300 * random, "{} steps, random keys {random}", steps_of(10));
}
