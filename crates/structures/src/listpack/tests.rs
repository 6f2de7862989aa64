use super::twin::{check_against, checked, step};
use super::*;
use crate::twin::Dice;

fn pack(texts: &[&[u8]]) -> Listpack {
    let mut pack = Listpack::new();
    for text in texts {
        pack.push_back(text);
    }
    pack
}

#[test]
fn integers_are_stored_in_the_smallest_form_that_redis_uses() {
    let check = |text: &str, expected: &[u8]| {
        let pack = pack(&[text.as_bytes()]);
        assert_eq!(&pack.bytes()[6..pack.total_bytes() - 1], expected, "{text}");
    };
    check("0", &[0, 1]);
    check("127", &[127, 1]);
    check("128", &[0xC0, 0x80, 2]);
    check("-1", &[0xDF, 0xFF, 2]);
    check("4095", &[0xCF, 0xFF, 2]);
    check("-4096", &[0xD0, 0x00, 2]);
    check("4096", &[0xF1, 0x00, 0x10, 3]);
    check("-32768", &[0xF1, 0x00, 0x80, 3]);
    check("32768", &[0xF2, 0x00, 0x80, 0x00, 4]);
    check("8388608", &[0xF3, 0x00, 0x00, 0x80, 0x00, 5]);
    check("-2147483649", &[0xF4, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 9]);
    check("9223372036854775807", &[0xF4, 255, 255, 255, 255, 255, 255, 255, 127, 9]);
}

#[test]
fn text_that_is_no_canonical_integer_stays_text() {
    for text in ["", "-", "-0", "00", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808"] {
        assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        assert_eq!(pack(&[text.as_bytes()]).get(0), Some(Item::Bytes(text.as_bytes())));
    }
    assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
    assert_eq!(parse_integer(b"-9223372036854775809"), None);
}

#[test]
fn strings_change_their_header_at_64_and_4096_bytes() {
    let head = |len: usize| pack(&[&vec![b'x'; len]]).bytes()[6..11].to_vec();
    assert_eq!(head(63)[0], 0x80 | 63);
    assert_eq!(head(64)[..2], [0xE0, 64]);
    assert_eq!(head(4095)[..2], [0xEF, 0xFF]);
    assert_eq!(head(4096), [0xF0, 0x00, 0x10, 0x00, 0x00]);
}

#[test]
fn backlen_leaves_the_largest_two_byte_number_unused_as_redis_does() {
    // An entry of 5 + 16,378 = 16,383 bytes would fit into two bytes of seven bits.
    let pack = pack(&[&vec![b'x'; 16_378]]);
    assert_eq!(pack.total_bytes(), 6 + 16_383 + 3 + 1);
    let back = &pack.bytes()[pack.total_bytes() - 4..];
    assert_eq!(back, [0x00, 0xFF, 0xFF, 0xFF]);
    assert_eq!(pack.iter().next_back().map(|item| item.text_len()), Some(16_378));
}

#[test]
fn a_small_hash_has_the_bytes_that_redis_dumps() {
    // HSET h f 1 name Anna n -5000 big 1234567890123; DUMP h, without type, length and trailer.
    let pack = pack(&[b"f", b"1", b"name", b"Anna", b"n", b"-5000", b"big", b"1234567890123"]);
    let golden = b"\x2e\x00\x00\x00\x08\x00\x81f\x02\x01\x01\x84name\x05\x84Anna\x05\x81n\x02\
        \xf1\x78\xec\x03\x83big\x04\xf4\xcb\x04\xfb\x71\x1f\x01\x00\x00\x09\xff";
    assert_eq!(pack.bytes(), golden);
    assert_eq!(Listpack::from_bytes(golden.to_vec()).map(|pack| pack.len()), Ok(8));
}

#[test]
fn every_operation_does_what_it_does_to_a_vector() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let (mut pack, mut twin) = (Listpack::new(), Vec::<Vec<u8>>::new());
        for _ in 0..150 {
            step(&mut dice, &mut pack, &mut twin);
            assert_eq!(checked(&pack), twin);
        }
        check_against(&pack, &twin);
    }
}

#[test]
fn find_skips_the_values_between_the_fields() {
    let pack = pack(&[b"a", b"b", b"b", b"a", b"7", b"x"]);
    assert_eq!(pack.find(b"b", 1), pack.seek(2));
    assert_eq!(pack.find(b"7", 1), pack.seek(4));
    assert_eq!(pack.find(b"x", 1), None);
    assert_eq!(pack.find(b"x", 0), pack.seek(5));
}

#[test]
fn more_elements_than_the_header_counts_are_counted_by_walking() {
    let mut pack = Listpack::new();
    for value in 0..65_600 {
        pack.push_back_integer(value % 100);
    }
    assert_eq!(pack.bytes()[4..6], [0xFF, 0xFF]);
    assert_eq!(pack.len(), 65_600);
    assert_eq!(pack.get(65_599), Some(Item::Integer(99)));
    assert_eq!(pack.get(65_600), None);
    assert!(Listpack::from_bytes(pack.into_bytes()).is_ok());
}

