//! Documents stay true: every crate is drawn, every format is linked, no link is dead, and every
//! path that is named leads somewhere.

use super::Complaint;
use crate::tree::{TextFile, Tree};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// What a reader looks for at the root.
const EXPECTED: &[&str] =
    &["README.md", ARCHITECTURE, "GLOSSARY.md", "CONTRIBUTING.md", "CHANGELOG.md"];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for name in EXPECTED.iter().filter(|name| tree.get(name).is_none()) {
        complaints.push(Complaint::new(name, 0, "is missing"));
    }
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        check_links(tree, file, &mut complaints);
        check_paths(tree, file, &mut complaints);
    }
    let Some(architecture) = tree.get(ARCHITECTURE) else { return complaints };
    for name in tree.crates() {
        if !architecture.text.contains(&format!("crates/{name}")) {
            let text = format!("does not mention `crates/{name}`: say what it is for");
            complaints.push(Complaint::new(ARCHITECTURE, 0, text));
        }
    }
    for page in tree.files.iter().filter(|file| file.path.starts_with("docs/formats/")) {
        if page.path.ends_with(".md") && !architecture.text.contains(&page.path) {
            let text = format!("does not link {}: every format has its place there", page.path);
            complaints.push(Complaint::new(ARCHITECTURE, 0, text));
        }
    }
    complaints
}

/// Relative links to text files must lead somewhere.
fn check_links(tree: &Tree, file: &TextFile, complaints: &mut Vec<Complaint>) {
    for (number, line) in file.lines() {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let known = [".md", ".rs", ".toml", ".txt"].iter().any(|end| path.ends_with(end));
            if known && !path.contains("://") && tree.get(&resolve(&file.path, path)).is_none() {
                let text = format!("a dead link: {target}");
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
}

/// Sources and documents that a page names from the repository's root, as `crates/…`, must be
/// there, so that an editor opens them. A name in capitals stands for any: `FAMILY.rs`. A folder is
/// looked for among sources alone: others may hold what is no text.
fn check_paths(tree: &Tree, file: &TextFile, complaints: &mut Vec<Complaint>) {
    for (number, line) in file.lines() {
        for path in line.split('`').skip(1).step_by(2) {
            let is_ours = ["crates/", "docs/", "xtask/"].iter().any(|root| path.starts_with(root));
            let name = path.rsplit('/').next().unwrap_or_default();
            let stem = name.split('.').next().unwrap_or_default();
            let is_any = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_uppercase());
            let is_there = if name.is_empty() {
                !path.contains("/src/") || tree.files.iter().any(|file| file.path.starts_with(path))
            } else {
                let known = [".md", ".rs", ".toml"].iter().any(|end| name.ends_with(end));
                !known || tree.get(path).is_some()
            };
            if is_ours && !is_any && !is_there {
                let text = format!("there is no `{path}`: name the file as it is now");
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
}

/// The path that `target` names in a document at `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let mut files = files.to_vec();
        for name in EXPECTED {
            if !files.iter().any(|(path, _)| path == name) {
                files.push((name, ""));
            }
        }
        check(&Tree::of(&files)).iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn every_crate_and_format_is_in_the_architecture() {
        let files = [("crates/node/Cargo.toml", ""), ("docs/formats/record.md", "")];
        assert_eq!(complaints(&files).len(), 2);
        let text = "`crates/node`, [record](docs/formats/record.md)";
        assert_eq!(complaints(&[files[0], files[1], (ARCHITECTURE, text)]), [""; 0]);
    }

    #[test]
    fn dead_links_are_found() {
        let page = ("docs/formats/record.md", "see [it](../../README.md#tour) and [gone](old.md)");
        let architecture = (ARCHITECTURE, "[r](docs/formats/record.md) [web](https://a.org/b.md)");
        let found = complaints(&[page, architecture]);
        assert_eq!(found, ["docs/formats/record.md:1: a dead link: old.md"]);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_found() {
        let text = "`crates/node/src/gate.rs`, `crates/node/src/`, `crates/node/src/gone.rs`\n\
                    `crates/node/src/gone/`, `docs/formats/NAME.md`, `node/src/gone.rs`, `tests/`";
        let files = [("crates/node/src/gate.rs", ""), ("docs/adding.md", text)];
        let found = complaints(&files);
        assert_eq!(
            found,
            [
                "docs/adding.md:1: there is no `crates/node/src/gone.rs`: name the file as it is \
                 now",
                "docs/adding.md:2: there is no `crates/node/src/gone/`: name the file as it is now",
            ]
        );
    }

    #[test]
    fn the_documents_exist() {
        assert_eq!(check(&Tree::default()).len(), EXPECTED.len());
    }
}
