use super::*;
use crate::keys::tests::{ONE, TWO, keys};

const NAME: &str = "snapshot-7/part-0000.rdb";

fn one() -> Keys {
    keys(&format!("one {ONE}"))
}

fn plain(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn an_object_is_read_as_it_was_written() {
    for length in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let plain = plain(length);
        let whole = encrypt(&one(), NAME, &plain).expect("the keys are local");
        let (mut encryptor, mut stored) = Encryptor::begin(&one(), NAME).expect("they are local");
        plain.chunks(1000).for_each(|piece| encryptor.append(piece, &mut stored));
        encryptor.finish(&mut stored);
        assert_eq!(stored, whole, "however it comes");
        assert_eq!(stored.len() as u64, stored_bytes(length as u64));
        assert_eq!(plain_bytes(stored.len() as u64), Some(length as u64));
        assert_eq!(decrypt(&one(), NAME, &stored), Ok(plain));
    }
}

#[test]
fn lengths_that_no_object_has_are_none() {
    for stored in [0, 1023, 1024, 1039, 1024 + STORED_CHUNK_BYTES, 1039 + STORED_CHUNK_BYTES] {
        assert_eq!(plain_bytes(stored as u64), None, "{stored}");
    }
    assert_eq!(chunk_at(u64::MAX), None);
}

#[test]
fn the_format_is_the_documented_one() {
    let stored = encrypt(&one(), NAME, b"some bytes").expect("the keys are local");
    assert_eq!(stored, include_bytes!("golden"));
    assert_eq!(decrypt(&one(), NAME, include_bytes!("golden")), Ok(b"some bytes".to_vec()));
}

#[test]
fn every_changed_bit_and_every_cut_is_found() {
    let stored = encrypt(&one(), NAME, b"some bytes").expect("the keys are local");
    for bit in 0..stored.len() * 8 {
        let mut changed = stored.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(decrypt(&one(), NAME, &changed).is_err(), "bit {bit}");
    }
    for at in 0..stored.len() {
        assert!(decrypt(&one(), NAME, &stored[..at]).is_err(), "{at}");
    }
    assert_eq!(decrypt(&one(), NAME, &[&stored[..], b"x"].concat()), Err(KeyError::Altered));
}

#[test]
fn chunks_and_objects_cannot_change_places() {
    let stored = encrypt(&one(), NAME, &plain(3 * CHUNK_BYTES + 5)).expect("the keys are local");
    let chunk = |number: usize| {
        let begin = HEADER_BYTES + number * STORED_CHUNK_BYTES;
        &stored[begin..stored.len().min(begin + STORED_CHUNK_BYTES)]
    };
    let header = &stored[..HEADER_BYTES];
    let orders: [&[usize]; 6] =
        [&[1, 0, 2, 3], &[0, 2, 3], &[0, 1, 2], &[0, 1], &[0, 1, 2, 2, 3], &[3]];
    for order in orders {
        let chunks: Vec<u8> = order.iter().flat_map(|number| chunk(*number).to_vec()).collect();
        let changed = [header, &chunks].concat();
        assert_eq!(decrypt(&one(), NAME, &changed), Err(KeyError::Altered), "{order:?}");
    }
    assert_eq!(decrypt(&one(), "snapshot-7/part-0001.rdb", &stored), Err(KeyError::Altered));
    // The header of another object of the same name: another data key.
    let keys = one();
    let first = encrypt(&keys, NAME, b"first").expect("the keys are local");
    let second = encrypt(&keys, NAME, b"second").expect("the keys are local");
    let mixed = [&first[..HEADER_BYTES], &second[HEADER_BYTES..]].concat();
    assert_eq!(decrypt(&one(), NAME, &mixed), Err(KeyError::Altered));
}

#[test]
fn a_lost_key_is_named() {
    let stored = encrypt(&one(), NAME, b"some bytes").expect("the keys are local");
    let lost = decrypt(&keys(&format!("two {TWO}")), NAME, &stored).expect_err("it is lost");
    assert!(lost.to_string().contains("master key 'one'") && lost.may_be_whole(), "{lost}");
    let none = decrypt(&Keys::none(), NAME, &stored).expect_err("there is none");
    assert!(none.to_string().contains("master key 'one'") && none.may_be_whole(), "{none}");
    let wrong = decrypt(&keys(&format!("one {TWO}")), NAME, &stored).expect_err("it is another");
    assert!(wrong.to_string().contains("'one' does not open") && wrong.may_be_whole(), "{wrong}");
}
