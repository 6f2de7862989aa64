//! Lists against a deque of texts, step by step: for the tests and for the fuzzer.

use super::*;
use crate::twin::Dice;
use std::collections::VecDeque;

/// `list-max-listpack-size`, and the bytes from which an element has a node of its own.
pub(super) const LIMITS: [(i64, u32); 5] =
    [(-2, 1 << 30), (4, 1 << 30), (1, 150), (-1, 1_000), (128, 100)];

/// Changes a list as the dice fall.
pub(crate) fn play(dice: &mut Dice) {
    let (fill, plain) = LIMITS[dice.below(LIMITS.len())];
    let mut list = Quicklist::new(NodeLimits::new(fill, plain));
    let mut twin = VecDeque::new();
    while !dice.is_spent() {
        for _ in 0..8 {
            step(dice, &mut list, &mut twin);
        }
        check(&list, &twin);
    }
}

/// Elements of each node; a plain node counts zero elements.
pub(super) fn shape(list: &Quicklist) -> Vec<usize> {
    let count = |node: NodeRef<'_>| match node {
        NodeRef::Packed(pack) => pack.len(),
        NodeRef::Plain(_) => 0,
    };
    list.nodes().map(count).collect()
}

pub(super) fn check(list: &Quicklist, twin: &VecDeque<Vec<u8>>) {
    assert_eq!(list.len(), twin.len());
    assert!(list.iter().map(|item| item.to_vec()).eq(twin.iter().cloned()));
    assert!(list.iter().rev().map(|item| item.to_vec()).eq(twin.iter().rev().cloned()));
    let nodes: usize = shape(list).iter().map(|count| (*count).max(1)).sum();
    assert_eq!(nodes, twin.len());
    for list in [list, &list.clone()] {
        assert_eq!(list.allocated_bytes(), list.spine.counted_bytes());
    }
}

pub(super) fn step(dice: &mut Dice, list: &mut Quicklist, twin: &mut VecDeque<Vec<u8>>) {
    let text = dice.text();
    let index = dice.below(twin.len() + 1);
    let end = if dice.below(2) == 0 { End::Front } else { End::Back };
    match dice.below(11) {
        0..3 => {
            list.push(end, &text);
            match end {
                End::Front => twin.push_front(text),
                End::Back => twin.push_back(text),
            }
        }
        3 => {
            let expected = if end == End::Front { twin.pop_front() } else { twin.pop_back() };
            assert_eq!(list.pop(end), expected);
        }
        4 => {
            let expected = twin.get_mut(index).map(|old| *old = text.clone()).is_some();
            assert_eq!(list.set(index, &text), expected);
        }
        5..8 => {
            let after = end == End::Back;
            let found = match after {
                true => list.insert_after(index, &text),
                false => list.insert_before(index, &text),
            };
            assert_eq!(found, index < twin.len());
            if found {
                twin.insert(index + usize::from(after), text);
            }
        }
        8 => {
            let count = dice.below(12);
            let expected = count.min(twin.len() - index);
            assert_eq!(list.remove_range(index, count), expected);
            twin.drain(index..index + expected);
        }
        9 => {
            let max = dice.below(3);
            assert_eq!(list.remove_matching(&text, max, end), remove(twin, &text, max, end));
        }
        _ => {
            assert_eq!(list.get(index).map(|item| item.to_vec()), twin.get(index).cloned());
            assert_eq!(list.position(&text), twin.iter().position(|other| *other == text));
            let stop = dice.below(twin.len() + 5);
            let expected: Vec<_> =
                twin.iter().take(stop).skip(index).map(|text| Item::Bytes(text).to_vec()).collect();
            let found: Vec<_> = list.range(index..stop).map(|item| item.to_vec()).collect();
            assert_eq!(found, expected);
            let mut back: Vec<_> = list.range(index..stop).rev().map(|i| i.to_vec()).collect();
            back.reverse();
            assert_eq!(back, expected);
        }
    }
}

fn remove(twin: &mut VecDeque<Vec<u8>>, text: &[u8], max: usize, end: End) -> usize {
    let mut removed = 0;
    while removed < max {
        let at = match end {
            End::Front => twin.iter().position(|other| other == text),
            End::Back => twin.iter().rposition(|other| other == text),
        };
        let Some(at) = at else { break };
        twin.remove(at);
        removed += 1;
    }
    removed
}
