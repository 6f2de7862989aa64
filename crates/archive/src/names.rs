//! What an archive's entries are called.

use base::Sequence;

/// The kinds of an archive's entries. An entry is a manifest, and mostly parts, under a name that
/// tells its kind. What has another name is not the archive's, and is left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    Snapshots,
    /// Stretches of the log ([`crate::LogStore`]).
    Log,
    /// Pins of branches ([`crate::Pin`]): entries without parts.
    Pins,
}

impl Content {
    pub const ALL: [Self; 3] = [Self::Log, Self::Pins, Self::Snapshots];

    /// The prefix of the names of this kind.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Snapshots => "snapshot-",
            Self::Log => "log-",
            Self::Pins => "pin-",
        }
    }

    /// The kind of the entry with this name; `None` if it is no entry's. A log may lie beside the
    /// snapshots, and its directory may be called `log-1`: what is not spelled exactly as a stretch
    /// or a pin is neither.
    pub fn of(name: &str) -> Option<Self> {
        if extent_of(name).is_some() {
            return Some(Self::Log);
        }
        if pin_of(name).is_some() {
            return Some(Self::Pins);
        }
        name.starts_with(Self::Snapshots.prefix()).then_some(Self::Snapshots)
    }
}

/// Records that are archived together, as the name says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Extent {
    pub first: Sequence,
    pub last: Sequence,
    /// How many stretches of these records came before it, each damaged or another log's.
    pub attempt: u16,
}

impl Extent {
    /// As many as three digits can say, and far more than can be meant.
    pub const ATTEMPT_MAX: u16 = 999;

    /// These records, for the first time.
    pub fn of(first: Sequence, last: Sequence) -> Self {
        Self { first, last, attempt: 0 }
    }

    /// The stretch's name. Names sort by age.
    pub fn name(&self) -> String {
        let Self { first, last, attempt } = self;
        let name = format!("{}{:020}-{:020}", Content::Log.prefix(), first.0, last.0);
        match attempt {
            0 => name,
            _ => format!("{name}-{attempt:03}"),
        }
    }
}

/// What the names of all snapshots of one record begin with.
pub(crate) fn names_of(sequence: Sequence) -> String {
    format!("{}{:020}-", Content::Snapshots.prefix(), sequence.0)
}

/// The extent of the stretch that has this name; `None` if no stretch is called so.
pub(crate) fn extent_of(name: &str) -> Option<Extent> {
    let mut fields = name.strip_prefix(Content::Log.prefix())?.split('-');
    let (first, last) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let attempt = fields.next().map_or(Some(0), |digits| digits.parse().ok())?;
    let extent = Extent { first: Sequence(first), last: Sequence(last), attempt };
    let is_one = 0 < first && first <= last && last < u64::MAX && attempt <= Extent::ATTEMPT_MAX;
    // Others spell it otherwise, or go on behind it.
    (is_one && extent.name() == name).then_some(extent)
}

/// The name of a pin of these records for the branch whose log this is.
pub(crate) fn pin_name(behind: Sequence, through: Sequence, branch: u64) -> String {
    format!("{}{:020}-{:020}-{branch:016x}", Content::Pins.prefix(), behind.0, through.0)
}

/// What a pin's name says: the snapshot's record, the branch's place, and its log.
pub(crate) fn pin_of(name: &str) -> Option<(Sequence, Sequence, u64)> {
    let mut fields = name.strip_prefix(Content::Pins.prefix())?.split('-');
    let mut number = |radix| {
        let digits = fields.next()?;
        let is_plain = digits.bytes().all(|it| it.is_ascii_hexdigit());
        u64::from_str_radix(digits, radix).ok().filter(|_| is_plain)
    };
    let (behind, through, branch) = (number(10)?, number(10)?, number(16)?);
    let (behind, through) = (Sequence(behind), Sequence(through));
    // Others spell it otherwise, or go on behind it.
    (pin_name(behind, through, branch) == name).then_some((behind, through, branch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_records_and_nothing_else_is_one() {
        let extent = Extent::of(Sequence(7), Sequence(7));
        for attempt in [0, 1, Extent::ATTEMPT_MAX] {
            let extent = Extent { attempt, ..extent };
            assert_eq!(extent_of(&extent.name()), Some(extent));
        }
        for wrong in [
            "log-7-7",
            "log-00000000000000000008-00000000000000000007",
            "log-00000000000000000000-00000000000000000007",
            "log-+0000000000000000007-00000000000000000007",
            "log-99999999999999999999-99999999999999999999",
            "log-00000000000000000007-18446744073709551615",
            "log-00000000000000000007-00000000000000000007-000",
            "log-00000000000000000007-00000000000000000007-1",
            "log-00000000000000000007-00000000000000000007-1000",
            "log-00000000000000000007-00000000000000000007-001-",
            "snapshot-00000000000000000007-000",
        ] {
            assert_eq!(extent_of(wrong), None, "{wrong}");
        }
    }
}
