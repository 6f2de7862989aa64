//! File descriptors of the process: how many it may have open, and how many of them connections may
//! take.
//!
//! A log that cannot open its next segment stops the server. So whoever connects, and may do so
//! without a password, must never take the last descriptor; nor may who lets the server connect,
//! as MIGRATE does.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that no connection takes which is accepted: for the log, snapshots, the connections
/// that the server asks for, and the clients of services. Twice as many as Redis keeps
/// (CONFIG_MIN_RESERVED_FDS); a guess.
const RESERVED: u64 = 64;

/// Descriptors that neither accepted nor dialed connections take.
const RESERVED_FROM_ALL: u64 = RESERVED / 2;

/// Connections beyond the most clients that are accepted all the same, to be told why they are
/// turned away.
const TURNED_AWAY_MAX: usize = 8;

/// How many connections may be open at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Beyond so many, who connects is closed.
    pub accepting_max: usize,
    /// Beyond so many, the server itself does not connect.
    pub dialing_max: usize,
}

impl Room {
    /// By the process's limit: all of it but a reserve, or but half of it if that is little.
    pub fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let but = |kept: u64| usize::try_from(limit - kept).unwrap_or(usize::MAX);
        Self {
            accepting_max: but(RESERVED.min(limit / 2)),
            dialing_max: but(RESERVED_FROM_ALL.min(limit / 4)),
        }
    }

    /// How many clients there is room for.
    pub fn clients_max(&self) -> usize {
        self.accepting_max.saturating_sub(TURNED_AWAY_MAX).max(1)
    }
}

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
