//! What a log changed, effect by effect, for tools that read it from outside.
//!
//! ```text
//! Reader ─ record ─▶ Changes: units, positions, who led ─▶ Change, one an effect ─▶ a line
//! ```
//! Each change has a position of its own, from which a reading goes on right behind it. So whoever
//! keeps the position of the last line that was dealt with misses nothing and meets nothing twice,
//! wherever the tool was ended.

mod base64;
mod line;
mod members;

use base::{DatabaseId, Epoch, Position};
use engine::effect::{Effect, EffectDecoder, EffectError};
use shard::role::member::Member;
use std::fmt;
use std::io;
use txlog::reader::Read;
use txlog::record::{Header, Kind, Part};
use txlog::{Chain, Consumed, Record, UnitPosition};

pub use base64::decode as decode_base64;
pub use line::Form;

/// Bytes of the lease before who leads.
const LEASE_BYTES: usize = 8;

/// One effect, and where it stands.
pub struct Change<'a> {
    /// Right behind it.
    pub position: UnitPosition,
    /// The record in which its unit ends.
    pub record: Position,
    /// Of that record.
    pub header: Header,
    /// Who led, if it is known.
    pub leader: Option<&'a Member>,
    pub database: DatabaseId,
    pub key: &'a [u8],
    pub effect: Effect<'a>,
}

/// Why a record cannot be shown.
#[derive(Debug)]
pub enum ChangeError {
    /// The payload is damaged, or of a newer release.
    Unreadable(Position, EffectError),
    /// A unit that was read to its end before has none in this log.
    Abandoned(Position),
    Output(io::Error),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(at, error) => write!(
                f,
                "record {} of the log: effects are unreadable at {}: {}",
                at.sequence, error.offset, error.what
            ),
            Self::Abandoned(at) => write!(
                f,
                "record {} of the log: the unit of the position has no end here: this is another \
                 history",
                at.sequence
            ),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Output(error) => Some(error),
            _ => None,
        }
    }
}

/// Takes what a reader reads apart.
#[derive(Default)]
pub struct Changes {
    /// Shown before, of the first record.
    passes_over: Option<UnitPosition>,
    /// Where the unit under way began, if it was split.
    began: Option<(Position, Chain)>,
    /// Who leads, and since which epoch.
    leader: Option<(Epoch, Member)>,
}

impl Changes {
    /// Of a reading that begins with a record which was shown up to this position.
    pub fn behind(passes_over: Option<UnitPosition>) -> Self {
        Self { passes_over, ..Self::default() }
    }

    /// Shows each effect of a unit that ends with this record.
    ///
    /// # Errors
    /// [`ChangeError`]; the reading ends there, because behind it something would be missed.
    pub fn show(
        &mut self,
        read: &Read,
        mut show: impl FnMut(&Change<'_>) -> io::Result<()>,
    ) -> Result<(), ChangeError> {
        let header = read.header();
        match &read.consumed {
            Consumed::Void => Ok(()),
            Consumed::Buffered => {
                if header.part == Part::First {
                    self.began = chain_behind(read).map(|chain| (read.position, chain));
                }
                Ok(())
            }
            Consumed::Record(record) => match record.header.kind {
                Kind::Data => self.show_units(read, &header, record, &mut show),
                Kind::Lead | Kind::Renew => self.learn(read.position, record),
                _ => Ok(()),
            },
        }
    }

    /// Learns who leads. A `Lead` abandons a unit that has not ended.
    fn learn(&mut self, at: Position, record: &Record) -> Result<(), ChangeError> {
        let member = record.payload.get(LEASE_BYTES..).and_then(Member::decode);
        self.leader = member.map(|member| (record.header.epoch, member));
        let abandoned = (record.header.kind == Kind::Lead).then(|| self.began.take()).flatten();
        match (abandoned, self.passes_over) {
            (Some(_), Some(_)) => Err(ChangeError::Abandoned(at)),
            _ => Ok(()),
        }
    }

    fn show_units(
        &mut self,
        read: &Read,
        header: &Header,
        record: &Record,
        show: &mut dyn FnMut(&Change<'_>) -> io::Result<()>,
    ) -> Result<(), ChangeError> {
        let here = chain_behind(read).map(|chain| (read.position, chain));
        let here = here.expect("a record that counts has a header");
        let began = self.began.take().unwrap_or(here);
        // What was passed over stands in the first record with effects, and in no other.
        let passed = self.passes_over.take().filter(|passed| passed.record == began.0);
        let leader = self.leader.as_ref().filter(|(epoch, _)| *epoch == header.epoch);
        let unreadable = |error| ChangeError::Unreadable(read.position, error);
        let mut units = Units { decoder: EffectDecoder::new(&record.payload), index: 0 };
        let mut next = units.next().map_err(unreadable)?;
        while let Some((unit, index, (database, key, effect))) = next {
            next = units.next().map_err(unreadable)?;
            let goes_on = next.as_ref().is_some_and(|(next_unit, ..)| *next_unit == unit);
            if passed.is_some_and(|passed| is_passed(&passed, unit, index)) {
                continue;
            }
            let (at, chain) = if goes_on { began } else { here };
            let effect_index = goes_on.then_some(index);
            let change = Change {
                position: UnitPosition { record: at, chain, unit, effect: effect_index },
                record: read.position,
                header: *header,
                leader: leader.map(|(_, member)| member),
                database,
                key,
                effect,
            };
            show(&change).map_err(ChangeError::Output)?;
        }
        Ok(())
    }
}

/// Whether an effect stands at or before a position of the same record.
fn is_passed(passed: &UnitPosition, unit: u64, index: u64) -> bool {
    let last = passed.effect.unwrap_or(u64::MAX);
    (unit, index) <= (passed.unit, last)
}

fn chain_behind(read: &Read) -> Option<Chain> {
    Chain::behind(&read.bytes)
}

/// Effects with the number of their unit, and their own within it.
struct Units<'a> {
    decoder: EffectDecoder<'a>,
    /// Of the next effect, if it is of the same unit.
    index: u64,
}

type Numbered<'a> = (u64, u64, (DatabaseId, &'a [u8], Effect<'a>));

impl<'a> Units<'a> {
    fn next(&mut self) -> Result<Option<Numbered<'a>>, EffectError> {
        let before = self.decoder.unit();
        let Some(effect) = self.decoder.next_effect()? else { return Ok(None) };
        let unit = self.decoder.unit();
        let index = if unit == before { self.index } else { 0 };
        self.index = index + 1;
        Ok(Some((unit, index, effect)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
