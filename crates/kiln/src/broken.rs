//! Rules that a test breaks on real servers, to see that its checkers would notice.
//!
//! Only `examples/broken.rs` names one; `kiln` never does.

/// A rule that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A primary serves though its lease is over.
    Lease,
    /// Replies wait for nothing.
    Replies,
    /// In an object store, what was put counts even where its place has been trimmed.
    Floor,
    /// In JetStream, the word of one server about the log's end counts as a quorum's.
    Tail,
    /// A new primary follows the master of its own configuration, whatever the log says.
    Master,
    /// The log is trimmed through snapshots that replicas do not see.
    Unseen,
}

impl Broken {
    /// Their names on the command line.
    pub const NAMES: [(&str, Self); 6] = [
        ("lease", Self::Lease),
        ("replies", Self::Replies),
        ("floor", Self::Floor),
        ("tail", Self::Tail),
        ("master", Self::Master),
        ("unseen", Self::Unseen),
    ];

    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, rule)| rule)
    }
}
