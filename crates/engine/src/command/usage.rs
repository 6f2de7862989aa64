//! Derives a command's name, arity and key positions from its usage line.
//!
//! The grammar is that of Redis's documentation: upper-case words are literal, lower-case words are
//! operands, `[ ]` is optional, `|` separates alternatives, `< >` groups, `...` repeats what stands
//! before it. Words that are keys end in "key" (`key`, `newkey`, `srckey`) or are one of a few
//! other names (`source`, `destination`, `key1`, `key2`).

use super::flags::Flags;

/// The positions of the keys among the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeySpec {
    /// From argument `first` to `last` (negative: from the end), every `step`-th.
    Range { first: usize, last: i32, step: usize },
    /// Argument `count` tells how many keys follow, from argument `first` on.
    Counted { count: usize, first: usize },
    /// The argument after a keyword, searched from argument `from` on (`STORE destination`).
    Keyword { word: &'static str, from: usize },
}

/// A usage line, parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Lower-case, `config|get` for a subcommand.
    pub name: String,
    /// As COMMAND INFO gives it: negative if more arguments may follow.
    pub arity: i32,
    pub keys: Vec<KeySpec>,
    /// The argument that names a field or a member of the first key's collection, if its place is
    /// fixed.
    pub member: Option<usize>,
}

impl Declared {
    /// Reads a usage line; `arity` (if not 0) and `keys` (if given) override what it says.
    pub fn new(usage: &str, arity: i32, keys: Option<&[KeySpec]>) -> Self {
        let tokens = tokens(usage);
        let literals = tokens.iter().take_while(|token| is_literal(token)).count().min(2);
        let name = tokens[..literals.max(1)].join("|").to_ascii_lowercase();
        let counted = Shape::new(&tokens);
        let member = matches!(tokens[..], [_, key, "field" | "member", ..] if is_key(key));
        Self {
            name,
            member: member.then_some(2),
            arity: if arity == 0 { counted.arity } else { arity },
            keys: keys.map_or(counted.keys, <[KeySpec]>::to_vec),
        }
    }

    /// First key, last key and step as COMMAND INFO gives them: zeroes without a fixed range.
    pub fn range(&self) -> (usize, i32, usize) {
        match self.keys.first() {
            Some(&KeySpec::Range { first, mut last, step }) => {
                for spec in &self.keys[1..] {
                    if let KeySpec::Range { last: further, .. } = *spec
                        && (further < 0 || further > last)
                    {
                        last = further;
                    }
                }
                (first, last, step)
            }
            _ => (0, 0, 0),
        }
    }

    /// The place of the first counted key, if the keys are counted by an argument. 0: they are not.
    pub fn first_counted(&self) -> usize {
        match self.keys.first() {
            Some(&KeySpec::Counted { first, .. }) => first,
            _ => 0,
        }
    }

    /// Whether the keys cannot be found from the range alone.
    pub fn movable(&self) -> Flags {
        let movable = self.keys.iter().any(|spec| !matches!(spec, KeySpec::Range { .. }));
        if movable { Flags::MOVABLEKEYS } else { Flags::NONE }
    }

    /// Appends the indexes of the arguments that are keys in a request of `count` arguments.
    /// `argument` gives the bytes of one. A nonsensical count of keys yields `None`.
    pub fn key_indexes<'a>(
        &self,
        count: usize,
        argument: impl Fn(usize) -> &'a [u8],
        indexes: &mut Vec<usize>,
    ) -> Option<()> {
        for spec in &self.keys {
            match *spec {
                KeySpec::Range { first, last, step } => {
                    let last = if last < 0 { count as i64 + i64::from(last) } else { last.into() };
                    let end = usize::try_from(last + 1).unwrap_or(0).min(count);
                    indexes.extend((first..end).step_by(step));
                }
                KeySpec::Counted { count: at, first } => {
                    if at >= count {
                        return None;
                    }
                    let keys = std::str::from_utf8(argument(at)).ok()?.parse::<usize>().ok()?;
                    if keys > count.saturating_sub(first) {
                        return None;
                    }
                    indexes.extend(first..first + keys);
                }
                KeySpec::Keyword { word, from } => {
                    let found = (from..count.saturating_sub(1))
                        .rev()
                        .find(|&i| argument(i).eq_ignore_ascii_case(word.as_bytes()));
                    indexes.extend(found.map(|i| i + 1));
                }
            }
        }
        Some(())
    }
}

fn tokens(usage: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for word in usage.split_ascii_whitespace() {
        let mut rest = word;
        while let Some(bracket) = rest.strip_prefix(['[', '<']) {
            tokens.push(&rest[..1]);
            rest = bracket;
        }
        let core = rest.trim_end_matches([']', '>']);
        if !core.is_empty() {
            tokens.push(core);
        }
        let closing = &rest[core.len()..];
        tokens.extend((0..closing.len()).map(|i| &closing[i..=i]));
    }
    tokens
}

fn is_literal(token: &str) -> bool {
    token.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"-_|".contains(&b))
        && token.bytes().any(|b| b.is_ascii_uppercase())
        && token != "|"
}

fn is_key(token: &str) -> bool {
    token.ends_with("key") || matches!(token, "source" | "destination" | "key1" | "key2")
}

/// Counts what is mandatory and finds the keys, left to right.
struct Shape {
    arity: i32,
    keys: Vec<KeySpec>,
}

