//! The program `kiln`: see the library beside it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    kiln::run(std::env::args().skip(1), None)
}
