use super::*;
use crate::twin::Dice;

/// Elements of any length up to 39 bytes; the goldens below were made of the same.
fn elements(seed: u64, count: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut dice = Dice::new(seed);
    (0..count).map(move |_| {
        let len = dice.below(40);
        dice.roll().to_le_bytes().repeat(5)[..len].to_vec()
    })
}

fn filled(seed: u64, count: usize) -> Vec<u8> {
    let mut hll = create();
    for element in elements(seed, count) {
        add(&mut hll, &element, SPARSE_BYTES_MAX_DEFAULT).unwrap();
    }
    hll
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, step)
}

#[test]
fn three_elements_have_the_bytes_that_redis_keeps() {
    let hll = filled(3, 3);
    assert_eq!(hll, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80_\xd3\x80@M\x80K\xda\x84S\xff");
    assert_eq!(describe_sparse(&hll).unwrap(), "Z:8148 v:1,1 Z:78 v:1,1 Z:3035 v:2,1 Z:5120");
}

#[test]
fn strings_and_counts_are_those_of_redis() {
    // Elements, bytes and digest of GET, PFCOUNT, and the digest of GET behind it.
    let goldens = [
        (1, 21, 0xF4412EEF63387EF1, 1, 0xECA557A258588D72),
        (3, 27, 0xC02344CF71FE0139, 3, 0xACDC8C2E474D207C),
        (10, 48, 0x81A55C15D02E6D4B, 10, 0x5644771D1622BD55),
        (100, 286, 0x191965C39B98EB42, 99, 0x33709C3D5783557D),
        (400, 867, 0x214C49E9EDE9B92B, 394, 0x21541D65B29B962C),
        (600, 1196, 0xF423CCBFD29F54BC, 587, 0x7CD6CF7EDE282FAD),
        (650, 1289, 0x9049907A42C67125, 635, 0xBB1B1BCE4593E6D2),
        (700, 1357, 0xF59AD8DEC21CB3DA, 677, 0x1B33BA625E3262AB),
        (750, 1434, 0x9FD14C8824C2E346, 725, 0x049BDB920E497F01),
        (800, 1542, 0x701F4D43D28D93D5, 789, 0x23F34A2C49DA3CBD),
        (1000, 1865, 0x5FF8853D585727B8, 975, 0x02FD20E31BC8C13E),
        (5000, 12304, 0x0913EAD2339CDD92, 4802, 0x0B25A17C477E01EE),
        (100000, 12304, 0xC49D91AE68E4FCAD, 96498, 0xF89D18C7534BA092),
    ];
    for (elements, bytes, before, expected, behind) in goldens {
        let mut hll = filled(elements as u64, elements);
        assert_eq!((hll.len(), digest(&hll)), (bytes, before), "{elements}");
        assert_eq!(cached_count(&hll), Ok(None));
        assert_eq!(count(&hll), Ok(expected));
        set_cached_count(&mut hll, expected).unwrap();
        assert_eq!((digest(&hll), cached_count(&hll)), (behind, Ok(Some(expected))));
    }
}

#[test]
fn merged_strings_and_counts_are_those_of_redis() {
    // Elements of each, bytes and digest of the merged GET, PFCOUNT of it.
    let goldens = [
        (10, 50, 178, 0x666D583A9E7A3C2F, 57),
        (300, 400, 1360, 0xA031255E5133EF82, 684),
        (600, 600, 2168, 0x9F66162D8ED9DE55, 1176),
        (10, 5000, 12304, 0x68C7FC488353E55B, 4878),
    ];
    for (a, b, bytes, expected, expected_count) in goldens {
        let mut registers = Registers::new();
        registers.merge(&filled(1, a)).unwrap();
        registers.merge(&filled(2, b)).unwrap();
        let mut merged = create();
        registers.write_to(&mut merged, SPARSE_BYTES_MAX_DEFAULT).unwrap();
        assert_eq!((merged.len(), digest(&merged)), (bytes, expected), "{a} and {b}");
        assert_eq!((count(&merged), registers.count()), (Ok(expected_count), expected_count));
    }
}

#[test]
fn sparse_and_dense_hold_the_same_registers() {
    for size in [0, 1, 20, 300, 900, 3_000] {
        let mut sparse = create();
        let mut dense = create();
        make_dense(&mut dense).unwrap();
        for element in elements(9, size) {
            let raised = add(&mut sparse, &element, usize::MAX);
            assert_eq!(add(&mut dense, &element, usize::MAX), raised);
        }
        assert_eq!(encoding(&sparse), Ok(Encoding::Sparse));
        assert_eq!(count(&sparse), count(&dense));
        assert_eq!(make_dense(&mut sparse), Ok(true));
        assert_eq!(sparse, dense);
        assert_eq!(make_dense(&mut sparse), Ok(false));
    }
}

#[test]
fn an_empty_one_counts_nothing_and_says_so_in_its_header() {
    let hll = create();
    assert_eq!(hll, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    assert_eq!((cached_count(&hll), count(&hll)), (Ok(Some(0)), Ok(0)));
}

#[test]
fn adding_twice_changes_nothing() {
    let mut hll = create();
    assert_eq!(add(&mut hll, b"a", SPARSE_BYTES_MAX_DEFAULT), Ok(true));
    set_cached_count(&mut hll, 1).unwrap();
    assert_eq!(add(&mut hll, b"a", SPARSE_BYTES_MAX_DEFAULT), Ok(false));
    assert_eq!(cached_count(&hll), Ok(Some(1)));
}

#[test]
fn a_string_of_another_kind_differs_from_a_corrupt_one() {
    let not = |bytes: &[u8]| assert_eq!(count(bytes), Err(HllError::NotHll));
    not(b"");
    not(b"HYLL\x01");
    not(b"HYLK\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    not(b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    not(b"HYLL\x00\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    let corrupt = |registers: &[u8]| {
        let mut hll = create()[..HEADER_BYTES].to_vec();
        hll.extend_from_slice(registers);
        assert_eq!(count(&hll), Err(HllError::Corrupt));
        assert_eq!(Registers::new().merge(&hll), Err(HllError::Corrupt));
        assert_eq!(make_dense(&mut hll), Err(HllError::Corrupt));
        // An addition walks only up to its register.
        let _ = add(&mut hll, b"a", SPARSE_BYTES_MAX_DEFAULT);
    };
    corrupt(b"");
    corrupt(b"\x7f");
    corrupt(b"\x7f\xfe");
    corrupt(b"\x7f\xff\x00");
    corrupt(&[0xFF; 5_000]);
}

#[test]
fn any_sparse_bytes_are_used_or_refused_without_harm() {
    for seed in 0..3_000 {
        let mut dice = Dice::new(seed);
        let mut hll = filled(seed, 30);
        for _ in 0..1 + dice.below(3) {
            let at = HEADER_BYTES + dice.below(hll.len() - HEADER_BYTES);
            hll[at] = dice.roll() as u8;
        }
        hll.truncate(hll.len() - dice.below(3));
        let corrupt = count(&hll).is_err();
        assert_eq!(Registers::new().merge(&hll).is_err(), corrupt);
        for element in elements(seed + 1, 20) {
            let added = add(&mut hll, &element, 80 + dice.below(200));
            assert!(added.is_ok() || corrupt);
        }
    }
}

#[test]
fn registers_that_no_hash_can_set_do_not_stop_the_count() {
    let mut hll = create();
    make_dense(&mut hll).unwrap();
    hll[HEADER_BYTES..].fill(0xFF);
    assert_eq!(count(&hll), Ok(1 << 63));
}
