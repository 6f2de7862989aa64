//! What tools print: its end, when nobody reads it any more, and the exit code.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// The exit code, and on the standard error what failed, if anything did. Whoever closed the pipe
/// has seen enough.
pub fn exit_code(shown: Result<(), Box<dyn Error>>, what: impl FnOnce() -> String) -> ExitCode {
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", what());
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let is_it = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
    error.downcast_ref().is_some_and(is_it)
        || error.source().is_some_and(|source| source.downcast_ref().is_some_and(is_it))
}

/// Whether whoever read the standard output has gone. Who waits for a log that says nothing writes
/// nothing, and would not learn of it.
pub fn is_unread() -> bool {
    world::process::is_unread(&io::stdout())
}
