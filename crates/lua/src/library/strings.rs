//! Replacements for functions of `string` that could run long without a pause.

use super::Library;
use super::pattern::{Captured, Matcher};
use crate::errors;
use crate::given::Given;
use crate::host::{Held, Host, PIECE_BYTES, STEP_BYTES};
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes that have a meaning in patterns. A pattern without them is plain text.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// The parts of these functions that are written in Lua, and the original `pcall`.
pub(crate) struct Parts {
    /// Makes the iterator of gmatch.
    pub(crate) iterate: Function,
    /// Replaces by calls of a function, or by a table's values.
    pub(crate) replace_all: Function,
    pub(crate) pcall: Function,
}

/// Replaces functions in `strings`.
pub(crate) fn add(lua: &Lua, host: &Rc<Host>, strings: &Table, parts: Parts) -> mlua::Result<()> {
    let library = Library::over(lua, host, strings.clone());
    let Parts { iterate, replace_all, pcall } = parts;
    library.add("find", |lua, host, given| find(lua, host, &given, true))?;
    library.add("match", |lua, host, given| find(lua, host, &given, false))?;
    let gmatch = library.function(move |_, _, given| {
        iterate.call::<Function>((given.string(1)?, given.string(2)?))
    })?;
    // `gfind` is its name in Lua 5.0, which Redis's Lua still knows.
    strings.raw_set("gmatch", &gmatch)?;
    strings.raw_set("gfind", gmatch)?;
    library.add("gsub", move |lua, host, given| gsub(lua, host, &given, &replace_all, &pcall))?;
    library.add("rep", |lua, host, given| repeat(lua, host, &given))?;
    for (name, change) in CHANGES {
        library.add(name, move |lua, host, given| changed(lua, host, &given, change))?;
    }
    Ok(())
}

/// Changes bytes in place.
type Change = fn(&mut [u8]);

/// Functions that change each byte of a string; C's take 7 ns for one.
const CHANGES: [(&str, Change); 3] = [
    ("upper", <[u8]>::make_ascii_uppercase),
    ("lower", <[u8]>::make_ascii_lowercase),
    ("reverse", <[u8]>::reverse),
];

fn changed(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
    change: Change,
) -> mlua::Result<LuaString> {
    let text = given.string(1)?;
    host.spend_copy(lua, text.as_bytes().len(), 0)?;
    let mut text = text.as_bytes().to_vec();
    change(&mut text);
    lua.create_string(text)
}

/// `find` and `match`.
fn find(lua: &Lua, host: &Rc<Host>, given: &Given<'_>, finds: bool) -> mlua::Result<MultiValue> {
    let (source, pattern) = (given.string(1)?, given.string(2)?);
    let (source, pattern) = (source.as_bytes(), pattern.as_bytes());
    let from = given.integer_or(3, 1)?;
    let from = if from < 0 { from.saturating_add(source.len() as i64 + 1).max(0) } else { from };
    let from = usize::try_from(from.saturating_sub(1)).unwrap_or(0).min(source.len());
    if finds && (given.is_true(4) || is_plain(lua, host, &pattern)?) {
        let found = find_plain(lua, host, &source[from..], &pattern)?;
        return Ok(match found {
            Some(at) => numbers(&[from + at + 1, from + at + pattern.len()]),
            None => MultiValue::from_iter([Value::Nil]),
        });
    }
    let is_anchored = pattern.first() == Some(&b'^');
    let mut matcher = Matcher::new(lua, host, &source, &pattern[usize::from(is_anchored)..])?;
    for start in from..=source.len() {
        if let Some(end) = matcher.match_at(start)? {
            let captures = matcher.captures(start, end, !finds)?;
            let place = if finds { numbers(&[start + 1, end]) } else { MultiValue::new() };
            return Ok(place.into_iter().chain(captures).collect());
        }
        if is_anchored {
            break;
        }
    }
    Ok(MultiValue::from_iter([Value::Nil]))
}

/// Looks for bytes that have a meaning in a pattern, up to its first NUL; true if there are none.
fn is_plain(lua: &Lua, host: &Rc<Host>, pattern: &[u8]) -> mlua::Result<bool> {
    for piece in pattern.chunks(PIECE_BYTES) {
        host.spend(lua, piece.len() / STEP_BYTES)?;
        let text = errors::until_nul(piece);
        if text.iter().any(|byte| SPECIALS.contains(byte)) {
            return Ok(false);
        }
        if text.len() < piece.len() {
            break;
        }
    }
    Ok(true)
}

/// Finds a text in another. Counts a step for each place that is compared.
fn find_plain(
    lua: &Lua,
    host: &Rc<Host>,
    source: &[u8],
    text: &[u8],
) -> mlua::Result<Option<usize>> {
    let Some(&first) = text.first() else { return Ok(Some(0)) };
    let mut from = 0;
    while let Some(places) = source.len().checked_sub(from + text.len()) {
        let Some(at) = source[from..=from + places].iter().position(|&byte| byte == first) else {
            host.spend(lua, places / STEP_BYTES)?;
            break;
        };
        let same = source[from + at..].iter().zip(text).take_while(|(a, b)| a == b).count();
        host.spend(lua, (at + same) / STEP_BYTES + 1)?;
        if same == text.len() {
            return Ok(Some(from + at));
        }
        from += at + 1;
    }
    Ok(None)
}

