//! Looking at the whole keyspace: SCAN, KEYS, RANDOMKEY, DBSIZE. Their replies reveal every write,
//! so they wait for the last one.

use crate::command::{Args, Command, DataFn, Flags, Group, Outcome, read};
use crate::glob;
use crate::refusal::Refusal;
use crate::value;
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::{parse_i64, parse_u64};

/// The complexity of every scan.
pub const SCAN_COST: &str = "O(1) for every call. O(N) for a complete iteration, including enough \
                             command calls for the cursor to return back to 0. N is the number of \
                             elements inside the collection.";

pub const SCAN: Command<DataFn> =
    read("SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]", scan)
        .tips(&["nondeterministic_output", "request_policy:special"])
        .doc("Iterates over the key names in the database.")
        .since("2.8.0")
        .cost(SCAN_COST)
        .with(Flags::KEYSPACE);

pub const KEYS: Command<DataFn> = read("KEYS pattern", keys)
    .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
    .doc("Returns all key names that match a pattern.")
    .cost(
        "O(N) with N being the number of keys in the database, under the assumption that the key \
         names in the database and the given pattern have limited length.",
    )
    .with(Flags::KEYSPACE.union(Flags::DANGEROUS));

pub const RANDOMKEY: Command<DataFn> = read("RANDOMKEY", randomkey)
    .tips(&["request_policy:all_shards", "nondeterministic_output"])
    .doc("Returns a random key name from the database.")
    .cost("O(1)")
    .with(Flags::KEYSPACE);

pub const DBSIZE: Command<DataFn> = read("DBSIZE", dbsize)
    .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
    .doc("Returns the number of keys in the database.")
    .group(Group::Server)
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

/// Keys past their time that RANDOMKEY passes over before it answers that there is none.
const RANDOM_TRIES_MAX: usize = 100;

/// The options that SCAN, HSCAN, SSCAN and ZSCAN share.
pub struct ScanOptions<'a> {
    pub cursor: u64,
    pub count: usize,
    /// `None` if every name matches.
    pub pattern: Option<&'a [u8]>,
    /// SCAN only.
    pub type_name: Option<&'a [u8]>,
    /// HSCAN and ZSCAN only: what the names have, values or scores, is wanted too.
    pub with_values: bool,
}

/// What one of these commands takes beside COUNT and MATCH.
#[derive(Clone, Copy)]
pub enum Takes {
    Nothing,
    /// TYPE and its operand.
    Type,
    /// A word behind which names come alone: NOVALUES of HSCAN (Redis 7.4), NOSCORES of ZSCAN
    /// (Valkey 8.0).
    Bare(&'static str),
}

impl<'a> ScanOptions<'a> {
    /// Reads the cursor at argument `cursor_at` and the options after it.
    ///
    /// # Errors
    /// Redis's texts for a bad cursor, count or option.
    pub fn parse(args: Args<'a>, cursor_at: usize, takes: Takes) -> Result<Self, Refusal> {
        let cursor = parse_cursor(args.at(cursor_at))?;
        let mut options =
            Self { cursor, count: 10, pattern: None, type_name: None, with_values: true };
        let mut at = cursor_at + 1;
        while at < args.len() {
            if let Takes::Bare(word) = takes
                && args.is(at, word)
            {
                options.with_values = false;
                at += 1;
                continue;
            }
            if let Some(why) = another_word(args, at) {
                return Err(why);
            }
            let Some(operand) = args.get(at + 1) else { return Err(Refusal::SYNTAX) };
            if args.is(at, "COUNT") {
                let count = parse_i64(operand).ok_or(Refusal::NOT_AN_INTEGER)?;
                if count < 1 {
                    return Err(Refusal::SYNTAX);
                }
                options.count = usize::try_from(count).unwrap_or(usize::MAX);
            } else if args.is(at, "MATCH") {
                options.pattern = Some(operand).filter(|pattern| *pattern != b"*");
            } else if matches!(takes, Takes::Type) && args.is(at, "TYPE") {
                options.type_name = Some(operand);
            } else {
                return Err(Refusal::SYNTAX);
            }
            at += 2;
        }
        Ok(options)
    }

    /// Whether a name is wanted.
    pub fn matches(&self, name: &[u8], work: &Work) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name, work))
    }
}

/// The refusal of a word that another of these commands takes ([`Takes::Bare`]).
fn another_word(args: Args<'_>, at: usize) -> Option<Refusal> {
    const NO_VALUES: Refusal = Refusal::of("ERR NOVALUES option can only be used in HSCAN");
    const NO_SCORES: Refusal = Refusal::of("ERR NOSCORES option can only be used in ZSCAN");
    if args.is(at, "NOVALUES") {
        return Some(NO_VALUES);
    }
    args.is(at, "NOSCORES").then_some(NO_SCORES)
}

/// A cursor as C's `strtoul` reads one: with a sign, with zeroes in front, or empty. What no table
/// gave out ends the iteration, but is no error.
///
/// # Errors
/// `ERR invalid cursor`.
pub fn parse_cursor(argument: &[u8]) -> Result<u64, Refusal> {
    // A text of C's ends at its first NUL.
    let argument = argument.split(|byte| *byte == 0).next().unwrap_or_default();
    if argument.is_empty() {
        return Ok(0);
    }
    let (is_negative, digits) = match argument {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let zeroes = digits.iter().take_while(|digit| **digit == b'0').count();
    let magnitude = match &digits[zeroes..] {
        [] if zeroes > 0 => Some(0),
        digits => parse_u64(digits),
    };
    let magnitude = magnitude.ok_or(Refusal::of("ERR invalid cursor"))?;
    Ok(if is_negative { magnitude.wrapping_neg() } else { magnitude })
}

fn scan(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let options = ScanOptions::parse(args, 1, Takes::Type)?;
    let (id, database) = (view.database_id(), view.observe_all());
    let mut found = Vec::new();
    let work = view.work();
    let next = database.table().scan(options.cursor, options.count, |entry| {
        work.step();
        found.push(entry);
    });
    found.retain(|entry| {
        options.matches(entry.key(), work)
            && options.type_name.is_none_or(|wanted| {
                wanted.eq_ignore_ascii_case(value::type_name(*entry).as_bytes())
            })
            && view.is_alive(id, *entry)
    });
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(found.len());
    work.reply_each(found, reply, |entry, reply| reply.bulk(entry.key()));
    Ok(())
}

fn keys(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let pattern = args.at(1);
    let (id, database) = (view.database_id(), view.observe_all());
    let work = view.work();
    let count = reply.begin_array();
    let mut found = 0;
    work.reply_each(database.table().iter(), reply, |entry, reply| {
        // To Redis a lone star means all keys; as a pattern it does not match the empty name.
        let is_meant = pattern == b"*" || glob::matches(pattern, entry.key(), work);
        if is_meant && view.is_alive(id, entry) {
            reply.bulk(entry.key());
            found += 1;
        }
    });
    reply.end(count, found);
    Ok(())
}

fn randomkey(view: &mut View<'_>, _: Args<'_>, reply: &mut Reply) -> Outcome {
    let (id, database) = (view.database_id(), view.observe_all());
    for _ in 0..RANDOM_TRIES_MAX {
        let word = view.random().word();
        let Some(entry) = database.table().random(word) else { break };
        if view.is_alive(id, entry) {
            reply.bulk(entry.key());
            return Ok(());
        }
    }
    reply.null();
    Ok(())
}

fn dbsize(view: &mut View<'_>, _: Args<'_>, reply: &mut Reply) -> Outcome {
    reply.integer(view.observe_all().len() as i64);
    Ok(())
}
