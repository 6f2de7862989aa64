//! SORT and SORT_RO: a list, set or sorted set in order, by its elements or by other keys.
//!
//! Every key that a pattern leads to is looked up like any other, so the reply waits for it too.

use crate::command::{Args, Command, DataFn, Flags, KeySpec, KeyUse, Outcome, read, write};
use crate::effect::{Effect, End};
use crate::notify::Class;
use crate::number::parse_f64;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::hash::{self, Seen};
use crate::value::{StringValue, Value};
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;
use std::cmp::Ordering;

pub const SORT: Command<DataFn> = write(
    "SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] \
     [ALPHA] [STORE destination]",
    sort,
)
.key_specs(&["@1,0/1/0,RO+access", "?,?,RO+access", "?,?,OW+update"])
.categories(&["dangerous", "list", "set", "sortedset"])
.find_keys(sort_keys)
.doc("Sorts the elements in a list, a set, or a sorted set, optionally storing the result.")
.cost(
    "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number \
     of returned elements. When the elements are not sorted, complexity is O(N).",
)
.denyoom()
.with(Flags::READS_UNNAMED)
.keys(&[
    KeySpec::Range { first: 1, last: 1, step: 1 },
    KeySpec::Keyword { word: "STORE", from: 2 },
]);

pub const SORT_RO: Command<DataFn> = read(
    "SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] \
     [ALPHA]",
    sort_ro,
)
.key_specs(&["@1,0/1/0,RO+access", "?,?,RO+access"])
.categories(&["dangerous", "list", "set", "sortedset"])
.find_keys(|_, each| each(1, KeyUse::READ))
.doc("Returns the sorted elements of a list, a set, or a sorted set.")
.since("7.0.0")
.cost(
    "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number \
     of returned elements. When the elements are not sorted, complexity is O(N).",
)
.with(Flags::MOVABLEKEYS.union(Flags::READS_UNNAMED));

/// The key and the last destination. The words behind LIMIT, BY and GET are operands, whatever
/// they say.
fn sort_keys(args: Args<'_>, each: &mut dyn FnMut(usize, KeyUse)) {
    let mut destination = None;
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "LIMIT") {
            at += 2;
        } else if args.is(at, "GET") || args.is(at, "BY") {
            at += 1;
        } else if args.is(at, "STORE") && at + 1 < args.len() {
            destination = Some(at + 1);
        }
        at += 1;
    }
    each(1, KeyUse::READ);
    if let Some(destination) = destination {
        each(destination, KeyUse::OVERWRITE);
    }
}

const BY_DENIED: Refusal =
    Refusal::of("ERR BY option of SORT denied due to insufficient ACL permissions.");
const GET_DENIED: Refusal =
    Refusal::of("ERR GET option of SORT denied due to insufficient ACL permissions.");

