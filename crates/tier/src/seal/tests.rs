use super::*;
use xts_mode::Xts128;

/// The key of vector 10 of IEEE 1619, annex B: the digits of e and of pi.
const KEY: [u8; 64] = [
    0x27, 0x18, 0x28, 0x18, 0x28, 0x45, 0x90, 0x45, 0x23, 0x53, 0x60, 0x28, 0x74, 0x71, 0x35, 0x26,
    0x62, 0x49, 0x77, 0x57, 0x24, 0x70, 0x93, 0x69, 0x99, 0x59, 0x57, 0x49, 0x66, 0x96, 0x76, 0x27,
    0x31, 0x41, 0x59, 0x26, 0x53, 0x58, 0x97, 0x93, 0x23, 0x84, 0x62, 0x64, 0x33, 0x83, 0x27, 0x95,
    0x02, 0x88, 0x41, 0x97, 0x16, 0x93, 0x99, 0x37, 0x51, 0x05, 0x82, 0x09, 0x74, 0x94, 0x45, 0x92,
];

fn pages(count: usize) -> Vec<u8> {
    (0..count * PAGE_BYTES).map(|at| at as u8 ^ (at / 251) as u8).collect()
}

#[test]
fn a_page_begins_as_the_standards_vector() {
    let sealer = Sealer::new(&KEY);
    let mut page: Vec<u8> = (0..PAGE_BYTES).map(|at| at as u8).collect();
    sealer.seal(0xff, 0, &mut page);
    let expected = [
        0x1c, 0x3b, 0x3a, 0x10, 0x2f, 0x77, 0x03, 0x86, 0xe4, 0x83, 0x6c, 0x99, 0xe3, 0x70, 0xcf,
        0x9b, 0xea, 0x00, 0x80, 0x3f, 0x5e, 0x48, 0x23, 0x57, 0xa4, 0xae, 0x12, 0xd4, 0x14, 0xa3,
        0xe6, 0x3b,
    ];
    assert_eq!(page[..32], expected);
}

#[test]
fn pages_are_sealed_as_another_hand_does() {
    let sealer = Sealer::new(&KEY);
    let other = Xts128::new(Aes256::new(KEY[..32].into()), Aes256::new(KEY[32..].into()));
    for (first, generation) in [(0, 1), (7, 0), (1 << 31, 0xfedc_ba98), (u64::MAX >> 12, 3)] {
        let mut sealed = pages(3);
        sealer.seal(first, generation, &mut sealed);
        let mut expected = pages(3);
        for (number, page) in (first..).zip(expected.chunks_mut(PAGE_BYTES)) {
            let tweak = u128::from(number) | u128::from(generation) << 64;
            other.encrypt_sector(page, tweak.to_le_bytes());
        }
        assert!(sealed == expected);
    }
}

#[test]
fn what_was_sealed_opens_in_any_part() {
    let sealer = Sealer::new(&KEY);
    let plain = pages(3);
    let mut sealed = plain.clone();
    sealer.seal(5, 9, &mut sealed);
    for range in [0..16, 16..48, 4080..4112, 0..3 * 4096, 1008..9008, 4096..8192, 32..32] {
        let mut opened = sealed.clone();
        sealer.open(5, 9, &mut opened, range.clone());
        assert!(opened[range.clone()] == plain[range.clone()], "{range:?}");
        assert!(opened[..range.start] == sealed[..range.start]);
        assert!(opened[range.end..] == sealed[range.end..]);
    }
}

#[test]
fn page_generation_and_key_make_another_page() {
    let mut key = KEY;
    key[40] ^= 1;
    let seal = |sealer: &Sealer, first, generation| {
        let mut page = pages(1);
        sealer.seal(first, generation, &mut page);
        page
    };
    let (one, other) = (Sealer::new(&KEY), Sealer::new(&key));
    let all = [seal(&one, 1, 1), seal(&one, 2, 1), seal(&one, 1, 2), seal(&other, 1, 1)];
    for (index, page) in all.iter().enumerate() {
        assert!(!all[..index].contains(page));
    }
}

#[test]
fn keys_are_not_shown() {
    assert_eq!(format!("{:?}", Sealer::new(&KEY)), "Sealer");
}
