//! Replies of commands as Lua values, by Redis's rules.
//!
//! | reply | value |
//! |---|---|
//! | integer, bulk string, array | number, string, table |
//! | status, error | `{ok = …}`, `{err = …}` |
//! | null of RESP2 / of RESP3 | false / nil |
//! | boolean | boolean |
//! | map, set | `{map = {…}}`, `{set = {member = true, …}}` |
//! | double, big number | `{double = …}`, `{big_number = …}` |
//! | verbatim string | `{verbatim_string = {string = …, format = …}}` |

use crate::errors;
use crate::host::{Host, STEP_BYTES};
use mlua::{IntoLua, Lua, LuaString, Table, Value};
use std::rc::Rc;

/// The deepest nesting of a reply. Commands' replies nest some five levels.
const DEPTH_MAX: usize = 64;

struct Reader<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    reply: &'a [u8],
}

/// At least what Lua takes for a string beside its text, or for a table without its entries, and
/// what it takes for an entry with a key: a node, of which there are up to twice as many.
const VALUE_BYTES: usize = 128;
const ENTRY_BYTES: usize = 80;
/// What it takes for an entry of an array.
const SLOT_BYTES: usize = 16;

/// Converts an encoded reply into a Lua value. It sees to the memory limit itself, so that Lua need
/// not protect each allocation (see [`Host::freely`]).
pub(crate) fn read(host: &Rc<Host>, lua: &Lua, reply: &[u8]) -> mlua::Result<Value> {
    host.freely(lua, || Reader { lua, host, reply }.value(0))
}

