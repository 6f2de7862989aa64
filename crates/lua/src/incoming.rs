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
use crate::host::Host;
use mlua::{Lua, Table, Value};
use std::rc::Rc;

/// Bytes of a reply that count as one step.
const STEP_BYTES: usize = 64;

/// How deep replies nest at most. Commands' replies nest some five levels.
const DEPTH_MAX: usize = 64;

struct Reader<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    reply: &'a [u8],
}

/// The value of an encoded reply.
pub(crate) fn read(host: &Rc<Host>, lua: &Lua, reply: &[u8]) -> mlua::Result<Value> {
    Reader { lua, host, reply }.value(0)
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        let (mark, line) = self.line()?;
        if depth > DEPTH_MAX {
            return Err(self.torn());
        }
        match mark {
            b'+' => self.field("ok", Value::String(self.lua.create_string(line)?)),
            b'-' => self.error(line),
            b':' => Ok(Value::Integer(self.integer(line)?)),
            b'$' => match self.integer(line)? {
                ..0 => Ok(Value::Boolean(false)),
                length => {
                    let text = self.take(length)?;
                    Ok(Value::String(self.lua.create_string(text)?))
                }
            },
            b'*' => match self.integer(line)? {
                ..0 => Ok(Value::Boolean(false)),
                length => self.array(length, depth),
            },
            b'_' => Ok(Value::Nil),
            b'#' => Ok(Value::Boolean(line == b"t")),
            b',' => self.field("double", Value::Number(double(line))),
            b'(' => self.field("big_number", Value::String(self.lua.create_string(line)?)),
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

    fn field(&self, name: &str, value: Value) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }

    /// An error without a blank is a text without a code.
    fn error(&self, line: &[u8]) -> mlua::Result<Value> {
        let table = errors::error_table(self.lua, &with_code(line))?;
        table.raw_set("ignore_error_stats_update", true)?;
        Ok(Value::Table(table))
    }

    fn array(&mut self, length: i64, depth: usize) -> mlua::Result<Value> {
        let room = usize::try_from(length).unwrap_or(0).min(self.reply.len());
        let table = self.lua.create_table_with_capacity(room, 0)?;
        for index in 1..=length {
            let value = self.value(depth + 1)?;
            table.raw_set(index, value)?;
            self.host.spend(self.lua, 1)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, line: &[u8], depth: usize) -> mlua::Result<Value> {
        let inner = self.lua.create_table()?;
        for _ in 0..self.integer(line)? {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            self.put(&inner, key, value)?;
        }
        self.field("map", Value::Table(inner))
    }

    fn set(&mut self, line: &[u8], depth: usize) -> mlua::Result<Value> {
        let inner = self.lua.create_table()?;
        for _ in 0..self.integer(line)? {
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
        let inner = self.lua.create_table_with_capacity(0, 2)?;
        inner.raw_set("string", self.lua.create_string(text)?)?;
        inner.raw_set("format", self.lua.create_string(&format[..3])?)?;
        self.field("verbatim_string", Value::Table(inner))
    }

    /// The mark and the rest of the next line.
    fn line(&mut self) -> mlua::Result<(u8, &'a [u8])> {
        let end = self.reply.windows(2).position(|pair| pair == b"\r\n");
        let Some((&mark, line)) = end.and_then(|end| self.reply[..end].split_first()) else {
            return Err(self.torn());
        };
        self.reply = &self.reply[line.len() + 3..];
        Ok((mark, line))
    }

    /// So many bytes, and the line's end after them.
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

    /// The reply is not whole: whoever answered is wrong, and the script ends.
    fn torn(&self) -> mlua::Error {
        errors::table(self.lua, b"ERR a command's reply could not be read")
    }
}

/// An error's text with a code: that of the text, or the one for all that have none.
pub(crate) fn with_code(text: &[u8]) -> Vec<u8> {
    let text = errors::until_nul(text);
    match text.iter().position(|&byte| byte == b' ') {
        Some(at) => {
            let message = text[at + 1..].trim_ascii_end_of_line();
            [&text[..=at], message].concat()
        }
        None => [b"ERR ", text.trim_ascii_end_of_line()].concat(),
    }
}

trait TrimLine {
    fn trim_ascii_end_of_line(&self) -> &[u8];
}

impl TrimLine for [u8] {
    /// Without the line's ends at both sides.
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = self.iter().position(|byte| !is_end(byte)).unwrap_or(self.len());
        let end = self.iter().rposition(|byte| !is_end(byte)).map_or(start, |at| at + 1);
        &self[start..end]
    }
}

/// `inf`, `-inf`, `nan`, or a decimal number.
fn double(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
