//! Names that say nothing: a file called `util` is where things go that nobody thought about.

use super::Complaint;
use crate::tree::Tree;

const EMPTY_NAMES: &[&str] =
    &["common", "helper", "helpers", "manager", "misc", "mod", "shared", "util", "utils"];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.sources() {
        for part in file.path.trim_end_matches(".rs").split('/') {
            if EMPTY_NAMES.contains(&part) {
                let text = match part {
                    "mod" => "write `foo.rs` beside `foo/`, not `foo/mod.rs`".to_owned(),
                    _ => format!("`{part}` says nothing: name the file after the one idea in it"),
                };
                complaints.push(Complaint::new(&file.path, 0, text));
            }
        }
        for (number, line) in file.lines() {
            let words =
                line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let Some(name) = words.strip_prefix("mod ") else { continue };
            let name = name.trim_end_matches([' ', '{', ';', '}']);
            if EMPTY_NAMES.contains(&name) {
                let text = format!("`mod {name}` says nothing: name it after the one idea in it");
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn empty_names_are_refused_as_files_folders_and_modules() {
        assert_eq!(complaints("crates/node/src/util.rs", ""), [0]);
        assert_eq!(complaints("crates/node/src/helpers/parse.rs", ""), [0]);
        assert_eq!(complaints("crates/node/src/session/mod.rs", ""), [0]);
        assert_eq!(
            complaints("crates/node/src/lib.rs", "mod gate;\npub(crate) mod common;\n"),
            [2]
        );
        assert_eq!(complaints("crates/node/src/lib.rs", "    mod utils {\n    }\n"), [1]);
        assert_eq!(complaints("crates/node/src/modules.rs", "mod utilization;\n"), [0; 0]);
    }
}
