//! Tables of INFO's fields in documents say what the server says: each field of such a table is
//! written by INFO, and a document that lists a part of INFO lists all of it.

use super::Complaint;
use crate::tree::{TextFile, Tree};

/// Where INFO's fields are written.
const SOURCES: &str = "crates/node/src/command/info/";

/// The first line of a table of fields.
const HEAD: &str = "| field | means |";

/// Documents that list all fields of a file.
const LISTS: &[(&str, &str)] =
    &[("docs/operations/tiers.md", "crates/node/src/command/info/tier.rs")];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let sources = || tree.files.iter().filter(|file| file.path.starts_with(SOURCES));
    let written: Vec<&str> = sources().flat_map(written_fields).collect();
    let mut complaints = Vec::new();
    for page in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, field) in listed_fields(page) {
            if !written.contains(&field) {
                let text = format!("INFO has no `{field}`");
                complaints.push(Complaint::new(&page.path, number, text));
            }
        }
    }
    for (page, source) in LISTS {
        let (Some(page), Some(source)) = (tree.get(page), tree.get(source)) else { continue };
        let listed: Vec<&str> = listed_fields(page).map(|(_, field)| field).collect();
        for field in written_fields(source).filter(|field| !listed.contains(field)) {
            let text = format!("does not say what `{field}` of INFO means");
            complaints.push(Complaint::new(&page.path, 0, text));
        }
    }
    complaints
}

/// Names that a source writes to INFO: what stands in `line("NAME"`.
fn written_fields(source: &TextFile) -> impl Iterator<Item = &str> {
    source.text.split(".line(").skip(1).filter_map(|call| {
        let name = call.trim_start().strip_prefix('"')?;
        name.split('"').next()
    })
}

/// Names in the first column of a page's tables of fields, with their lines.
fn listed_fields(page: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut is_listing = false;
    let rows = page.lines().filter(move |(_, line)| {
        is_listing = *line == HEAD || is_listing && line.starts_with('|');
        is_listing
    });
    rows.flat_map(|(number, line)| {
        let cell = line.trim_start_matches('|').split('|').next().unwrap_or_default();
        cell.split('`').skip(1).step_by(2).map(move |field| (number, field))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(page: &str, source: &str) -> Vec<String> {
        let tree = Tree::of(&[(LISTS[0].0, page), (LISTS[0].1, source)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tables_and_sources_have_the_same_fields() {
        let source = "text.line(\"one\", 1);\ntext.line(\n    \"two\", 2);";
        let table =
            format!("`other`\n{HEAD}\n|---|---|\n| `one`, `two` | it `means` |\n\n| `x` | y |");
        assert_eq!(complaints(&table, source), [""; 0]);
        let found = complaints(&table.replace("`two`", "`three`"), source);
        assert_eq!(
            found,
            [
                "docs/operations/tiers.md:4: INFO has no `three`",
                "docs/operations/tiers.md: does not say what `two` of INFO means",
            ]
        );
    }
}
