//! Looking at a list: LLEN, LINDEX, LRANGE, LPOS.

use super::{at_least, integer, resolve, resolve_range};
use crate::command::{Args, Outcome};
use crate::refusal::Refusal;
use crate::value::list;
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use structures::Quicklist;

/// The list at a key.
fn find<'a>(view: &mut View<'a>, key: &[u8]) -> Result<Option<&'a Quicklist>, Refusal> {
    view.find(key).map(list::of).transpose()
}

pub(super) fn llen(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let len = view.count(args.at(1), "list", |_, entry| list::of(entry).map(Quicklist::len))?;
    reply.integer(len as i64);
    Ok(())
}

pub(super) fn lindex(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let Some(list) = find(view, args.at(1))? else {
        reply.null();
        return Ok(());
    };
    let index = resolve(integer(args, 2)?, list.len());
    match index.and_then(|index| list.get(index)) {
        Some(item) => list::reply_item(item, reply),
        None => reply.null(),
    }
    Ok(())
}

pub(super) fn lrange(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (start, stop) = (integer(args, 2)?, integer(args, 3)?);
    let Some(list) = find(view, args.at(1))? else {
        reply.array(0);
        return Ok(());
    };
    let range = resolve_range(start, stop, list.len());
    reply.array(range.len());
    view.work().reply_each(list.range(range), reply, list::reply_item);
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// Which match is the first that counts, from 1; from the tail if `backwards`.
    rank: u64,
    backwards: bool,
    /// `None`: one index instead of an array. 0: all of them.
    count: Option<u64>,
    /// Elements compared at most; 0: all.
    compared_max: u64,
}

impl Search {
    fn parse(args: Args<'_>) -> Result<Self, Refusal> {
        let mut search = Self { rank: 1, backwards: false, count: None, compared_max: 0 };
        let mut at = 3;
        while at < args.len() {
            let has_operand = at + 1 < args.len();
            if args.is(at, "RANK") && has_operand {
                let rank = integer(args, at + 1)?;
                if rank == 0 {
                    return Err(Refusal::of(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list",
                    ));
                }
                (search.rank, search.backwards) = (rank.unsigned_abs(), rank < 0);
            } else if args.is(at, "COUNT") && has_operand {
                let refusal = Refusal::of("ERR COUNT can't be negative");
                search.count = Some(at_least(args, at + 1, 0, refusal)?);
            } else if args.is(at, "MAXLEN") && has_operand {
                let refusal = Refusal::of("ERR MAXLEN can't be negative");
                search.compared_max = at_least(args, at + 1, 0, refusal)?;
            } else {
                return Err(Refusal::SYNTAX);
            }
            at += 2;
        }
        Ok(search)
    }

    /// The indexes of the matches that count, in the order of the search.
    fn matches(
        &self,
        list: &Quicklist,
        element: &[u8],
        work: &Work,
    ) -> impl Iterator<Item = usize> {
        let len = list.len();
        let compared = match usize::try_from(self.compared_max) {
            Ok(0) | Err(_) => len,
            Ok(compared) => compared.min(len),
        };
        let backwards = self.backwards;
        let mut items = list.iter();
        let matching = (0..compared).filter_map(move |at| {
            work.step();
            let item = if backwards { items.next_back() } else { items.next() };
            let index = if backwards { len - 1 - at } else { at };
            item.filter(|item| item.equals(element)).map(|_| index)
        });
        let wanted = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        };
        matching.skip(usize::try_from(self.rank - 1).unwrap_or(usize::MAX)).take(wanted)
    }
}

pub(super) fn lpos(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let search = Search::parse(args)?;
    let list = find(view, args.at(1))?;
    let work = view.work();
    let matches = |list| search.matches(list, args.at(2), work);
    let mut matches = list.into_iter().flat_map(matches);
    if search.count.is_none() {
        match matches.next() {
            Some(index) => reply.integer(index as i64),
            None => reply.null(),
        }
        return Ok(());
    }
    let array = reply.begin_array();
    let count = work.reply_each(matches, reply, |index, reply| reply.integer(index as i64));
    reply.end(array, count);
    Ok(())
}