/// Reads an error reply, as the error that it raises.
pub(crate) fn read_error(host: &Rc<Host>, lua: &Lua, reply: &[u8]) -> mlua::Result<mlua::Error> {
    let mut reader = Reader { lua, host, reply };
    let (_, line) = reader.line()?;
    reader.room(4 * VALUE_BYTES + line.len())?;
    Ok(errors::of_command(lua, with_code(line)))
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        let (mark, line) = self.line()?;
        if depth > DEPTH_MAX {
            return Err(self.torn());
        }
        match mark {
            b'+' => match str::from_utf8(line) {
                // Without a reference to the string.
                Ok(text) => {
                    self.host.spend_string(self.lua, text.len())?;
                    // The table with its entry, and two short strings.
                    self.room(5 * VALUE_BYTES + line.len())?;
                    self.lua.create_table_from([("ok", text)]).map(Value::Table)
                }
                Err(_) => self.field("ok", self.string(line)?),
            },
            b'-' => self.error(line),
            b':' => Ok(Value::Integer(self.integer(line)?)),
            b'$' => match self.integer(line)? {
                ..0 => Ok(Value::Boolean(false)),
                length => {
                    let text = self.take(length)?;
                    Ok(Value::String(self.string(text)?))
                }
            },
            b'*' => match self.integer(line)? {
                ..0 => Ok(Value::Boolean(false)),
                length => self.array(length, depth),
            },
            b'_' => Ok(Value::Nil),
            b'#' => Ok(Value::Boolean(line == b"t")),
            b',' => self.field("double", double(line)),
            b'(' => self.field("big_number", self.string(line)?),
            b'%' => self.map(line, depth),
            b'~' => self.set(line, depth),
            b'=' => self.verbatim(line),
            b'|' => {
                for _ in 0..self.integer(line)?.saturating_mul(2) {
                    self.value(depth + 1)?;
                }
                self.value(depth + 1)
            }
            _ => Err(self.torn()),
        }
    }

    /// Checks that there is room for so many bytes.
    fn room(&self, bytes: usize) -> mlua::Result<()> {
        self.host.check_room(self.lua, bytes)
    }

    fn string(&self, text: &[u8]) -> mlua::Result<LuaString> {
        self.room(VALUE_BYTES + text.len())?;
        self.host.spend_string(self.lua, text.len())?;
        self.lua.create_string(text)
    }

    /// An empty table, and room for so many entries with keys; a reply does not promise more than
    /// it has bytes. It grows as in Redis: the order in which a script sees the keys depends on it.
    fn table(&self, entries: i64) -> mlua::Result<Table> {
        let entries = usize::try_from(entries).unwrap_or(0).min(self.reply.len());
        self.room(VALUE_BYTES + entries * ENTRY_BYTES)?;
        self.lua.create_table()
    }

    fn field(&self, name: &str, value: impl IntoLua) -> mlua::Result<Value> {
        // The table, and a short text that becomes a string here.
        self.room(4 * VALUE_BYTES)?;
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }

    /// The table of an error reply. Without a blank in it the error has no code, and gets `ERR`.
    fn error(&self, line: &[u8]) -> mlua::Result<Value> {
        self.room(4 * VALUE_BYTES + line.len())?;
        self.host.spend_string(self.lua, line.len())?;
        errors::counted_table(self.lua, &with_code(line)).map(Value::Table)
    }

    fn array(&mut self, length: i64, depth: usize) -> mlua::Result<Value> {
        let room = usize::try_from(length).unwrap_or(0).min(self.reply.len());
        self.room(VALUE_BYTES + room * SLOT_BYTES)?;
        let table = self.lua.create_table_with_capacity(room, 0)?;
        for index in 1..=length {
            let value = self.value(depth + 1)?;
            table.raw_set(index, value)?;
            self.host.spend(self.lua, 1)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, line: &[u8], depth: usize) -> mlua::Result<Value> {
        let entries = self.integer(line)?;
        let inner = self.table(entries)?;
        for _ in 0..entries {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            self.put(&inner, key, value)?;
        }
        self.field("map", Value::Table(inner))
    }

    fn set(&mut self, line: &[u8], depth: usize) -> mlua::Result<Value> {
        let entries = self.integer(line)?;
        let inner = self.table(entries)?;
        for _ in 0..entries {
            let member = self.value(depth + 1)?;
            self.put(&inner, member, Value::Boolean(true))?;
        }
        self.field("set", Value::Table(inner))
    }

    fn put(&self, table: &Table, key: Value, value: Value) -> mlua::Result<()> {
        self.host.spend(self.lua, 1)?;
        if key.is_nil() {
            return Err(errors::text(self.lua, "table index is nil"));
        }
        table.raw_set(key, value)
    }

    fn verbatim(&mut self, line: &[u8]) -> mlua::Result<Value> {
        let length = self.integer(line)?;
        let text = self.take(length)?;
        let (format, text) = text.split_at_checked(4).ok_or_else(|| self.torn())?;
        let inner = self.table(2)?;
        inner.raw_set("string", self.string(text)?)?;
        inner.raw_set("format", self.string(&format[..3])?)?;
        self.field("verbatim_string", Value::Table(inner))
    }

    /// The next line: its first byte, and the rest.
    fn line(&mut self) -> mlua::Result<(u8, &'a [u8])> {
        let end = self.reply.windows(2).position(|pair| pair == b"\r\n");
        let Some((&mark, line)) = end.and_then(|end| self.reply[..end].split_first()) else {
            return Err(self.torn());
        };
        self.reply = &self.reply[line.len() + 3..];
        Ok((mark, line))
    }

    /// Takes this many bytes, and the line's end after them.
    fn take(&mut self, length: i64) -> mlua::Result<&'a [u8]> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((text, rest)) = self.reply.split_at_checked(length) else {
            return Err(self.torn());
        };
        self.host.spend(self.lua, length / STEP_BYTES)?;
        self.reply = rest.get(2..).ok_or_else(|| self.torn())?;
        Ok(text)
    }

    fn integer(&self, line: &[u8]) -> mlua::Result<i64> {
        resp::integer::parse_i64(line).ok_or_else(|| self.torn())
    }

    /// The error for a reply that is not well-formed, which ends the script. The node has made a
    /// mistake then.
    fn torn(&self) -> mlua::Error {
        errors::table(self.lua, b"ERR a command's reply could not be read")
    }
}

/// An error's text with a code: its first word, or `ERR` if it has one word only.
pub(crate) fn with_code(text: &[u8]) -> Vec<u8> {
    let text = errors::until_nul(text);
    match text.iter().position(|&byte| byte == b' ') {
        Some(at) => [&text[..=at], without_line_ends(&text[at + 1..])].concat(),
        None => [b"ERR ", without_line_ends(text)].concat(),
    }
}

/// The text without CR and LF at both ends.
fn without_line_ends(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = text.iter().position(|byte| !is_end(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_end(byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

/// `inf`, `-inf`, `nan`, or a decimal number.
fn double(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
