//! Keys of any type (Redis documentation, "Commands", group generic).
//!
//! | file | holds |
//! |---|---|
//! | `key` | existence, type, deletion, names |
//! | [`expire`] | expiry times |
//! | [`scan`] | SCAN, KEYS, RANDOMKEY: looking at the whole keyspace |
//! | [`database`] | moving between databases, exchanging and flushing them |
//! | [`object`] | OBJECT |
//! | [`sort`] | SORT |
//! | [`dump`] | DUMP and RESTORE |

mod database;
mod dump;
mod expire;
mod object;
pub mod scan;
mod sort;

use super::{Args, Command, DataFn, Flags, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value;
use crate::view::View;
use resp::Reply;

pub const COMMANDS: &[Command<DataFn>] = &[
    write("DEL key [key ...]", del)
        .key_use("RM+delete")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .doc("Deletes one or more keys.")
        .cost("O(N) where N is the number of keys that will be removed.")
        .with(Flags::KEYSPACE),
    write("UNLINK key [key ...]", del)
        .key_use("RM+delete")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .doc("Asynchronously deletes one or more keys.")
        .since("4.0.0")
        .cost("O(1) for each key removed regardless of its size.")
        .with(Flags::KEYSPACE)
        .fast(),
    read("EXISTS key [key ...]", exists)
        .needs_no_value()
        .key_use("RO")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .doc("Determines whether one or more keys exist.")
        .cost("O(N) where N is the number of keys to check.")
        .with(Flags::KEYSPACE)
        .fast(),
    read("TOUCH key [key ...]", touch)
        .needs_no_value()
        .key_use("RO")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .doc(
            "Returns the number of existing keys out of those specified after updating the time \
             they were last accessed.",
        )
        .since("3.2.1")
        .cost("O(N) where N is the number of keys that will be touched.")
        .with(Flags::KEYSPACE)
        .fast(),
    read("TYPE key", type_of)
        .needs_no_value()
        .key_use("RO")
        .doc("Determines the type of value stored at a key.")
        .cost("O(1)")
        .with(Flags::KEYSPACE)
        .fast(),
    write("RENAME key newkey", rename)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,OW+update"])
        .doc("Renames a key and overwrites the destination.")
        .cost("O(1)")
        .with(Flags::KEYSPACE),
    write("RENAMENX key newkey", renamenx)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,OW+insert"])
        .doc("Renames a key only when the target key name doesn't exist.")
        .cost("O(1)")
        .with(Flags::KEYSPACE)
        .fast(),
    expire::EXPIRE,
    expire::PEXPIRE,
    expire::EXPIREAT,
    expire::PEXPIREAT,
    expire::TTL,
    expire::PTTL,
    expire::EXPIRETIME,
    expire::PEXPIRETIME,
    expire::PERSIST,
    sort::SORT,
    sort::SORT_RO,
    scan::SCAN,
    scan::KEYS,
    scan::RANDOMKEY,
    scan::DBSIZE,
    database::COPY,
    database::MOVE,
    database::SWAPDB,
    database::FLUSHDB,
    database::FLUSHALL,
    object::ENCODING,
    object::FREQ,
    object::IDLETIME,
    object::REFCOUNT,
    object::TIER,
    dump::DUMP,
    dump::RESTORE,
    dump::RESTORE_ASKING,
];

fn del(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let mut deleted = 0;
    for key in args.from(1) {
        if tx.delete(key) {
            tx.notify(Class::Generic, "del", key);
            deleted += 1;
        }
    }
    reply.integer(deleted);
    Ok(())
}

fn exists(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let count = args.from(1).filter(|key| view.find_unused(key).is_some()).count();
    reply.integer(count as i64);
    Ok(())
}

fn touch(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let count = args.from(1).filter(|key| view.find(key).is_some()).count();
    reply.integer(count as i64);
    Ok(())
}

fn type_of(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply.simple(view.find_unused(args.at(1)).map_or("none", value::type_name));
    Ok(())
}

fn rename(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (from, to) = (args.at(1), args.at(2));
    if !tx.exists(from) {
        return Err(Refusal::NO_SUCH_KEY);
    }
    if from != to {
        move_name(tx, from, to)?;
    }
    reply.ok();
    Ok(())
}

fn renamenx(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (from, to) = (args.at(1), args.at(2));
    if !tx.exists(from) {
        return Err(Refusal::NO_SUCH_KEY);
    }
    if tx.exists(to) {
        reply.integer(0);
        return Ok(());
    }
    move_name(tx, from, to)?;
    reply.integer(1);
    Ok(())
}

fn move_name(tx: &mut Tx<'_>, from: &[u8], to: &[u8]) -> Outcome {
    // A target past its time dies of that, not of the renaming.
    tx.exists(to);
    let to_database = tx.database_id();
    tx.change(from, Effect::Rename { to_database, to })?;
    tx.notify(Class::Generic, "rename_from", from);
    tx.notify(Class::Generic, "rename_to", to);
    Ok(())
}
