//! Which arguments of one request are keys, and what becomes of each: COMMAND GETKEYS.
//!
//! Key specifications find most. Where they do not reach (`SORT key … STORE destination`), or where
//! the use of a key depends on an option (`SET key value GET`), a function per command looks at the
//! arguments, as in Redis.

use super::key_specs::Spec;
use super::migrate::key_arguments;
use crate::registry::Registered;
use engine::command::KeySpec;

/// A key of a request: the argument's index, and what becomes of it, if that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestKey {
    pub index: usize,
    pub flags: Vec<String>,
}

impl RequestKey {
    fn new(index: usize, flags: &[&str]) -> Self {
        Self { index, flags: flags.iter().map(|flag| (*flag).to_owned()).collect() }
    }
}

const READ: &[&str] = &["RO", "access"];
const CHANGE: &[&str] = &["RW", "access", "update"];
const MOVE: &[&str] = &["RW", "access", "delete"];
const OVERWRITE: &[&str] = &["OW", "update"];

/// Whether requests of this command can have keys at all. What is only hashed like a key, as the
/// channel of SPUBLISH is, is none.
pub(super) fn may_have_keys(command: &Registered) -> bool {
    command.specs.iter().any(|spec| !spec.has("not_key"))
}

/// The keys of a request of `count` arguments; none if it makes no sense.
pub(crate) fn keys_of<'a>(
    command: &Registered,
    count: usize,
    argument: impl Fn(usize) -> &'a [u8],
) -> Vec<RequestKey> {
    let specs: Vec<_> = command.specs.iter().filter(|spec| !spec.has("not_key")).collect();
    let is_uncertain = |spec: &&Spec| spec.has("variable_flags") || spec.has("incomplete");
    let is_certain = !specs.iter().copied().any(|spec| is_uncertain(&spec));
    let by_specs = || {
        let mut keys = Vec::new();
        for spec in &specs {
            for index in spec.find_keys(count, &argument)? {
                keys.push(RequestKey { index, flags: spec.flags().to_vec() });
            }
        }
        Some(keys)
    };
    if is_certain && let Some(keys) = by_specs() {
        return keys;
    }
    match command.name() {
        "set" => vec![RequestKey::new(1, set_flags(count, argument))],
        "bitfield" => vec![RequestKey::new(1, bitfield_flags(count, argument))],
        "sort" => sort(count, argument),
        "sort_ro" => vec![RequestKey::new(1, READ)],
        "migrate" => {
            let keys = key_arguments(count, argument);
            keys.map(|index| RequestKey::new(index, MOVE)).collect()
        }
        "georadius" | "georadiusbymember" => radius(count, argument),
        _ => counted(&command.declared.keys, count, argument),
    }
}

/// SET reads the key too if it has the option GET.
fn set_flags<'a>(count: usize, argument: impl Fn(usize) -> &'a [u8]) -> &'static [&'static str] {
    let reads = (3..count).any(|at| argument(at).eq_ignore_ascii_case(b"get"));
    if reads { CHANGE } else { OVERWRITE }
}

/// BITFIELD only reads if all it has is GET. What cannot be understood might write.
fn bitfield_flags<'a>(
    count: usize,
    argument: impl Fn(usize) -> &'a [u8],
) -> &'static [&'static str] {
    let mut at = 2;
    while at < count {
        let operands = count - 1 - at;
        let is = |word: &[u8]| argument(at).eq_ignore_ascii_case(word);
        if is(b"get") && operands >= 2 {
            at += 3;
        } else if is(b"overflow") && operands >= 1 {
            at += 2;
        } else {
            return CHANGE;
        }
    }
    READ
}

/// The key and the last destination. The words behind LIMIT, BY and GET are operands, whatever
/// they say.
fn sort<'a>(count: usize, argument: impl Fn(usize) -> &'a [u8]) -> Vec<RequestKey> {
    let mut destination = None;
    let mut at = 2;
    while at < count {
        let is = |word: &[u8]| argument(at).eq_ignore_ascii_case(word);
        if is(b"limit") {
            at += 2;
        } else if is(b"get") || is(b"by") {
            at += 1;
        } else if is(b"store") && at + 1 < count {
            destination = Some(at + 1);
        }
        at += 1;
    }
    let destination = destination.map(|index| RequestKey::new(index, OVERWRITE));
    [RequestKey::new(1, READ)].into_iter().chain(destination).collect()
}

/// The key and the last destination of a GEORADIUS whose keywords make no sense. Redis does not
/// say what becomes of them.
fn radius<'a>(count: usize, argument: impl Fn(usize) -> &'a [u8]) -> Vec<RequestKey> {
    let mut keys = vec![RequestKey::new(1, &[])];
    let mut at = 5;
    while at + 1 < count {
        let word = argument(at);
        if word.eq_ignore_ascii_case(b"store") || word.eq_ignore_ascii_case(b"storedist") {
            keys.truncate(1);
            keys.push(RequestKey::new(at + 1, &[]));
            at += 1;
        }
        at += 1;
    }
    keys
}

/// The keys that an argument counts, where that only begins with a number; then the destination.
/// Redis does not say what becomes of them.
fn counted<'a>(
    specs: &[KeySpec],
    count: usize,
    argument: impl Fn(usize) -> &'a [u8],
) -> Vec<RequestKey> {
    let counted = specs.iter().find_map(|spec| match *spec {
        KeySpec::Counted { count, first } => Some((count, first)),
        _ => None,
    });
    let Some((at, first)) = counted.filter(|(at, _)| *at < count) else { return Vec::new() };
    let keys = leading_number(argument(at));
    if keys < 1 || keys > count.saturating_sub(first) {
        return Vec::new();
    }
    let destination = specs.iter().find_map(|spec| match *spec {
        KeySpec::Range { first, .. } => Some(first),
        _ => None,
    });
    (first..first + keys).chain(destination).map(|index| RequestKey::new(index, &[])).collect()
}

/// The number that a text begins with, as C's `atoi` has it; 0 if it is negative or none.
fn leading_number(text: &[u8]) -> usize {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let digits = std::str::from_utf8(&digits[..end]).unwrap_or_default();
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn keys_of_requests_are_those_that_redis_finds() {
        // Recorded from redis-server 7.0.15 by record.py.
        let golden = include_str!("request_keys/redis-7.0.15.txt");
        let mut wrong = Vec::new();
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let (request, expected) = line.split_once('\t').expect("request, tab, keys");
            let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            let found = Registry::standard().find(words[0], words.get(1).copied());
            let command = found.expect("a command that is here");
            let found = match may_have_keys(command) {
                true => keys_of(command, words.len(), |at| words[at]),
                false => Vec::new(),
            };
            let show = |key: &RequestKey| {
                let word = String::from_utf8_lossy(words[key.index]);
                format!("{word}:{}", key.flags.join("+"))
            };
            let found = found.iter().map(show).collect::<Vec<_>>().join(" ");
            if found != expected {
                wrong.push(format!("{request}: Redis {expected:?}, here {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
