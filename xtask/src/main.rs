//! Chores of the repository: `cargo xtask tidy`, `cargo xtask rooms`.
#![forbid(unsafe_code)]

mod rooms;
mod tidy;
mod tokens;
mod tree;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask tidy            check what the house style asks of every file
       cargo xtask tidy --shrink   and lower the ratchet to the sizes reached
       cargo xtask rooms CRATE     which rooms of a crate stand in circles, and what ties them";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match arguments[..] {
        ["tidy"] => tidy::run(root, false),
        ["tidy", "--shrink"] => tidy::run(root, true),
        ["rooms", name] => tidy::print_rooms(root, name),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
