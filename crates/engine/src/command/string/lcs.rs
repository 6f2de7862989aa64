//! LCS: the longest common subsequence of two strings, by the textbook table of prefixes' lengths.

use crate::command::{Args, Command, DataFn, Group, Outcome, read};
use crate::refusal::Refusal;
use crate::value::StringValue;
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;

pub const LCS: Command<DataFn> =
    read("LCS key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]", lcs)
        .doc("Finds the longest common substring.")
        .group(Group::String)
        .since("7.0.0")
        .cost("O(N*M) where N and M are the lengths of s1 and s2, respectively");

#[derive(Default)]
struct Options {
    wants_length: bool,
    wants_indexes: bool,
    wants_match_lengths: bool,
    match_length_min: i64,
}

/// Two stretches of equal bytes: where each begins, and how long they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Match {
    a: usize,
    b: usize,
    length: usize,
}

/// `lengths[i][j]`: the length of the longest common subsequence of the first `i` bytes of one and
/// the first `j` of the other.
struct Lengths {
    table: Vec<u32>,
    width: usize,
}

fn lcs(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let text = |value: Result<Option<StringValue<'_>>, Refusal>| {
        let value =
            value.map_err(|_| Refusal::of("ERR The specified keys must contain string values"))?;
        Ok(value.map_or_else(Vec::new, |value| value.to_vec()))
    };
    // Both are looked up before either can be refused.
    let (a, b) = (view.string(args.at(1)), view.string(args.at(2)));
    let (a, b) = (text(a)?, text(b)?);
    let options = options(args)?;
    let bytes = ((a.len() + 1) as u64).saturating_mul((b.len() + 1) as u64).saturating_mul(4);
    if bytes > view.settings().proto_max_bulk_len {
        return Err(Refusal::of(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let lengths = Lengths::new(&a, &b, view.work());
    let length = lengths.at(a.len(), b.len());
    if options.wants_indexes {
        let matches = lengths.matches(&a, &b, view.work());
        reply_indexes(&matches, length, &options, view.work(), reply);
    } else if options.wants_length {
        reply.integer(i64::from(length));
    } else {
        let mut common = Vec::with_capacity(length as usize);
        for found in lengths.matches(&a, &b, view.work()).iter().rev() {
            common.extend_from_slice(&a[found.a..found.a + found.length]);
        }
        reply.bulk(common);
    }
    Ok(())
}

fn options(args: Args<'_>) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "IDX") {
            options.wants_indexes = true;
        } else if args.is(at, "LEN") {
            options.wants_length = true;
        } else if args.is(at, "WITHMATCHLEN") {
            options.wants_match_lengths = true;
        } else if args.is(at, "MINMATCHLEN") && at + 1 < args.len() {
            at += 1;
            let length = parse_i64(args.at(at)).ok_or(Refusal::NOT_AN_INTEGER)?;
            options.match_length_min = length.max(0);
        } else {
            return Err(Refusal::SYNTAX);
        }
        at += 1;
    }
    if options.wants_length && options.wants_indexes {
        return Err(Refusal::of(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    Ok(options)
}

fn reply_indexes(
    matches: &[Match],
    length: u32,
    options: &Options,
    work: &Work,
    reply: &mut Reply,
) {
    reply.map(2);
    reply.bulk(b"matches");
    let long = |found: &&Match| found.length as i64 >= options.match_length_min;
    reply.array(matches.iter().filter(long).count());
    work.reply_each(matches.iter().filter(long), reply, |found, reply| {
        reply.array(if options.wants_match_lengths { 3 } else { 2 });
        for start in [found.a, found.b] {
            reply.array(2);
            reply.integer(start as i64);
            reply.integer((start + found.length - 1) as i64);
        }
        if options.wants_match_lengths {
            reply.integer(found.length as i64);
        }
    });
    reply.bulk(b"len");
    reply.integer(i64::from(length));
}

impl Lengths {
    fn new(a: &[u8], b: &[u8], work: &Work) -> Self {
        let width = b.len() + 1;
        let mut table = vec![0_u32; (a.len() + 1) * width];
        for i in 1..=a.len() {
            work.step();
            work.bytes(b.len());
            for j in 1..=b.len() {
                table[i * width + j] = if a[i - 1] == b[j - 1] {
                    table[(i - 1) * width + j - 1] + 1
                } else {
                    table[(i - 1) * width + j].max(table[i * width + j - 1])
                };
            }
        }
        Self { table, width }
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.table[i * self.width + j]
    }

    /// The contiguous matches of one longest common subsequence, the last one first.
    fn matches(&self, a: &[u8], b: &[u8], work: &Work) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            work.step();
            if a[i - 1] == b[j - 1] {
                i -= 1;
                j -= 1;
                match matches.last_mut() {
                    Some(last) if last.a == i + 1 && last.b == j + 1 => {
                        *last = Match { a: i, b: j, length: last.length + 1 };
                    }
                    _ => matches.push(Match { a: i, b: j, length: 1 }),
                }
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        matches
    }
}
