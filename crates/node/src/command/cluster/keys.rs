//! Slots of keys, and the keys of a slot.
//!
//! There is no index of keys by slot: one shard owns all slots and none ever moves, so only tools
//! ask. The keys are walked, which takes about 0.15 µs for each (a guess: a cache miss and a
//! CRC-16), and a keyspace whose walk would hold up others is refused.

use crate::core::Core;
use crate::server::Server;
use base::{ConnectionId, DatabaseId};
use engine::command::{Args, Outcome};
use engine::keyspace::Keyspace;
use engine::refusal::Refusal;
use engine::slot::{self, SLOTS};
use engine::value::text::canonical_integer;

/// Keys of a database that are walked for the keys of one slot: some 0.15 s of work.
const KEYS_WALKED_MAX: usize = 1 << 20;

pub fn slot_of(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.reply(client).integer(i64::from(slot::of_key(args.at(2)).0));
    Ok(())
}

pub fn count(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let slot = canonical_integer(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let slot = checked(slot).ok_or(Refusal::of("ERR Invalid slot"))?;
    let keyspace = &server.core.shard.engine.keyspace;
    let found = keys_of(keyspace, server.core.clients.at(client).database, slot)?.count();
    server.core.clients.reply(client).integer(found as i64);
    Ok(())
}

pub fn list(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let slot = canonical_integer(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let count = canonical_integer(args.at(3)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let (Some(slot), Ok(count)) = (checked(slot), usize::try_from(count)) else {
        return Err(Refusal::of("ERR Invalid slot or number of keys"));
    };
    let Core { clients, shard, .. } = &mut server.core;
    let keyspace = &shard.engine.keyspace;
    let database = clients.at(client).database;
    let found: Vec<&[u8]> = keys_of(keyspace, database, slot)?.take(count).collect();
    let reply = clients.reply(client);
    reply.array(found.len());
    keyspace.work.reply_each(found, reply, |key, reply| reply.bulk(key));
    Ok(())
}

fn checked(slot: i64) -> Option<u16> {
    u16::try_from(slot).ok().filter(|slot| *slot < SLOTS)
}

fn keys_of(
    keyspace: &Keyspace,
    database: DatabaseId,
    slot: u16,
) -> Result<impl Iterator<Item = &[u8]>, Refusal> {
    let database = keyspace.database(database);
    if database.len() > KEYS_WALKED_MAX {
        return Err(Refusal::new(format!(
            "ERR more than {KEYS_WALKED_MAX} keys are not walked for those of a slot, use SCAN"
        )));
    }
    let entries = database.table().iter().inspect(|_| keyspace.work.step());
    let keys = entries.map(|entry| entry.key());
    Ok(keys.filter(move |key| slot::of_key(key).0 == slot))
}
