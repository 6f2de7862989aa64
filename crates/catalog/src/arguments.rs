//! The arguments of a command as a tree, as COMMAND DOCS gives them, read from its usage line.
//!
//! The grammar is that of `engine::command`'s usage lines. A literal is the token of the operands
//! that follow it: `EX seconds` is one argument with the token `EX`, `LIMIT offset count` a block
//! with the token `LIMIT`. A usage line does not tell the type of an operand; `words` knows it by
//! the operand's name.

mod words;

use words::{group_name, kind_of};

/// One argument, or a group of arguments (Redis documentation, "Command arguments").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
    /// The literal before the argument, or the argument itself if it is a literal.
    pub token: Option<String>,
    pub is_optional: bool,
    pub is_multiple: bool,
    /// Whether the token is repeated with each repetition of the argument.
    pub repeats_token: bool,
    /// The members of a group; empty otherwise.
    pub arguments: Vec<Argument>,
}

/// The type of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    PureToken,
    /// A choice: one of its members.
    OneOf,
    /// A sequence: all of its members, one after another.
    Block,
}

impl Kind {
    /// The type's name in COMMAND DOCS.
    pub fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

impl Argument {
    fn of(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            token: None,
            is_optional: false,
            is_multiple: false,
            repeats_token: false,
            arguments: Vec::new(),
        }
    }

    fn pure_token(token: &str) -> Self {
        Self { token: Some(token.into()), ..Self::of(token.to_ascii_lowercase(), Kind::PureToken) }
    }

    fn block(arguments: Vec<Self>) -> Self {
        let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
        Self { arguments: arguments.clone(), ..Self::of(names.join("_"), Kind::Block) }
    }

    /// The argument's flags, as COMMAND DOCS names them.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            (self.is_optional, "optional"),
            (self.is_multiple, "multiple"),
            (self.repeats_token, "multiple_token"),
        ];
        flags.into_iter().filter_map(|(is_set, word)| is_set.then_some(word))
    }
}

