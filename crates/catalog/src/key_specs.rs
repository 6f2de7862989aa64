//! Key specifications: which arguments are keys, and what becomes of them (Redis documentation,
//! "Command key specifications").

use engine::command::{Args, Command, Declared, Flags, KeySpec, KeyUse};
use resp::Reply;
use resp::integer::parse_i64;

/// Where a specification's search begins.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Begin {
    /// At this argument.
    Index(usize),
    /// Behind a keyword, searched from an argument on (negative: backwards from the end).
    Keyword(String, i64),
    Unknown,
}

/// How the keys lie from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Find {
    /// Up to `last` (negative: from the end), every `step`-th; `limit` says which part of the rest.
    Range {
        last: i64,
        step: usize,
        limit: usize,
    },
    /// An argument counts them.
    Count {
        at: usize,
        first: usize,
        step: usize,
    },
    Unknown,
}

/// One key specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    begin: Begin,
    find: Find,
    uses: KeyUse,
}

/// Arguments of one request that are keys: from the first on, every `step`-th up to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyRange {
    pub first: usize,
    pub last: usize,
    pub step: usize,
}

impl KeyRange {
    /// No argument.
    pub const NONE: Self = Self { first: 1, last: 0, step: 1 };

    pub fn indexes(self) -> impl Iterator<Item = usize> {
        (self.first..=self.last).step_by(self.step)
    }
}

/// The specifications of a command: those of its row, else as its usage line and its flags tell.
///
/// # Panics
/// If its row has one that makes no sense.
pub(crate) fn specs_of<F>(row: &Command<F>, declared: &Declared, flags: Flags) -> Vec<Spec> {
    if !row.key_specs.is_empty() {
        let spec = |text: &&str| Spec::parse(text).unwrap_or_else(|| panic!("{text:?}"));
        return row.key_specs.iter().map(spec).collect();
    }
    let uses = match row.key_use {
        "" if flags.contains(Flags::READONLY) => KeyUse::READ,
        "" => KeyUse::UPDATE,
        words => KeyUse::parse(words).unwrap_or_else(|| panic!("{words:?}")),
    };
    let of_row = |spec: &KeySpec| {
        let (begin, find) = match *spec {
            KeySpec::Range { first, last, step } => {
                let last = i64::from(last);
                let last = if last >= 0 { last - first as i64 } else { last };
                (Begin::Index(first), Find::Range { last, step, limit: 0 })
            }
            KeySpec::Counted { count, first } => {
                (Begin::Index(count), Find::Count { at: 0, first: first - count, step: 1 })
            }
            KeySpec::Keyword { word, from } => (
                Begin::Keyword(word.to_owned(), from as i64),
                Find::Range { last: 0, step: 1, limit: 0 },
            ),
        };
        Spec { begin, find, uses }
    };
    declared.keys.iter().map(of_row).collect()
}

impl Spec {
    /// Whether the specification finds its keys behind this keyword.
    pub fn is_behind(&self, word: &str) -> bool {
        matches!(&self.begin, Begin::Keyword(keyword, _) if keyword.eq_ignore_ascii_case(word))
    }

