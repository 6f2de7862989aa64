//! Errors as scripts see them.
//!
//! A Rust function that fails returns an error to `mlua`, and Lua sees an opaque object. What a
//! script should see instead, a string or a table, is wrapped in it ([`Raised`]). Whatever shows an
//! error to a script unwraps it ([`visible`]): pcall, xpcall, coroutines, the end of the script.
//!
//! The object is there until Lua collects it, however soon the script forgets it. Until then a
//! value of Lua in it would occupy one of the some 8,000 slots that `mlua` has for values which
//! Rust holds: every string among the arguments of a call needs one too. So it holds bytes, and a
//! value only where a script raised one by itself. What is still there is counted
//! ([`Uncollected`]).

use crate::step::ScriptError;
use mlua::{Error, Lua, LuaString, Table, Value};
use std::cell::Cell;
use std::rc::Rc;

/// Lua's text when an allocation fails.
pub(crate) const NO_MEMORY: &[u8] = b"not enough memory";

/// The same text in an error table.
const NO_MEMORY_REPLY: &[u8] = b"ERR not enough memory";

/// Bytes of an error's text that a reply shows, if the error was not raised for a reply. Redis's
/// number.
const FOREIGN_TEXT_BYTES_MAX: usize = 100;

/// The most levels of the stack that a function of the sandbox occupies.
const LEVELS_INSIDE: usize = 8;

/// The longest string of a script that an error holds as bytes, which Lua does not count as memory.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Bytes that an error takes beside its text: most of them are the traceback that `mlua` makes.
const ERROR_BYTES: usize = 1 << 10;

/// Values in errors from which garbage is collected: a part of the slots for what Rust holds.
const HELD_VALUES_MAX: usize = 512;

/// Bytes of errors from which garbage is collected. Lua does not know of them.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The content of an error of `mlua`: a value that a script is to see in its place.
#[derive(Debug)]
struct Raised {
    what: What,
    counted: Rc<Uncollected>,
}

#[derive(Debug)]
enum What {
    /// A string.
    Text(Vec<u8>),
    /// The table `{err = …}` of an error reply without its `-`; `was_counted` in the statistics, by
    /// the command that failed.
    Reply { text: Vec<u8>, was_counted: bool },
    /// A value that a script raised.
    Own(Value),
}

/// The errors that Lua has not collected, as far as they hold values, and their bytes.
#[derive(Default, Debug)]
pub(crate) struct Uncollected {
    values: Cell<usize>,
    bytes: Cell<usize>,
}

impl Uncollected {
    /// Whether there are so many errors, or bytes of them, that garbage is to be collected.
    pub(crate) fn are_many(&self) -> bool {
        self.values.get() >= HELD_VALUES_MAX || self.bytes.get() >= HELD_BYTES_MAX
    }
}

impl What {
    fn values(&self) -> usize {
        usize::from(matches!(self, Self::Own(_)))
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reply { text, .. } => ERROR_BYTES + text.len(),
            Self::Own(_) => ERROR_BYTES,
        }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        let Uncollected { values, bytes } = &*self.counted;
        values.set(values.get() - self.what.values());
        bytes.set(bytes.get() - self.what.bytes());
    }
}

impl std::fmt::Display for Raised {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            What::Text(text) => out.write_str(&String::from_utf8_lossy(text)),
            _ => out.write_str("an error of a script"),
        }
    }
}

impl std::error::Error for Raised {}

/// The count of a state's errors. The state keeps it.
pub(crate) fn uncollected(lua: &Lua) -> Rc<Uncollected> {
    if let Some(counted) = lua.app_data_ref::<Rc<Uncollected>>() {
        return Rc::clone(&counted);
    }
    let counted = Rc::<Uncollected>::default();
    lua.set_app_data(Rc::clone(&counted));
    counted
}

fn raise(lua: &Lua, what: What) -> Error {
    let counted = uncollected(lua);
    counted.values.set(counted.values.get() + what.values());
    counted.bytes.set(counted.bytes.get() + what.bytes());
    Error::external(Raised { what, counted })
}

/// An error with any value.
pub(crate) fn value(lua: &Lua, value: Value) -> Error {
    match &value {
        Value::String(short) if short.as_bytes().len() <= TEXT_BYTES_MAX => {
            text(lua, short.as_bytes())
        }
        _ => raise(lua, What::Own(value)),
    }
}

/// An error with a string as its value.
pub(crate) fn text(lua: &Lua, text: impl AsRef<[u8]>) -> Error {
    raise(lua, What::Text(text.as_ref().to_vec()))
}

/// An error with a string behind the place at which the running function was called, as C's
/// `luaL_error` makes it.
pub(crate) fn complain(lua: &Lua, what: impl AsRef<[u8]>) -> Error {
    complain_from(lua, 1, what)
}

/// As [`complain`], with the place of the function at this level.
pub(crate) fn complain_from(lua: &Lua, level: usize, what: impl AsRef<[u8]>) -> Error {
    let mut full = place(lua, level).into_bytes();
    full.extend_from_slice(what.as_ref());
    text(lua, full)
}

