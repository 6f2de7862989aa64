use super::*;
use crate::twin::Dice;

#[test]
fn a_byte_vec_does_what_a_vec_does() {
    for seed in 0..50 {
        let mut dice = Dice::new(seed);
        let (mut bytes, mut twin) = (ByteVec::new(), Vec::new());
        for _ in 0..200 {
            let size = dice.below(300);
            match dice.below(9) {
                0 => {
                    bytes.extend_from_slice(&[seed as u8; 77][..size.min(77)]);
                    twin.extend_from_slice(&[seed as u8; 77][..size.min(77)]);
                }
                1 => {
                    bytes.resize(size, 7);
                    twin.resize(size, 7);
                }
                2 => {
                    bytes.truncate(size);
                    twin.truncate(size);
                }
                3 => bytes.shrink_to(size),
                4 => bytes.reserve(size),
                5 => bytes.reserve_exact(size),
                6 => bytes = ByteVec::from(bytes.into_vec()),
                7 => bytes = bytes.clone(),
                _ => bytes = ByteVec::from(&twin[..]),
            }
            assert_eq!((&*bytes, bytes.capacity() >= bytes.len()), (&twin[..], true));
        }
    }
}

#[test]
fn a_byte_vec_grows_by_doubling_and_gives_back_what_it_is_asked_to() {
    let mut bytes = ByteVec::new();
    let mut capacities = Vec::new();
    for _ in 0..1000 {
        bytes.extend_from_slice(b"x");
        capacities.push(bytes.capacity());
    }
    capacities.dedup();
    assert_eq!(capacities, [8, 16, 32, 64, 128, 256, 512, 1024]);
    bytes.truncate(0);
    bytes.shrink_to(10);
    assert_eq!(bytes.capacity(), 10);
    bytes.shrink_to(0);
    assert_eq!(bytes.capacity(), 0);
}

#[test]
fn a_byte_box_is_its_bytes() {
    for len in [0, 1, 8, 1000] {
        let mut bytes = ByteBox::zeroed(len);
        assert_eq!(*bytes, vec![0; len]);
        bytes.fill(3);
        let mut vec = Vec::with_capacity(2 * len);
        vec.extend_from_slice(&bytes);
        assert!(ByteBox::from(vec) == bytes && bytes.clone() == bytes);
        assert_eq!(ByteBox::copied(&bytes).into_vec(), vec![3; len]);
    }
}