/// How many entries there are, each read as one of any length.
fn walked(bytes: &[u8]) -> Result<usize, ListpackError> {
    let entries = &bytes[..bytes.len() - 1];
    let (mut at, mut found) = (HEADER_BYTES, 0);
    while at < entries.len() {
        at = check::end_of_any(entries, at)?;
        found += 1;
    }
    Ok(found)
}

#[test]
fn every_changed_byte_is_refused_or_leaves_a_listpack_that_can_be_walked() {
    let good = pack(&[b"hello", b"12", b"-70000", &[b'x'; 200], b"1234567890123"]).into_bytes();
    for at in 0..good.len() {
        for value in 0..=255 {
            let mut bytes = good.clone();
            bytes[at] = value;
            let is_entry = (HEADER_BYTES..good.len() - 1).contains(&at);
            let walked = is_entry.then(|| walked(&bytes));
            let mut seen = Vec::new();
            let checked = Listpack::from_bytes_each(bytes, |item| seen.push(item.to_vec()));
            if let Ok(pack) = &checked {
                assert!(pack.iter().map(|item| item.to_vec()).eq(seen));
                assert_eq!(pack.iter().count(), pack.iter().rev().count());
            }
            match (walked, checked) {
                (Some(Ok(5)), checked) => assert!(checked.is_ok(), "{at} {value}"),
                (Some(Ok(found)), checked) => {
                    assert_eq!(checked, Err(ListpackError::WrongCount { header: 5, found }));
                }
                (Some(Err(why)), checked) => assert_eq!(checked, Err(why), "{at} {value}"),
                (None, _) => {}
            }
        }
        assert!(Listpack::from_bytes(good[..at].to_vec()).is_err());
    }
}

#[test]
fn errors_name_the_place() {
    use ListpackError::*;
    let check = |bytes: &[u8], expected| {
        assert_eq!(Listpack::from_bytes(bytes.to_vec()).err(), Some(expected));
    };
    check(&[7, 0, 0, 0, 0, 0], TooShort);
    check(&[8, 0, 0, 0, 0, 0, 0xFF], WrongTotal { header: 8 });
    check(&[9, 0, 0, 0, 1, 0, 0xF5, 1, 0xFF], BadEntry { at: 6 });
    check(&[9, 0, 0, 0, 1, 0, 0x01, 2, 0xFF], BadBacklen { at: 6 });
    check(&[9, 0, 0, 0, 1, 0, 0xFF, 1, 0xFF], BadEnd { at: 6 });
    check(&[9, 0, 0, 0, 2, 0, 0x01, 1, 0xFF], WrongCount { header: 2, found: 1 });
}

/// What is reserved is there until it is given back, and changes no byte.
#[test]
fn room_at_the_back_is_used_and_given_back() {
    let mut pack = Listpack::new();
    pack.push_back(b"first");
    pack.push_front(b"before");
    pack.reserve_back(100, 1000);
    let room = pack.allocated_bytes();
    assert!(room >= pack.total_bytes() + 1000, "{room}");
    for number in 0..90 {
        pack.push_back(format!("{number:02}").as_bytes());
        pack.reserve_back(10, 1000);
    }
    assert_eq!(pack.allocated_bytes(), room);
    let twin = Listpack::from_bytes(pack.bytes().to_vec()).expect("it is whole");
    assert_eq!(pack, twin);
    assert_eq!(pack.len(), 92);
    pack.shrink();
    assert!(pack.allocated_bytes() < room);
    assert_eq!(pack, twin);
}

#[test]
fn an_element_is_as_long_as_counted_on_both_sides_of_every_edge() {
    let edges = [0, 127, 4095, -4096, 0x7FFF, -0x8000, 0x7F_FFFF, -0x80_0000, 0x7FFF_FFFF];
    let edges = edges.into_iter().chain([-0x8000_0000, i64::MAX - 1, i64::MIN + 1]);
    for number in edges.flat_map(|edge| edge - 1..=edge + 1) {
        let text = number.to_string();
        for item in [Item::Integer(number), Item::Bytes(text.as_bytes())] {
            assert_eq!(Encoded::len_of(item), Encoded::of_item(item).total_len(), "{number}");
        }
    }
    for len in [0, 1, 63, 64, 126, 127, 4095, 4096, 16_380, 16_383, 2_097_151] {
        let text = vec![b'x'; len];
        let item = Item::Bytes(&text);
        assert_eq!(Encoded::len_of(item), Encoded::of_item(item).total_len(), "{len}");
    }
}

#[test]
fn elements_that_come_together_stand_as_those_that_come_one_by_one() {
    let long = vec![b'x'; 5000];
    let items =
        [Item::Integer(-5000), Item::Bytes(b"text"), Item::Bytes(b"12"), Item::Bytes(&long)];
    // The count of elements becomes "unknown" in between.
    let mut one_by_one = pack(&[&b""[..]; 65_530]);
    let mut together = one_by_one.clone();
    for count in [0, 4, 1, 3] {
        together.push_back_all(items[..count].iter().copied());
        items[..count].iter().for_each(|item| one_by_one.push_back_item(*item));
        assert!(together.bytes() == one_by_one.bytes());
    }
    assert_eq!(together.len(), 65_538);
    let last = together.seek(65_537).expect("it is there");
    together.replace_integer(last, 7);
    assert_eq!(together.get(65_537), Some(Item::Integer(7)));
}