/// An error with a table as its value, as commands' errors are. `reply` is an error reply without
/// its `-`.
pub(crate) fn table(lua: &Lua, reply: &[u8]) -> Error {
    raise(lua, What::Reply { text: reply.to_vec(), was_counted: false })
}

/// As [`table`], for the error of a command, which has counted it.
pub(crate) fn of_command(lua: &Lua, reply: Vec<u8>) -> Error {
    raise(lua, What::Reply { text: reply, was_counted: true })
}

/// The table of a command's error, which says that it was counted.
pub(crate) fn counted_table(lua: &Lua, reply: &[u8]) -> mlua::Result<Table> {
    let table = error_table(lua, reply)?;
    table.raw_set("ignore_error_stats_update", true)?;
    Ok(table)
}

/// The table `{err = …}`.
pub(crate) fn error_table(lua: &Lua, reply: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("err", lua.create_string(reply)?)?;
    Ok(table)
}

/// The chunk name of `sandbox.lua`.
pub(crate) const SANDBOX: &str = "sandbox";

/// The text `source:line: ` for the function at this level, or nothing if it has no lines. Levels
/// are skipped in a function of the sandbox: itself, and the C function that called it.
fn place(lua: &Lua, level: usize) -> String {
    let mut is_inside = false;
    for level in level..level + LEVELS_INSIDE {
        let seen = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let name = source.short_src.unwrap_or_default().into_owned();
            (name, source.what == "C", debug.current_line().filter(|line| *line > 0))
        });
        let Some((name, is_foreign, line)) = seen else { break };
        if name == SANDBOX {
            is_inside = true;
        } else if !(is_inside && is_foreign) {
            return line.map_or_else(String::new, |line| format!("{name}:{line}: "));
        }
    }
    String::new()
}

/// The longest error of a C function itself, in bytes: a sentence with two short names.
const OWN_BYTES_MAX: usize = 200;

/// Corrects the error of a C function that was called under another name: inserts its own name, and
/// the place of the call. Where it calls another function, arguments may be that one's.
pub(crate) fn renamed(lua: &Lua, error: Value, name: &str, calls_another: bool) -> Error {
    const OWN: [&[u8]; 3] = [b"bad argument", b"invalid order function", b"wrong number of arg"];
    let Value::String(text) = &error else { return value(lua, error) };
    let bytes = text.as_bytes();
    let mut own = OWN.iter().skip(usize::from(calls_another));
    // A script may raise such an error as well, of any length; the original's are short.
    if bytes.len() > OWN_BYTES_MAX || !own.any(|own| bytes.starts_with(own)) {
        return value(lua, error);
    }
    complain(lua, String::from_utf8_lossy(&bytes).replace("to '?'", &format!("to '{name}'")))
}

/// Whether the function at this level belongs to `sandbox.lua`.
pub(crate) fn is_in_sandbox(lua: &Lua, level: usize) -> bool {
    let is_inside =
        |source: mlua::debug::DebugSource<'_>| source.short_src.as_deref() == Some(SANDBOX);
    lua.inspect_stack(level, |debug| is_inside(debug.source())).unwrap_or(false)
}

/// The source and the line of the innermost function of the script.
fn place_in_script(lua: &Lua) -> Option<(String, usize)> {
    for level in 1..LEVELS_INSIDE {
        let seen = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let is_script = source.short_src.is_some_and(|name| name != SANDBOX);
            let line = debug.current_line().filter(|line| *line > 0 && is_script)?;
            Some((source.source.unwrap_or_default().into_owned(), line))
        });
        match seen {
            Some(Some(place)) => return Some(place),
            Some(None) => {}
            None => break,
        }
    }
    None
}

/// The value that a script sees for a caught error.
pub(crate) fn visible(lua: &Lua, caught: Value) -> mlua::Result<Value> {
    match caught {
        Value::Error(error) => visible_error(lua, &error),
        Value::String(text) => outside(lua, text).map(Value::String),
        other => Ok(other),
    }
}

/// Whether an error was raised within the sandbox, or by a C function that it called.
pub(crate) fn is_from_sandbox(error: &Value) -> bool {
    matches!(error, Value::String(text) if text.as_bytes().starts_with(SANDBOX.as_bytes()))
}

/// Removes a place within the sandbox from the front of a text: scripts know nothing of it.
fn outside(lua: &Lua, text: LuaString) -> mlua::Result<LuaString> {
    let bytes = text.as_bytes();
    let rest = bytes.strip_prefix(SANDBOX.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
    let place = rest.and_then(|rest| rest.iter().position(|byte| !byte.is_ascii_digit()));
    match rest.zip(place).and_then(|(rest, at)| rest[at..].strip_prefix(b": ")) {
        Some(text) => lua.create_string(text),
        None => Ok(text.clone()),
    }
}

impl What {
    /// The value that a script sees.
    fn value(&self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            Self::Text(text) => lua.create_string(text).map(Value::String),
            Self::Reply { text, was_counted: false } => error_table(lua, text).map(Value::Table),
            Self::Reply { text, was_counted: true } => counted_table(lua, text).map(Value::Table),
            Self::Own(value) => Ok(value.clone()),
        }
    }
}

