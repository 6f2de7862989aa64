//! File descriptors of the process: how many it may have open, and how many of them connections may
//! take.
//!
//! A log that cannot open its next segment stops the server. So whoever connects, and may do so
//! without a password, must never take the last descriptor.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that no client's connection takes: for the log, snapshots, links and the clients of
/// services. Twice as many as Redis keeps (CONFIG_MIN_RESERVED_FDS); a guess.
const RESERVED: u64 = 64;

/// Raises the process's limit (`ulimit -n`) as far as it may by itself: to the hard limit.
///
/// # Errors
/// The system refuses.
pub fn raise_limit() -> rustix::io::Result<()> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current == limits.maximum {
        return Ok(());
    }
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limits.maximum, ..limits })
}

/// How many connections may be open at a time, by the process's limit: all but [`RESERVED`], or
/// half of them if there are few.
pub fn connections_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit - RESERVED.min(limit / 2)).unwrap_or(usize::MAX)
}
