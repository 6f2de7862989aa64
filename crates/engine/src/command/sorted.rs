//! Sorted sets (Redis documentation, "Commands", group sorted-set).
//!
//! | module | holds |
//! |---|---|
//! | `add` | ZADD, ZINCRBY |
//! | `read` | what is asked of one member or of all: ZSCORE, ZRANK, ZCOUNT, ZSCAN … |
//! | `bounds` | the ends of ranges, as text |
//! | `range` | ZRANGE and its kin, ZRANGESTORE |
//! | `remove` | ZREM, ZREMRANGEBY… |
//! | `pop` | ZPOPMIN, ZPOPMAX, ZMPOP and the blocking BZPOPMIN, BZPOPMAX, BZMPOP |
//! | `combine` | ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD |
//! | `chance` | ZRANDMEMBER |
//! | `copied` | members taken out of a sorted set, so that it may change |

pub(super) mod add;
mod bounds;
mod chance;
mod combine;
pub(super) mod copied;
mod pop;
mod range;
mod read;
mod remove;
#[cfg(test)]
mod tests;

use super::{Command, DataFn, Outcome};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::sorted::{self, Sorted, Text};
use crate::view::View;
use copied::Copied;
use resp::{Protocol, Reply};

pub const COMMANDS: &[Command<DataFn>] = &[
    add::ZADD,
    add::ZINCRBY,
    read::ZCARD,
    read::ZSCORE,
    read::ZMSCORE,
    read::ZRANK,
    read::ZREVRANK,
    read::ZCOUNT,
    read::ZLEXCOUNT,
    read::ZSCAN,
    range::ZRANGE,
    range::ZRANGESTORE,
    range::ZREVRANGE,
    range::ZRANGEBYSCORE,
    range::ZREVRANGEBYSCORE,
    range::ZRANGEBYLEX,
    range::ZREVRANGEBYLEX,
    remove::ZREM,
    remove::ZREMRANGEBYRANK,
    remove::ZREMRANGEBYSCORE,
    remove::ZREMRANGEBYLEX,
    pop::ZPOPMIN,
    pop::ZPOPMAX,
    pop::ZMPOP,
    pop::BZPOPMIN,
    pop::BZPOPMAX,
    pop::BZMPOP,
    combine::ZUNION,
    combine::ZUNIONSTORE,
    combine::ZINTER,
    combine::ZINTERSTORE,
    combine::ZINTERCARD,
    combine::ZDIFF,
    combine::ZDIFFSTORE,
    chance::ZRANDMEMBER,
];

/// The sorted set at `key`, read for a client.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
pub(super) fn view_sorted<'a>(
    view: &mut View<'a>,
    key: &[u8],
) -> Result<Option<&'a Sorted>, Refusal> {
    view.find(key).map(sorted::of).transpose()
}

/// The sorted set at `key`, read before a change.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn find<'t>(tx: &'t mut Tx<'_>, key: &[u8]) -> Result<Option<&'t Sorted>, Refusal> {
    tx.find(key).map(sorted::of).transpose()
}

/// The score that a member of a key takes: minus zero is zero in a listpack, as in Redis.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn stored_score(tx: &mut Tx<'_>, key: &[u8], member: &[u8], score: f64) -> Result<f64, Refusal> {
    if score != 0.0 || score.is_sign_positive() {
        return Ok(score);
    }
    let settings = tx.settings().clone();
    let packs = match find(tx, key)? {
        Some(sorted) => sorted.packs(member, &settings),
        None => Sorted::new().packs(member, &settings),
    };
    Ok(if packs { without_sign(score) } else { score })
}

/// A score that is no minus zero.
fn without_sign(score: f64) -> f64 {
    if score == 0.0 { 0.0 } else { score }
}

/// Publishes that a key went with its last member, if it did.
fn notify_if_gone(tx: &mut Tx<'_>, key: &[u8]) {
    if tx.settings().notify_keyspace_events != 0 && !tx.exists(key) {
        tx.notify(Class::Generic, "del", key);
    }
}

/// Puts members into a key, whatever it held before; without any the key goes. Replies with how
/// many there are.
pub(super) fn store(
    tx: &mut Tx<'_>,
    destination: &[u8],
    members: &Copied,
    event: &str,
    reply: &mut Reply,
) -> Outcome {
    let existed = tx.replace(destination);
    for (member, score) in members.iter() {
        // Redis keeps minus zero in large results alone. Its replicas are told member by member,
        // and lose it.
        let score = without_sign(score);
        tx.change(destination, Effect::SortedAdd { member, score })?;
    }
    if !members.is_empty() {
        tx.notify(Class::SortedSet, event, destination);
    } else if existed {
        tx.notify(Class::Generic, "del", destination);
    }
    reply.integer(members.len() as i64);
    Ok(())
}

/// Appends a member as a bulk string.
pub(super) fn reply_member(member: Text<'_>, reply: &mut Reply) {
    match member {
        Text::Bytes(bytes) => reply.bulk(bytes),
        Text::Integer(integer) => reply.bulk_integer(integer),
    }
}

/// Appends the header of an array of `count` members, or of members with their scores: flat in
/// RESP2, pairs in RESP3.
fn reply_header(count: usize, with_scores: bool, reply: &mut Reply) {
    let flat = with_scores && reply.protocol() == Protocol::Resp2;
    reply.array(if flat { count * 2 } else { count });
}

/// Appends a member below such a header.
fn reply_pair(member: Text<'_>, score: f64, with_scores: bool, reply: &mut Reply) {
    if with_scores && reply.protocol() == Protocol::Resp3 {
        reply.array(2);
    }
    reply_member(member, reply);
    if with_scores {
        reply.double(score);
    }
}