fn visible_error(lua: &Lua, error: &Error) -> mlua::Result<Value> {
    match error {
        Error::CallbackError { cause, .. } => visible_error(lua, cause),
        Error::WithContext { cause, .. } | Error::BadArgument { cause, .. } => {
            visible_error(lua, cause)
        }
        Error::ExternalError(error) => match error.downcast_ref::<Raised>() {
            Some(raised) => raised.what.value(lua),
            None => Ok(Value::String(lua.create_string(error.to_string())?)),
        },
        Error::MemoryError(_) => Ok(Value::String(lua.create_string(NO_MEMORY)?)),
        Error::RuntimeError(text) => {
            let text = text.split("\nstack traceback:").next().unwrap_or_default();
            Ok(Value::String(lua.create_string(text)?))
        }
        other => Ok(Value::String(lua.create_string(other.to_string())?)),
    }
}

/// Lua's error handler for a whole script: turns an error into a table, with the place at which it
/// happened. It runs while the failing function is still on the stack.
pub(crate) fn handle(lua: &Lua, caught: Value) -> mlua::Result<Value> {
    let caught = visible(lua, caught)?;
    let table = match &caught {
        Value::Table(table) => table.clone(),
        Value::String(text) => error_table(lua, &[b"ERR ", &*text.as_bytes()].concat())?,
        other => error_table(lua, format!("ERR {}", other.to_string()?).as_bytes())?,
    };
    if let Some((source, line)) = place_in_script(lua) {
        table.set("source", source)?;
        table.set("line", line)?;
    }
    Ok(Value::Table(table))
}

/// The error reply for a script that ended with this error. `no_memory` is the text if memory ran
/// out.
pub(crate) fn report(lua: &Lua, error: &Error, name: &str, no_memory: &str) -> ScriptError {
    let raised = visible_error(lua, error).unwrap_or(Value::Nil);
    let Value::Table(table) = raised else {
        let text = raised.as_string().map(|text| text.as_bytes().to_vec());
        if text.as_deref().is_none_or(|text| text == NO_MEMORY) {
            return ScriptError::no_memory(no_memory);
        }
        let text = text.unwrap_or_else(|| b"execution failure".to_vec());
        let shown = &text[..text.len().min(FOREIGN_TEXT_BYTES_MAX)];
        let text = [format!("ERR Error running script {name}, ").as_bytes(), shown].concat();
        return ScriptError::of(text);
    };
    let text = field(lua, &table, "err");
    let mut text = text.unwrap_or_else(|| b"ERR the script failed with an unknown error".to_vec());
    let lacks_memory = text == NO_MEMORY_REPLY;
    if lacks_memory {
        text = no_memory.as_bytes().to_vec();
    }
    if let (Some(source), Some(line)) = (field(lua, &table, "source"), field(lua, &table, "line")) {
        text.extend_from_slice(format!(" script: {name}, on ").as_bytes());
        text.extend_from_slice(&source);
        text.push(b':');
        text.extend_from_slice(&line);
        text.push(b'.');
    }
    ScriptError { text, was_counted: was_counted(&table), lacks_memory }
}

/// Whether an error table says that its error was counted already.
pub(crate) fn was_counted(table: &Table) -> bool {
    matches!(table.raw_get("ignore_error_stats_update"), Ok(Value::Boolean(true)))
}

/// An error without its place. `no_memory` is the text if memory ran out.
pub(crate) fn plain(lua: &Lua, error: &Error, no_memory: &str) -> ScriptError {
    match visible_error(lua, error) {
        Ok(Value::Table(table)) => match field(lua, &table, "err") {
            Some(text) if text == NO_MEMORY_REPLY => ScriptError::no_memory(no_memory),
            text => ScriptError::of(text.unwrap_or_default()),
        },
        Ok(Value::String(text)) if text.as_bytes() != NO_MEMORY => {
            ScriptError::of([b"ERR ", &*text.as_bytes()].concat())
        }
        Ok(Value::Nil | Value::String(_)) | Err(_) => ScriptError::no_memory(no_memory),
        Ok(other) => ScriptError::of(format!("ERR {}", other.to_string().unwrap_or_default())),
    }
}

/// A field that is a string or a number, up to its first NUL, as C's string functions read it. It
/// may be that of the table which the metatable names; functions for fields are not called.
pub(crate) fn field(lua: &Lua, table: &Table, name: &str) -> Option<Vec<u8>> {
    let mut value = table.raw_get::<Value>(name).ok()?;
    if value.is_nil()
        && let Some(metatable) = table.metatable()
        && let Ok(Value::Table(index)) = metatable.raw_get("__index")
    {
        value = index.raw_get(name).ok()?;
    }
    let text = lua.coerce_string(value).ok()??;
    Some(until_nul(&text.as_bytes()).to_vec())
}

/// The part of a string before its first NUL, as C's string functions read it.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}
