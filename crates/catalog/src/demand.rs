//! What a request asks of the state of the server, as far as its command tells: each reason to
//! refuse or to delay it looks at one bit. A transaction asks for all that its requests ask for, so
//! its demand is the union of theirs.

use crate::commands::Kind;
use engine::command::Flags;

/// A set of things that a request needs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Demand(u16);

impl Demand {
    /// That keys may be changed, by the command's flag.
    pub const WRITE: Self = Self(1);
    /// That the log takes records: a few commands that Redis calls reads, or that change no key,
    /// write some.
    pub const LOG: Self = Self(1 << 1);
    /// A primary. PFCOUNT does not: it writes only to spare the next one its work.
    pub const PRIMARY: Self = Self(1 << 2);
    /// Memory.
    pub const ROOM: Self = Self(1 << 3);
    /// Data that are not long out of date.
    pub const FRESH: Self = Self(1 << 4);
    /// Data that are loaded.
    pub const LOADED: Self = Self(1 << 5);
    /// The whole of a master's data set rather than a part of it.
    pub const WHOLE: Self = Self(1 << 6);
    /// That replicas may be told something.
    pub const REPLICATION: Self = Self(1 << 7);
    /// That the log is not busy. Asked by requests that may write while they run (scripts): they
    /// wait before they begin. Whether the log accepts records at all is asked at each of their
    /// writes.
    pub const CALM_LOG: Self = Self(1 << 8);
    /// That the shard's libraries of functions are compiled.
    pub const LIBRARIES: Self = Self(1 << 9);

    /// What the requests of a command need.
    pub fn of(flags: Flags, kind: Kind) -> Self {
        let may_write = kind == Kind::Write || flags.contains(Flags::WRITE);
        let is_stale_fine = flags.contains(Flags::STALE);
        let may_call_writes =
            flags.contains(Flags::RUNS_SCRIPT) && !flags.contains(Flags::READONLY);
        let needs = [
            (Self::WRITE, flags.contains(Flags::WRITE)),
            (Self::LOG, may_write || flags.contains(Flags::WRITES_LOG)),
            (Self::PRIMARY, may_write && !flags.contains(Flags::READONLY)),
            (Self::ROOM, flags.contains(Flags::DENYOOM)),
            (Self::FRESH, !is_stale_fine),
            (Self::LOADED, !flags.contains(Flags::LOADING)),
            (Self::WHOLE, !is_stale_fine && !flags.contains(Flags::BEARS_PART)),
            (Self::REPLICATION, may_write || flags.contains(Flags::MAY_REPLICATE)),
            (Self::CALM_LOG, may_call_writes),
            (Self::LIBRARIES, flags.contains(Flags::NEEDS_LIBRARIES)),
        ];
        let needed = needs.into_iter().filter(|(_, is_needed)| *is_needed);
        needed.fold(Self::default(), |all, (need, _)| all.union(need))
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn has(self, need: Self) -> bool {
        self.0 & need.0 != 0
    }

    /// Whether it may take memory: a script may write later, and would take what it likes
    /// otherwise.
    pub const fn may_grow(self) -> bool {
        self.has(Self::ROOM) || self.has(Self::CALM_LOG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(flags: Flags, kind: Kind, need: Demand) -> bool {
        Demand::of(flags, kind).has(need)
    }

    #[test]
    fn a_read_that_is_given_the_tx_needs_the_log_and_no_primary() {
        assert!(has(Flags::READONLY, Kind::Write, Demand::LOG));
        assert!(!has(Flags::READONLY, Kind::Write, Demand::PRIMARY));
        assert!(!has(Flags::READONLY, Kind::Write, Demand::WRITE));
        assert!(has(Flags::WRITE, Kind::Node, Demand::PRIMARY));
    }

    #[test]
    fn what_bears_a_part_may_still_need_fresh_data() {
        assert!(has(Flags::BEARS_PART, Kind::Write, Demand::FRESH));
        assert!(!has(Flags::BEARS_PART, Kind::Write, Demand::WHOLE));
        assert!(has(Flags::NONE, Kind::Read, Demand::WHOLE));
        assert!(!has(Flags::STALE, Kind::Node, Demand::WHOLE));
    }

    #[test]
    fn a_union_needs_what_either_needs() {
        let read = Demand::of(Flags::READONLY, Kind::Read);
        let write = Demand::of(Flags::WRITE.union(Flags::DENYOOM), Kind::Write);
        assert!(!read.has(Demand::ROOM) && read.union(write).has(Demand::ROOM));
    }
}
