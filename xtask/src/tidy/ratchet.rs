//! Limits of size, and the list of what is over them for now.
//!
//! Every large database grew what nobody can change at its heart, one harmless addition after
//! another. Here the addition fails. What is over a limit for now is listed in
//! `xtask/ratchet.txt` with its present size, one per line, and only shrinks:
//!
//! ```text
//! file crates/txlog/src/file.rs 640
//! function crates/node/src/reactor.rs turn 85
//! struct crates/node/src/server.rs Server 58
//! circle node 61
//! ```

use super::{Complaint, circles, fields, sizes};
use crate::tree::Tree;
use std::path::Path;

pub const RATCHET: &str = "xtask/ratchet.txt";

/// Something that has a size and a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measure {
    /// As the ratchet writes it, without the size: `file PATH`, `circle CRATE`.
    pub subject: String,
    /// Where a complaint points.
    pub path: String,
    /// From 1; 0 for the file as a whole.
    pub line: usize,
    pub size: usize,
    pub size_max: usize,
    /// What is counted: `lines`.
    pub unit: &'static str,
    /// What to do when it is too large.
    pub advice: String,
}

/// A line of the ratchet.
struct Allowed {
    subject: String,
    size: usize,
    line: usize,
}

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let measures = measure(tree);
    let mut complaints = Vec::new();
    let ratchet = read(tree, &mut complaints);
    let listed = |subject: &str| ratchet.iter().find(|allowed| allowed.subject == subject);
    for measure in measures.iter().filter(|measure| measure.size > measure.size_max) {
        let Measure { path, line, size, size_max, subject, unit, advice } = measure;
        let text = match listed(subject) {
            Some(allowed) if *size <= allowed.size => continue,
            Some(allowed) => {
                format!("{size} {unit}, but {RATCHET} allows {}: {advice}", allowed.size)
            }
            None => format!(
                "{size} {unit}, the limit is {size_max}: {advice}, or argue in review for a line \
                 `{subject} {size}` in {RATCHET}"
            ),
        };
        complaints.push(Complaint::new(path, *line, text));
    }
    for allowed in &ratchet {
        let measure = measures.iter().find(|measure| measure.subject == allowed.subject);
        let (now, unit) = measure.map_or((0, "(it is gone)"), |found| (found.size, found.unit));
        if now < allowed.size {
            let text = format!(
                "`{}` is down to {now} {unit}: run `cargo xtask tidy --shrink` to keep it so",
                allowed.subject
            );
            complaints.push(Complaint::new(RATCHET, allowed.line, text));
        }
    }
    complaints
}

/// Lowers every entry of the ratchet to the size reached, and drops those within the limits.
///
/// # Errors
/// The ratchet cannot be written.
#[expect(clippy::disallowed_methods, reason = "a tool of the repository writes its own list")]
pub fn shrink(tree: &mut Tree, root: &Path) -> std::io::Result<()> {
    let measures = measure(tree);
    let Some(file) = tree.files.iter_mut().find(|file| file.path == RATCHET) else {
        return Ok(());
    };
    let shrunk = |line: &str| {
        let Some((subject, allowed)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))
        else {
            return Some(format!("{line}\n"));
        };
        let found = measures.iter().find(|measure| measure.subject == subject)?;
        let allowed: usize = allowed.parse().unwrap_or(found.size);
        (found.size > found.size_max).then(|| format!("{subject} {}\n", found.size.min(allowed)))
    };
    file.text = file.text.lines().filter_map(shrunk).collect();
    std::fs::write(root.join(RATCHET), &file.text)
}

fn measure(tree: &Tree) -> Vec<Measure> {
    [sizes::measure(tree), fields::measure(tree), circles::measure(tree)].concat()
}

/// The entries of the ratchet; complains of lines that it cannot read.
fn read(tree: &Tree, complaints: &mut Vec<Complaint>) -> Vec<Allowed> {
    let mut entries = Vec::new();
    let Some(file) = tree.get(RATCHET) else { return entries };
    for (number, line) in
        file.lines().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        match line.rsplit_once(' ').map(|(subject, size)| (subject, size.parse())) {
            Some((subject, Ok(size))) => {
                entries.push(Allowed { subject: subject.to_owned(), size, line: number });
            }
            _ => complaints.push(Complaint::new(
                RATCHET,
                number,
                "write `file PATH SIZE`, `function PATH NAME SIZE`, `struct PATH NAME SIZE` or \
                 `circle CRATE SIZE`",
            )),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/node/src/reactor.rs";

    /// A function of `lines` lines.
    fn function(lines: usize) -> String {
        format!("fn turn() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    fn complaints(text: &str, ratchet: &str) -> Vec<String> {
        let tree = Tree::of(&[(PATH, text), (RATCHET, ratchet)]);
        check(&tree).iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn what_is_over_a_limit_is_refused_unless_the_ratchet_knows_it() {
        let text = function(71);
        let found = complaints(&text, "");
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{PATH}:1: 71 lines, the limit")),
            "{found:?}"
        );
        assert_eq!(complaints(&text, &format!("# why\nfunction {PATH} turn 71\n")), [""; 0]);
        let found = complaints(&text, &format!("function {PATH} turn 70\n"));
        assert!(found[0].contains("allows 70"), "{found:?}");
        assert_eq!(complaints(&function(70), ""), [""; 0]);
    }

    #[test]
    fn what_has_shrunk_must_not_grow_again() {
        let text = function(75);
        let found = complaints(&text, &format!("function {PATH} turn 80\n"));
        assert!(found.len() == 1 && found[0].contains("down to 75 lines"), "{found:?}");
        let found = complaints(&text, &format!("function {PATH} turn 75\nfile gone.rs 900\n"));
        assert!(found.len() == 1 && found[0].contains("down to 0 (it is gone)"), "{found:?}");
    }

    #[test]
    fn a_line_that_means_nothing_is_refused() {
        assert_eq!(complaints("", "circle node many\n").len(), 1);
    }
}
