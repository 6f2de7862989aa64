//! The binary: command line, configuration, wiring.
#![forbid(unsafe_code)]

mod allocator;
mod configuration;
mod inspect;
mod logs;
mod serve;

use std::process::ExitCode;

/// Small values by the million are what the server holds: size classes with little waste, and
/// pages given back in the background.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "\
usage: kiln server [path/to/redis.conf] [--directive value …]
       kiln log inspect path/to/transaction-log
       kiln --version
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["server", ..] => serve::serve(&arguments[1..]),
        ["log", "inspect", directory] => inspect::inspect(directory),
        ["--version" | "-v"] => {
            println!("kiln {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
