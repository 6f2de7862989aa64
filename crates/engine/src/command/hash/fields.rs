//! The part `FIELDS numfields field [field ...]` of a request.

use crate::command::Args;
use crate::refusal::Refusal;
use resp::integer::parse_i64;

/// Valkey's text for a wrong number. Redis 8 has several, which its documentation does not show.
const NUMBER: Refusal =
    Refusal::of("ERR numfields should be greater than 0 and match the provided number of fields");

/// The place of the word `FIELDS`, searched from `from` on: options stand before it.
///
/// # Errors
/// There is no such word.
pub(super) fn find(args: Args<'_>, from: usize) -> Result<usize, Refusal> {
    (from..args.len()).find(|at| args.is(*at, "FIELDS")).ok_or(NUMBER)
}

/// Checks the number of fields behind the word `FIELDS` at `at`. Each field takes `width`
/// arguments: itself, and its value in HSETEX. Returns the place of the first field.
///
/// # Errors
/// The number is not positive, or there are more or fewer fields.
pub(super) fn counted(args: Args<'_>, at: usize, width: usize) -> Result<usize, Refusal> {
    let first = at + 2;
    let number = parse_i64(args.get(at + 1).ok_or(NUMBER)?).ok_or(Refusal::NOT_AN_INTEGER)?;
    let there = args.len().saturating_sub(first);
    let is_right = usize::try_from(number)
        .is_ok_and(|number| number > 0 && number.checked_mul(width) == Some(there));
    if is_right { Ok(first) } else { Err(NUMBER) }
}

/// The place of the first field, in a command without options.
///
/// # Errors
/// As [`counted`]; a syntax error if the word `FIELDS` is missing.
pub(super) fn only(args: Args<'_>) -> Result<usize, Refusal> {
    if !args.is(2, "FIELDS") {
        return Err(Refusal::SYNTAX);
    }
    counted(args, 2, 1)
}
