//! Lua's patterns, matched in steps that can be interrupted.
//!
//! Lua's own matcher can take time exponential in the pattern's length, without interruption. This
//! one has the same semantics (Lua 5.1 reference manual, section 5.4.1), counts steps, pauses, and
//! limits how deep it nests.
//!
//! A pattern ends at its first NUL byte; `%z` matches a NUL.

use crate::errors;
use crate::host::{Host, STEP_BYTES};
use mlua::{Lua, Value};
use std::rc::Rc;

/// The most captures of a pattern. Lua's number.
const CAPTURES_MAX: usize = 32;

/// The deepest nesting of a match: about the number of repetitions and captures in a pattern. Lua
/// has no such limit, and overflows its stack.
const DEPTH_MAX: usize = 4000;

/// The longest pattern, in bytes: the set of a class is read at once. Lua has no such limit.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Steps that are counted locally before they are added to the script's.
const STEPS_AT_A_TIME: usize = 64;

const ESCAPE: u8 = b'%';

/// The extent of a capture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    /// The capture was opened and not closed yet.
    Open,
    /// A position capture: `()`.
    Position,
    Bytes(usize),
}

/// The content of a capture.
pub(crate) enum Captured<'a> {
    Text(&'a [u8]),
    /// A place in the source, counted from 1.
    Position(usize),
}

pub(crate) struct Matcher<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    source: &'a [u8],
    pattern: &'a [u8],
    captures: [(usize, Length); CAPTURES_MAX],
    level: usize,
    depth: usize,
    steps: usize,
    /// The level of the stack whose place errors name.
    blamed: usize,
}

/// The error for what is beyond the limits of patterns.
const TOO_COMPLEX: &str = "pattern too complex";

type Matched = mlua::Result<Option<usize>>;

