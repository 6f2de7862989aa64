//! Sets made of sets: intersection, union and difference, answered or stored.

use super::{reply_member, view_set};
use crate::command::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::{Recipe, Set, set};
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;
use std::ops::ControlFlow;
use structures::{MemberBuffer, MemberRef};

pub const SINTER: Command<DataFn> = read("SINTER key [key ...]", sinter)
    .tips(&["nondeterministic_output_order"])
    .doc("Returns the members that all of several sets share.")
    .group(Group::Set)
    .cost(INTERSECTION_COST);

pub const SINTERCARD: Command<DataFn> =
    read("SINTERCARD numkeys key [key ...] [LIMIT limit]", sintercard)
        .doc("Returns how many members all of several sets share.")
        .group(Group::Set)
        .since("7.0.0")
        .cost(INTERSECTION_COST);

pub const SINTERSTORE: Command<DataFn> =
    write("SINTERSTORE destination key [key ...]", sinterstore)
        .key_specs(&["@1,0/1/0,RW+update", "@2,-1/1/0,RO+access"])
        .doc("Stores the members that all of several sets share in a key.")
        .group(Group::Set)
        .cost(INTERSECTION_COST)
        .denyoom();

pub const SUNION: Command<DataFn> = read("SUNION key [key ...]", sunion)
    .tips(&["nondeterministic_output_order"])
    .doc("Returns the members of several sets.")
    .group(Group::Set)
    .cost(SUM_COST);

pub const SUNIONSTORE: Command<DataFn> =
    write("SUNIONSTORE destination key [key ...]", sunionstore)
        .key_specs(&["@1,0/1/0,OW+update", "@2,-1/1/0,RO+access"])
        .doc("Stores the members of several sets in a key.")
        .group(Group::Set)
        .cost(SUM_COST)
        .denyoom();

pub const SDIFF: Command<DataFn> = read("SDIFF key [key ...]", sdiff)
    .tips(&["nondeterministic_output_order"])
    .doc("Returns the members of a set that are in none of the others.")
    .group(Group::Set)
    .cost(SUM_COST);

pub const SDIFFSTORE: Command<DataFn> = write("SDIFFSTORE destination key [key ...]", sdiffstore)
    .key_specs(&["@1,0/1/0,OW+update", "@2,-1/1/0,RO+access"])
    .doc("Stores the members of a set that are in none of the others in a key.")
    .group(Group::Set)
    .cost(SUM_COST)
    .denyoom();

const INTERSECTION_COST: &str = "O(N*M) worst case where N is the cardinality of the smallest set \
                                 and M is the number of sets.";
const SUM_COST: &str = "O(N) where N is the total number of elements in all given sets.";

/// Members copied out of sets, so that the sets may change: texts one behind the other.
#[derive(Default)]
struct Gathered {
    texts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl Gathered {
    fn push(&mut self, member: MemberRef<'_>) {
        self.texts.extend_from_slice(member.bytes(&mut MemberBuffer::new()));
        self.ends.push(self.texts.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.texts[std::mem::replace(&mut start, end)..end])
    }
}

/// The sets at `keys`, `None` for those that are absent.
///
/// # Errors
/// WRONGTYPE if a key holds another type.
fn sets<'a, 'k>(
    view: &mut View<'a>,
    keys: impl Iterator<Item = &'k [u8]>,
) -> Result<Vec<Option<&'a Set>>, Refusal> {
    keys.map(|key| view_set(view, key)).collect()
}

