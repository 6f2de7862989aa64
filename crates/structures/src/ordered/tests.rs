use super::*;
use crate::twin::Dice;
use std::collections::BTreeSet;

/// A member of its own memory, leaked: the tests end with the process.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Item(f64, &'static [u8]);

impl OrderedItem for Item {
    fn score(&self) -> f64 {
        self.0
    }
    fn member(&self) -> &[u8] {
        self.1
    }
}

fn item(score: i32, member: u32) -> Item {
    Item(f64::from(score), format!("m{member:05}").into_bytes().leak())
}

type Twin = BTreeSet<(i32, Vec<u8>)>;

fn same(tree: &OrderedTree<Item>, twin: &Twin) {
    tree.root.check();
    assert_eq!(tree.len(), twin.len());
    let key = |item: Item| (item.0 as i32, item.1.to_vec());
    assert!(tree.iter().map(key).eq(twin.iter().cloned()));
    assert!(tree.iter().rev().map(key).eq(twin.iter().rev().cloned()));
}

#[test]
fn every_operation_does_what_it_does_to_a_tree_of_the_standard_library() {
    for seed in 0..24 {
        let mut dice = Dice::new(seed);
        let (mut tree, mut twin) = (OrderedTree::new(), Twin::new());
        for round in 0..6 {
            // Growing rounds and shrinking rounds, so that nodes split, balance, merge and vanish.
            let inserts = if round % 2 == 0 { 9 } else { 1 };
            for _ in 0..2_500 {
                let new = item(dice.below(40) as i32 - 20, dice.below(4_000) as u32);
                let key = (new.0 as i32, new.1.to_vec());
                if dice.below(10) < inserts {
                    assert_eq!(tree.insert(new), twin.insert(key));
                } else if dice.below(3) == 0 {
                    assert_eq!(tree.remove(new.0, new.1).is_some(), twin.remove(&key));
                } else if !twin.is_empty() {
                    let removed = tree.remove_at(dice.below(twin.len())).unwrap();
                    assert!(twin.remove(&(removed.0 as i32, removed.1.to_vec())));
                }
            }
            same(&tree, &twin);
        }
        while let Some(last) = tree.remove_at(tree.len().saturating_sub(1)) {
            assert!(twin.remove(&(last.0 as i32, last.1.to_vec())));
            assert_eq!(tree.len(), twin.len());
        }
        assert!(twin.is_empty() && tree.first().is_none() && tree.last().is_none());
    }
}

#[test]
fn trees_filled_from_one_end_can_be_emptied_from_either() {
    for (ascending, from_front) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut tree = OrderedTree::new();
        for score in 0..9_000 {
            tree.insert(item(if ascending { score } else { -score }, 0));
        }
        while !tree.is_empty() {
            tree.remove_at(if from_front { 0 } else { tree.len() - 1 });
            if tree.len() % 61 < 2 {
                tree.root.check();
            }
        }
        assert!(tree.insert(item(1, 1)) && tree.iter().count() == 1);
    }
}

