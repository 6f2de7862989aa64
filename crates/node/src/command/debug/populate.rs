//! DEBUG POPULATE: many keys at once, as Redis makes them, for tests and measurements.

use super::may_write;
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Outcome};
use engine::effect::Effect;
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;

/// Bytes that the keys and values of one call may have together. Redis has no limit, and ends for
/// want of memory.
const BYTES_MAX: u64 = 1 << 30;

/// Bytes that a key and its value count at least.
const KEY_BYTES_MIN: u64 = 64;

/// DEBUG POPULATE count [prefix] [size]: the keys PREFIX:0 and on, with values VALUE:0 and on,
/// which are cut or filled with zero bytes to `size`. A key that is there stays as it is.
pub(super) fn populate(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let number = |at| {
        let number = canonical_integer(args.at(at)).ok_or(Refusal::NOT_AN_INTEGER)?;
        u64::try_from(number)
            .map_err(|_| Refusal::of("ERR value is out of range, must be positive"))
    };
    let count = number(2)?;
    let prefix = if args.len() > 3 { args.at(3) } else { b"key" };
    let size = if args.len() > 4 { number(4)? } else { 0 };
    let bytes_each = KEY_BYTES_MIN.saturating_add(prefix.len() as u64).saturating_add(size);
    if count.saturating_mul(bytes_each) > BYTES_MAX {
        return Err(Refusal::of("ERR the keys and values would be longer than 1 GiB together"));
    }
    may_write(server)?;
    let context = server.core.context(&server.core.asker(client));
    let shard = &mut server.core.shard;
    let mut tx = shard.engine.tx(context, &mut shard.unit, &mut server.core.interest);
    for index in 0..count {
        let key = [prefix, format!(":{index}").as_bytes()].concat();
        tx.work().step();
        if tx.exists(&key) {
            continue;
        }
        let mut value = format!("value:{index}").into_bytes();
        if size > 0 {
            value.resize(size as usize, 0);
        }
        tx.change(&key, Effect::SetString { value: &value, expire_at: None })?;
    }
    server.core.clients.reply(client).ok();
    Ok(())
}
