//! HyperLogLogs (Redis documentation, "Commands", group hyperloglog): strings whose bytes estimate
//! how many different elements were added. The bytes are those of [`structures::hll`].
//!
//! An effect states bytes: of a value that kept its length, only the stretches that differ.

mod debug;
#[cfg(test)]
mod tests;

use super::{Args, Command, DataFn, Flags, Group, KeySpec, Outcome, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::unit::Overdue;
use resp::Reply;
use structures::hll::{self, HllError, Registers};

pub const COMMANDS: &[Command<DataFn>] = &[
    write("PFADD key [element [element ...]]", pfadd)
        .key_use("RW+insert")
        .doc("Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.")
        .group(Group::HyperLogLog)
        .since("2.8.9")
        .cost("O(1) to add every element.")
        .denyoom()
        .fast(),
    // A read to Redis and its users, but it stores the count that it computed, so scripts that may
    // not write may not ask for it.
    Command::new(
        "PFCOUNT key [key ...]",
        DataFn::Write(pfcount),
        Flags::READONLY.union(Flags::MAY_REPLICATE),
    )
    .key_use("RW+access")
    .doc(
        "Returns the approximated cardinality of the set(s) observed by the HyperLogLog \
             key(s).",
    )
    .group(Group::HyperLogLog)
    .since("2.8.9")
    .cost(
        "O(1) with a very small average constant time when called with a single key. O(N) \
             with N being the number of keys, and much bigger constant times, when called with \
             multiple keys.",
    ),
    write("PFMERGE destkey [sourcekey [sourcekey ...]]", pfmerge)
        .uses_lone_key()
        .key_specs(&["@1,0/1/0,RW+access+insert", "@2,-1/1/0,RO+access"])
        .doc("Merges one or more HyperLogLog values into a single key.")
        .group(Group::HyperLogLog)
        .since("2.8.9")
        .cost("O(N) to merge N HyperLogLogs, but with high constant times.")
        .keys(&[KeySpec::Range { first: 1, last: -1, step: 1 }])
        .denyoom(),
    debug::PFDEBUG,
    debug::PFSELFTEST,
];

fn refusal(error: HllError) -> Refusal {
    match error {
        HllError::NotHll => Refusal::of("WRONGTYPE Key is not a valid HyperLogLog string value."),
        HllError::Corrupt => Refusal::of("INVALIDOBJ Corrupted HLL object detected"),
    }
}

/// Steps of reading, counting or merging the 16,384 registers of one key, about 50 microseconds.
const MERGE_STEPS: usize = 64;

/// A copy of the HyperLogLog at `key`, its header checked.
fn load(tx: &mut Tx<'_>, key: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(value) = tx.string(key)? else { return Ok(None) };
    let bytes = value.to_vec();
    // Its registers are gone through one by one.
    tx.work().steps(MERGE_STEPS);
    hll::encoding(&bytes).map_err(refusal)?;
    Ok(Some(bytes))
}

/// As [`load`], counted as a client's read.
fn load_read(tx: &mut Tx<'_>, key: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    tx.find_read(key);
    load(tx, key)
}

/// Equal bytes between two changes below which both are recorded as one: an effect of its own
/// takes about as many (opcode, offset, length).
const GAP_BYTES_MIN: usize = 16;

/// Puts `new` in place of `old`.
fn store(tx: &mut Tx<'_>, key: &[u8], old: &[u8], new: &[u8]) -> Outcome {
    if new.len() < old.len() {
        let expire_at = tx.find(key).and_then(|entry| entry.expire_at());
        tx.change(key, Effect::SetString { value: new, expire_at })?;
        return Ok(());
    }
    let differs = |at: usize| old.get(at) != new.get(at);
    let mut at = 0;
    while let Some(from) = (at..new.len()).find(|at| differs(*at)) {
        let mut to = from + 1;
        at = to;
        while at < new.len() && at < to + GAP_BYTES_MIN {
            at += 1;
            if differs(at - 1) {
                to = at;
            }
        }
        tx.change(key, Effect::SetRange { offset: from as u64, bytes: &new[from..to] })?;
    }
    Ok(())
}

fn sparse_bytes_max(tx: &Tx<'_>) -> usize {
    usize::try_from(tx.settings().hll_sparse_max_bytes).unwrap_or(usize::MAX)
}

fn pfadd(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let limit = sparse_bytes_max(tx);
    let old = load(tx, key)?;
    let mut is_changed = old.is_none();
    let mut new = old.clone().unwrap_or_else(hll::create);
    let work = tx.work();
    for element in args.from(2) {
        work.step();
        is_changed |= hll::add(&mut new, element, limit).map_err(refusal)?;
    }
    if is_changed {
        hll::invalidate_cached_count(&mut new).map_err(refusal)?;
        store(tx, key, old.as_deref().unwrap_or_default(), &new)?;
        tx.notify(Class::String, "pfadd", key);
    }
    reply.integer(i64::from(is_changed));
    Ok(())
}

fn pfcount(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    if args.len() > 2 {
        let mut union = Registers::new();
        for key in args.from(1) {
            if let Some(bytes) = load_read(tx, key)? {
                union.merge(&bytes).map_err(refusal)?;
            }
        }
        reply.integer(union.count() as i64);
        return Ok(());
    }
    let key = args.at(1);
    let Some(old) = load_read(tx, key)? else {
        reply.integer(0);
        return Ok(());
    };
    if let Some(count) = hll::cached_count(&old).map_err(refusal)? {
        reply.integer(count as i64);
        return Ok(());
    }
    let count = hll::count(&old).map_err(refusal)?;
    // What a replica holds is its primary's to change.
    if tx.context.overdue == Overdue::Deleted {
        let mut new = old.clone();
        hll::set_cached_count(&mut new, count).map_err(refusal)?;
        store(tx, key, &old, &new)?;
    }
    reply.integer(count as i64);
    Ok(())
}

fn pfmerge(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let target = args.at(1);
    let mut union = Registers::new();
    for key in args.from(1) {
        if let Some(bytes) = load_read(tx, key)? {
            union.merge(&bytes).map_err(refusal)?;
        }
    }
    let limit = sparse_bytes_max(tx);
    let old = load(tx, target)?;
    let mut new = old.clone().unwrap_or_else(hll::create);
    union.write_to(&mut new, limit).map_err(refusal)?;
    store(tx, target, old.as_deref().unwrap_or_default(), &new)?;
    tx.notify(Class::String, "pfadd", target);
    reply.ok();
    Ok(())
}