fn numbers(numbers: &[usize]) -> MultiValue {
    numbers.iter().map(|number| Value::Integer(*number as i64)).collect()
}

/// A step of gmatch's iterator, which `sandbox.lua` calls: the next match from a place on. Returns
/// the place behind it and the captures; only a place if there is none.
///
/// The iterator itself is written in Lua: one in Rust would hold its strings until Lua collects it.
pub(crate) fn next_match(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
) -> mlua::Result<MultiValue> {
    // Nothing else than the iterator calls this.
    let (Value::String(source), Value::String(pattern)) = (given.at(1), given.at(2)) else {
        return Err(given.wrong_type(1, "string"));
    };
    let (source, pattern) = (source.as_bytes(), pattern.as_bytes());
    let mut matcher = Matcher::new(lua, host, &source, &pattern)?;
    matcher.blame_caller_of_caller();
    let from = usize::try_from(given.integer(3)?).unwrap_or(0);
    for start in from..=source.len() {
        if let Some(end) = matcher.match_at(start)? {
            let behind = if end == start { end + 1 } else { end };
            let behind = Value::Integer(behind as i64);
            return Ok(std::iter::once(behind)
                .chain(matcher.captures(start, end, true)?)
                .collect());
        }
    }
    Ok(MultiValue::from_iter([Value::Integer(source.len() as i64 + 1)]))
}

/// The progress of a gsub.
struct Replacing {
    source: LuaString,
    pattern: LuaString,
    is_anchored: bool,
    /// The most replacements still to make.
    left: usize,
    /// The place from which the next match is searched.
    from: usize,
    /// The match that is replaced next.
    found: Option<(usize, usize)>,
    count: usize,
    result: Vec<u8>,
    /// Counts the result while a function of the script runs.
    held: Held,
}

impl Replacing {
    fn new(host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<Self> {
        let (source, pattern) = (given.string(1)?, given.string(2)?);
        let length = source.as_bytes().len();
        let left = if given.is_none(4) { length as i64 + 1 } else { i64::from(given.int(4)?) };
        let is_anchored = pattern.as_bytes().first() == Some(&b'^');
        Ok(Self {
            source,
            pattern,
            is_anchored,
            left: usize::try_from(left).unwrap_or(0),
            from: 0,
            found: None,
            count: 0,
            result: Vec::new(),
            held: Held::none(host),
        })
    }

    /// Finds the next match and calls `use_it` with it; `None` if there is none.
    fn advance<T>(
        &mut self,
        lua: &Lua,
        host: &Rc<Host>,
        use_it: impl FnOnce(&Matcher<'_>, usize, usize, &mut Vec<u8>) -> mlua::Result<T>,
    ) -> mlua::Result<Option<T>> {
        let (source, pattern) = (self.source.as_bytes(), self.pattern.as_bytes());
        let pattern = &pattern[usize::from(self.is_anchored)..];
        let mut matcher = Matcher::new(lua, host, &source, pattern)?;
        while self.left > 0 && self.from <= source.len() {
            let start = self.from;
            let end = matcher.match_at(start)?;
            if let Some(end) = end {
                self.count += 1;
                self.left -= 1;
                self.found = Some((start, end));
                let used = use_it(&matcher, start, end, &mut self.result)?;
                host.spend(lua, 1)?;
                // After an empty match, one byte is copied.
                match end == start {
                    false => self.from = end,
                    true => self.from = start + 1,
                }
                if self.is_anchored {
                    self.left = 0;
                }
                return Ok(Some(used));
            }
            if let Some(&byte) = source.get(start) {
                self.result.push(byte);
            }
            if self.result.len().is_multiple_of(PIECE_BYTES) {
                host.check_room(lua, self.result.len())?;
            }
            self.from += 1;
            if self.is_anchored {
                break;
            }
        }
        Ok(None)
    }

    /// Copies the byte after an empty match.
    fn pass_over(&mut self) {
        if let Some((start, end)) = self.found.take()
            && start == end
            && let Some(&byte) = self.source.as_bytes().get(start)
        {
            self.result.push(byte);
        }
    }

    fn finish(&mut self, lua: &Lua, host: &Rc<Host>) -> mlua::Result<MultiValue> {
        let source = self.source.as_bytes();
        if let Some(rest) = source.get(self.from..) {
            append(lua, host, rest, &mut self.result)?;
        }
        let result = lua.create_string(std::mem::take(&mut self.result))?;
        Ok(MultiValue::from_iter([Value::String(result), Value::Integer(self.count as i64)]))
    }
}

fn gsub(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
    replace_all: &Function,
    pcall: &Function,
) -> mlua::Result<MultiValue> {
    let mut replacing = Replacing::new(host, given)?;
    match given.at(3) {
        Value::String(_) | Value::Integer(_) | Value::Number(_) => {
            let text = given.string(3)?;
            let text = text.as_bytes();
            let insert = |matcher: &Matcher<'_>, start, end, result: &mut Vec<u8>| {
                insert_text(lua, host, matcher, &text, (start, end), result)
            };
            while replacing.advance(lua, host, insert)?.is_some() {
                replacing.pass_over();
            }
            replacing.finish(lua, host)
        }
        by @ (Value::Function(_) | Value::Table(_)) => {
            replace_by_calls(lua, host, replacing, by, replace_all, pcall)
        }
        _ => Err(given.refuse(3, "string/function/table expected")),
    }
}

/// Appends the replacement for a match, with captures in place of `%1`.
///
/// # Errors
/// The result is beyond the memory limit, there is no such capture, or the script was killed.
fn insert_text(
    lua: &Lua,
    host: &Rc<Host>,
    matcher: &Matcher<'_>,
    text: &[u8],
    (start, end): (usize, usize),
    result: &mut Vec<u8>,
) -> mlua::Result<()> {
    host.spend_copy(lua, text.len(), result.len())?;
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            result.push(byte);
            continue;
        }
        // A string in C ends with a NUL.
        match rest.next().unwrap_or(0) {
            digit @ b'0'..=b'9' => {
                let index = usize::from(digit).checked_sub(usize::from(b'1'));
                let capture = match index {
                    Some(index) => matcher.captured(index, start, end)?,
                    None => matcher.whole(start, end),
                };
                match capture {
                    Captured::Text(text) => append(lua, host, text, result)?,
                    Captured::Position(place) => {
                        append(lua, host, place.to_string().as_bytes(), result)?;
                    }
                }
            }
            other => result.push(other),
        }
    }
    Ok(())
}

