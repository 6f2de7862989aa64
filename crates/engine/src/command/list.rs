//! Lists (Redis documentation, "Commands", group list).
//!
//! | module | holds |
//! |---|---|
//! | `push` | LPUSH, RPUSH, LPUSHX, RPUSHX, LINSERT |
//! | `read` | LLEN, LINDEX, LRANGE, LPOS |
//! | `change` | LSET, LTRIM, LREM |
//! | `pop` | LPOP, RPOP, LMPOP and the blocking BLPOP, BRPOP, BLMPOP |
//! | `shift` | LMOVE, RPOPLPUSH and the blocking BLMOVE, BRPOPLPUSH |

mod change;
mod pop;
mod push;
mod read;
mod shift;
#[cfg(test)]
mod tests;

use super::{Args, Command, DataFn, Flags, Group, read as reads, write};
use crate::effect::End;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::list;
use resp::integer::parse_i64;
use structures::Quicklist;

pub const COMMANDS: &[Command<DataFn>] = &[
    write("LPUSH key element [element ...]", push::lpush)
        .key_use("RW+insert")
        .doc("Puts elements at the head of a list, which is created if absent.")
        .group(Group::List)
        .cost("O(1) for each element added, so O(N) for N elements.")
        .denyoom()
        .fast(),
    write("RPUSH key element [element ...]", push::rpush)
        .key_use("RW+insert")
        .doc("Puts elements at the tail of a list, which is created if absent.")
        .group(Group::List)
        .cost("O(1) for each element added, so O(N) for N elements.")
        .denyoom()
        .fast(),
    write("LPUSHX key element [element ...]", push::lpushx)
        .key_use("RW+insert")
        .doc("Puts elements at the head of a list, if it exists.")
        .group(Group::List)
        .since("2.2.0")
        .cost("O(1) for each element added, so O(N) for N elements.")
        .denyoom()
        .fast(),
    write("RPUSHX key element [element ...]", push::rpushx)
        .key_use("RW+insert")
        .doc("Puts elements at the tail of a list, if it exists.")
        .group(Group::List)
        .since("2.2.0")
        .cost("O(1) for each element added, so O(N) for N elements.")
        .denyoom()
        .fast(),
    write("LINSERT key <BEFORE | AFTER> pivot element", push::linsert)
        .key_use("RW+insert")
        .doc("Inserts an element before or after another one.")
        .group(Group::List)
        .since("2.2.0")
        .cost("O(N) where N is the number of elements before the pivot.")
        .denyoom(),
    reads("LLEN key", read::llen)
        .needs_no_value()
        .key_use("RO")
        .doc("Returns the length of a list.")
        .group(Group::List)
        .cost("O(1)")
        .fast(),
    reads("LINDEX key index", read::lindex)
        .doc("Returns the element at an index of a list.")
        .group(Group::List)
        .cost("O(N) where N is the number of nodes up to the index, from the nearer end."),
    reads("LRANGE key start stop", read::lrange)
        .doc("Returns the elements between two indexes of a list.")
        .group(Group::List)
        .cost("O(S+N) where S is the distance of start from the nearer end and N the range."),
    reads("LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]", read::lpos)
        .doc("Returns the indexes at which an element stands in a list.")
        .group(Group::List)
        .since("6.0.6")
        .cost("O(N) where N is the number of elements looked at, which MAXLEN limits."),
    write("LSET key index element", change::lset)
        .doc("Replaces the element at an index of a list.")
        .group(Group::List)
        .cost("O(N) where N is the number of nodes up to the index, from the nearer end.")
        .denyoom(),
    write("LTRIM key start stop", change::ltrim)
        .key_use("RW+delete")
        .doc("Removes all elements of a list but those between two indexes.")
        .group(Group::List)
        .cost("O(N) where N is the number of elements removed."),
    write("LREM key count element", change::lrem)
        .key_use("RW+delete")
        .doc("Removes elements of one value from a list.")
        .group(Group::List)
        .cost("O(N+M) where N is the length of the list and M the number of elements removed."),
    write("LPOP key [count]", pop::lpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns elements from the head of a list.")
        .group(Group::List)
        .cost("O(N) where N is the number of elements returned.")
        .fast(),
    write("RPOP key [count]", pop::rpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns elements from the tail of a list.")
        .group(Group::List)
        .cost("O(N) where N is the number of elements returned.")
        .fast(),
    write("LMPOP numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", pop::lmpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns elements from the first of several lists that has any.")
        .group(Group::List)
        .since("7.0.0")
        .cost("O(N+M) where N is the number of keys and M the number of elements returned."),
    write("BLPOP key [key ...] timeout", pop::blpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns the head of the first list that has one, or waits for it.")
        .group(Group::List)
        .since("2.0.0")
        .cost("O(N) where N is the number of keys.")
        .with(Flags::NOSCRIPT)
        .blocking(),
    write("BRPOP key [key ...] timeout", pop::brpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns the tail of the first list that has one, or waits for it.")
        .group(Group::List)
        .since("2.0.0")
        .cost("O(N) where N is the number of keys.")
        .with(Flags::NOSCRIPT)
        .blocking(),
    write("BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", pop::blmpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns elements from the first list that has any, or waits for them.")
        .group(Group::List)
        .since("7.0.0")
        .cost("O(N+M) where N is the number of keys and M the number of elements returned.")
        .blocking(),
    write("LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>", shift::lmove)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,RW+insert"])
        .doc("Moves an element from an end of one list to an end of another.")
        .group(Group::List)
        .since("6.2.0")
        .cost("O(1)")
        .denyoom(),
    write("RPOPLPUSH source destination", shift::rpoplpush)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,RW+insert"])
        .doc("Moves the tail of one list to the head of another.")
        .group(Group::List)
        .since("1.2.0")
        .cost("O(1)")
        .denyoom(),
    write("BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout", shift::blmove)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,RW+insert"])
        .doc("Moves an element between the ends of two lists, or waits for one to move.")
        .group(Group::List)
        .since("6.2.0")
        .cost("O(1)")
        .denyoom()
        .with(Flags::NOSCRIPT)
        .blocking(),
    write("BRPOPLPUSH source destination timeout", shift::brpoplpush)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,RW+insert"])
        .doc("Moves the tail of one list to the head of another, or waits for one to move.")
        .group(Group::List)
        .since("2.2.0")
        .cost("O(1)")
        .denyoom()
        .with(Flags::NOSCRIPT)
        .blocking(),
];

/// The list at a key that is to change.
fn find<'a>(tx: &'a mut Tx<'_>, key: &[u8]) -> Result<Option<&'a Quicklist>, Refusal> {
    tx.find(key).map(list::of).transpose()
}

/// Reads argument `index` as an integer.
fn integer(args: Args<'_>, index: usize) -> Result<i64, Refusal> {
    parse_i64(args.at(index)).ok_or(Refusal::NOT_AN_INTEGER)
}

/// Reads argument `index`, which exists, as an integer of at least `min`; `refusal` for anything
/// else, a word included.
fn at_least(args: Args<'_>, index: usize, min: i64, refusal: Refusal) -> Result<u64, Refusal> {
    let number = parse_i64(args.at(index)).filter(|number| *number >= min);
    number.map(i64::unsigned_abs).ok_or(refusal)
}

/// Reads argument `index` as LEFT or RIGHT.
fn end(args: Args<'_>, index: usize) -> Result<End, Refusal> {
    if args.is(index, "LEFT") {
        Ok(End::Head)
    } else if args.is(index, "RIGHT") {
        Ok(End::Tail)
    } else {
        Err(Refusal::SYNTAX)
    }
}

/// The index that a possibly negative one (from the tail) means; `None` if there is no element.
fn resolve(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index + len as i64 } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// The half-open range that two possibly negative, inclusive indexes mean; empty if they cross.
fn resolve_range(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let len_signed = len as i64;
    let from_end = |index: i64| if index < 0 { index + len_signed } else { index };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(len_signed - 1);
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// The event of a push at this end.
fn push_event(end: End) -> &'static str {
    match end {
        End::Head => "lpush",
        End::Tail => "rpush",
    }
}

/// The event of a pop at this end.
fn pop_event(end: End) -> &'static str {
    match end {
        End::Head => "lpop",
        End::Tail => "rpop",
    }
}
