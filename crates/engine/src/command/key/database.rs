//! Databases: COPY and MOVE between them, SWAPDB, FLUSHDB, FLUSHALL.

use crate::command::{Args, Command, DataFn, Flags, Group, Outcome, int_argument, write};
use crate::command::{database_argument, database_of};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use resp::Reply;

pub const COPY: Command<DataFn> =
    write("COPY source destination [DB destination-db] [REPLACE]", copy)
        .key_specs(&["@1,0/1/0,RO+access", "@2,0/1/0,OW+update"])
        .doc("Copies the value of a key to a new key.")
        .since("6.2.0")
        .cost(
            "O(N) worst case for collections, where N is the number of nested items. O(1) for \
             string values.",
        )
        .denyoom()
        .with(Flags::KEYSPACE);

pub const MOVE: Command<DataFn> = write("MOVE key db", move_key)
    .needs_no_value()
    .key_use("RW+access+update")
    .doc("Moves a key to another database.")
    .cost("O(1)")
    .with(Flags::KEYSPACE)
    .fast();

pub const SWAPDB: Command<DataFn> = write("SWAPDB index1 index2", swapdb)
    .doc("Swaps two Redis databases.")
    .group(Group::Server)
    .since("4.0.0")
    .cost("O(N) where N is the count of clients watching or blocking on keys from both databases.")
    .with(Flags::KEYSPACE.union(Flags::DANGEROUS))
    .fast();

pub const FLUSHDB: Command<DataFn> = write("FLUSHDB [ASYNC | SYNC]", flushdb)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .doc("Remove all keys from the current database.")
    .group(Group::Server)
    .cost("O(N) where N is the number of keys in the selected database")
    .with(Flags::KEYSPACE.union(Flags::DANGEROUS));

pub const FLUSHALL: Command<DataFn> = write("FLUSHALL [ASYNC | SYNC]", flushall)
    .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
    .doc("Removes all keys from all databases.")
    .group(Group::Server)
    .cost("O(N) where N is the total number of keys in all databases")
    // What is empty is no part of anything.
    .with(Flags::KEYSPACE.union(Flags::DANGEROUS).union(Flags::BEARS_PART));

fn copy(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (from, to) = (args.at(1), args.at(2));
    let mut to_database = tx.database_id();
    let mut replaces = false;
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "REPLACE") {
            replaces = true;
        } else if args.is(at, "DB") && at + 1 < args.len() {
            at += 1;
            let databases = tx.settings().databases;
            to_database = database_argument(args.at(at), databases)?;
        } else {
            return Err(Refusal::SYNTAX);
        }
        at += 1;
    }
    if to_database == tx.database_id() && from == to {
        return Err(Refusal::of("ERR source and destination objects are the same"));
    }
    let blocked =
        tx.find_read(from).is_none() || tx.find_in(to_database, to).is_some() && !replaces;
    if !blocked {
        tx.change(from, Effect::Copy { to_database, to })?;
        tx.notify_in(to_database, Class::Generic, "copy_to", to);
    }
    reply.integer(i64::from(!blocked));
    Ok(())
}

fn move_key(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let databases = tx.settings().databases;
    let to_database = database_argument(args.at(2), databases)?;
    if to_database == tx.database_id() {
        return Err(Refusal::of("ERR source and destination objects are the same"));
    }
    let blocked = !tx.exists(key) || tx.find_in(to_database, key).is_some();
    if !blocked {
        let words = [Word::Text(b"MOVE"), Word::Text(key), Word::Number(to_database.0.into())];
        let effect = Effect::Rename { to_database, to: key };
        tx.told_as(&words, |tx| tx.change(key, effect).map(drop))?;
        tx.notify(Class::Generic, "move_from", key);
        tx.notify_in(to_database, Class::Generic, "move_to", key);
    }
    reply.integer(i64::from(!blocked));
    Ok(())
}

fn swapdb(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let databases = tx.settings().databases;
    let index = |at: usize, refusal| int_argument(args.at(at)).map_err(|_| Refusal::of(refusal));
    let first = index(1, "ERR invalid first DB index")?;
    let second = index(2, "ERR invalid second DB index")?;
    let (first, second) = (database_of(first, databases)?, database_of(second, databases)?);
    if first != second {
        tx.change_all(first, Effect::SwapDatabases { with: second });
    }
    reply.ok();
    Ok(())
}

fn flushdb(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    check_mode(args)?;
    tx.change_all(tx.database_id(), Effect::FlushDatabase);
    reply.ok();
    Ok(())
}

fn flushall(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    check_mode(args)?;
    tx.change_all(tx.database_id(), Effect::FlushAll);
    reply.ok();
    Ok(())
}

/// Either mode frees on a background thread: nothing here ever waits for memory to be freed.
fn check_mode(args: Args<'_>) -> Outcome {
    let known = args.len() == 1 || args.len() == 2 && (args.is(1, "ASYNC") || args.is(1, "SYNC"));
    if known { Ok(()) } else { Err(Refusal::SYNTAX) }
}
