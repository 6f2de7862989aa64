//! `FIELDS numfields field [field ...]`: the fields that a command names, and how many they are.

use crate::command::Args;
use crate::refusal::Refusal;
use resp::integer::parse_i64;

/// Valkey's text. Redis 8 has several, of which its documentation shows none.
const NUMBER: Refusal =
    Refusal::of("ERR numfields should be greater than 0 and match the provided number of fields");

/// The place of the word `FIELDS` at or behind `from`: options stand before it.
///
/// # Errors
/// It is nowhere.
pub(super) fn find(args: Args<'_>, from: usize) -> Result<usize, Refusal> {
    (from..args.len()).find(|at| args.is(*at, "FIELDS")).ok_or(NUMBER)
}

/// The fields behind the word at `at`, each with the `width - 1` arguments that belong to it: the
/// place of the first.
///
/// # Errors
/// Their number is none, or another one.
pub(super) fn counted(args: Args<'_>, at: usize, width: usize) -> Result<usize, Refusal> {
    let first = at + 2;
    let number = parse_i64(args.get(at + 1).ok_or(NUMBER)?).ok_or(Refusal::NOT_AN_INTEGER)?;
    let there = args.len().saturating_sub(first);
    let is_right = usize::try_from(number)
        .is_ok_and(|number| number > 0 && number.checked_mul(width) == Some(there));
    if is_right { Ok(first) } else { Err(NUMBER) }
}

/// The fields of a command that has no options: the place of the first.
///
/// # Errors
/// As [`counted`], or the word is missing.
pub(super) fn only(args: Args<'_>) -> Result<usize, Refusal> {
    if !args.is(2, "FIELDS") {
        return Err(Refusal::SYNTAX);
    }
    counted(args, 2, 1)
}
