use super::twin::{LIMITS, check, shape, step};
use super::*;
use crate::twin::Dice;
use std::collections::VecDeque;

fn texts(list: &Quicklist) -> Vec<Vec<u8>> {
    list.iter().map(|item| item.to_vec()).collect()
}

#[test]
fn every_operation_does_what_it_does_to_a_deque() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let (fill, plain) = LIMITS[seed as usize % LIMITS.len()];
        let mut list = Quicklist::new(NodeLimits::new(fill, plain));
        let mut twin = VecDeque::new();
        for round in 0..12 {
            for _ in 0..100 {
                step(&mut dice, &mut list, &mut twin);
            }
            check(&list, &twin);
            if round % 4 == 3 {
                let count = twin.len() / 2;
                list.remove_range(count / 2, count);
                twin.drain(count / 2..count / 2 + count);
            }
        }
    }
}

#[test]
fn long_lists_split_and_join_their_chunks() {
    let mut list = Quicklist::new(NodeLimits::new(2, 1 << 30));
    let mut twin: VecDeque<Vec<u8>> = VecDeque::new();
    let mut dice = Dice::new(3);
    for value in 0..4_000 {
        let text = value.to_string().into_bytes();
        let index = dice.below(twin.len());
        if !list.insert_before(index, &text) {
            list.push_back(&text);
        }
        twin.insert(index, text);
    }
    check(&list, &twin);
    while !twin.is_empty() {
        let index = dice.below(twin.len());
        assert_eq!(list.get(index).map(|item| item.to_vec()).as_ref(), twin.get(index));
        assert_eq!(list.remove_range(index, 1), 1);
        twin.remove(index);
        if twin.len().is_multiple_of(500) {
            check(&list, &twin);
        }
    }
    assert!(list.is_empty() && list.get(0).is_none() && list.pop_front().is_none());
}

#[test]
fn nodes_end_where_those_of_redis_end() {
    // The nodes in a DUMP of a real server after RPUSH of each element.
    let mut list = Quicklist::new(NodeLimits::default());
    for value in 0..3_000 {
        list.push_back(format!("element-{value:05}").as_bytes());
    }
    assert_eq!(shape(&list), [545, 545, 545, 545, 545, 275]);
}

#[test]
fn full_nodes_split_and_merge_where_those_of_redis_do() {
    // The same LINSERT commands were given to a real server.
    let shape_after = |fill: i64, elements: usize| {
        let mut dice = Dice::new(11);
        let mut list = Quicklist::new(NodeLimits::new(fill, 1 << 30));
        list.push_back(b"0x");
        for value in 1..elements {
            let width = value % 7 * 60 + 1;
            let text = format!("{value:0width$}x").into_bytes();
            let index = dice.below(list.len());
            match dice.below(2) {
                0 => assert!(list.insert_before(index, &text)),
                _ => assert!(list.insert_after(index, &text)),
            }
        }
        shape(&list)
    };
    assert_eq!(shape_after(5, 60), [4, 5, 5, 5, 4, 5, 5, 5, 5, 5, 2, 5, 5]);
    let by_bytes = [
        15, 13, 23, 21, 18, 9, 21, 23, 10, 19, 5, 15, 4, 17, 16, 14, 13, 20, 8, 19, 8, 18, 21, 9,
        19, 22,
    ];
    assert_eq!(shape_after(-1, 400), by_bytes);
}

#[test]
fn a_positive_limit_counts_elements_and_still_bounds_bytes() {
    let mut list = Quicklist::new(NodeLimits::new(3, 1 << 30));
    for value in 0..7 {
        list.push_back(&[b'a' + value]);
    }
    assert_eq!(shape(&list), [3, 3, 1]);
    list.push_back(&[b'x'; 9_000]);
    list.push_back(b"y");
    assert_eq!(shape(&list), [3, 3, 1, 1, 1]);
}

#[test]
fn a_large_element_gets_a_node_of_its_own() {
    let mut list = Quicklist::new(NodeLimits::new(-2, 100));
    for text in [&b"a"[..], b"b", &[b'x'; 100], b"c"] {
        list.push_back(text);
    }
    assert_eq!(shape(&list), [2, 0, 1]);
    assert!(list.insert_after(0, &[b'y'; 100]));
    assert_eq!(shape(&list), [1, 0, 1, 0, 1]);
    assert!(list.set(2, b"small") && list.set(1, b"d") && list.set(0, &[b'z'; 200]));
    assert_eq!(shape(&list), [0, 1, 1, 0, 1]);
    assert_eq!(list.remove_matching(&[b'x'; 100], 5, End::Back), 1);
    assert_eq!(texts(&list), [vec![b'z'; 200], b"d".to_vec(), b"small".to_vec(), b"c".to_vec()]);
}

#[test]
fn nodes_are_passed_over_whatever_chunks_they_are_in() {
    let mut list = Quicklist::new(NodeLimits::default());
    assert!(list.nodes_behind(0).next().is_none());
    for value in 0..1_000_u32 {
        list.push_plain_node(value.to_le_bytes().to_vec());
    }
    for count in 0..=1_001 {
        assert!(list.nodes_behind(count).eq(list.nodes().skip(count)), "{count}");
    }
}

#[test]
fn nodes_from_a_file_are_taken_as_they_are() {
    let mut pack = Listpack::new();
    pack.push_back(b"a");
    pack.push_back(b"1");
    let mut list = Quicklist::new(NodeLimits::default());
    list.push_packed_node(pack.clone());
    list.push_packed_node(Listpack::new());
    list.push_plain_node(b"plain".to_vec());
    let nodes: Vec<_> = list.nodes().collect();
    assert_eq!(nodes, [NodeRef::Packed(&pack), NodeRef::Plain(b"plain")]);
    assert_eq!(texts(&list), [b"a".to_vec(), b"1".to_vec(), b"plain".to_vec()]);
}

#[test]
fn a_short_list_costs_one_chunk_one_node_and_its_listpack() {
    let mut list = Quicklist::new(NodeLimits::default());
    list.push_back(b"element");
    assert!(list.allocated_bytes() <= 40 + 40 + 16, "{}", list.allocated_bytes());
}

#[test]
fn bytes_of_all_nodes_are_those_of_redis() {
    // The same commands were given to a real server: elements and nodes in the end, and an FNV-1a
    // digest of the nodes' bytes in its DUMP.
    let goldens = [
        (-5, 1814, 9, 0xC4A51760CC83C611),
        (-2, 1814, 84, 0xDF5FB4101B242E3F),
        (10, 1814, 189, 0xDB945A6FDE6D5774),
    ];
    for (fill, elements, nodes, digest) in goldens {
        let mut dice = Dice::new(5);
        let mut list = Quicklist::new(NodeLimits::new(fill, 1 << 30));
        for _ in 0..3_000 {
            let (operation, text) = (dice.below(5), dice.text());
            match operation {
                0..2 => list.push_back(&text),
                2..4 => list.push_front(&text),
                _ if dice.below(2) == 1 => drop(list.pop_back()),
                _ => drop(list.pop_front()),
            }
        }
        let bytes = list.nodes().flat_map(|node| match node {
            NodeRef::Packed(pack) => pack.bytes().to_vec(),
            NodeRef::Plain(element) => element.to_vec(),
        });
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        assert_eq!(bytes.fold(0xCBF2_9CE4_8422_2325, step), digest);
        assert_eq!((list.len(), list.node_count()), (elements, nodes));
    }
}
