//! The binary: command line, configuration, wiring. A library, so that tests can build it with a
//! rule broken ([`broken`]).
#![forbid(unsafe_code)]

mod allocator;
mod broken;
mod changes;
mod command_line;
mod configuration;
mod find;
mod help;
mod inspect;
mod keys;
mod log_lines;
mod logs;
mod output;
mod restore;
mod serve;
mod sleep;
#[cfg(feature = "jemalloc")]
mod slow_memory;
mod snapshot;
mod snapshots;
mod tail;
mod tier;
mod time;
mod work;

pub use broken::Broken;

use command_line::Request;
use std::io::{self, Write};
use std::panic;
use std::process::{self, ExitCode};

/// Does what the command line says. Exit status: 0 it was done, 1 it could not be done, 2 the
/// command line is not understood.
pub fn run(arguments: impl Iterator<Item = String>, broken: Option<Broken>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    end_at_panics();
    match command_line::read(&arguments) {
        Request::Server(arguments) => serve::serve(arguments, broken),
        Request::Inspect(request) => inspect::inspect(&request),
        Request::Snapshot(options, arguments) => snapshot::snapshot(options, arguments),
        Request::Restore(options, arguments) => restore::restore(&options, arguments),
        Request::Branch(options, arguments) => restore::branch(&options, arguments),
        Request::Export(options, arguments) => restore::export(&options, arguments),
        Request::Import(options, arguments) => restore::import(&options, arguments),
        Request::ListSnapshots(arguments) => snapshot::list(arguments),
        Request::Tail(request) => tail::tail(&request),
        Request::Find(request) => find::find(&request),
        Request::Show(text) => {
            // Whoever closes the pipe has read enough.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Request::Wrong(text) => {
            let _ = io::stderr().write_all(text.as_bytes());
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
