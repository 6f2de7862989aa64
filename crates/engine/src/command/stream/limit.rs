//! What XADD and XTRIM say of how much is to stay.

use super::ids::id;
use crate::command::Args;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::stream::{Limit, Stream};
use resp::integer::parse_i64;

/// Entries that go at once where only whole blocks go, unless the request says how many: as Redis.
const ENTRIES_PER_BLOCK: u64 = 100;
const ENTRIES_DEFAULT: u64 = 10_000;
const ENTRIES_MAX: u64 = 1_000_000;

/// A limit, and how exactly it is to be met.
#[derive(Clone, Copy, Default)]
pub(super) struct Trim {
    limit: Option<Limit>,
    /// Only whole blocks go.
    is_rough: bool,
    /// As the request says it.
    entries_max: Option<u64>,
}

impl Trim {
    /// Reads the option at `at`, if it is one of these; how many arguments it takes.
    ///
    /// # Errors
    /// It says something that is none.
    pub fn read(&mut self, args: Args<'_>, at: usize) -> Result<Option<usize>, Refusal> {
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
        if self.limit.is_some() {
            return Err(Refusal::of(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let (text, words) = match args.get(at + 2) {
            Some(text) if next == b"~" || next == b"=" => (text, 3),
            _ => (next, 2),
        };
        self.is_rough = words == 3 && next == b"~";
        self.limit = Some(if is_length {
            let length = parse_i64(text).ok_or(Refusal::NOT_AN_INTEGER)?;
            let refusal = Refusal::of("ERR The MAXLEN argument must be >= 0.");
            Limit::Length(u64::try_from(length).map_err(|_| refusal)?)
        } else {
            Limit::Since(id(text)?)
        });
        Ok(Some(words))
    }

    /// Whether the options make sense together.
    ///
    /// # Errors
    /// Redis's texts where they do not.
    pub fn check(&self, must_limit: bool) -> Result<(), Refusal> {
        let has_limit = self.limit.is_some();
        if self.entries_max.is_some_and(|entries| entries > 0) && !has_limit {
            return Err(Refusal::of(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if must_limit && !has_limit {
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

    /// Trims the stream at `key`; how many entries went.
    ///
    /// # Errors
    /// WRONGTYPE.
    pub fn apply(&self, tx: &mut Tx<'_>, key: &[u8]) -> Result<u64, Refusal> {
        let Some(limit) = self.limit else { return Ok(0) };
        let entries_max = self.entries_max(tx.settings().stream_node_max_entries);
        let work = tx.work();
        let Some(stream) = super::find(tx, key)? else { return Ok(0) };
        let before = stream.len();
        let below = stream.trimmed_below(limit, self.is_rough, entries_max, &work);
        let Some(below) = below else { return Ok(0) };
        tx.change(key, crate::effect::Effect::StreamTrim { below })?;
        let trimmed = before - super::find(tx, key)?.map_or(0, Stream::len);
        if trimmed > 0 {
            tx.notify(Class::Stream, "xtrim", key);
        }
        Ok(trimmed)
    }
}