struct Options<'a> {
    by: Option<&'a [u8]>,
    /// There is a BY without a `*`, perhaps among others: the elements stay in the order they have.
    keeps_order: bool,
    get: Vec<&'a [u8]>,
    offset: i64,
    /// Negative: to the end.
    count: i64,
    is_descending: bool,
    is_alphabetic: bool,
    store: Option<&'a [u8]>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            by: None,
            keeps_order: false,
            get: Vec::new(),
            offset: 0,
            count: -1,
            is_descending: false,
            is_alphabetic: false,
            store: None,
        }
    }
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>, may_store: bool, reads_every_key: bool) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut at = 2;
        while at < args.len() {
            let operands = args.len() - 1 - at;
            if args.is(at, "ASC") {
                options.is_descending = false;
            } else if args.is(at, "DESC") {
                options.is_descending = true;
            } else if args.is(at, "ALPHA") {
                options.is_alphabetic = true;
            } else if args.is(at, "LIMIT") && operands >= 2 {
                options.offset = parse_i64(args.at(at + 1)).ok_or(Refusal::NOT_AN_INTEGER)?;
                options.count = parse_i64(args.at(at + 2)).ok_or(Refusal::NOT_AN_INTEGER)?;
                at += 2;
            } else if may_store && args.is(at, "STORE") && operands >= 1 {
                at += 1;
                options.store = Some(args.at(at));
            } else if args.is(at, "BY") && operands >= 1 {
                at += 1;
                let pattern = args.at(at);
                if !reads_every_key && pattern.contains(&b'*') {
                    return Err(BY_DENIED);
                }
                options.keeps_order |= !pattern.contains(&b'*');
                options.by = Some(pattern);
            } else if args.is(at, "GET") && operands >= 1 {
                at += 1;
                if !reads_every_key {
                    return Err(GET_DENIED);
                }
                options.get.push(args.at(at));
            } else {
                return Err(Refusal::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn sort(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let options = Options::parse(args, true, tx.context.reads_every_key)?;
    let mut view = tx.view();
    let elements = sorted(&mut view, args.at(1), &options)?;
    let Some(destination) = options.store else {
        reply_rows(&mut view, elements, &options, reply);
        return Ok(());
    };
    let rows = rows(&mut view, elements, &options, STORED_BYTES_MAX)?;
    let existed = tx.replace(destination);
    for value in &rows {
        tx.change(destination, Effect::ListPush { end: End::Tail, value })?;
    }
    if !rows.is_empty() {
        tx.notify(Class::List, "sortstore", destination);
    } else if existed {
        tx.notify(Class::Generic, "del", destination);
    }
    reply.integer(rows.len() as i64);
    Ok(())
}

fn sort_ro(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let options = Options::parse(args, false, view.context().reads_every_key)?;
    let elements = sorted(view, args.at(1), &options)?;
    reply_rows(view, elements, &options, reply);
    Ok(())
}

/// Answers with the elements, or what the GET patterns lead to from each, as far as the reply takes
/// them: patterns may be many, and lead to one long value again and again.
fn reply_rows(
    view: &mut View<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
    reply: &mut Reply,
) {
    let work = view.work();
    reply.array(elements.len().saturating_mul(options.get.len().max(1)));
    if options.get.is_empty() {
        work.reply_each(elements, reply, |element, reply| reply.bulk(element));
        return;
    }
    let rows = elements.iter().flat_map(|element| options.get.iter().map(move |it| (element, *it)));
    work.reply_each(rows, reply, |(element, pattern), reply| {
        match follow(view, pattern, element) {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
    });
}

/// Bytes that the rows of SORT with STORE and GET may take. GET may multiply what is there, so they
/// are not bounded by the data. As much as a client's requests and replies may take by default: a
/// guess that is far above real use.
const STORED_BYTES_MAX: usize = 1 << 30;

/// What a row takes beside its text, in bytes.
const ROW_BYTES: usize = size_of::<Vec<u8>>();

const TOO_MANY_ROWS: Refusal = Refusal::of("ERR the rows of SORT with GET take more than 1 GiB");

/// The elements, or what the GET patterns lead to from each: what STORE stores. A pattern that
/// leads nowhere gives an empty text.
fn rows(
    view: &mut View<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
    bytes_max: usize,
) -> Result<Vec<Vec<u8>>, Refusal> {
    if options.get.is_empty() {
        return Ok(elements);
    }
    let mut rows = Vec::new();
    let mut bytes = 0;
    for element in elements {
        for pattern in &options.get {
            view.work().step();
            let row = follow(view, pattern, &element).unwrap_or_default();
            bytes += ROW_BYTES + row.len();
            if bytes > bytes_max {
                return Err(TOO_MANY_ROWS);
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The elements in order and within the limit.
fn sorted(view: &mut View<'_>, key: &[u8], options: &Options<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let work = view.work();
    let (mut elements, sort) = elements(view, key)?;
    let is_set = sort == Sort::Set;
    // A set's order is that of its hash table. A result that is stored, or shown to a script, must
    // not depend on it.
    let shows_order = options.store.is_some() || view.context().in_script;
    let sorts_anyway = options.keeps_order && is_set && shows_order;
    if sorts_anyway {
        elements.sort_by(|a, b| {
            work.step();
            direct(options, a.cmp(b))
        });
    } else if !options.keeps_order {
        // Equal numbers stand in the order of their elements. Equal texts stand in that of the
        // source, unless it has none.
        let keeps_equals = options.is_alphabetic && options.by.is_some() && !is_set;
        elements = order(view, elements, options, keeps_equals)?;
    } else if !is_set && options.is_descending {
        elements.reverse();
    }
    let offset = usize::try_from(options.offset.max(0)).unwrap_or(usize::MAX);
    let count = usize::try_from(options.count).unwrap_or(usize::MAX);
    Ok(elements.into_iter().skip(offset).take(count).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    List,
    Set,
    Sorted,
}

/// The elements of the collection at `key`, in its own order.
fn elements(view: &mut View<'_>, key: &[u8]) -> Result<(Vec<Vec<u8>>, Sort), Refusal> {
    let work = view.work();
    Ok(match view.value(key)? {
        None => (Vec::new(), Sort::List),
        Some(Value::List(list)) => {
            let items = list.iter().inspect(|_| work.step());
            (items.map(|item| item.to_vec()).collect(), Sort::List)
        }
        Some(Value::Set(set)) => {
            let members = set.iter().inspect(|_| work.step());
            (members.map(|member| member.to_vec()).collect(), Sort::Set)
        }
        Some(Value::Sorted(sorted)) => {
            let members = sorted.iter().inspect(|_| work.step());
            (members.map(|(member, _)| member.to_vec()).collect(), Sort::Sorted)
        }
        Some(_) => return Err(Refusal::WRONG_TYPE),
    })
}

/// The value by which an element is sorted.
enum Weight {
    Number(f64),
    /// `None` if the pattern led nowhere: before every text.
    Text(Option<Vec<u8>>),
}

fn order(
    view: &mut View<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
    keeps_equals: bool,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut weighted = Vec::with_capacity(elements.len());
    let mut refusal = None;
    let work = view.work();
    for element in elements {
        work.step();
        let text = match options.by {
            Some(pattern) => follow(view, pattern, &element),
            None => Some(element.clone()),
        };
        let weight = if options.is_alphabetic {
            Weight::Text(text)
        } else {
            // The other keys are looked up all the same: each one missed is told.
            Weight::Number(number(text.as_deref()).unwrap_or_else(|wrong| {
                refusal = Some(wrong);
                0.0
            }))
        };
        weighted.push((weight, element));
    }
    if let Some(wrong) = refusal {
        return Err(wrong);
    }
    weighted.sort_by(|(a, first), (b, second)| {
        work.step();
        let ordering = compare(a, b);
        let then = if keeps_equals { Ordering::Equal } else { first.cmp(second) };
        direct(options, ordering.then(then))
    });
    Ok(weighted.into_iter().map(|(_, element)| element).collect())
}

fn direct(options: &Options<'_>, ordering: Ordering) -> Ordering {
    if options.is_descending { ordering.reverse() } else { ordering }
}

fn compare(a: &Weight, b: &Weight) -> Ordering {
    match (a, b) {
        (Weight::Number(a), Weight::Number(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

/// A weight as a number: nothing is 0, and so is the empty text, as C's `strtod` has it.
fn number(text: Option<&[u8]>) -> Result<f64, Refusal> {
    let Some(text) = text else { return Ok(0.0) };
    let text = text.trim_ascii_start();
    if text.is_empty() {
        return Ok(0.0);
    }
    parse_f64(text).ok_or(Refusal::of("ERR One or more scores can't be converted into double"))
}

/// The value that a pattern leads to: `#` is the element itself, `a_*` the string at a key,
/// `a_*->f` the field of a hash. None as well if the value is lost: that is noted, and no reply is
/// given then.
fn follow(view: &mut View<'_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = after.windows(2).position(|pair| pair == b"->");
    let (after, field) = match arrow {
        Some(at) if at + 2 < after.len() => (&after[..at], Some(&after[at + 2..])),
        _ => (after, None),
    };
    let key = [before, element, after].concat();
    match field {
        None => view.find(&key).and_then(|entry| {
            let whole = view.keyspace().with_value(entry).ok()?;
            let text = StringValue::of(whole.as_ref()).ok()?;
            view.work().bytes(text.len());
            Some(text.to_vec())
        }),
        Some(field) => view.find(&key).and_then(|entry| {
            let whole = view.keyspace().with_value(entry).ok()?;
            let hash = hash::of(whole.as_ref()).ok()?;
            let seen = Seen::new(hash, view.context().hidden_by());
            seen.get(field).map(|text| text.to_vec())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use crate::unit::Unit;

    #[test]
    fn what_get_multiplies_is_stored_up_to_a_bound() {
        let mut bench = Bench::new();
        bench.check("RPUSH l 1 1 1 1", ":4");
        bench.run_words(&[b"SET", b"v1", &[b'x'; 100]]);
        bench.check("SORT l GET # GET v* GET none* STORE s", ":12");
        bench.check("LRANGE s 9 11", &format!("*3 $1 1 $100 {} $0", "x".repeat(100)));
        let elements = || vec![b"1".to_vec(); 4];
        let options = Options { get: vec![b"v*", b"v*"], ..Options::default() };
        let mut unit = Unit::new(0);
        let row_bytes = 100 + ROW_BYTES;
        bench.engine.look(bench.context, &mut unit, &mut bench.interest, |view| {
            let fits = rows(view, elements(), &options, 8 * row_bytes).expect("it fits");
            assert_eq!(fits.len(), 8);
            let refused = rows(view, elements(), &options, 8 * row_bytes - 1);
            assert_eq!(refused, Err(TOO_MANY_ROWS));
            // What is stored without GET is no more than what is there.
            let plain = rows(view, elements(), &Options::default(), 1).expect("elements fit");
            assert_eq!(plain.len(), 4);
        });
    }
}
