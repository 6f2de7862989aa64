//! `cargo xtask tidy`: the parts of the house style that a machine can hold.
//!
//! Each rule is a function from the tree to complaints, in a file named after what it watches. A
//! complaint says where, what, and what to do about it.

mod circles;
mod documents;
mod fields;
mod floors;
mod info;
mod names;
mod ratchet;
mod rooms;
mod sizes;
mod text;

use crate::tree::Tree;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// Something to put right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    pub path: String,
    /// From 1; 0 if it is about the file as a whole.
    pub line: usize,
    pub text: String,
}

impl Complaint {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.text),
            line => write!(out, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Checks the repository at `root` and prints what it finds. With `shrink` the ratchet's sizes are
/// first lowered to what the files have come down to.
pub fn run(root: &Path, shrink: bool) -> ExitCode {
    let mut tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy cannot read the repository: {error}");
            return ExitCode::FAILURE;
        }
    };
    if shrink && let Err(error) = ratchet::shrink(&mut tree, root) {
        eprintln!("tidy cannot write {}: {error}", ratchet::RATCHET);
        return ExitCode::FAILURE;
    }
    for note in sizes::notes(&tree) {
        println!("note: {note}");
    }
    let complaints = check(&tree);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if complaints.is_empty() {
        println!("tidy: {} files are in order", tree.files.len());
        return ExitCode::SUCCESS;
    }
    eprintln!("tidy: {} to put right", complaints.len());
    ExitCode::FAILURE
}

/// Prints which rooms of the crate `name` stand in circles.
pub fn print_rooms(root: &Path, name: &str) -> ExitCode {
    let printed = Tree::read(root)
        .map_err(|error| error.to_string())
        .and_then(|tree| circles::print(&tree, name).map_err(|complaint| complaint.to_string()));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn check(tree: &Tree) -> Vec<Complaint> {
    let rules = [
        floors::check,
        rooms::check,
        names::check,
        ratchet::check,
        text::check,
        documents::check,
        info::check,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}
