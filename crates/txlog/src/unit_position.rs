//! A place among what a log says, as text that a reader from outside keeps: behind which unit, of
//! which record, in which history.
//!
//! ```text
//! 6d1f03a9c4e7b258-42-9f3c51d07ae2864b-3-1        behind unit 1 of record 42
//! 6d1f03a9c4e7b258-42-9f3c51d07ae2864b-3-1.0      amid it, behind its effect 0
//! incarnation      sequence             epoch
//!                     chain value          unit.effect
//! ```
//! A number alone would be taken for a place in whatever stands there, after a backup was put back
//! too. The chain value names everything through the record, so another history is noticed by
//! [`crate::resume`]. `docs/formats/position.md` is normative.

use crate::chain::Chain;
use crate::record::ChainValue;
use base::{Epoch, Incarnation, Position, Sequence};
use std::fmt;
use std::str::FromStr;

/// Digits of the incarnation and of the chain value.
const HEX_DIGITS: usize = 16;

/// Behind a unit, or behind an effect amid it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitPosition {
    /// The record in which the unit ends; amid a unit, the one in which it begins. They differ if
    /// the unit was split.
    pub record: Position,
    /// Where the chain stands behind that record.
    pub chain: Chain,
    /// The unit among those of the record, counted from 0.
    pub unit: u64,
    /// The effect among those of the unit, counted from 0, if more of the unit's follow.
    pub effect: Option<u64>,
}

impl fmt::Display for UnitPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { incarnation, sequence } = self.record;
        let Chain { value, epoch } = self.chain;
        write!(f, "{:016x}-{sequence}-{:016x}-{}-{}", incarnation.0, value.0, epoch.0, self.unit)?;
        self.effect.map_or(Ok(()), |effect| write!(f, ".{effect}"))
    }
}

/// A text that is no position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPosition;

impl fmt::Display for NoPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not of the form incarnation-sequence-chain-epoch-unit")
    }
}

impl std::error::Error for NoPosition {}

/// Reads exactly what is written by [`fmt::Display`]: one place has one text.
impl FromStr for UnitPosition {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let position = parse(text).ok_or(NoPosition)?;
        (position.to_string() == text).then_some(position).ok_or(NoPosition)
    }
}

fn parse(text: &str) -> Option<UnitPosition> {
    let mut parts = text.split('-');
    let mut next = || parts.next();
    let incarnation = Incarnation(hex(next()?)?);
    let sequence = Sequence(next()?.parse().ok()?);
    let value = ChainValue(hex(next()?)?);
    let epoch = Epoch(next()?.parse().ok()?);
    let last = next()?;
    let (unit, effect) = match last.split_once('.') {
        Some((unit, effect)) => (unit, Some(effect.parse().ok()?)),
        None => (last, None),
    };
    let record = Position { incarnation, sequence };
    let unit = unit.parse().ok()?;
    Some(UnitPosition { record, chain: Chain { value, epoch }, unit, effect })
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == HEX_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(effect: Option<u64>) -> UnitPosition {
        let (incarnation, sequence) = (Incarnation(0x6d1f), Sequence(42));
        let chain = Chain { value: ChainValue(u64::MAX - 1), epoch: Epoch(3) };
        UnitPosition { record: Position { incarnation, sequence }, chain, unit: 1, effect }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = "0000000000006d1f-42-fffffffffffffffe-3-1";
        assert_eq!(position(None).to_string(), text);
        assert_eq!(text.parse(), Ok(position(None)));
        assert_eq!(position(Some(7)).to_string(), format!("{text}.7"));
        assert_eq!(format!("{text}.7").parse(), Ok(position(Some(7))));
    }

    #[test]
    fn another_text_is_no_position() {
        let right = position(None).to_string();
        for wrong in [
            "",
            "42",
            "0000000000006d1f-42-fffffffffffffffe-3",
            "0000000000006d1f-42-fffffffffffffffe-3-1-1",
            "0000000000006d1f-42-fffffffffffffffe-3-1.",
            "0000000000006d1f-42-fffffffffffffffe-3-01",
            "0000000000006d1f-+42-fffffffffffffffe-3-1",
            "0000000000006D1F-42-fffffffffffffffe-3-1",
            "6d1f-42-fffffffffffffffe-3-1",
            "0000000000006d1f-18446744073709551616-fffffffffffffffe-3-1",
        ] {
            assert_eq!(wrong.parse::<UnitPosition>(), Err(NoPosition), "{wrong}");
        }
        for cut in 0..right.len() - 1 {
            assert!(right[..cut].parse::<UnitPosition>().is_err(), "{cut}");
        }
    }
}
