//! The trimming options of XADD and XTRIM: MAXLEN, MINID, LIMIT.

use super::ids::{id, lent, packed};
use super::references::{References, forget};
use crate::command::Args;
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::tx::Tx;
use crate::value::stream::{Stream, Threshold};
use resp::integer::parse_i64;
use std::collections::BTreeSet;

/// Entries that one trimming by whole blocks removes at most, in full blocks, unless the request
/// has LIMIT. Redis's number.
const ENTRIES_PER_BLOCK: u64 = 100;
const ENTRIES_DEFAULT: u64 = 10_000;
const ENTRIES_MAX: u64 = 1_000_000;

/// The trimming options of a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Trim {
    threshold: Option<Threshold>,
    /// `~`: only whole blocks are removed.
    is_rough: bool,
    /// LIMIT, as the request gives it.
    entries_max: Option<u64>,
    /// As the request says it.
    references: Option<References>,
}

impl Trim {
    /// Reads the option at `at`. Returns the number of its arguments; `None` if it is no trimming
    /// option.
    ///
    /// # Errors
    /// The option's operand is wrong.
    pub fn read(&mut self, args: Args<'_>, at: usize) -> Result<Option<usize>, Refusal> {
        if self.references.is_none()
            && let Some(references) = References::read(args, at)
        {
            self.references = Some(references);
            return Ok(Some(1));
        }
        let is_length = args.is(at, "MAXLEN");
        let Some(next) = args.get(at + 1) else { return Ok(None) };
        if args.is(at, "LIMIT") {
            let entries = parse_i64(next).ok_or(Refusal::NOT_AN_INTEGER)?;
            let refusal = Refusal::of("ERR The LIMIT argument must be >= 0.");
            self.entries_max = Some(u64::try_from(entries).map_err(|_| refusal)?);
            return Ok(Some(2));
        }
        if !is_length && !args.is(at, "MINID") {
            return Ok(None);
        }
        if self.threshold.is_some() {
            return Err(Refusal::of(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let (text, words) = match args.get(at + 2) {
            Some(text) if next == b"~" || next == b"=" => (text, 3),
            _ => (next, 2),
        };
        self.is_rough = words == 3 && next == b"~";
        self.threshold = Some(if is_length {
            let length = parse_i64(text).ok_or(Refusal::NOT_AN_INTEGER)?;
            let refusal = Refusal::of("ERR The MAXLEN argument must be >= 0.");
            Threshold::MaxLen(u64::try_from(length).map_err(|_| refusal)?)
        } else {
            Threshold::MinId(id(text)?)
        });
        Ok(Some(words))
    }

    /// Checks that the options go together.
    ///
    /// # Errors
    /// Redis's text for options that exclude or need each other.
    pub fn check(&self, must_trim: bool) -> Result<(), Refusal> {
        let trims = self.threshold.is_some();
        if self.entries_max.is_some_and(|entries| entries > 0) && !trims {
            return Err(Refusal::of(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if must_trim && !trims {
            return Err(Refusal::of(
                "ERR syntax error, XTRIM must be called with a trimming strategy",
            ));
        }
        if self.entries_max.is_some() && !self.is_rough {
            return Err(Refusal::of(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        Ok(())
    }

    fn entries_max(&self, per_block: u64) -> u64 {
        match self.entries_max {
            Some(entries) => entries,
            None if !self.is_rough => 0,
            None => match per_block.saturating_mul(ENTRIES_PER_BLOCK) {
                0 => ENTRIES_DEFAULT,
                entries => entries.min(ENTRIES_MAX),
            },
        }
    }

    /// Trims the stream at `key`; returns how many entries were removed.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn apply(&self, tx: &mut Tx<'_>, key: &[u8]) -> Result<u64, Refusal> {
        let Some(threshold) = self.threshold else { return Ok(0) };
        let entries_max = self.entries_max(tx.settings().stream_node_max_entries);
        let work = tx.work();
        let Some(stream) = super::find(tx, key)? else { return Ok(0) };
        let before = stream.len();
        let references = self.references.unwrap_or_default();
        if references == References::MustBeNone {
            let going = stream.unneeded(threshold, self.is_rough, entries_max, &work);
            delete(tx, key, &going)?;
        } else {
            let below = stream.trimmed_below(threshold, self.is_rough, entries_max, &work);
            let Some(below) = below else { return Ok(0) };
            let mut going = BTreeSet::new();
            if references == References::Deleted && stream.groups().len() > 0 {
                let last = below.previous().unwrap_or(StreamId::MAX);
                let there = stream.range(StreamId::MIN, last).inspect(|_| work.step());
                going.extend(there.map(|entry| entry.id));
            }
            tx.change(key, Effect::StreamTrim { below })?;
            forget(tx, key, &going)?;
        }
        let trimmed = before - super::find(tx, key)?.map_or(0, Stream::len);
        if trimmed > 0 {
            tx.notify(Class::Stream, "xtrim", key);
        }
        Ok(trimmed)
    }
}

/// Deletes these entries as trimming does, so without changing the greatest deleted ID.
fn delete(tx: &mut Tx<'_>, key: &[u8], ids: &[StreamId]) -> Result<(), Refusal> {
    let work = tx.work();
    let Some(stream) = super::find(tx, key)? else { return Ok(()) };
    let (last, added, max_deleted) = (stream.last_id(), stream.added(), stream.max_deleted());
    let (leading, stays) = stream.leading(ids, &work);
    if leading > 0 {
        let below = stays.unwrap_or(StreamId::MIN);
        tx.change(key, Effect::StreamTrim { below })?;
    }
    let amid = &ids[leading..];
    if let Some(id) = amid.last() {
        let bytes = packed(amid.iter().inspect(|_| work.step()).copied());
        tx.change(key, Effect::StreamDelete { ids: lent(&bytes) })?;
        if *id > max_deleted {
            // Redis takes no 0-0 from XSETID, so a replica of it could not be told that.
            let max_deleted = max_deleted.max(StreamId::new(0, 1));
            tx.change(key, Effect::StreamSetId { last, added, max_deleted })?;
        }
    }
    Ok(())
}
