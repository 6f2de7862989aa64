//! SET and its kin.

use super::reply_string;
use crate::command::expire_option::{ExpireForm, ExpiryOption};
use crate::command::{Args, Command, DataFn, Group, KeyUse, Outcome, write};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::StringValue;
use crate::value::text::canonical_integer;
use resp::Reply;

pub const SET: Command<DataFn> = write(
    "SET key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
     PXAT unix-time-milliseconds | KEEPTTL]",
    set,
)
.key_use("RW+access+update+variable_flags")
.find_keys(set_keys)
.doc("Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.")
.group(Group::String)
.cost("O(1)")
.denyoom();

pub const SETNX: Command<DataFn> = write("SETNX key value", setnx)
    .key_use("OW+insert")
    .doc("Set the string value of a key only when the key doesn't exist.")
    .group(Group::String)
    .cost("O(1)")
    .denyoom()
    .fast();

pub const SETEX: Command<DataFn> = write("SETEX key seconds value", setex)
    .key_use("OW+update")
    .doc("Sets the string value and expiration time of a key. Creates the key if it doesn't exist.")
    .group(Group::String)
    .since("2.0.0")
    .cost("O(1)")
    .denyoom();

pub const PSETEX: Command<DataFn> = write("PSETEX key milliseconds value", psetex)
    .key_use("OW+update")
    .doc(
        "Sets both string value and expiration time in milliseconds of a key. The key is created \
         if it doesn't exist.",
    )
    .group(Group::String)
    .since("2.6.0")
    .cost("O(1)")
    .denyoom();

pub const GETSET: Command<DataFn> = write("GETSET key value", getset)
    .key_use("RW+access+update")
    .doc("Returns the previous string value of a key after setting it to a new value.")
    .group(Group::String)
    .cost("O(1)")
    .denyoom()
    .fast();

/// Of Valkey 9.0.
pub const DELIFEQ: Command<DataFn> = write("DELIFEQ key value", delifeq)
    .key_use("RW+access+delete")
    .doc("Deletes a key if it holds this string.")
    .group(Group::String)
    .since("9.0.0")
    .cost("O(1)")
    .fast();

pub const GETDEL: Command<DataFn> = write("GETDEL key", getdel)
    .key_use("RW+access+delete")
    .doc("Returns the string value of a key after deleting the key.")
    .group(Group::String)
    .since("6.2.0")
    .cost("O(1)")
    .fast();

pub const GETEX: Command<DataFn> = write(
    "GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
     PXAT unix-time-milliseconds | PERSIST]",
    getex,
)
.key_use("RW+access+update")
.doc("Returns the string value of a key after setting its expiration time.")
.group(Group::String)
.since("6.2.0")
.cost("O(1)")
.fast();

/// When a SET happens at all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    IfAbsent,
    IfPresent,
    /// IFEQ: if the present value equals the argument at this place (Valkey 8.1).
    IfEqual(usize),
}

pub(super) struct Options {
    pub(super) condition: Condition,
    pub(super) returns_old: bool,
    /// `None`: the key does not expire any longer.
    pub(super) expiry: Option<ExpiryOption>,
}

