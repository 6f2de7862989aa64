//! Elements that change or go from anywhere: LSET, LTRIM, LREM.

use super::{find, integer, resolve, resolve_range};
use crate::command::{Args, Outcome};
use crate::effect::{Effect, End};
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::work::Work;
use resp::Reply;
use structures::Quicklist;

pub(super) fn lset(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, value) = (args.at(1), args.at(3));
    let len = find(tx, key)?.ok_or(Refusal::NO_SUCH_KEY)?.len();
    let index = resolve(integer(args, 2)?, len).ok_or(Refusal::OUT_OF_RANGE)?;
    tx.change(key, Effect::ListSet { index: index as u64, value })?;
    tx.notify(Class::List, "lset", key);
    reply.ok();
    Ok(())
}

pub(super) fn ltrim(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let (start, stop) = (integer(args, 2)?, integer(args, 3)?);
    let Some(list) = find(tx, key)? else {
        reply.ok();
        return Ok(());
    };
    let len = list.len();
    let kept = resolve_range(start, stop, len);
    let (head, tail) = if kept.is_empty() { (len, 0) } else { (kept.start, len - kept.end) };
    for (end, count) in [(End::Head, head), (End::Tail, tail)] {
        if count > 0 {
            tx.change(key, Effect::ListPop { end, count: count as u64 })?;
        }
    }
    if head + tail == 0 {
        tx.touch(key);
    }
    tx.notify(Class::List, "ltrim", key);
    if kept.is_empty() {
        tx.notify(Class::Generic, "del", key);
    }
    reply.ok();
    Ok(())
}

pub(super) fn lrem(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let count = integer(args, 2)?;
    let work = tx.work();
    let Some(list) = find(tx, key)? else {
        reply.integer(0);
        return Ok(());
    };
    let len = list.len();
    let runs = matching_runs(list, args.at(3), count, &work);
    let removed: u64 = runs.iter().map(|(_, count)| count).sum();
    if removed > 0 {
        let name = Word::Text(key);
        let words = [Word::Text(b"LREM"), name, Word::Number(count), Word::Text(args.at(3))];
        tx.told_as(&words, |tx| {
            runs.iter().try_for_each(|&(index, count)| {
                tx.change(key, Effect::ListRemove { index, count }).map(drop)
            })
        })?;
        tx.notify(Class::List, "lrem", key);
    }
    if removed == len as u64 {
        tx.notify(Class::Generic, "del", key);
    }
    reply.integer(removed as i64);
    Ok(())
}

/// The runs (index, length) of elements equal to `element`, the last one first, so that the indexes
/// of those to come stay true while they are removed. `count` limits how
/// many elements: the first ones if positive, the last ones if negative, all if 0.
fn matching_runs(list: &Quicklist, element: &[u8], count: i64, work: &Work) -> Vec<(u64, u64)> {
    let wanted = match usize::try_from(count.unsigned_abs()) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(wanted) => wanted,
    };
    let last = list.len() as u64;
    let mut indexes: Vec<u64> = if count < 0 {
        let items = list.iter().rev().zip((0..last).rev());
        let found = items.inspect(|_| work.step()).filter(|(item, _)| item.equals(element));
        found.map(|(_, index)| index).take(wanted).collect()
    } else {
        let items = list.iter().zip(0..last).inspect(|_| work.step());
        let found = items.filter(|(item, _)| item.equals(element));
        found.map(|(_, index)| index).take(wanted).collect()
    };
    if count >= 0 {
        indexes.reverse();
    }
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((start, length)) if *start == index + 1 => {
                (*start, *length) = (index, *length + 1)
            }
            _ => runs.push((index, 1)),
        }
    }
    runs
}