/// Appends a text, which may be long, and be there many times over.
fn append(lua: &Lua, host: &Rc<Host>, text: &[u8], result: &mut Vec<u8>) -> mlua::Result<()> {
    host.spend_copy(lua, text.len(), result.len())?;
    result.extend_from_slice(text);
    Ok(())
}

/// gsub with a function or a table of the script, which Lua itself calls.
///
/// The function that Lua calls is there until it is collected, so nothing is left in it.
fn replace_by_calls(
    lua: &Lua,
    host: &Rc<Host>,
    replacing: Replacing,
    by: &Value,
    replace_all: &Function,
    pcall: &Function,
) -> mlua::Result<MultiValue> {
    let shared = Rc::new(RefCell::new(Some(replacing)));
    let step = replacer(lua, host, Rc::clone(&shared));
    let results = step.and_then(|step| pcall.call::<MultiValue>((replace_all, step, by)));
    let replacing = shared.borrow_mut().take();
    let mut results = results?;
    if results.pop_front() != Some(Value::Boolean(true)) {
        return Err(match results.pop_front().unwrap_or(Value::Nil) {
            Value::Error(error) => *error,
            error => errors::value(lua, errors::visible(lua, error)?),
        });
    }
    replacing.expect("only this takes it").finish(lua, host)
}

/// The step of a gsub that `sandbox.lua` calls again and again.
fn replacer(
    lua: &Lua,
    host: &Rc<Host>,
    shared: Rc<RefCell<Option<Replacing>>>,
) -> mlua::Result<Function> {
    let host = Rc::clone(host);
    // Appends the replacement of the last match, and finds the next one.
    lua.create_function(move |lua, value: Value| {
        let mut replacing = shared.borrow_mut();
        let replacing = replacing.as_mut().expect("a call of it runs");
        replacing.held.set(0);
        if let Some((start, end)) = replacing.found {
            let Replacing { source, result, .. } = &mut *replacing;
            match &value {
                Value::Nil | Value::Boolean(false) => {
                    append(lua, &host, &source.as_bytes()[start..end], result)?;
                }
                Value::String(text) => append(lua, &host, &text.as_bytes(), result)?,
                Value::Integer(_) | Value::Number(_) => {
                    if let Some(text) = lua.coerce_string(value)? {
                        append(lua, &host, &text.as_bytes(), result)?;
                    }
                }
                other => {
                    let what = crate::given::type_name(other);
                    let text = format!("invalid replacement value (a {what})");
                    return Err(errors::complain(lua, text));
                }
            }
            replacing.pass_over();
        }
        let captures = replacing
            .advance(lua, &host, |matcher, start, end, _| matcher.captures(start, end, true));
        let captures = captures?;
        replacing.held.set(replacing.result.capacity());
        host.check_room(lua, 0)?;
        let is_found = Value::Boolean(captures.is_some());
        Ok(std::iter::once(is_found).chain(captures.into_iter().flatten()).collect::<MultiValue>())
    })
}

fn repeat(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<LuaString> {
    let (text, count) = (given.string(1)?, given.int(2)?);
    let text = text.as_bytes();
    let bytes = text.len().saturating_mul(usize::try_from(count).unwrap_or(0));
    host.spend_copy(lua, bytes, 0)?;
    let count = if text.is_empty() { 0 } else { bytes / text.len() };
    lua.create_string(text.repeat(count))
}
