//! Fields set or read together with their expiry, or deleted as they are read: HSETEX, HGETEX,
//! HGETDEL.

use super::change::tell_deleted;
use super::expire::{expire_fields, persist};
use super::{fields, reply_text};
use crate::apply::Applied;
use crate::command::expire_option::{ExpiryOption, invalid};
use crate::command::{Args, Command, DataFn, Group, Outcome, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use resp::Reply;
use resp::integer::parse_i64;

const COST: &str = "O(N) where N is the number of specified fields.";

pub const HSETEX: Command<DataFn> = write(
    "HSETEX key [NX | XX] [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
     PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
    hsetex,
)
.key_use("RW+insert")
.doc("Gives fields of a hash values, and optionally an expiration time.")
.group(Group::Hash)
.since("8.0.0")
.cost(COST)
.denyoom()
.fast();

pub const HGETEX: Command<DataFn> = write(
    "HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
     PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
    hgetex,
)
.key_use("RW+access+update")
.doc("Returns the values of fields of a hash, and optionally sets their expiration time.")
.group(Group::Hash)
.since("8.0.0")
.cost(COST)
.fast();

pub const HGETDEL: Command<DataFn> =
    write("HGETDEL key FIELDS numfields field [field ...]", hgetdel)
        .key_use("RW+access+delete")
        .doc("Returns the values of fields of a hash and deletes the fields.")
        .group(Group::Hash)
        .since("8.0.0")
        .cost(COST)
        .fast();

/// Redis's text for HSETEX, as its documentation shows it.
const ONE_EXPIRY: Refusal =
    Refusal::of("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");

/// The absolute time that an option with an operand means, in milliseconds; `None` for any other.
fn time(
    tx: &Tx<'_>,
    args: Args<'_>,
    expiry: Option<ExpiryOption>,
    command: &str,
) -> Result<Option<i64>, Refusal> {
    let Some(ExpiryOption::At(form, at)) = expiry else { return Ok(None) };
    let value = parse_i64(args.at(at)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let at = form.absolute(value, tx.now()).filter(|_| value >= 0);
    at.map(Some).ok_or_else(|| invalid(command))
}

/// The options of HSETEX.
#[derive(Default)]
struct SetOptions {
    /// NX, XX: whether the key must exist.
    key_exists: Option<bool>,
    /// FNX, FXX: whether all of the fields must exist, or none of them.
    fields_exist: Option<bool>,
    expiry: Option<ExpiryOption>,
}

impl SetOptions {
    fn parse(args: Args<'_>, end: usize) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut at = 2;
        while at < end {
            let flag = match args.at(at).to_ascii_uppercase().as_slice() {
                b"NX" => Some((&mut options.key_exists, false)),
                b"XX" => Some((&mut options.key_exists, true)),
                b"FNX" => Some((&mut options.fields_exist, false)),
                b"FXX" => Some((&mut options.fields_exist, true)),
                _ => None,
            };
            if let Some((flag, wanted)) = flag {
                if flag.is_some_and(|before| before != wanted) {
                    return Err(Refusal::SYNTAX);
                }
                *flag = Some(wanted);
                at += 1;
                continue;
            }
            let named = ExpiryOption::read(args, at, end)
                .filter(|(named, _)| *named != ExpiryOption::Persist);
            let (named, width) = named.ok_or(Refusal::SYNTAX)?;
            if !named.may_follow(options.expiry) {
                return Err(ONE_EXPIRY);
            }
            options.expiry = Some(named);
            at += width;
        }
        Ok(options)
    }
}

fn hsetex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let word = fields::find(args, 2)?;
    let options = SetOptions::parse(args, word)?;
    let first = fields::counted(args, word, 2)?;
    let exists = tx.hash(key)?.is_some();
    if options.key_exists.is_some_and(|wanted| wanted != exists) {
        reply.integer(0);
        return Ok(());
    }
    let at = time(tx, args, options.expiry, "hsetex")?;
    if let Some(wanted) = options.fields_exist {
        let work = tx.work();
        let hash = tx.hash(key)?;
        let is_as_wanted = |at: usize| {
            work.step();
            hash.is_some_and(|hash| hash.contains(args.at(at))) == wanted
        };
        if !(first..args.len()).step_by(2).all(is_as_wanted) {
            reply.integer(0);
            return Ok(());
        }
    }
    if at.is_some_and(|at| tx.is_overdue(at)) {
        set_overdue(tx, args, first)?;
    } else {
        for place in (first..args.len()).step_by(2) {
            let (field, value) = (args.at(place), args.at(place + 1));
            let expire_at = match options.expiry {
                Some(ExpiryOption::Keep) => {
                    tx.hash(key)?.and_then(|hash| hash.expire_at(field)).flatten()
                }
                _ => at,
            };
            tx.change(key, Effect::HashSet { field, value, expire_at })?;
        }
        tx.notify(Class::Hash, "hset", key);
        if at.is_some() {
            tx.notify(Class::Hash, "hexpire", key);
        }
    }
    reply.integer(1);
    Ok(())
}

/// HSETEX with a time that is past: the fields are deleted at once.
fn set_overdue(tx: &mut Tx<'_>, args: Args<'_>, first: usize) -> Outcome {
    let key = args.at(1);
    tx.notify(Class::Hash, "hset", key);
    for place in (first..args.len()).step_by(2) {
        tx.change(key, Effect::HashDelete { field: args.at(place), is_expired: false })?;
    }
    tell_deleted(tx, key);
    Ok(())
}

fn hgetex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let word = fields::find(args, 2)?;
    let mut expiry: Option<ExpiryOption> = None;
    let mut at = 2;
    while at < word {
        let named =
            ExpiryOption::read(args, at, word).filter(|(named, _)| *named != ExpiryOption::Keep);
        let (named, width) = named.ok_or(Refusal::SYNTAX)?;
        if !named.may_follow(expiry) {
            return Err(Refusal::SYNTAX);
        }
        expiry = Some(named);
        at += width;
    }
    let first = fields::counted(args, word, 1)?;
    tx.find_read(key);
    tx.hash(key)?;
    let at = time(tx, args, expiry, "hgetex")?;
    let is_overdue = at.is_some_and(|at| tx.is_overdue(at));
    reply.array(args.len() - first);
    let (mut deleted, mut persisted, mut expiring) = (false, false, Vec::new());
    for field in args.from(first) {
        let is_there = reply_field(tx, key, field, reply)?;
        if is_overdue {
            deleted |= delete(tx, key, field)?;
        } else if expiry == Some(ExpiryOption::Persist) {
            persisted |= persist(tx, key, field)? == 1;
        } else if is_there && at.is_some() {
            expiring.push(field);
        }
    }
    if let Some(at) = at
        && !expiring.is_empty()
    {
        expire_fields(tx, key, &expiring, at)?;
        tx.notify(Class::Hash, "hexpire", key);
    }
    if persisted {
        tx.notify(Class::Hash, "hpersist", key);
    }
    if deleted {
        tell_deleted(tx, key);
    }
    Ok(())
}

fn hgetdel(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let first = fields::only(args)?;
    // No miss is counted for the key: to Redis and Valkey the command is a write.
    tx.hash(key)?;
    reply.array(args.len() - first);
    let mut deleted = false;
    for field in args.from(first) {
        reply_field(tx, key, field, reply)?;
        deleted |= delete(tx, key, field)?;
    }
    if deleted {
        tell_deleted(tx, key);
    }
    Ok(())
}

/// Appends a field's value, or null; returns whether the field exists.
fn reply_field(
    tx: &mut Tx<'_>,
    key: &[u8],
    field: &[u8],
    reply: &mut Reply,
) -> Result<bool, Refusal> {
    let value = tx.hash(key)?.and_then(|hash| hash.get(field));
    match value {
        Some(value) => reply_text(value, reply),
        None => reply.null(),
    }
    Ok(value.is_some())
}

fn delete(tx: &mut Tx<'_>, key: &[u8], field: &[u8]) -> Result<bool, Refusal> {
    let effect = Effect::HashDelete { field, is_expired: false };
    Ok(tx.change(key, effect)? != Applied::Nothing)
}