/// Reads the options from argument `at` on.
pub(super) fn options(args: Args<'_>, mut at: usize) -> Result<Options, Refusal> {
    let mut options = Options { condition: Condition::Always, returns_old: false, expiry: None };
    while let Some(word) = args.get(at) {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        let may_be = |wanted| [Condition::Always, wanted].contains(&options.condition);
        if is("NX") && may_be(Condition::IfAbsent) {
            options.condition = Condition::IfAbsent;
        } else if is("XX") && may_be(Condition::IfPresent) {
            options.condition = Condition::IfPresent;
        } else if is("IFEQ") && options.condition == Condition::Always && at + 1 < args.len() {
            at += 1;
            options.condition = Condition::IfEqual(at);
        } else if is("GET") {
            options.returns_old = true;
        } else if let Some((named, width)) = ExpiryOption::read(args, at, args.len())
            && named != ExpiryOption::Persist
            && named.may_follow(options.expiry)
        {
            options.expiry = Some(named);
            at += width - 1;
        } else {
            return Err(Refusal::SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

/// SET reads the key too, if it has the option GET or IFEQ.
fn set_keys(args: Args<'_>, each: &mut dyn FnMut(usize, KeyUse)) {
    let reads = (3..args.len()).any(|at| args.is(at, "GET") || args.is(at, "IFEQ"));
    each(1, if reads { KeyUse::CHANGE } else { KeyUse::OVERWRITE });
}

fn set(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, value) = (args.at(1), args.at(2));
    if args.len() == 3 {
        tx.change(key, Effect::SetString { value, expire_at: None })?;
        tx.notify(Class::String, "set", key);
        reply.ok();
        return Ok(());
    }
    let options = options(args, 3)?;
    let expire_at = match options.expiry {
        Some(ExpiryOption::At(form, at)) => Some(form.positive(args.at(at), tx.now(), "set")?),
        Some(ExpiryOption::Keep) => tx.find(key).and_then(|entry| entry.expire_at()),
        Some(ExpiryOption::Persist) | None => None,
    };
    let written = reply.len();
    if options.returns_old {
        tx.find_read(key);
        reply_string(tx.string(key)?, reply);
    }
    let happens = match options.condition {
        Condition::Always => true,
        Condition::IfAbsent => !tx.exists(key),
        Condition::IfPresent => tx.exists(key),
        Condition::IfEqual(at) => is_equal(tx, key, args.at(at))?,
    };
    if !happens {
        if reply.len() == written {
            reply.null();
        }
        return Ok(());
    }
    if matches!(options.expiry, Some(ExpiryOption::Keep)) {
        let words =
            [Word::Text(b"SET"), Word::Text(key), Word::Text(value), Word::Text(b"KEEPTTL")];
        tx.told_as(&words, |tx| put(tx, key, value, expire_at))?;
    } else {
        put(tx, key, value, expire_at)?;
    }
    tx.notify(Class::String, "set", key);
    if matches!(options.expiry, Some(ExpiryOption::At(..))) {
        tx.notify(Class::Generic, "expire", key);
    }
    if reply.len() == written {
        reply.ok();
    }
    Ok(())
}

/// Sets a string; one whose time has already come is a deletion.
pub(super) fn put(tx: &mut Tx<'_>, key: &[u8], value: &[u8], expire_at: Option<i64>) -> Outcome {
    tx.change(key, Effect::SetString { value, expire_at })?;
    Ok(())
}

fn setnx(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    if tx.exists(args.at(1)) {
        reply.integer(0);
        return Ok(());
    }
    put(tx, args.at(1), args.at(2), None)?;
    tx.notify(Class::String, "set", args.at(1));
    reply.integer(1);
    Ok(())
}

fn setex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiring(tx, args, reply, ExpireForm::Seconds, "setex")
}

fn psetex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiring(tx, args, reply, ExpireForm::Millis, "psetex")
}

fn set_expiring(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    form: ExpireForm,
    command: &str,
) -> Outcome {
    let expire_at = form.positive(args.at(2), tx.now(), command)?;
    put(tx, args.at(1), args.at(3), Some(expire_at))?;
    tx.notify(Class::String, "set", args.at(1));
    tx.notify(Class::Generic, "expire", args.at(1));
    reply.ok();
    Ok(())
}

fn getset(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    tx.find_read(args.at(1));
    reply_string(tx.string(args.at(1))?, reply);
    put(tx, args.at(1), args.at(2), None)?;
    tx.notify(Class::String, "set", args.at(1));
    Ok(())
}

/// Whether the key holds this string.
fn is_equal(tx: &mut Tx<'_>, key: &[u8], text: &[u8]) -> Result<bool, Refusal> {
    Ok(match tx.string(key)? {
        None => false,
        Some(StringValue::Bytes(bytes)) => bytes == text,
        Some(StringValue::Integer(integer)) => canonical_integer(text) == Some(integer),
    })
}

fn delifeq(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let is_equal = is_equal(tx, key, args.at(2))?;
    if is_equal {
        tx.delete(key);
        tx.notify(Class::Generic, "del", key);
    }
    reply.integer(i64::from(is_equal));
    Ok(())
}

fn getdel(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    tx.find_read(key);
    let Some(value) = tx.string(key)? else {
        reply.null();
        return Ok(());
    };
    reply_string(Some(value), reply);
    tx.delete(key);
    tx.notify(Class::Generic, "del", key);
    Ok(())
}

fn getex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let mut expiry = None;
    let mut at = 2;
    while at < args.len() {
        let named = ExpiryOption::read(args, at, args.len());
        let (named, width) = named.ok_or(Refusal::SYNTAX)?;
        if named == ExpiryOption::Keep || !named.may_follow(expiry) {
            return Err(Refusal::SYNTAX);
        }
        expiry = Some(named);
        at += width;
    }
    tx.find_read(key);
    if tx.string(key)?.is_none() {
        reply.null();
        return Ok(());
    }
    let expire_at = match expiry {
        Some(ExpiryOption::At(form, at)) => Some(form.positive(args.at(at), tx.now(), "getex")?),
        _ => None,
    };
    reply_string(tx.string(key)?, reply);
    if let Some(expire_at) = expire_at {
        if tx.is_overdue(expire_at) {
            tx.delete(key);
            tx.notify(Class::Generic, "del", key);
        } else {
            tx.change(key, Effect::Expire { at: Some(expire_at) })?;
            tx.notify(Class::Generic, "expire", key);
        }
    } else if expiry == Some(ExpiryOption::Persist)
        && tx.find(key).is_some_and(|entry| entry.expire_at().is_some())
    {
        tx.change(key, Effect::Expire { at: None })?;
        tx.notify(Class::Generic, "persist", key);
    }
    Ok(())
}
