//! Streams (Redis documentation, "Commands", group stream).
//!
//! | module | holds |
//! |---|---|
//! | `add` | XADD, XTRIM, XDEL, XLEN, XSETID |
//! | `trim` | what XADD and XTRIM keep |
//! | `references` | entries and what refers to them: XDELEX, XACKDEL |
//! | `ids` | IDs and ends of ranges |
//! | `range` | XRANGE, XREVRANGE |
//! | `read` | what XREAD and XREADGROUP ask for; XREAD |
//! | `read_group` | XREADGROUP |
//! | `group` | XGROUP |
//! | `pending` | XACK, XPENDING |
//! | `claim` | XCLAIM, XAUTOCLAIM |
//! | `info` | XINFO |

mod add;
mod claim;
mod group;
mod ids;
mod info;
mod pending;
mod range;
mod read;
mod read_group;
mod references;
#[cfg(test)]
mod tests;
mod trim;

use super::{Command, DataFn};
use crate::refusal::{Refusal, quoted};
use crate::tx::Tx;
use crate::value::stream::{self, Stream};
use crate::view::View;

pub const COMMANDS: &[Command<DataFn>] = &[
    add::XADD,
    add::XTRIM,
    add::XDEL,
    add::XLEN,
    add::XSETID,
    range::XRANGE,
    range::XREVRANGE,
    read::XREAD,
    read_group::XREADGROUP,
    group::CREATE,
    group::SETID,
    group::DESTROY,
    group::CREATECONSUMER,
    group::DELCONSUMER,
    pending::XACK,
    pending::XPENDING,
    references::XDELEX,
    references::XACKDEL,
    claim::XCLAIM,
    claim::XAUTOCLAIM,
    info::STREAM,
    info::GROUPS,
    info::CONSUMERS,
];

/// The stream at `key`, for a command that reads. Counts a hit or a miss.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn view_stream<'a>(view: &mut View<'a>, key: &[u8]) -> Result<Option<&'a Stream>, Refusal> {
    view.find(key).map(stream::of).transpose()
}

/// The stream at `key`, for a command that reads and may change it. Counts a hit or a miss.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn find_read<'t>(tx: &'t mut Tx<'_>, key: &[u8]) -> Result<Option<&'t Stream>, Refusal> {
    tx.find_read(key).map(stream::of).transpose()
}

/// The stream at `key`, for a command that changes it.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn find<'t>(tx: &'t mut Tx<'_>, key: &[u8]) -> Result<Option<&'t Stream>, Refusal> {
    tx.find(key).map(stream::of).transpose()
}

/// Redis's refusal if the key or the group does not exist.
fn no_key_or_group(key: &[u8], group: &[u8]) -> Refusal {
    let (group, key) = (quoted(group), quoted(key));
    Refusal::new(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

/// Redis's refusal if the group does not exist.
fn no_group(group: &[u8], key: &[u8]) -> Refusal {
    let (group, key) = (quoted(group), quoted(key));
    Refusal::new(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}
