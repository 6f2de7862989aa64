//! What a client has said about its cache of what it reads (CLIENT TRACKING).

use super::NAME_BYTES;
use std::collections::BTreeSet;

/// Which keys a client is told of when they change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remembered {
    /// Those that it reads.
    All,
    /// Those that it reads right behind CLIENT CACHING YES.
    OptIn,
    /// Those that it reads, but not right behind CLIENT CACHING NO.
    OptOut,
    /// Those with its prefixes, whoever reads them.
    Broadcast,
}

/// A client that tracks.
#[derive(Clone, Debug)]
pub struct Tracking {
    pub remembered: Remembered,
    /// NOLOOP: it knows what its own commands change.
    pub spares_own: bool,
    /// The CLIENT ID of who is told in its place.
    pub redirect: Option<u64>,
    /// Who should have been told was gone.
    pub is_redirect_broken: bool,
    /// CLIENT CACHING was called for the next request.
    pub is_named: bool,
    /// The prefixes of a broadcast.
    pub prefixes: BTreeSet<Vec<u8>>,
    /// What they occupy.
    pub prefix_bytes: usize,
}

impl Tracking {
    /// Whether the server remembers what the request that runs reads.
    pub fn remembers(&self) -> bool {
        match self.remembered {
            Remembered::All => true,
            Remembered::OptIn => self.is_named,
            Remembered::OptOut => !self.is_named,
            Remembered::Broadcast => false,
        }
    }

    pub fn is_broadcast(&self) -> bool {
        self.remembered == Remembered::Broadcast
    }

    /// Asks for the keys with one more prefix.
    pub fn add_prefix(&mut self, prefix: &[u8]) {
        if self.prefixes.insert(prefix.to_vec()) {
            self.prefix_bytes += prefix.len() + NAME_BYTES;
        }
    }
}
