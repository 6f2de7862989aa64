//! MSET and its kin: several strings at once.

use super::set::{Condition, Options, options, put};
use crate::command::expire_option::ExpiryOption;
use crate::command::{Args, Command, DataFn, Flags, Group, KeySpec, Outcome, int_argument, write};
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use resp::Reply;

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
        Some(ExpiryOption::At(form, at)) => Some(form.positive(args.at(at), tx.now(), "msetex")?),
        _ => None,
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
                Some(ExpiryOption::Keep) => tx.find(key).and_then(|entry| entry.expire_at()),
                _ => expire_at,
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
