//! The state of CLIENT TRACKING of one client.

use super::NAME_BYTES;
use std::collections::BTreeSet;

/// The keys about whose changes a client is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remembered {
    /// Keys that it reads.
    All,
    /// OPTIN: keys that it reads by the request after CLIENT CACHING YES.
    OptIn,
    /// OPTOUT: keys that it reads, but for those of the request after CLIENT CACHING NO.
    OptOut,
    /// BCAST: keys with its prefixes, whoever reads them.
    Broadcast,
}

/// A client's tracking.
#[derive(Clone, Debug)]
pub struct Tracking {
    pub remembered: Remembered,
    /// NOLOOP: it is not told of changes by its own commands.
    pub spares_own: bool,
    /// REDIRECT: the ID of the client that gets its messages.
    pub redirect: Option<u64>,
    /// The client that should have got a message was gone.
    pub is_redirect_broken: bool,
    /// CLIENT CACHING was called, and applies to the next request.
    pub caching_was_called: bool,
    /// The prefixes of BCAST.
    pub prefixes: BTreeSet<Vec<u8>>,
    /// Bytes of the prefixes.
    pub prefix_bytes: usize,
}

impl Tracking {
    /// Whether keys that the running request reads are recorded.
    pub fn remembers(&self) -> bool {
        match self.remembered {
            Remembered::All => true,
            Remembered::OptIn => self.caching_was_called,
            Remembered::OptOut => !self.caching_was_called,
            Remembered::Broadcast => false,
        }
    }

    pub fn is_broadcast(&self) -> bool {
        self.remembered == Remembered::Broadcast
    }

    /// Adds a prefix.
    pub fn add_prefix(&mut self, prefix: &[u8]) {
        if self.prefixes.insert(prefix.to_vec()) {
            self.prefix_bytes += prefix.len() + NAME_BYTES;
        }
    }
}
