//! Lines: their width, their ends, and words that do not belong in code.

use super::Complaint;
use crate::tree::{TextFile, Tree};

const WIDTH_MAX: usize = 100;

/// What must not be left behind, split so that this file does not accuse itself.
const LEFTOVERS: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "do it, or file it: code holds no intentions"),
    (concat!("FIX", "ME"), "fix it, or file it: code holds no intentions"),
    (concat!("todo", "!("), "finish it: no stubs"),
    (concat!("unimplemented", "!("), "finish it: no stubs"),
    (concat!("dbg", "!("), "remove it before it lands"),
    OUTSIDE,
];

/// A document that is not in the repository.
const OUTSIDE: (&str, &str) =
    (concat!("DESI", "GN"), "give the reason in words: who reads this has no such document");

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for page in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let named = page.lines().filter(|(_, line)| line.contains(OUTSIDE.0));
        let complain = |(number, _)| Complaint::new(&page.path, number, OUTSIDE.1);
        complaints.extend(named.map(complain));
    }
    for file in tree.sources() {
        check_head(file, &mut complaints);
        let mut by_hand = false;
        for (number, line) in file.lines() {
            let mut complain = |text: &str| {
                complaints.push(Complaint::new(&file.path, number, text));
            };
            // A table that rustfmt leaves alone is as wide as its rows; it ends at the margin.
            by_hand |= line == "#[rustfmt::skip]";
            by_hand &= !line.starts_with([']', '}']);
            if line.chars().count() > WIDTH_MAX && !by_hand && !is_unbreakable(line) {
                complain(&format!("wider than {WIDTH_MAX} columns"));
            }
            if line.ends_with([' ', '\t', '\r']) {
                complain("blanks at the end of the line");
            }
            for (leftover, advice) in LEFTOVERS {
                if line.contains(leftover) {
                    complain(&format!("`{leftover}`: {advice}"));
                }
            }
            if let Some(ticket) = ticket(line) {
                complain(&format!(
                    "`{ticket}`: say why it is so; a number says nothing in ten years"
                ));
            }
        }
    }
    complaints
}

/// A file says first what it is for; of tests, the code beside them says it.
fn check_head(file: &TextFile, complaints: &mut Vec<Complaint>) {
    let head =
        file.text.lines().take_while(|line| line.starts_with("#!") || line.starts_with("//!"));
    if !file.is_test() && !head.into_iter().any(|line| line.starts_with("//!")) {
        let text = "no head comment: begin with `//!` and why this file exists";
        complaints.push(Complaint::new(&file.path, 1, text));
    }
}

/// A line that is one text or one long word, an address or a datum, cannot be wrapped.
fn is_unbreakable(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('"')
        || line.split_whitespace().any(|word| word.chars().count() > WIDTH_MAX - 20)
}

/// A number of a ticket in a comment: a hash sign and two digits or more.
fn ticket(line: &str) -> Option<&str> {
    let (_, comment) = line.split_once("//")?;
    comment.split(|letter: char| !(letter == '#' || letter.is_alphanumeric())).find(|word| {
        word.strip_prefix('#')
            .is_some_and(|number| number.len() >= 2 && number.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let text = format!("//! Why.\n{text}");
        let tree = Tree::of(&[("crates/node/src/gate.rs", text.as_str())]);
        check(&tree).iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn leftovers_and_tickets_are_found() {
        assert_eq!(lines(concat!("// TO", "DO: later\n")), [2]);
        assert_eq!(lines(concat!("fn a() {\n    todo", "!()\n}\n")), [3]);
        assert_eq!(lines(concat!("// see #", "1234\n")), [2]);
        assert_eq!(lines(concat!("// (#", "12)\n")), [2]);
        assert_eq!(lines("// #1 and `#t`\nlet anchor = 1; // fine\n"), [0; 0]);
        assert_eq!(lines("let anchor = \"#12\"; // fine\n"), [0; 0]);
    }

    #[test]
    fn documents_that_nobody_has_are_not_cited() {
        assert_eq!(lines(concat!("// (DESI", "GN section 7)\n")), [2]);
        let page = concat!("See DESI", "GN.\nThe design is simple.\n");
        assert_eq!(check(&Tree::of(&[("docs/protocol.md", page)])).len(), 1);
    }

    #[test]
    fn lines_are_at_most_a_hundred_columns() {
        assert_eq!(lines(&format!("// {}\n", "ab ".repeat(32))), [2]);
        assert_eq!(lines(&format!("// {}b\n", "ä ".repeat(48))), [0; 0]);
        assert_eq!(lines(&format!("    \"{}\",\n", "ab ".repeat(40))), [0; 0]);
        let row = format!("    row({}),\n", "ab, ".repeat(30));
        assert_eq!(lines(&format!("#[rustfmt::skip]\nconst T: &[u8] = &[\n{row}];\n{row}")), [6]);
    }

    #[test]
    fn every_file_begins_with_its_reason() {
        let check_at = |path, text| check(&Tree::of(&[(path, text)])).len();
        assert_eq!(check_at("crates/node/src/gate.rs", "use a::B;\n"), 1);
        assert_eq!(check_at("crates/node/src/lib.rs", "#![forbid(unsafe_code)]\n//! Why.\n"), 0);
        assert_eq!(check_at("crates/node/src/gate/tests.rs", "use super::*;\n"), 0);
    }
}