/// The arguments of the command with this name (`config|get`) and usage line.
pub fn arguments(name: &str, usage: &str) -> Vec<Argument> {
    let words = name.split('|').count();
    let tokens: Vec<Token<'_>> =
        usage.split_ascii_whitespace().skip(words).flat_map(split).collect();
    let mut reader = Reader { name, tokens: &tokens };
    let mut alternatives = reader.alternatives();
    if alternatives.len() > 1 {
        return vec![one_of(alternatives.into_iter().map(one).collect())];
    }
    alternatives.pop().unwrap_or_default()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    Opens,
    Closes,
    /// `<` and `>` enclose a group that is not optional.
    Begins,
    Ends,
    Or,
    Again,
    Literal(&'a str),
    Operand(&'a str),
}

/// Splits a word of a usage line into tokens: its brackets, and what they enclose.
fn split(word: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = word;
    loop {
        // Redis does not tell that a filter may be negated.
        if let Some(filter) = rest.strip_prefix("[NOT-]") {
            rest = filter;
        } else if let Some(inner) = rest.strip_prefix('[') {
            tokens.push(Token::Opens);
            rest = inner;
        } else if let Some(inner) = rest.strip_prefix('<').filter(|inner| !inner.is_empty()) {
            tokens.push(Token::Begins);
            rest = inner;
        } else {
            break;
        }
    }
    let core = rest.trim_end_matches([']', '>']);
    match core {
        "" => {}
        "|" => tokens.push(Token::Or),
        "..." => tokens.push(Token::Again),
        _ if is_literal(core) => tokens.push(Token::Literal(core)),
        _ => tokens.push(Token::Operand(core)),
    }
    tokens.extend(rest[core.len()..].chars().map(|bracket| match bracket {
        ']' => Token::Closes,
        _ => Token::Ends,
    }));
    tokens
}

/// Whether a word is a literal, which a request has as it is.
fn is_literal(word: &str) -> bool {
    let is_sign = matches!(word, "*" | "~" | "=" | "$" | "+");
    let is_word = word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-');
    is_sign || is_word && word.bytes().any(|b| b.is_ascii_uppercase())
}

/// A reader of tokens, from the left.
struct Reader<'a> {
    name: &'a str,
    tokens: &'a [Token<'a>],
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.first().copied()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    /// Reads sequences with `|` between them, up to and including the closing bracket.
    fn alternatives(&mut self) -> Vec<Vec<Argument>> {
        let mut found = vec![self.sequence(None)];
        while self.next() == Some(Token::Or) {
            found.push(self.sequence(None));
        }
        found
    }

    /// Reads arguments up to `|` or a closing bracket. With `names` they are the operands of that
    /// literal: they also end before a group that repeats the literal.
    fn sequence(&mut self, names: Option<&str>) -> Vec<Argument> {
        let mut found: Vec<Argument> = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Opens if names.is_some_and(|literal| self.says_again(literal)) => break,
                Token::Closes | Token::Ends | Token::Or => break,
                Token::Again => {
                    self.next();
                    if let Some(last) = found.last_mut() {
                        last.is_multiple = true;
                    }
                }
                Token::Opens => {
                    self.next();
                    self.optional(&mut found);
                }
                Token::Begins => {
                    self.next();
                    let group = self.alternatives();
                    found.push(one_of(group.into_iter().map(one).collect()));
                }
                Token::Literal(literal) => {
                    self.next();
                    let is_head = names.is_none() && found.is_empty();
                    let operands = self.operands(is_head.then_some(literal));
                    found.push(named(literal, operands));
                }
                Token::Operand(operand) => {
                    self.next();
                    found.push(Argument::of(operand, kind_of(self.name, operand)));
                }
            }
        }
        found
    }

    /// Whether the group that opens here begins with this literal, which then is repeated.
    fn says_again(&self, literal: &str) -> bool {
        matches!(self.tokens, [_, Token::Literal(first), ..] if *first == literal)
    }

    /// Reads the operands of a literal. If it is the `head` of a group, these are all that follow;
    /// otherwise those up to the next literal or optional group.
    fn operands(&mut self, head: Option<&str>) -> Vec<Argument> {
        let is_top_level = !self.tokens.contains(&Token::Closes) || {
            let mut depth = 0_i32;
            self.tokens.iter().all(|token| {
                depth += match token {
                    Token::Opens | Token::Begins => 1,
                    Token::Closes | Token::Ends => -1,
                    _ => 0,
                };
                depth >= 0
            })
        };
        if head.is_some() && !is_top_level {
            return self.sequence(head);
        }
        let mut found = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Operand(operand) => {
                    self.next();
                    found.push(Argument::of(operand, kind_of(self.name, operand)));
                }
                Token::Opens if self.repeats(&found) => {
                    self.next();
                    self.optional(&mut found);
                }
                Token::Begins if found.is_empty() => {
                    self.next();
                    let group = self.alternatives();
                    found.push(one_of(group.into_iter().map(one).collect()));
                }
                _ => break,
            }
        }
        found
    }

    /// Whether the group that opens here repeats the last of these arguments, and ends with `...`.
    fn repeats(&self, found: &[Argument]) -> bool {
        let last = found.last().map(|argument| argument.name.as_str());
        match self.tokens {
            [_, Token::Operand(operand), Token::Again, ..] => Some(*operand) == last,
            _ => false,
        }
    }

    /// Reads an optional group, which has just opened: further arguments, or a repetition of those
    /// found last.
    fn optional(&mut self, found: &mut Vec<Argument>) {
        let again = self.repetition();
        let mut alternatives = self.alternatives();
        let [sequence] = &alternatives[..] else {
            // `...` behind the last alternative repeats the choice.
            if let Some(last) = alternatives.last_mut().and_then(|last| last.last_mut()) {
                last.is_multiple &= !again;
            }
            let group = one_of(alternatives.into_iter().map(one).collect());
            found.push(Argument { is_optional: true, is_multiple: again, ..group });
            return;
        };
        if again && let Some(first) = found.len().checked_sub(sequence.len()) {
            let bare = |of: &[Argument]| -> Vec<(String, Option<String>)> {
                of.iter().map(|argument| (argument.name.clone(), argument.token.clone())).collect()
            };
            if bare(&found[first..]) == bare(sequence) {
                let mut repeated = one(found.split_off(first));
                repeated.is_multiple = true;
                repeated.repeats_token = sequence[0].token.is_some();
                found.push(repeated);
                return;
            }
        }
        found.push(Argument { is_optional: true, ..one(sequence.clone()) });
    }

    /// Whether the group that has just opened ends with `...`.
    fn repetition(&self) -> bool {
        let mut depth = 0_i32;
        let mut last = None;
        for token in self.tokens {
            match token {
                Token::Opens | Token::Begins => depth += 1,
                Token::Closes | Token::Ends if depth == 0 => break,
                Token::Closes | Token::Ends => depth -= 1,
                _ => {}
            }
            last = Some(*token);
        }
        last == Some(Token::Again)
    }
}

/// The argument for a literal with its operands: the literal itself, one operand with a token, or a
/// block.
fn named(literal: &str, mut operands: Vec<Argument>) -> Argument {
    let token = Some(literal.to_owned());
    match operands.len() {
        0 => Argument::pure_token(literal),
        1 if operands[0].token.is_none() => {
            Argument { token, ..operands.pop().unwrap_or_else(|| Argument::pure_token(literal)) }
        }
        _ => Argument { token, ..Argument::block(operands) },
    }
}

/// A sequence as one argument: a block if it has several members.
fn one(mut sequence: Vec<Argument>) -> Argument {
    match sequence.len() {
        1 => sequence.remove(0),
        _ => Argument::block(sequence),
    }
}

fn one_of(mut alternatives: Vec<Argument>) -> Argument {
    if alternatives.len() == 1 {
        return alternatives.remove(0);
    }
    let name = group_name(&alternatives);
    Argument { arguments: alternatives, ..Argument::of(name, Kind::OneOf) }
}

#[cfg(test)]
mod tests;