/// Visits the members that all sets share, until `visit` breaks. An absent set has none.
fn intersect<'s>(
    work: &Work,
    sets: &[Option<&'s Set>],
    mut visit: impl FnMut(MemberRef<'s>) -> ControlFlow<()>,
) {
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<_>>>() else { return };
    // The smallest decides how many members are looked at.
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in smallest.iter() {
        work.step();
        let is_shared = others.iter().all(|set| {
            work.step();
            std::ptr::eq(*set, *smallest) || set.contains_member(member)
        });
        if is_shared && visit(member).is_break() {
            return;
        }
    }
}

/// Visits the members of the first set that are in none of the others, until `visit` breaks.
fn subtract<'s>(
    work: &Work,
    sets: &[Option<&'s Set>],
    mut visit: impl FnMut(MemberRef<'s>) -> ControlFlow<()>,
) {
    let Some((Some(first), others)) = sets.split_first() else { return };
    let mut others: Vec<_> = others.iter().flatten().collect();
    // A large set is likelier to have a member, and then the others need not be asked.
    others.sort_by_key(|set| std::cmp::Reverse(set.len()));
    if others.iter().any(|set| std::ptr::eq(**set, *first)) {
        return;
    }
    for member in first.iter() {
        work.step();
        let is_elsewhere = others.iter().any(|set| {
            work.step();
            set.contains_member(member)
        });
        if !is_elsewhere && visit(member).is_break() {
            return;
        }
    }
}

/// The members of all sets, each once.
fn unite(view: &View<'_>, sets: &[Option<&Set>]) -> Set {
    let (work, hasher) = (view.work(), view.keyspace().hasher());
    let recipe = Recipe { settings: view.settings(), hasher, work };
    let mut sets = sets.iter().flatten();
    let mut union = Set::new();
    let mut buffer = MemberBuffer::new();
    for member in sets.by_ref().flat_map(|set| set.iter()) {
        work.step();
        union.add(member.bytes(&mut buffer), &recipe);
    }
    union
}

pub(super) fn smembers(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let set = view_set(view, args.at(1))?;
    reply.set(set.map_or(0, Set::len));
    let members = set.into_iter().flat_map(Set::iter);
    view.work().reply_each(members, reply, reply_member);
    Ok(())
}

/// Appends a member; breaks once the reply takes no more.
fn reply_found(member: MemberRef<'_>, reply: &mut Reply) -> ControlFlow<()> {
    reply_member(member, reply);
    if reply.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn sinter(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sets = sets(view, args.from(1))?;
    let header = reply.begin_set();
    let mut count = 0;
    intersect(view.work(), &sets, |member| {
        count += 1;
        reply_found(member, reply)
    });
    reply.end(header, count);
    Ok(())
}

fn sintercard(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let keys = parse_i64(args.at(1)).filter(|keys| *keys > 0);
    let keys = keys.ok_or(Refusal::of("ERR numkeys should be greater than 0"))?;
    let keys = usize::try_from(keys)
        .ok()
        .filter(|keys| *keys <= args.len() - 2)
        .ok_or(Refusal::of("ERR Number of keys can't be greater than number of args"))?;
    let mut limit = 0;
    let mut at = 2 + keys;
    while at < args.len() {
        let operand = args.get(at + 1).filter(|_| args.is(at, "LIMIT"));
        let number = parse_i64(operand.ok_or(Refusal::SYNTAX)?);
        limit = number
            .and_then(|number| u64::try_from(number).ok())
            .ok_or(Refusal::of("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let sets = sets(view, args.range(2..2 + keys))?;
    let mut count = 0;
    intersect(view.work(), &sets, |_| {
        count += 1;
        if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    reply.integer(count as i64);
    Ok(())
}

fn sunion(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sets = sets(view, args.from(1))?;
    let union = unite(view, &sets);
    reply.set(union.len());
    view.work().reply_each(union.iter(), reply, reply_member);
    Ok(())
}

fn sdiff(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sets = sets(view, args.from(1))?;
    let header = reply.begin_set();
    let mut count = 0;
    subtract(view.work(), &sets, |member| {
        count += 1;
        reply_found(member, reply)
    });
    reply.end(header, count);
    Ok(())
}

fn sinterstore(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    store(tx, args, reply, "sinterstore", |view, sets, gathered| {
        intersect(view.work(), sets, |member| {
            gathered.push(member);
            ControlFlow::Continue(())
        });
    })
}

fn sunionstore(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    store(tx, args, reply, "sunionstore", |view, sets, gathered| {
        unite(view, sets).iter().for_each(|member| gathered.push(member));
    })
}

fn sdiffstore(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    store(tx, args, reply, "sdiffstore", |view, sets, gathered| {
        subtract(view.work(), sets, |member| {
            gathered.push(member);
            ControlFlow::Continue(())
        });
    })
}

/// Puts what `gather` finds in the sets at arguments 2 and on into the key at argument 1, whatever
/// that held before; without any members the key goes.
fn store(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    event: &str,
    gather: impl FnOnce(&View<'_>, &[Option<&Set>], &mut Gathered),
) -> Outcome {
    let destination = args.at(1);
    // First every key is looked up, which deletes expired keys and counts hits; then they are read
    // together.
    for key in args.from(2) {
        tx.find_read(key).map(set::of).transpose()?;
    }
    let mut gathered = Gathered::default();
    let mut view = tx.view();
    let sets: Result<Vec<_>, _> =
        args.from(2).map(|key| view.peek(key).map(set::of).transpose()).collect();
    let sets = sets?;
    gather(&view, &sets, &mut gathered);
    let existed = tx.replace(destination);
    for member in gathered.iter() {
        tx.change(destination, Effect::SetAdd { member })?;
    }
    if !gathered.ends.is_empty() {
        tx.notify(Class::Set, event, destination);
    } else if existed {
        tx.notify(Class::Generic, "del", destination);
    }
    reply.integer(gathered.ends.len() as i64);
    Ok(())
}
