//! Hashes (Redis documentation, "Commands", group hash).
//!
//! | module | holds |
//! |---|---|
//! | `hash` | the declarations, HSCAN |
//! | `read` | fields and values asked for |
//! | `change` | fields set and deleted, HINCRBY, HINCRBYFLOAT |
//! | `chance` | HRANDFIELD |
//! | `expire` | when fields expire: HEXPIRE, HTTL, HPERSIST and their kin |
//! | `expiring` | HSETEX, HGETEX, HGETDEL |
//! | `fields` | how they name fields |

mod chance;
mod change;
mod expire;
mod expiring;
mod fields;
mod read;
#[cfg(test)]
mod tests;

use super::key::scan::{SCAN_COST, ScanOptions, Takes, parse_cursor};
use super::{Args, Command, DataFn, Group, Outcome, read as reads, write};
use crate::refusal::Refusal;
use crate::value::hash::{Seen, Text};
use crate::view::View;
use resp::Reply;

pub const COMMANDS: &[Command<DataFn>] = &[
    write("HSET key field value [field value ...]", change::hset)
        .doc("Gives fields of a hash values; the hash is created if absent.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(1) for each field/value pair added, so O(N) for N pairs.")
        .denyoom()
        .fast(),
    write("HSETNX key field value", change::hsetnx)
        .key_use("RW+insert")
        .doc("Gives a field of a hash a value, unless it has one.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(1)")
        .denyoom()
        .fast(),
    write("HMSET key field value [field value ...]", change::hmset)
        .doc("Gives fields of a hash values; HSET does the same.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(N) where N is the number of fields being set.")
        .denyoom()
        .fast(),
    write("HINCRBY key field increment", change::hincrby)
        .key_use("RW+access+update")
        .doc("Adds to the integer in a field, 0 if the field is absent.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(1)")
        .denyoom()
        .fast(),
    write("HINCRBYFLOAT key field increment", change::hincrbyfloat)
        .key_use("RW+access+update")
        .doc("Adds to the floating-point number in a field, 0 if the field is absent.")
        .group(Group::Hash)
        .since("2.6.0")
        .cost("O(1)")
        .denyoom()
        .fast(),
    write("HDEL key field [field ...]", change::hdel)
        .key_use("RW+delete")
        .doc("Deletes fields of a hash; the key goes with the last one.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(N) where N is the number of fields to be removed.")
        .fast(),
    reads("HGET key field", read::hget)
        .doc("Returns the value of a field.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(1)")
        .fast(),
    reads("HMGET key field [field ...]", read::hmget)
        .doc("Returns the values of several fields.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(N) where N is the number of fields being requested.")
        .fast(),
    reads("HGETALL key", read::hgetall)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns all fields and values of a hash.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(N) where N is the size of the hash."),
    reads("HKEYS key", read::hkeys)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns all fields of a hash.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(N) where N is the size of the hash."),
    reads("HVALS key", read::hvals)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns all values of a hash.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(N) where N is the size of the hash."),
    reads("HLEN key", read::hlen)
        .needs_no_value()
        .key_use("RO")
        .doc("Returns the number of fields in a hash.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(1)")
        .fast(),
    reads("HEXISTS key field", read::hexists)
        .key_use("RO")
        .doc("Tells whether a field is in a hash.")
        .group(Group::Hash)
        .since("2.0.0")
        .cost("O(1)")
        .fast(),
    reads("HSTRLEN key field", read::hstrlen)
        .key_use("RO")
        .doc("Returns the length of the value of a field.")
        .group(Group::Hash)
        .since("3.2.0")
        .cost("O(1)")
        .fast(),
    reads("HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]", hscan)
        .tips(&["nondeterministic_output"])
        .doc("Iterates over the fields and values of a hash.")
        .group(Group::Hash)
        .since("2.8.0")
        .cost(SCAN_COST),
    chance::HRANDFIELD,
    expire::HEXPIRE,
    expire::HPEXPIRE,
    expire::HEXPIREAT,
    expire::HPEXPIREAT,
    expire::HTTL,
    expire::HPTTL,
    expire::HEXPIRETIME,
    expire::HPEXPIRETIME,
    expire::HPERSIST,
    expiring::HSETEX,
    expiring::HGETEX,
    expiring::HGETDEL,
];

/// The hash at a key, without fields whose time has come.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn find<'v>(view: &mut View<'v>, key: &[u8]) -> Result<Option<Seen<'v>>, Refusal> {
    view.find(key).map(|entry| view.hash_in(entry)).transpose()
}

/// Appends a field or a value as a bulk string.
fn reply_text(text: Text<'_>, reply: &mut Reply) {
    match text {
        Text::Bytes(bytes) => reply.bulk(bytes),
        Text::Integer(integer) => reply.bulk_integer(integer),
    }
}

fn hscan(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    parse_cursor(args.at(2))?;
    let Some(hash) = find(view, args.at(1))? else {
        // As in Redis, options are not even read then.
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 2, Takes::Bare("NOVALUES"))?;
    let mut found = Vec::new();
    let mut name = Vec::new();
    let work = view.work();
    let next = hash.scan(options.cursor, options.count, |field, value| {
        work.step();
        name.clear();
        field.append_to(&mut name);
        if options.matches(&name, work) {
            found.push((field, value));
        }
    });
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(if options.with_values { 2 * found.len() } else { found.len() });
    work.reply_each(found, reply, |(field, value), reply| {
        reply_text(field, reply);
        if options.with_values {
            reply_text(value, reply);
        }
    });
    Ok(())
}