    /// Reads the form that rows use.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let (begin, find, uses) = (parts.next()?, parts.next()?, parts.next()?);
        let begin = match (begin.strip_prefix('@'), begin.split_once(':')) {
            (Some(index), _) => Begin::Index(index.parse().ok()?),
            (None, Some((word, from))) => Begin::Keyword(word.to_owned(), from.parse().ok()?),
            (None, None) => Begin::Unknown,
        };
        let (is_count, numbers) = match find.strip_prefix('#') {
            Some(numbers) => (true, numbers),
            None => (false, find),
        };
        let numbers: Vec<i64> = numbers.split('/').filter_map(|n| n.parse().ok()).collect();
        let find = match numbers[..] {
            [at, first, step] if is_count => {
                Find::Count { at: at as usize, first: first as usize, step: step as usize }
            }
            [last, step, limit] => Find::Range { last, step: step as usize, limit: limit as usize },
            _ => Find::Unknown,
        };
        Some(Self { begin, find, uses: KeyUse::parse(uses)? })
    }

    /// What becomes of the keys.
    pub fn uses(&self) -> KeyUse {
        self.uses
    }

    /// Whether it only says what is hashed like a key.
    pub(crate) fn is_no_key(&self) -> bool {
        self.uses.intersects(KeyUse::NOT_KEY)
    }

    /// The arguments if they depend on nothing but how many there are, counted from one place on.
    pub(crate) fn fixed(&self) -> Option<(usize, i64, usize)> {
        match (&self.begin, self.find) {
            (Begin::Index(first), Find::Range { last, step, limit: 0 | 1 }) => {
                Some((*first, last, step.max(1)))
            }
            _ => None,
        }
    }

    /// The arguments of a request that are keys; `None` if it makes no sense, or if this
    /// specification cannot tell.
    pub(crate) fn locate(&self, args: Args<'_>) -> Option<KeyRange> {
        let count = args.len();
        let first = match &self.begin {
            Begin::Index(index) => *index,
            Begin::Keyword(word, from) => {
                let is_word = |at: &usize| args.at(*at).eq_ignore_ascii_case(word.as_bytes());
                let found = if *from >= 0 {
                    // A keyword without anything behind it is none.
                    (*from as usize..count - 1).find(is_word)
                } else {
                    let from = count as i64 + from;
                    (2..=usize::try_from(from).ok()?).rev().find(is_word)
                };
                match found {
                    Some(at) => at + 1,
                    None => return Some(KeyRange::NONE),
                }
            }
            Begin::Unknown => return None,
        };
        match self.find {
            Find::Range { last, step, limit } => {
                let rest = count as i64 - first as i64;
                let last = match last {
                    0.. => first as i64 + last,
                    _ if limit > 1 => first as i64 + rest / limit as i64 + last,
                    _ => count as i64 + last,
                };
                range(first, last, step, count)
            }
            Find::Count { at, first: offset, step } => {
                let keys = args.get(first + at)?;
                let keys = parse_i64(keys).filter(|keys| (0..=count as i64).contains(keys))?;
                range(first + offset, (first + offset) as i64 + keys - 1, step, count)
            }
            Find::Unknown => None,
        }
    }

    /// The form that rows use.
    pub fn text(&self) -> String {
        let begin = match &self.begin {
            Begin::Index(index) => format!("@{index}"),
            Begin::Keyword(word, from) => format!("{word}:{from}"),
            Begin::Unknown => "?".to_owned(),
        };
        let find = match self.find {
            Find::Range { last, step, limit } => format!("{last}/{step}/{limit}"),
            Find::Count { at, first, step } => format!("#{at}/{first}/{step}"),
            Find::Unknown => "?".to_owned(),
        };
        let uses: Vec<&str> = self.uses.words().collect();
        format!("{begin},{find},{}", uses.join("+"))
    }

    /// Writes it as COMMAND INFO shows it.
    pub fn write(&self, reply: &mut Reply) {
        reply.map(3);
        reply.bulk("flags");
        reply.set(self.uses.words().count());
        for word in self.uses.words() {
            reply.simple(word);
        }
        reply.bulk("begin_search");
        match &self.begin {
            Begin::Index(index) => write_part(reply, "index", &[("index", *index as i64)]),
            Begin::Keyword(word, from) => {
                write_kind(reply, "keyword", 2);
                reply.bulk("keyword");
                reply.bulk(word);
                reply.bulk("startfrom");
                reply.integer(*from);
            }
            Begin::Unknown => write_part(reply, "unknown", &[]),
        }
        reply.bulk("find_keys");
        match self.find {
            Find::Range { last, step, limit } => {
                let numbers =
                    [("lastkey", last), ("keystep", step as i64), ("limit", limit as i64)];
                write_part(reply, "range", &numbers);
            }
            Find::Count { at, first, step } => {
                let numbers = [
                    ("keynumidx", at as i64),
                    ("firstkey", first as i64),
                    ("keystep", step as i64),
                ];
                write_part(reply, "keynum", &numbers);
            }
            Find::Unknown => write_part(reply, "unknown", &[]),
        }
    }
}

/// A range within a request of `count` arguments, which has at least one key.
pub(crate) fn range(first: usize, last: i64, step: usize, count: usize) -> Option<KeyRange> {
    let last = usize::try_from(last).ok().filter(|last| (first..count).contains(last))?;
    Some(KeyRange { first, last, step: step.max(1) })
}

fn write_kind(reply: &mut Reply, kind: &str, fields: usize) {
    reply.map(2);
    reply.bulk("type");
    reply.bulk(kind);
    reply.bulk("spec");
    reply.map(fields);
}

fn write_part(reply: &mut Reply, kind: &str, numbers: &[(&str, i64)]) {
    write_kind(reply, kind, numbers.len());
    for (name, number) in numbers {
        reply.bulk(name);
        reply.integer(*number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &str, request: &str, expected: Option<&[usize]>) {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in request.split(' ') {
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word.as_bytes());
        }
        let found = Spec::parse(spec).expect("a specification").locate(Args::new(&bytes, &ranges));
        let found: Option<Vec<usize>> = found.map(|range| range.indexes().collect());
        assert_eq!(found.as_deref(), expected, "{spec} {request}");
    }

    #[test]
    fn keys_are_found_as_redis_finds_them() {
        check("@1,-1/2/0,OW+update", "mset a 1 b 2", Some(&[1, 3]));
        check("@1,0/1/0,RO+access", "get a", Some(&[1]));
        check("@2,#0/1/1,RO+access", "zinterstore d 2 a b weights 1 2", Some(&[3, 4]));
        check("@2,#0/1/1,RO+access", "zinterstore d 3 a b", None);
        check("STREAMS:1,-1/1/2,RO+access", "xread count 1 streams a b 0 0", Some(&[4, 5]));
        check("KEYS:-2,-1/1/0,RW", "migrate h 1 x 0 5 keys a b", Some(&[7, 8]));
        check("STORE:-2,0/1/0,OW", "sort a", Some(&[]));
    }
}
