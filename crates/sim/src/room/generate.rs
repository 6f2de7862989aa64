//! Random requests from the commands' usage lines.
//!
//! Whatever the engine's families declare is sent sooner or later, with few keys and unique values,
//! so that a new command is tried here from the day it is declared.

use super::token::Tokens;
use crate::random::Random;
use engine::command::{Declared, FAMILIES};

type Words = Vec<Vec<u8>>;

/// Commands whose reach or reply does not fit: they empty the ledgers' database, wait for
/// replicas, answer with what is not in the log, or speak to subscribers.
const LEFT_OUT: [&str; 7] =
    ["flushall", "swapdb", "wait", "dump", "restore", "publish", "spublish"];

/// Keys of each family.
const KEYS: u64 = 3;

/// A part of a usage line.
enum Part {
    Word(String),
    /// `[ ]` (may be left out) or `< >`: one of the alternatives, perhaps several times.
    Group {
        is_optional: bool,
        repeats: bool,
        alternatives: Vec<Vec<Self>>,
    },
}

struct Row {
    parts: Vec<Part>,
    family: usize,
}

/// Makes requests.
pub struct Generator {
    rows: Vec<Row>,
    random: Random,
}

impl Generator {
    pub fn new(random: Random) -> Self {
        Self::without(&LEFT_OUT, random)
    }

    /// Makes requests of all commands but these.
    pub fn without(left_out: &[&str], random: Random) -> Self {
        let families = FAMILIES.iter().enumerate();
        let rows = families.flat_map(|(family, rows)| {
            let known = rows.iter().filter(|row| {
                let declared = Declared::new(row.usage, row.arity, row.keys);
                !left_out.contains(&declared.name.as_str())
            });
            known.map(move |row| Row { parts: parse(row.usage), family })
        });
        Self { rows: rows.collect(), random }
    }

    /// One request.
    pub fn request(&mut self, tokens: &mut Tokens) -> Words {
        let row = self.random.within(0..self.rows.len() as u64) as usize;
        let Row { parts, family } = &self.rows[row];
        let random = &mut self.random;
        let mut maker = Maker::new(random, tokens, *family);
        maker.parts(parts);
        let mut words = maker.words;
        if self.random.chance(2) {
            words.push(b"superfluous".to_vec());
        }
        words
    }
}

/// Where a request stands with its `numkeys`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Free,
    Announced(u64),
    Written,
}

struct Maker<'a> {
    random: &'a mut Random,
    tokens: &'a mut Tokens,
    family: usize,
    keys: Keys,
    /// The number of fields or IDs still to come after the first, where `numfields` or `numids`
    /// announced them.
    fields: Option<u64>,
    words: Words,
}

impl<'a> Maker<'a> {
    fn new(random: &'a mut Random, tokens: &'a mut Tokens, family: usize) -> Self {
        Self { random, tokens, family, keys: Keys::Free, fields: None, words: vec![] }
    }

    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Word(word) => self.word(word),
                Part::Group { is_optional, repeats, alternatives } => {
                    let first = match alternatives[0].first() {
                        Some(Part::Word(word)) => word,
                        _ => "",
                    };
                    if is_key(first) && self.keys == Keys::Written {
                        continue;
                    }
                    let announced = self.fields.filter(|_| matches!(first, "field" | "id"));
                    let times = match (is_optional, repeats) {
                        _ if announced.is_some() => announced.unwrap_or_default(),
                        (true, true) => self.random.within(0..3),
                        (true, false) => self.random.within(0..4) / 3,
                        (false, _) => 1,
                    };
                    for _ in 0..times {
                        let chosen = self.random.within(0..alternatives.len() as u64) as usize;
                        self.parts(&alternatives[chosen]);
                    }
                }
            }
        }
    }

    fn word(&mut self, word: &str) {
        let is_literal = !word.bytes().any(|byte| byte.is_ascii_lowercase());
        if is_literal {
            self.words.push(word.as_bytes().to_vec());
        } else if word == "numkeys" {
            let count = self.random.within(1..4);
            self.keys = Keys::Announced(count);
            self.words.push(count.to_string().into_bytes());
        } else if matches!(word, "numfields" | "numids") {
            let count = self.random.within(1..4);
            self.fields = Some(count - 1);
            self.words.push(count.to_string().into_bytes());
        } else if is_key(word) {
            let count = if let Keys::Announced(count) = self.keys { count } else { 1 };
            if count > 1 || self.keys != Keys::Free {
                self.keys = Keys::Written;
            }
            for _ in 0..count {
                let key = self.key();
                self.words.push(key);
            }
        } else {
            let operand = self.operand(word);
            self.words.push(operand);
        }
    }

    /// Mostly a key of the command's own family.
    fn key(&mut self) -> Vec<u8> {
        let family = if self.random.chance(90) {
            self.family as u64
        } else {
            self.random.within(0..FAMILIES.len() as u64)
        };
        format!("key:{family}:{}", self.random.within(0..KEYS)).into_bytes()
    }

    fn operand(&mut self, name: &str) -> Vec<u8> {
        let random = &mut *self.random;
        let number = match name {
            "destination-db" | "db" => random.within(1..3) as i64,
            "seconds" | "idletime" => random.within(1..3) as i64,
            "milliseconds" => random.within(1..500) as i64,
            "unix-time-seconds" => 1_767_225_600 + random.within(0..20) as i64,
            "unix-time-milliseconds" => 1_767_225_600_000 + random.within(0..20_000) as i64,
            "increment" | "decrement" => random.within(0..20) as i64 - 10,
            "offset" => random.within(0..100) as i64,
            "cursor" => 0,
            "start" | "stop" | "end" | "index" => random.within(0..12) as i64 - 4,
            "count" | "limit" | "rank" | "bit" | "score" | "min" | "max" | "numlocal" => {
                random.within(0..5) as i64
            }
            "timeout" => return format!("0.0{}", random.within(1..9)).into_bytes(),
            "pattern" => return random.choose(&[&b"*"[..], b"key:*", b"m*"]).to_vec(),
            "field" | "member" | "group" | "consumer" if random.chance(80) => {
                return format!("m{}", random.within(0..6)).into_bytes();
            }
            "id" | "threshold" if random.chance(80) => random.within(0..40) as i64,
            _ if random.chance(15) => random.within(0..100) as i64,
            _ => return self.tokens.issue(),
        };
        number.to_string().into_bytes()
    }
}

