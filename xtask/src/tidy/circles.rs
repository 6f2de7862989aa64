//! Circles of rooms: who must be read together because each needs the other.
//!
//! Two or three rooms that know each other can be read at once. Beyond that nothing of a circle can
//! be understood, tested or moved alone. [`super::ratchet`] lists the crates that are over that.

use super::Complaint;
use super::ratchet::Measure;
use crate::rooms::{Arrow, Rooms};
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Rooms that one circle may tie together.
const CIRCLE_ROOMS_MAX: usize = 3;

/// Arrows that a complaint names.
const SHOWN_ARROWS_MAX: usize = 5;

/// The rooms of every crate that stand in circles of more than [`CIRCLE_ROOMS_MAX`].
pub fn measure(tree: &Tree) -> Vec<Measure> {
    let measure = |name: &str| {
        let rooms = Rooms::of(tree, name);
        let circles = large_circles(&rooms.arrows);
        let ties = circles.iter().flat_map(|circle| ties(&rooms.arrows, circle));
        let ties: Vec<String> = ties.take(SHOWN_ARROWS_MAX).map(|tie| shown(&tie)).collect();
        Measure {
            subject: format!("circle {name}"),
            path: format!("crates/{name}/src"),
            line: 0,
            size: circles.iter().map(BTreeSet::len).sum(),
            size_max: 0,
            unit: "rooms in circles of more than three",
            advice: format!(
                "move what both sides need below them, or pass it in; first of what ties them: \
                 {} (`cargo xtask rooms {name}` lists all)",
                ties.join(", ")
            ),
        }
    };
    tree.crates().map(measure).collect()
}

/// Prints the circles of the crate `name`, and what ties each, the arrows that matter most first.
///
/// # Errors
/// There is no such crate.
pub fn print(tree: &Tree, name: &str) -> Result<(), Complaint> {
    if !tree.crates().any(|known| known == name) {
        return Err(Complaint::new("crates", 0, format!("there is no crate `{name}`")));
    }
    let rooms = Rooms::of(tree, name);
    println!("{name}: {} rooms, {} arrows", rooms.names.len(), rooms.arrows.len());
    for circle in circles(&rooms.arrows) {
        let names: Vec<&str> = circle.iter().map(String::as_str).collect();
        println!("a circle of {}: {}", circle.len(), names.join(" "));
        for tie in ties(&rooms.arrows, &circle) {
            println!("  {}", shown(&tie));
        }
    }
    Ok(())
}

/// An arrow within a circle, and how many rooms would still stand in one circle without it.
struct Tie {
    arrow: Arrow,
    rooms_without: usize,
}

fn shown(Tie { arrow, rooms_without }: &Tie) -> String {
    let Arrow { from, to, count, place } = arrow;
    format!("{from} → {to} ({count}, {place}; {rooms_without} without it)")
}

/// The arrows within a circle: first those that leave the smallest one when cut, then the rarest.
fn ties(arrows: &[Arrow], circle: &BTreeSet<String>) -> Vec<Tie> {
    let inside: Vec<Arrow> = arrows
        .iter()
        .filter(|arrow| circle.contains(&arrow.from) && circle.contains(&arrow.to))
        .cloned()
        .collect();
    let tie = |cut: &Arrow| {
        let others: Vec<Arrow> = inside.iter().filter(|arrow| *arrow != cut).cloned().collect();
        let rooms_without = circles(&others).iter().map(BTreeSet::len).max().unwrap_or(0);
        Tie { arrow: cut.clone(), rooms_without }
    };
    let mut ties: Vec<Tie> = inside.iter().map(tie).collect();
    ties.sort_by_key(|tie| (tie.rooms_without, tie.arrow.count));
    ties
}

fn large_circles(arrows: &[Arrow]) -> Vec<BTreeSet<String>> {
    let mut circles = circles(arrows);
    circles.retain(|circle| circle.len() > CIRCLE_ROOMS_MAX);
    circles
}

/// The sets of two rooms or more in which each reaches every other, the largest first.
fn circles(arrows: &[Arrow]) -> Vec<BTreeSet<String>> {
    let names: BTreeSet<&str> =
        arrows.iter().flat_map(|arrow| [arrow.from.as_str(), arrow.to.as_str()]).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let number = |name: &str| names.binary_search(&name).expect("every end of an arrow is listed");
    let mut next = vec![Vec::new(); names.len()];
    for arrow in arrows {
        next[number(&arrow.from)].push(number(&arrow.to));
    }
    let reached: Vec<Vec<bool>> = (0..names.len()).map(|from| reachable(&next, from)).collect();
    let mut is_placed = vec![false; names.len()];
    let mut circles = Vec::new();
    for (one, from_one) in reached.iter().enumerate() {
        let circle: Vec<usize> = (0..names.len())
            .filter(|&other| !is_placed[other] && from_one[other] && reached[other][one])
            .collect();
        circle.iter().for_each(|&room| is_placed[room] = true);
        if circle.len() > 1 {
            circles.push(circle.into_iter().map(|room| names[room].to_owned()).collect());
        }
    }
    circles.sort_by_key(|circle: &BTreeSet<String>| std::cmp::Reverse(circle.len()));
    circles
}

/// What can be reached from a room over one arrow or more.
fn reachable(next: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; next.len()];
    let mut open = vec![from];
    while let Some(room) = open.pop() {
        for &to in &next[room] {
            if !std::mem::replace(&mut reached[to], true) {
                open.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate in which each room uses the ones behind it.
    fn tree(uses: &[(&str, &[&str])]) -> Tree {
        let path = |name: &str| format!("crates/node/src/{name}.rs");
        let text = |names: &[&str]| -> String {
            names.iter().map(|name| format!("use crate::{name};\n")).collect()
        };
        let files: Vec<(String, String)> =
            uses.iter().map(|(name, names)| (path(name), text(names))).collect();
        let mut files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("crates/node/Cargo.toml", ""));
        Tree::of(&files)
    }

    fn measured(uses: &[(&str, &[&str])]) -> (usize, String) {
        let measures = measure(&tree(uses));
        (measures[0].size, measures[0].advice.clone())
    }

    #[test]
    fn three_rooms_may_know_each_other_and_four_may_not() {
        assert_eq!(measured(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &[])]).0, 0);
        let four: [(&str, &[&str]); 5] =
            [("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["a"]), ("e", &["a"])];
        assert_eq!(measured(&four).0, 4);
    }

    #[test]
    fn what_ties_a_circle_is_named_and_the_weakest_tie_first() {
        let knot: [(&str, &[&str]); 4] = [
            ("a", &["b", "c"]),
            ("b", &["a", "c", "d"]),
            ("c", &["a", "b"]),
            ("d", &["c", "c", "a"]),
        ];
        let (size, advice) = measured(&knot);
        assert_eq!(size, 4);
        assert!(
            advice.contains("ties them: b → d (1, crates/node/src/b.rs:3; 3 without it)"),
            "{advice}"
        );
    }

    #[test]
    fn circles_that_do_not_touch_are_counted_apart() {
        let two: [(&str, &[&str]); 8] = [
            ("a", &["b"]),
            ("b", &["c"]),
            ("c", &["d"]),
            ("d", &["a", "e"]),
            ("e", &["f"]),
            ("f", &["g"]),
            ("g", &["h"]),
            ("h", &["e"]),
        ];
        assert_eq!(measured(&two).0, 8);
        assert!(print(&tree(&two), "node").is_ok() && print(&tree(&two), "attic").is_err());
    }
}
