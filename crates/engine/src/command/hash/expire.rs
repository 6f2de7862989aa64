//! HEXPIRE, HTTL, HPERSIST and their kin. The effect is always the absolute time.

use super::change::tell_deleted;
use super::{fields, find};
use crate::command::expire_option::{
    Conditions, ExpireForm, invalid, millis_left, rounded_seconds,
};
use crate::command::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;
use std::collections::BTreeSet;

const COST: &str = "O(N) where N is the number of specified fields.";

/// The properties that all rows of this file share.
const fn row(command: Command<DataFn>, summary: &'static str) -> Command<DataFn> {
    command.doc(summary).group(Group::Hash).since("7.4.0").cost(COST).fast()
}

pub const HEXPIRE: Command<DataFn> = row(
    write("HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]", hexpire),
    "Sets the expiration time of fields of a hash in seconds.",
)
.key_use("RW+update");

pub const HPEXPIRE: Command<DataFn> = row(
    write(
        "HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        hpexpire,
    ),
    "Sets the expiration time of fields of a hash in milliseconds.",
)
.key_use("RW+update");

pub const HEXPIREAT: Command<DataFn> = row(
    write(
        "HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        hexpireat,
    ),
    "Sets the expiration time of fields of a hash to a Unix timestamp.",
)
.key_use("RW+update");

pub const HPEXPIREAT: Command<DataFn> = row(
    write(
        "HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field \
         [field ...]",
        hpexpireat,
    ),
    "Sets the expiration time of fields of a hash to a Unix milliseconds timestamp.",
)
.key_use("RW+update");

pub const HTTL: Command<DataFn> = row(
    read("HTTL key FIELDS numfields field [field ...]", httl),
    "Returns the expiration time in seconds of fields of a hash.",
);

pub const HPTTL: Command<DataFn> = row(
    read("HPTTL key FIELDS numfields field [field ...]", hpttl),
    "Returns the expiration time in milliseconds of fields of a hash.",
);

pub const HEXPIRETIME: Command<DataFn> = row(
    read("HEXPIRETIME key FIELDS numfields field [field ...]", hexpiretime),
    "Returns the expiration time of fields of a hash as a Unix timestamp.",
);

pub const HPEXPIRETIME: Command<DataFn> = row(
    read("HPEXPIRETIME key FIELDS numfields field [field ...]", hpexpiretime),
    "Returns the expiration time of fields of a hash as a Unix milliseconds timestamp.",
);

pub const HPERSIST: Command<DataFn> = row(
    write("HPERSIST key FIELDS numfields field [field ...]", hpersist),
    "Removes the expiration time of fields of a hash.",
)
.key_use("RW+update");

/// The answer for a field that does not exist.
const NO_FIELD: i64 = -2;
/// The answer for a field that does not expire.
const NO_EXPIRY: i64 = -1;
/// The answer for a field that was deleted, because its new time is past.
const DELETED: i64 = 2;

fn hexpire(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::Seconds, "hexpire")
}

fn hpexpire(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::Millis, "hpexpire")
}

fn hexpireat(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::SecondsAt, "hexpireat")
}

fn hpexpireat(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::MillisAt, "hpexpireat")
}

