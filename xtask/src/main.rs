//! Chores of the repository: `cargo xtask tidy`.
#![forbid(unsafe_code)]

mod tidy;
mod tree;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask tidy            check what the house style asks of every file
       cargo xtask tidy --shrink   and lower the ratchet to the sizes reached";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match arguments[..] {
        ["tidy"] => tidy::run(root, false),
        ["tidy", "--shrink"] => tidy::run(root, true),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