#[test]
fn ranks_and_bounds_are_those_of_a_sorted_array() {
    let mut dice = Dice::new(7);
    let mut tree = OrderedTree::new();
    for _ in 0..5_000 {
        tree.insert(item(dice.below(60) as i32, dice.below(1_000) as u32));
    }
    let sorted: Vec<Item> = tree.iter().collect();
    for (rank, item) in sorted.iter().enumerate() {
        assert_eq!(tree.by_rank(rank), Some(*item));
        assert_eq!(tree.rank_of(item.0, item.1), Some(rank));
    }
    assert_eq!(tree.rank_of(3.5, b"m"), None);
    for _ in 0..500 {
        let (low, high) = (dice.below(64) as f64 - 2.0, dice.below(64) as f64 - 2.0);
        let expected = |keep: &dyn Fn(f64) -> bool| sorted.iter().filter(|i| keep(i.0)).count();
        use ScoreBound::{Exclusive, Inclusive};
        let len = |min, max| tree.ranks_by_score(min, max).len();
        assert_eq!(len(Inclusive(low), Inclusive(high)), expected(&|s| low <= s && s <= high));
        assert_eq!(len(Exclusive(low), Inclusive(high)), expected(&|s| low < s && s <= high));
        assert_eq!(len(Inclusive(low), Exclusive(high)), expected(&|s| low <= s && s < high));
        assert_eq!(len(Exclusive(low), Exclusive(high)), expected(&|s| low < s && s < high));
        let (start, end) = (dice.below(5_200), dice.below(5_200));
        let range: Vec<Item> = tree.range(start..end).collect();
        assert_eq!(range, sorted.get(start..end.min(sorted.len())).unwrap_or(&[]));
        let mut back: Vec<Item> = tree.range(start..end).rev().collect();
        back.reverse();
        assert_eq!(back, range);
    }
}

#[test]
fn lexical_bounds_are_those_of_a_sorted_array() {
    let mut tree = OrderedTree::new();
    for member in (0..3_000).step_by(3) {
        tree.insert(item(0, member));
    }
    use LexBound::{Exclusive, Inclusive, Max, Min};
    assert_eq!(tree.ranks_by_lex(Min, Max), 0..1_000);
    assert_eq!(tree.ranks_by_lex(Max, Min), 1_000..1_000);
    assert_eq!(tree.ranks_by_lex(Inclusive(b"m00030"), Inclusive(b"m00060")), 10..21);
    assert_eq!(tree.ranks_by_lex(Exclusive(b"m00030"), Exclusive(b"m00060")), 11..20);
    assert_eq!(tree.ranks_by_lex(Exclusive(b"m00031"), Max), 11..1_000);
    assert_eq!(tree.ranks_by_lex(Inclusive(b"m00060"), Inclusive(b"m00030")).len(), 0);
}

#[test]
fn infinities_and_both_zeroes_have_their_place() {
    let mut tree = OrderedTree::new();
    for (score, member) in [(f64::INFINITY, b"a"), (f64::NEG_INFINITY, b"b"), (0.0, b"c")] {
        assert!(tree.insert(Item(score, member)));
    }
    assert!(!tree.insert(Item(-0.0, b"c")));
    assert_eq!(tree.rank_of(-0.0, b"c"), Some(1));
    assert_eq!(tree.first(), Some(Item(f64::NEG_INFINITY, b"b")));
    let all = ScoreBound::Inclusive(f64::NEG_INFINITY)..ScoreBound::Inclusive(f64::INFINITY);
    assert_eq!(tree.ranks_by_score(all.start, all.end), 0..3);
}

/// An item of eight bytes, as the real ones are.
#[derive(Clone, Copy)]
struct Slim(&'static (f64, [u8; 8]));

impl OrderedItem for Slim {
    fn score(&self) -> f64 {
        self.0.0
    }
    fn member(&self) -> &[u8] {
        &self.0.1
    }
}

fn bytes_an_item(scores: impl Iterator<Item = f64>) -> f64 {
    let mut tree = OrderedTree::new();
    for (index, score) in scores.enumerate() {
        tree.insert(Slim(Box::leak(Box::new((score, (index as u64).to_be_bytes())))));
    }
    tree.allocated_bytes() as f64 / tree.len() as f64
}

#[test]
fn an_item_costs_at_most_eleven_bytes_after_random_inserts() {
    let mut dice = Dice::new(1);
    let random = bytes_an_item((0..100_000).map(|_| dice.roll() as f64));
    assert!(random < 11.0, "{random}");
    let ascending = bytes_an_item((0..100_000).map(f64::from));
    assert!(ascending < 9.2, "{ascending}");
    let descending = bytes_an_item((0..100_000).rev().map(f64::from));
    assert!(descending < 9.2, "{descending}");
}