fn set_expiry(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    form: ExpireForm,
    command: &str,
) -> Outcome {
    let key = args.at(1);
    let word = fields::find(args, 3)?;
    let conditions = Conditions::read(args.range(3..word))?.checked()?;
    let first = fields::counted(args, word, 1)?;
    let value = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let at = form.absolute(value, tx.now()).filter(|_| value >= 0);
    let at = at.ok_or_else(|| invalid(command))?;
    tx.hash(key)?;
    // A field named twice: at its second place it counts as having the new time already.
    let mut admitted = BTreeSet::new();
    let mut answers = Vec::with_capacity(args.len() - first);
    for field in args.from(first) {
        let current = match admitted.contains(field) {
            true => Some(Some(at)),
            false => tx.hash(key)?.and_then(|hash| hash.expire_at(field)),
        };
        answers.push(match current {
            None => NO_FIELD,
            Some(current) if !conditions.admit(current, at) => 0,
            Some(_) if tx.is_overdue(at) => {
                tx.change(key, Effect::HashDelete { field, is_expired: false })?;
                DELETED
            }
            Some(_) => {
                admitted.insert(field);
                1
            }
        });
    }
    if !admitted.is_empty() {
        expire_fields(tx, key, &admitted.into_iter().collect::<Vec<_>>(), at)?;
        tx.notify(Class::Hash, "hexpire", key);
    }
    if answers.contains(&DELETED) {
        tell_deleted(tx, key);
    }
    reply.array(answers.len());
    let work = tx.work();
    work.reply_each(answers, reply, |answer, reply| reply.integer(answer));
    Ok(())
}

/// Sets the expiry of existing fields to one time in the future. Replicas of Redis are told one
/// HPEXPIREAT.
pub(super) fn expire_fields(tx: &mut Tx<'_>, key: &[u8], fields: &[&[u8]], at: i64) -> Outcome {
    let count = Word::Number(fields.len() as i64);
    let head = [Word::Text(b"HPEXPIREAT"), Word::Text(key), Word::Number(at)];
    let counted = [Word::Text(b"FIELDS"), count];
    let names = fields.iter().map(|field| Word::Text(field));
    let words: Vec<_> = head.into_iter().chain(counted).chain(names).collect();
    tx.told_as(&words, |tx| {
        fields.iter().try_for_each(|field| {
            tx.change(key, Effect::HashExpire { field, at: Some(at) }).map(drop)
        })
    })
}

/// Answers each field: -2 if it does not exist, -1 if it does not expire, otherwise `show(time,
/// now)`.
fn reply_times(
    view: &mut View<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    show: impl Fn(i64, i64) -> i64,
) -> Outcome {
    // Valkey answers every wrong field count with a syntax error, but for one that is no integer.
    let is_wrong = |refusal: &Refusal| *refusal != Refusal::NOT_AN_INTEGER;
    let first = fields::only(args);
    let first = first.map_err(|it| if is_wrong(&it) { Refusal::SYNTAX } else { it })?;
    let hash = find(view, args.at(1))?;
    let now = view.now().0;
    reply.array(args.len() - first);
    view.work().reply_each(args.from(first), reply, |field, reply| {
        reply.integer(match hash.and_then(|hash| hash.expire_at(field)) {
            None => NO_FIELD,
            Some(None) => NO_EXPIRY,
            Some(Some(at)) => show(at, now),
        });
    });
    Ok(())
}

fn httl(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_times(view, args, reply, |at, now| rounded_seconds(millis_left(at, now)))
}

fn hpttl(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_times(view, args, reply, millis_left)
}

fn hexpiretime(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_times(view, args, reply, |at, _| rounded_seconds(at))
}

fn hpexpiretime(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_times(view, args, reply, |at, _| at)
}

fn hpersist(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let first = fields::only(args)?;
    tx.hash(key)?;
    let mut answers = Vec::with_capacity(args.len() - first);
    for field in args.from(first) {
        answers.push(persist(tx, key, field)?);
    }
    if answers.contains(&1) {
        tx.notify(Class::Hash, "hpersist", key);
    }
    reply.array(answers.len());
    let work = tx.work();
    work.reply_each(answers, reply, |answer, reply| reply.integer(answer));
    Ok(())
}

/// Removes a field's expiry; returns HPERSIST's answer.
pub(super) fn persist(tx: &mut Tx<'_>, key: &[u8], field: &[u8]) -> Result<i64, Refusal> {
    match tx.hash(key)?.and_then(|hash| hash.expire_at(field)) {
        None => Ok(NO_FIELD),
        Some(None) => Ok(NO_EXPIRY),
        Some(Some(_)) => {
            tx.change(key, Effect::HashExpire { field, at: None })?;
            Ok(1)
        }
    }
}
