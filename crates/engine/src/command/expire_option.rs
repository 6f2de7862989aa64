//! Expiry options of commands: `EX seconds`, `PX milliseconds`, `EXAT`, `PXAT`, KEEPTTL, PERSIST;
//! the conditions of EXPIRE and its kin: `NX`, `XX`, `GT`, `LT`; and times as TTL and its kin
//! answer them.
//!
//! Every form ends as an absolute Unix time in milliseconds, because effects carry outcomes.

use crate::command::Args;
use crate::refusal::{Refusal, quoted};
use base::UnixMillis;
use resp::integer::parse_i64;

/// The unit and origin of an expiry argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpireForm {
    /// `EX`: seconds from now.
    Seconds,
    /// `PX`: milliseconds from now.
    Millis,
    /// `EXAT`: Unix time in seconds.
    SecondsAt,
    /// `PXAT`: Unix time in milliseconds.
    MillisAt,
}

impl ExpireForm {
    /// The form that an option's word names, in any case.
    pub fn of_word(word: &[u8]) -> Option<Self> {
        const WORDS: [(&[u8], ExpireForm); 4] = [
            (b"EX", ExpireForm::Seconds),
            (b"PX", ExpireForm::Millis),
            (b"EXAT", ExpireForm::SecondsAt),
            (b"PXAT", ExpireForm::MillisAt),
        ];
        WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map(|(_, form)| *form)
    }

    /// The absolute time in milliseconds that an argument of this form means. Positive times only,
    /// as SET and its kin demand.
    ///
    /// # Errors
    /// Redis's text for what is not an integer, and for times that are not positive or overflow;
    /// `command` is named in it.
    pub fn positive(self, argument: &[u8], now: UnixMillis, command: &str) -> Result<i64, Refusal> {
        let value = parse_i64(argument).ok_or(Refusal::NOT_AN_INTEGER)?;
        if value <= 0 {
            return Err(invalid(command));
        }
        self.absolute(value, now).ok_or_else(|| invalid(command))
    }

    /// The absolute time in milliseconds, `None` if it overflows.
    pub fn absolute(self, value: i64, now: UnixMillis) -> Option<i64> {
        let millis = match self {
            Self::Seconds | Self::SecondsAt => value.checked_mul(1000)?,
            Self::Millis | Self::MillisAt => value,
        };
        match self {
            Self::Seconds | Self::Millis => millis.checked_add(now.0),
            Self::SecondsAt | Self::MillisAt => Some(millis),
        }
    }
}

/// An expiry option of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ExpiryOption {
    /// `EX seconds` or one of its kin. The operand is the argument at this place.
    At(ExpireForm, usize),
    /// KEEPTTL: the expiry stays as it is.
    Keep,
    /// PERSIST: the expiry is removed.
    Persist,
}

impl ExpiryOption {
    /// Reads the option at `at`, of options that end before `end`. Returns it with the number of
    /// its arguments; `None` if it is another word, or if its operand is missing.
    pub fn read(args: Args<'_>, at: usize, end: usize) -> Option<(Self, usize)> {
        if let Some(form) = ExpireForm::of_word(args.at(at)) {
            return (at + 1 < end).then_some((Self::At(form, at + 1), 2));
        }
        let words = [("KEEPTTL", Self::Keep), ("PERSIST", Self::Persist)];
        words.into_iter().find(|(word, _)| args.is(at, word)).map(|(_, option)| (option, 1))
    }

    /// Whether the option may stand behind an earlier one: only behind the same option. The last
    /// one counts, as in Redis.
    pub fn may_follow(self, before: Option<Self>) -> bool {
        match (self, before) {
            (_, None) => true,
            (Self::At(form, _), Some(Self::At(before, _))) => form == before,
            (_, Some(before)) => self == before,
        }
    }
}

/// The milliseconds that a key or field has left. Not less than 0: while expiry stands still, there
/// may be one whose time has come.
pub fn millis_left(at: i64, now: i64) -> i64 {
    (at - now).max(0)
}

/// Milliseconds as seconds, rounded to the nearest.
pub fn rounded_seconds(millis: i64) -> i64 {
    // In 128 bits, because half a second added to the greatest time exceeds 64.
    ((i128::from(millis) + 500) / 1000) as i64
}

/// Redis's text for an expiry time that cannot be.
pub fn invalid(command: &str) -> Refusal {
    Refusal::new(format!("ERR invalid expire time in '{command}' command"))
}

/// The conditions under which EXPIRE and its kin set a new time.
#[derive(Clone, Copy, Default)]
pub struct Conditions {
    only_if_none: bool,
    only_if_some: bool,
    only_if_later: bool,
    only_if_earlier: bool,
}

impl Conditions {
    /// Reads the words of the conditions, in any order.
    ///
    /// # Errors
    /// Redis's text for a word that is none of them.
    pub fn read<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, Refusal> {
        let mut conditions = Self::default();
        for word in words {
            let flag = match word.to_ascii_uppercase().as_slice() {
                b"NX" => &mut conditions.only_if_none,
                b"XX" => &mut conditions.only_if_some,
                b"GT" => &mut conditions.only_if_later,
                b"LT" => &mut conditions.only_if_earlier,
                _ => {
                    let word = quoted(word);
                    return Err(Refusal::new(format!("ERR Unsupported option {word}")));
                }
            };
            *flag = true;
        }
        Ok(conditions)
    }

    /// The conditions, unless two of them exclude each other.
    ///
    /// # Errors
    /// Redis's texts for conditions that exclude each other.
    pub fn checked(self) -> Result<Self, Refusal> {
        let Self { only_if_none, only_if_some, only_if_later, only_if_earlier } = self;
        if only_if_none && (only_if_some || only_if_later || only_if_earlier) {
            return Err(Refusal::of(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if only_if_later && only_if_earlier {
            return Err(Refusal::of("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(self)
    }

    /// Whether `at` may replace `current`. No expiry counts as infinitely late.
    pub fn admit(self, current: Option<i64>, at: i64) -> bool {
        let Some(current) = current else { return !self.only_if_some && !self.only_if_later };
        !(self.only_if_none
            || self.only_if_later && at <= current
            || self.only_if_earlier && at >= current)
    }
}