impl<'a> Matcher<'a> {
    /// # Errors
    /// The pattern is too long.
    pub(crate) fn new(
        lua: &'a Lua,
        host: &'a Rc<Host>,
        source: &'a [u8],
        pattern: &'a [u8],
    ) -> mlua::Result<Self> {
        // A pattern in C ends with a NUL.
        let pattern = errors::until_nul(&pattern[..pattern.len().min(PATTERN_BYTES_MAX + 1)]);
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(errors::complain(lua, TOO_COMPLEX));
        }
        Ok(Self {
            lua,
            host,
            source,
            pattern,
            captures: [(0, Length::Open); CAPTURES_MAX],
            level: 0,
            depth: 0,
            steps: 0,
            blamed: 1,
        })
    }

    /// Lets errors name the place of the function that called the caller, which is a part of this
    /// library.
    pub(crate) fn blame_caller_of_caller(&mut self) {
        self.blamed = 2;
    }

    /// Matches the pattern at `from`; returns the end of the match.
    pub(crate) fn match_at(&mut self, from: usize) -> Matched {
        self.level = 0;
        self.depth = 0;
        self.run(from, 0)
    }

    /// The captures of a match from `start` to `end`; if there are none and `whole` is set, the
    /// whole match.
    pub(crate) fn captures(
        &self,
        start: usize,
        end: usize,
        whole: bool,
    ) -> mlua::Result<Vec<Value>> {
        let count = if self.level == 0 && whole { 1 } else { self.level };
        (0..count).map(|index| self.capture(index, start, end)).collect()
    }

    fn capture(&self, index: usize, start: usize, end: usize) -> mlua::Result<Value> {
        match self.captured(index, start, end)? {
            Captured::Text(text) => self.lua.create_string(text).map(Value::String),
            Captured::Position(place) => Ok(Value::Integer(place as i64)),
        }
    }

    /// A capture, counted from 0. The first one of a pattern without captures is the whole match.
    pub(crate) fn captured(
        &self,
        index: usize,
        start: usize,
        end: usize,
    ) -> mlua::Result<Captured<'a>> {
        if index >= self.level {
            if index > 0 {
                return Err(self.fail("invalid capture index"));
            }
            return Ok(self.whole(start, end));
        }
        let (from, length) = self.captures[index];
        match length {
            Length::Open => Err(self.fail("unfinished capture")),
            Length::Position => Ok(Captured::Position(from + 1)),
            Length::Bytes(length) => Ok(Captured::Text(&self.source[from..from + length])),
        }
    }

    pub(crate) fn whole(&self, start: usize, end: usize) -> Captured<'a> {
        Captured::Text(&self.source[start..end])
    }

    fn fail(&self, text: &str) -> mlua::Error {
        errors::complain_from(self.lua, self.blamed, text)
    }

    fn step(&mut self) -> mlua::Result<()> {
        self.steps(1)
    }

    fn steps(&mut self, steps: usize) -> mlua::Result<()> {
        self.steps += steps;
        if self.steps >= STEPS_AT_A_TIME {
            let steps = std::mem::take(&mut self.steps);
            self.host.spend(self.lua, steps)?;
        }
        Ok(())
    }

    /// The pattern's byte at an index; NUL behind its end.
    fn at(&self, index: usize) -> u8 {
        self.pattern.get(index).copied().unwrap_or(0)
    }

    /// Matches the rest of the pattern, one level deeper.
    fn nested(&mut self, s: usize, p: usize) -> Matched {
        if self.depth == DEPTH_MAX {
            return Err(self.fail(TOO_COMPLEX));
        }
        self.depth += 1;
        let result = self.run(s, p);
        self.depth -= 1;
        result
    }

    fn run(&mut self, mut s: usize, mut p: usize) -> Matched {
        loop {
            self.step()?;
            match (self.at(p), self.at(p + 1)) {
                (b'(', b')') => return self.open(s, p + 2, Length::Position),
                (b'(', _) => return self.open(s, p + 1, Length::Open),
                (b')', _) => return self.close(s, p + 1),
                (ESCAPE, b'b') => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (ESCAPE, b'f') => match self.frontier(s, p + 2)? {
                    Some(end) => p = end,
                    None => return Ok(None),
                },
                (ESCAPE, digit @ b'0'..=b'9') => match self.again(s, digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                (0, _) => return Ok(Some(s)),
                (b'$', 0) => return Ok((s == self.source.len()).then_some(s)),
                _ => {
                    let end = self.class_end(p)?;
                    self.steps((end - p) / STEP_BYTES)?;
                    let matches = self.matches_one(s, p, end);
                    match self.at(end) {
                        b'?' => {
                            if matches && let Some(found) = self.nested(s + 1, end + 1)? {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        b'*' => return self.most(s, p, end),
                        b'+' if matches => return self.most(s + 1, p, end),
                        b'-' => return self.fewest(s, p, end),
                        b'+' => return Ok(None),
                        _ if matches => (s, p) = (s + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn open(&mut self, s: usize, p: usize, length: Length) -> Matched {
        if self.level == CAPTURES_MAX {
            return Err(self.fail("too many captures"));
        }
        self.captures[self.level] = (s, length);
        self.level += 1;
        let found = self.nested(s, p)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Matched {
        let open = (0..self.level).rev().find(|&at| self.captures[at].1 == Length::Open);
        let Some(at) = open else { return Err(self.fail("invalid pattern capture")) };
        self.captures[at].1 = Length::Bytes(s - self.captures[at].0);
        let found = self.nested(s, p)?;
        if found.is_none() {
            self.captures[at].1 = Length::Open;
        }
        Ok(found)
    }

    /// Matches `%bxy`; returns the end of what it matches.
    fn balanced(&mut self, s: usize, p: usize) -> Matched {
        let (begin, end) = (self.at(p), self.at(p + 1));
        if begin == 0 || end == 0 {
            return Err(self.fail("unbalanced pattern"));
        }
        if self.source.get(s) != Some(&begin) {
            // Behind the string's end is a NUL, which matches nothing here.
            return Ok(None);
        }
        let mut open = 1;
        for at in s + 1..self.source.len() {
            self.step()?;
            let byte = self.source[at];
            if byte == end {
                open -= 1;
                if open == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == begin {
                open += 1;
            }
        }
        Ok(None)
    }

    /// Matches `%f[set]`: `s` must be where the set begins to match. Returns the index in the
    /// pattern behind it.
    fn frontier(&mut self, s: usize, p: usize) -> Matched {
        if self.at(p) != b'[' {
            return Err(self.fail("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        self.steps((end - p) / STEP_BYTES)?;
        let before = s.checked_sub(1).map_or(0, |at| self.source[at]);
        let here = self.source.get(s).copied().unwrap_or(0);
        let begins = !self.in_set(before, p, end - 1) && self.in_set(here, p, end - 1);
        Ok(begins.then_some(end))
    }

    /// Matches `%1`, the text of a capture once more; returns the end of it.
    fn again(&mut self, s: usize, digit: u8) -> Matched {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let held = index.filter(|&index| index < self.level).map(|index| self.captures[index]);
        let Some((from, length)) = held.filter(|held| held.1 != Length::Open) else {
            return Err(self.fail("invalid capture index"));
        };
        // The original takes the length of a position capture as a huge number, which never
        // matches.
        let Length::Bytes(length) = length else { return Ok(None) };
        self.steps(length / STEP_BYTES)?;
        let text = &self.source[from..from + length];
        Ok(self.source[s..].starts_with(text).then_some(s + length))
    }

    /// Matches the item at `p` as often as it goes, and the rest of the pattern behind `end`.
    fn most(&mut self, s: usize, p: usize, end: usize) -> Matched {
        let mut count = 0;
        while self.matches_one(s + count, p, end) {
            self.steps(1 + (end - p) / STEP_BYTES)?;
            count += 1;
        }
        loop {
            if let Some(found) = self.nested(s + count, end + 1)? {
                return Ok(Some(found));
            }
            match count.checked_sub(1) {
                Some(less) => count = less,
                None => return Ok(None),
            }
        }
    }

    /// Matches the item at `p` as seldom as it goes, and the rest of the pattern behind `end`.
    fn fewest(&mut self, mut s: usize, p: usize, end: usize) -> Matched {
        loop {
            if let Some(found) = self.nested(s, end + 1)? {
                return Ok(Some(found));
            }
            self.steps((end - p) / STEP_BYTES)?;
            if !self.matches_one(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    /// The place in the pattern behind the single-character item at `p`.
    fn class_end(&self, p: usize) -> mlua::Result<usize> {
        match self.at(p) {
            ESCAPE if self.at(p + 1) == 0 => Err(self.fail("malformed pattern (ends with '%')")),
            ESCAPE => Ok(p + 2),
            b'[' => {
                let mut at = p + 1 + usize::from(self.at(p + 1) == b'^');
                loop {
                    let byte = self.at(at);
                    if byte == 0 {
                        return Err(self.fail("malformed pattern (missing ']')"));
                    }
                    at += 1;
                    if byte == ESCAPE && self.at(at) != 0 {
                        at += 1;
                    }
                    if self.at(at) == b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    fn matches_one(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.source.get(s) else { return false };
        match self.at(p) {
            b'.' => true,
            ESCAPE => in_class(byte, self.at(p + 1)),
            b'[' => self.in_set(byte, p, end - 1),
            other => other == byte,
        }
    }

    /// Whether a byte is in the set between `p` and `end`.
    fn in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let is_inverted = self.at(p + 1) == b'^';
        let mut at = p + 1 + usize::from(is_inverted);
        while at < end {
            if self.at(at) == ESCAPE {
                at += 1;
                if in_class(byte, self.at(at)) {
                    return !is_inverted;
                }
            } else if self.at(at + 1) == b'-' && at + 2 < end {
                if (self.at(at)..=self.at(at + 2)).contains(&byte) {
                    return !is_inverted;
                }
                at += 2;
            } else if self.at(at) == byte {
                return !is_inverted;
            }
            at += 1;
        }
        is_inverted
    }
}

/// Whether a byte is in a class such as `%a`; `%A` is its complement.
fn in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // C's `isspace` includes the vertical tab, Rust's method does not.
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in == class.is_ascii_lowercase()
}
