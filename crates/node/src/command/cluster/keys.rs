//! Slots of keys, and the keys of a slot.
//!
//! There is no index of keys by slot: one shard owns all slots and none ever moves, so only tools
//! ask. The keys are walked, which takes about 0.15 µs for each (a guess: a cache miss and a
//! CRC-16), and a keyspace whose walk would hold up others is refused.

use crate::server::Server;
use crate::session::Session;
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use engine::slot::{self, SLOTS};
use engine::value::text::canonical_integer;

/// Keys of a database that are walked for the keys of one slot: some 0.15 s of work.
const KEYS_WALKED_MAX: usize = 1 << 20;

pub fn slot_of(_: &mut Server, session: &mut Session, args: Args<'_>) -> Outcome {
    session.reply().integer(i64::from(slot::of_key(args.at(2)).0));
    Ok(())
}

pub fn count(server: &mut Server, session: &mut Session, args: Args<'_>) -> Outcome {
    let slot = canonical_integer(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let slot = checked(slot).ok_or(Refusal::of("ERR Invalid slot"))?;
    let found = keys_of(server, session, slot)?.count();
    session.reply().integer(found as i64);
    Ok(())
}

pub fn list(server: &mut Server, session: &mut Session, args: Args<'_>) -> Outcome {
    let slot = canonical_integer(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let count = canonical_integer(args.at(3)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let (Some(slot), Ok(count)) = (checked(slot), usize::try_from(count)) else {
        return Err(Refusal::of("ERR Invalid slot or number of keys"));
    };
    let found: Vec<&[u8]> = keys_of(server, session, slot)?.take(count).collect();
    session.reply().array(found.len());
    server.work().reply_each(found, session.reply(), |key, reply| reply.bulk(key));
    Ok(())
}

fn checked(slot: i64) -> Option<u16> {
    u16::try_from(slot).ok().filter(|slot| *slot < SLOTS)
}

fn keys_of<'a>(
    server: &'a Server,
    session: &Session,
    slot: u16,
) -> Result<impl Iterator<Item = &'a [u8]>, Refusal> {
    let keyspace = &server.core.shard.engine.keyspace;
    let database = keyspace.database(session.database);
    if database.len() > KEYS_WALKED_MAX {
        return Err(Refusal::new(format!(
            "ERR more than {KEYS_WALKED_MAX} keys are not walked for those of a slot, use SCAN"
        )));
    }
    let entries = database.table().iter().inspect(|_| keyspace.work.step());
    let keys = entries.map(|entry| entry.key());
    Ok(keys.filter(move |key| slot::of_key(key).0 == slot))
}
