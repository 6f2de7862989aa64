//! Expiry options of commands: `EX seconds`, `PX milliseconds`, `EXAT`, `PXAT`.
//!
//! Every form ends as an absolute Unix time in milliseconds, because effects carry outcomes.

use crate::refusal::Refusal;
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

/// Redis's text for an expiry time that cannot be.
pub fn invalid(command: &str) -> Refusal {
    Refusal::new(format!("ERR invalid expire time in '{command}' command"))
}
