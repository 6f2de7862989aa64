//! SET and its kin.

use super::reply_string;
use crate::command::expire_option::ExpireForm;
use crate::command::{
    Args, Command, DataFn, Flags, Group, KeySpec, KeyUse, Outcome, int_argument, write,
};
use crate::effect::Effect;
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

pub const MSET: Command<DataFn> = write("MSET key value [key value ...]", mset)
    .key_use("OW+update")
    .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
    .doc("Atomically creates or modifies the string values of one or more keys.")
    .group(Group::String)
    .since("1.0.1")
    .cost("O(N) where N is the number of keys to set.")
    .denyoom();

pub const MSETNX: Command<DataFn> = write("MSETNX key value [key value ...]", msetnx)
    .key_use("OW+insert")
    .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
    .doc(
        "Atomically modifies the string values of one or more keys only when all keys don't exist.",
    )
    .group(Group::String)
    .since("1.0.1")
    .cost("O(N) where N is the number of keys to set.")
    .denyoom()
    .with(Flags::NONE);

/// Of Valkey 9.1.
pub const MSETEX: Command<DataFn> = write(
    "MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | \
     EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
    msetex,
)
.keys(&[KeySpec::Counted { count: 1, first: 2 }])
.key_specs(&["@1,#0/1/2,OW+update"])
.tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
.doc("Sets several strings at once, with one expiry, perhaps only if all of them or none is there.")
.group(Group::String)
.since("9.1.0")
.cost("O(N) where N is the number of keys to set.")
.denyoom();

/// When a SET happens at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfAbsent,
    IfPresent,
    /// Its value is the argument here (Valkey 8.1).
    IfEqual(usize),
}

/// The change to the key's expiry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    None,
    Keep,
    At(ExpireForm, usize),
}

impl Expiry {
    /// Whether another expiry option may follow: of the same form only, and then the last counts,
    /// as in Redis.
    fn may_become(self, form: ExpireForm) -> bool {
        match self {
            Self::None => true,
            Self::Keep => false,
            Self::At(before, _) => before == form,
        }
    }
}

struct Options {
    condition: Condition,
    returns_old: bool,
    expiry: Expiry,
}

/// Reads the options from argument `at` on.
fn options(args: Args<'_>, mut at: usize) -> Result<Options, Refusal> {
    let mut options =
        Options { condition: Condition::Always, returns_old: false, expiry: Expiry::None };
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
        } else if is("KEEPTTL") && matches!(options.expiry, Expiry::None | Expiry::Keep) {
            options.expiry = Expiry::Keep;
        } else if let Some(form) = ExpireForm::of_word(word)
            && options.expiry.may_become(form)
            && at + 1 < args.len()
        {
            at += 1;
            options.expiry = Expiry::At(form, at);
        } else {
            return Err(Refusal::SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

/// SET reads the key too if it has the option GET or IFEQ.
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
        Expiry::None => None,
        Expiry::At(form, at) => Some(form.positive(args.at(at), tx.now(), "set")?),
        Expiry::Keep => tx.find(key).and_then(|entry| entry.expire_at()),
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
    put(tx, key, value, expire_at)?;
    tx.notify(Class::String, "set", key);
    if matches!(options.expiry, Expiry::At(..)) {
        tx.notify(Class::Generic, "expire", key);
    }
    if reply.len() == written {
        reply.ok();
    }
    Ok(())
}

/// Sets a string; one whose time has already come is a deletion.
fn put(tx: &mut Tx<'_>, key: &[u8], value: &[u8], expire_at: Option<i64>) -> Outcome {
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
    let mut persists = false;
    let mut form = None;
    let mut at = 2;
    while let Some(word) = args.get(at) {
        if word.eq_ignore_ascii_case(b"PERSIST") && form.is_none() {
            persists = true;
        } else if let Some(named) = ExpireForm::of_word(word)
            && form.is_none_or(|(before, _)| before == named)
            && !persists
            && at + 1 < args.len()
        {
            at += 1;
            form = Some((named, at));
        } else {
            return Err(Refusal::SYNTAX);
        }
        at += 1;
    }
    tx.find_read(key);
    if tx.string(key)?.is_none() {
        reply.null();
        return Ok(());
    }
    let expire_at = match form {
        Some((form, at)) => Some(form.positive(args.at(at), tx.now(), "getex")?),
        None => None,
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
    } else if persists && tx.find(key).is_some_and(|entry| entry.expire_at().is_some()) {
        tx.change(key, Effect::Expire { at: None })?;
        tx.notify(Class::Generic, "persist", key);
    }
    Ok(())
}

fn mset(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    check_pairs(args, "mset")?;
    set_pairs(tx, args)?;
    reply.ok();
    Ok(())
}

fn msetnx(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    check_pairs(args, "msetnx")?;
    if args.from(1).step_by(2).any(|key| tx.exists(key)) {
        reply.integer(0);
        return Ok(());
    }
    set_pairs(tx, args)?;
    reply.integer(1);
    Ok(())
}

fn msetex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    const NO_COUNT: Refusal = Refusal::of("ERR invalid numkeys value or out of range");
    let count = int_argument(args.at(1)).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0).ok_or(NO_COUNT)?;
    let end = 2 + 2 * count;
    if end > args.len() {
        return Err(Refusal::SYNTAX);
    }
    let Options { condition, returns_old: false, expiry } = options(args, end)? else {
        return Err(Refusal::SYNTAX);
    };
    let expire_at = match expiry {
        Expiry::At(form, at) => Some(form.positive(args.at(at), tx.now(), "msetex")?),
        Expiry::None | Expiry::Keep => None,
    };
    let mut keys = (2..end).step_by(2).map(|at| args.at(at));
    let happens = match condition {
        Condition::Always => true,
        Condition::IfAbsent => !keys.any(|key| tx.exists(key)),
        Condition::IfPresent => keys.all(|key| tx.exists(key)),
        Condition::IfEqual(_) => return Err(Refusal::SYNTAX),
    };
    if happens {
        for at in (2..end).step_by(2) {
            let (key, value) = (args.at(at), args.at(at + 1));
            let kept = match expiry {
                Expiry::Keep => tx.find(key).and_then(|entry| entry.expire_at()),
                Expiry::None | Expiry::At(..) => expire_at,
            };
            put(tx, key, value, kept)?;
            tx.notify(Class::String, "set", key);
            if expire_at.is_some() {
                tx.notify(Class::Generic, "expire", key);
            }
        }
    }
    reply.integer(i64::from(happens));
    Ok(())
}

fn check_pairs(args: Args<'_>, command: &str) -> Outcome {
    if args.len().is_multiple_of(2) {
        return Err(Refusal::arity(command));
    }
    Ok(())
}

fn set_pairs(tx: &mut Tx<'_>, args: Args<'_>) -> Outcome {
    for at in (1..args.len()).step_by(2) {
        put(tx, args.at(at), args.at(at + 1), None)?;
        tx.notify(Class::String, "set", args.at(at));
    }
    Ok(())
}