impl Shape {
    fn new(tokens: &[&str]) -> Self {
        let mut mandatory: i32 = 0;
        let mut open_ended = false;
        let mut depth = 0_usize;
        let mut keys: Vec<KeySpec> = Vec::new();
        let mut counted = None;
        let mut alternative = false;
        for (at, &token) in tokens.iter().enumerate() {
            match token {
                "[" => {
                    depth += 1;
                    open_ended = true;
                    if depth == 1 {
                        repeat_keys(&tokens[at..], mandatory, &mut keys, counted);
                    }
                }
                "]" => depth -= 1,
                "<" | ">" => {}
                _ if depth > 0 => {}
                "|" => alternative = true,
                _ if alternative => alternative = false,
                "..." => open_ended = true,
                _ => {
                    let index = mandatory as usize;
                    if token == "numkeys" {
                        counted = Some(index);
                    } else if is_key(token) {
                        keys.push(match counted {
                            Some(count) => KeySpec::Counted { count, first: index },
                            None => KeySpec::Range { first: index, last: index as i32, step: 1 },
                        });
                    }
                    mandatory += 1;
                }
            }
        }
        merge_neighbours(&mut keys);
        Self { arity: if open_ended { -mandatory } else { mandatory }, keys }
    }
}

/// `key [key ...]` and `key value [key value ...]`: the last range runs to the end (or to the last
/// mandatory operands after the repetition, as in `BLPOP key [key ...] timeout`).
fn repeat_keys(tokens: &[&str], mandatory: i32, keys: &mut [KeySpec], counted: Option<usize>) {
    let close = tokens.iter().position(|token| *token == "]").unwrap_or(tokens.len());
    let inside = &tokens[1..close];
    let repeats = inside.last() == Some(&"...") && inside.first().is_some_and(|t| is_key(t));
    let Some(KeySpec::Range { first, last, step }) = keys.last_mut() else { return };
    if !repeats || counted.is_some() {
        return;
    }
    let after = tokens[close..].iter().filter(|t| !"[]<>|...".contains(**t)).count();
    let optional_after = tokens[close + 1..].contains(&"[");
    let width = inside.len() - 1;
    if *first as i32 + width as i32 == mandatory && !optional_after {
        *last = -1 - after as i32;
        *step = width;
    }
}

/// Two keys side by side (`RENAME key newkey`) are one range.
fn merge_neighbours(keys: &mut Vec<KeySpec>) {
    let mut merged: Vec<KeySpec> = Vec::new();
    for key in keys.drain(..) {
        match (merged.last_mut(), key) {
            (
                Some(KeySpec::Range { last, step: 1, .. }),
                KeySpec::Range { first, last: end, step: 1 },
            ) if *last >= 0 && first as i32 == *last + 1 => *last = end,
            _ => merged.push(key),
        }
    }
    *keys = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(usage: &str, name: &str, arity: i32, range: (usize, i32, usize)) {
        let declared = Declared::new(usage, 0, None);
        assert_eq!(
            (declared.name.as_str(), declared.arity, declared.range()),
            (name, arity, range),
            "{usage}"
        );
    }

    #[test]
    fn usage_lines_give_name_arity_and_keys() {
        check("GET key", "get", 2, (1, 1, 1));
        check("SET key value [NX | XX] [GET] [EX seconds | KEEPTTL]", "set", -3, (1, 1, 1));
        check("DEL key [key ...]", "del", -2, (1, -1, 1));
        check("MSET key value [key value ...]", "mset", -3, (1, -1, 2));
        check("BLPOP key [key ...] timeout", "blpop", -3, (1, -2, 1));
        check("ZADD key [NX | XX] [CH] score member [score member ...]", "zadd", -4, (1, 1, 1));
        check("RENAME key newkey", "rename", 3, (1, 2, 1));
        check("PING [message]", "ping", -1, (0, 0, 0));
        check("LINSERT key <BEFORE | AFTER> pivot element", "linsert", 5, (1, 1, 1));
        check("CONFIG GET parameter [parameter ...]", "config|get", -3, (0, 0, 0));
        check("OBJECT ENCODING key", "object|encoding", 3, (2, 2, 1));
        check("BITOP operation destkey key [key ...]", "bitop", -4, (2, -1, 1));
        check("LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>", "lmove", 5, (1, 2, 1));
    }

    #[test]
    fn a_member_is_known_by_its_place_behind_the_key() {
        let member = |usage| Declared::new(usage, 0, None).member;
        assert_eq!(member("HSET key field value [field value ...]"), Some(2));
        assert_eq!(member("SISMEMBER key member"), Some(2));
        assert_eq!(member("ZADD key [NX | XX] score member"), None);
        assert_eq!(member("GET key"), None);
    }

    #[test]
    fn counted_keys_are_movable() {
        let declared = Declared::new("ZUNION numkeys key [key ...] [WITHSCORES]", 0, None);
        assert_eq!(declared.keys, [KeySpec::Counted { count: 1, first: 2 }]);
        assert_eq!((declared.arity, declared.range()), (-3, (0, 0, 0)));
        let request: [&[u8]; 5] = [b"zunion", b"2", b"a", b"b", b"withscores"];
        let mut indexes = Vec::new();
        assert!(declared.key_indexes(5, |i| request[i], &mut indexes).is_some());
        assert_eq!(indexes, [2, 3]);
    }
}
