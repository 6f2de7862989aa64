//! The binary: command line, configuration, wiring. A library, so that tests can build it with a
//! rule broken ([`broken`]).
#![forbid(unsafe_code)]

mod allocator;
mod broken;
mod configuration;
mod inspect;
mod log_lines;
mod logs;
mod serve;

pub use broken::Broken;

use std::panic;
use std::process::{self, ExitCode};

const USAGE: &str = "\
usage: kiln server [path/to/redis.conf] [--directive value …]
       kiln log inspect path/to/transaction-log
       kiln --version
";

/// Does what the command line says.
pub fn run(arguments: impl Iterator<Item = String>, broken: Option<Broken>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    end_at_panics();
    match words[..] {
        ["server", ..] => serve::serve(&arguments[1..], broken),
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

/// Ends the process at a panic of any thread, in the profile of tests too, which unwinds: what is
/// left of a server whose threads are not all there must not serve.
fn end_at_panics() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        tell(what);
        process::abort();
    }));
}
