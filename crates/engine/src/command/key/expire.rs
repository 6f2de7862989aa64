//! Expiry times: set, asked for, taken away. The effect is always the absolute time.

use crate::command::expire_option::{
    Conditions, ExpireForm, invalid, millis_left, rounded_seconds,
};
use crate::command::{Args, Command, DataFn, Flags, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;

pub const EXPIRE: Command<DataFn> = write("EXPIRE key seconds [NX | XX | GT | LT]", expire)
    .needs_no_value()
    .doc("Sets the expiration time of a key in seconds.")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const PEXPIRE: Command<DataFn> = write("PEXPIRE key milliseconds [NX | XX | GT | LT]", pexpire)
    .needs_no_value()
    .doc("Sets the expiration time of a key in milliseconds.")
    .since("2.6.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const EXPIREAT: Command<DataFn> =
    write("EXPIREAT key unix-time-seconds [NX | XX | GT | LT]", expireat)
        .needs_no_value()
        .doc("Sets the expiration time of a key to a Unix timestamp.")
        .since("1.2.0")
        .cost("O(1)")
        .with(Flags::KEYSPACE)
        .fast();

pub const PEXPIREAT: Command<DataFn> =
    write("PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]", pexpireat)
        .needs_no_value()
        .doc("Sets the expiration time of a key to a Unix milliseconds timestamp.")
        .since("2.6.0")
        .cost("O(1)")
        .with(Flags::KEYSPACE)
        .fast();

pub const TTL: Command<DataFn> = read("TTL key", ttl)
    .needs_no_value()
    .tips(&["nondeterministic_output"])
    .doc("Returns the expiration time in seconds of a key.")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const PTTL: Command<DataFn> = read("PTTL key", pttl)
    .needs_no_value()
    .tips(&["nondeterministic_output"])
    .doc("Returns the expiration time in milliseconds of a key.")
    .since("2.6.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const EXPIRETIME: Command<DataFn> = read("EXPIRETIME key", expiretime)
    .needs_no_value()
    .doc("Returns the expiration time of a key as a Unix timestamp.")
    .since("7.0.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const PEXPIRETIME: Command<DataFn> = read("PEXPIRETIME key", pexpiretime)
    .needs_no_value()
    .doc("Returns the expiration time of a key as a Unix milliseconds timestamp.")
    .since("7.0.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const PERSIST: Command<DataFn> = write("PERSIST key", persist)
    .needs_no_value()
    .doc("Removes the expiration time of a key.")
    .since("2.2.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

fn expire(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::Seconds, "expire")
}

fn pexpire(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::Millis, "pexpire")
}

fn expireat(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::SecondsAt, "expireat")
}

fn pexpireat(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_expiry(tx, args, reply, ExpireForm::MillisAt, "pexpireat")
}

fn set_expiry(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    form: ExpireForm,
    command: &str,
) -> Outcome {
    let key = args.at(1);
    let conditions = Conditions::read(args.from(3))?.checked()?;
    let value = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let at = form.absolute(value, tx.now()).ok_or_else(|| invalid(command))?;
    let admitted = tx.find(key).map(|entry| conditions.admit(entry.expire_at(), at));
    if admitted != Some(true) {
        reply.integer(0);
        return Ok(());
    }
    if tx.is_overdue(at) {
        tx.delete(key);
        tx.notify(Class::Generic, "del", key);
    } else {
        tx.change(key, Effect::Expire { at: Some(at) })?;
        tx.notify(Class::Generic, "expire", key);
    }
    reply.integer(1);
    Ok(())
}

/// Writes -2 for no key, -1 for no expiry, else what `show` makes of the time.
fn reply_time(view: &mut View<'_>, key: &[u8], reply: &mut Reply, show: impl Fn(i64, i64) -> i64) {
    let now = view.now().0;
    reply.integer(match view.find_unused(key).map(|entry| entry.expire_at()) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => show(at, now),
    });
}

fn ttl(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_time(view, args.at(1), reply, |at, now| rounded_seconds(millis_left(at, now)));
    Ok(())
}

fn pttl(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_time(view, args.at(1), reply, millis_left);
    Ok(())
}

fn expiretime(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_time(view, args.at(1), reply, |at, _| rounded_seconds(at));
    Ok(())
}

fn pexpiretime(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_time(view, args.at(1), reply, |at, _| at);
    Ok(())
}

fn persist(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let expires = tx.find(key).is_some_and(|entry| entry.expire_at().is_some());
    if expires {
        tx.change(key, Effect::Expire { at: None })?;
        tx.notify(Class::Generic, "persist", key);
    }
    reply.integer(i64::from(expires));
    Ok(())
}
