//! The binary: command line, configuration, wiring.
#![forbid(unsafe_code)]

mod allocator;
mod configuration;
mod serve;

use std::process::ExitCode;

/// Small values by the million are what the server holds: size classes with little waste, and
/// pages given back in the background.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "usage: kiln server [path/to/redis.conf] [--directive value …]\n";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("server") => serve::serve(&arguments.collect::<Vec<_>>()),
        Some("--version" | "-v") => {
            println!("kiln {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
