//! Prints the engine's command table for programs that make requests from it: one line a command,
//! its family, whether it reads or writes, and its usage line, between tabs.
//!
//! `tests/porcupine` reads it. An example rather than a subcommand: operators have COMMAND DOCS.
#![forbid(unsafe_code)]

use engine::command::{DataFn, FAMILIES};

fn main() {
    for row in FAMILIES.iter().flat_map(|family| family.iter()) {
        let access = match row.function {
            DataFn::Read(_) => "read",
            DataFn::Write(_) => "write",
        };
        println!("{}\t{access}\t{}", row.group.name(), row.usage);
    }
}
