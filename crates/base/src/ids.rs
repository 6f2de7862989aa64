//! Integers that name things. Each is its own type, so that two of them cannot be swapped.

use std::fmt;

/// Identifies one life of a log. A log that was deleted and created again has another
/// incarnation, so a position in the old one can never be taken for one in the new.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Incarnation(pub u64);

/// A record's place in its log, counted from 1 without gaps. 0 means "before the first record".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The position before the first record: what an empty log's tail is.
    pub const ZERO: Self = Self(0);

    /// The sequence that the record after this one takes.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A place in one life of one log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position {
    pub incarnation: Incarnation,
    pub sequence: Sequence,
}

impl Position {
    /// The position that the next record of the same log takes.
    pub const fn next(self) -> Self {
        Self { incarnation: self.incarnation, sequence: self.sequence.next() }
    }

    /// Another place in the same log.
    pub const fn at(self, sequence: Sequence) -> Self {
        Self { incarnation: self.incarnation, sequence }
    }
}

/// A term of leadership over one log. Each `Lead` record begins the next one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// A hash slot of Redis Cluster, 0 to 16,383.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u16);

/// A numbered database, as SELECT names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DatabaseId(pub u32);