fn is_key(word: &str) -> bool {
    word.ends_with("key") || matches!(word, "source" | "destination" | "key1" | "key2")
}

fn parse(usage: &str) -> Vec<Part> {
    let spaced: String = usage.chars().fold(String::new(), |mut text, c| {
        match c {
            '[' | ']' | '<' | '>' => text.extend([' ', c, ' ']),
            c => text.push(c),
        }
        text
    });
    let words: Vec<&str> = spaced.split_ascii_whitespace().collect();
    let mut at = 0;
    let (mut alternatives, _) = group(&words, &mut at);
    alternatives.swap_remove(0)
}

/// The alternatives up to a closing bracket, and whether they repeat.
fn group(words: &[&str], at: &mut usize) -> (Vec<Vec<Part>>, bool) {
    let mut alternatives = vec![Vec::new()];
    let mut repeats = false;
    while let Some(word) = words.get(*at) {
        *at += 1;
        let part = match *word {
            "]" | ">" => break,
            "..." => {
                repeats = true;
                continue;
            }
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "[" | "<" => {
                let (alternatives, repeats) = group(words, at);
                Part::Group { is_optional: *word == "[", repeats, alternatives }
            }
            word => Part::Word(word.to_owned()),
        };
        if let Some(last) = alternatives.last_mut() {
            last.push(part);
        }
    }
    (alternatives, repeats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_requests_have_the_arity_that_their_usage_line_declares() {
        let mut tokens = Tokens::new(1);
        let mut generator = Generator::new(Random::from_seed(1));
        let (catalog, _) = node::standard();
        let admitted = (0..1000).filter(|_| {
            let words = generator.request(&mut tokens);
            let command = catalog.find(&words[0], words.get(1).map(Vec::as_slice));
            command.expect("it is declared").admits(words.len())
        });
        assert!(admitted.count() > 950);
    }

    #[test]
    fn numkeys_counts_the_keys_that_follow() {
        let usage = "LMPOP numkeys key [key ...] <LEFT | RIGHT> [COUNT count]";
        let mut tokens = Tokens::new(1);
        let mut random = Random::from_seed(1);
        for _ in 0..100 {
            let (random, tokens) = (&mut random, &mut tokens);
            let mut maker = Maker::new(random, tokens, 0);
            maker.parts(&parse(usage));
            let count: usize = String::from_utf8_lossy(&maker.words[1]).parse().unwrap();
            let end = &maker.words[2 + count];
            assert!(end == b"LEFT" || end == b"RIGHT", "{:?}", maker.words);
        }
    }

    #[test]
    fn numfields_counts_the_fields_that_follow() {
        for (usage, width) in [
            ("HTTL key FIELDS numfields field [field ...]", 1),
            ("HSETEX key FIELDS numfields field value [field value ...]", 2),
            ("XDELEX key IDS numids id [id ...]", 1),
        ] {
            let (mut tokens, mut random) = (Tokens::new(1), Random::from_seed(1));
            for _ in 0..100 {
                let mut maker = Maker::new(&mut random, &mut tokens, 0);
                maker.parts(&parse(usage));
                let count: usize = String::from_utf8_lossy(&maker.words[3]).parse().unwrap();
                assert_eq!(maker.words.len(), 4 + count * width, "{:?}", maker.words);
            }
        }
    }
}
