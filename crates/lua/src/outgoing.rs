//! Lua values as replies, by Redis's rules: the other way of `incoming`.

use crate::errors;
use crate::given::to_integer;
use crate::host::{Host, STEP_BYTES};
use crate::step::ScriptError;
use mlua::{BString, Lua, LuaString, Table, Value};
use resp::{Protocol, Reply};
use std::rc::Rc;

/// The deepest nesting of a table in a reply, so that a table which contains itself ends. In Redis
/// Lua's stack is the limit; the error then is within the reply, as here.
const DEPTH_MAX: usize = 3995;

/// Memory of Lua in use up to which a status is copied to be read: no string is longer.
const COPIED_MEMORY_BYTES: usize = 1 << 20;

struct Writer<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    reply: &'a mut Reply,
    /// Where the value begins.
    from: usize,
}

/// Appends a script's value to a reply. A table with the field `err` is the script's error, which
/// is returned.
///
/// # Errors
/// The script was killed meanwhile, or answers more than it may.
pub(crate) fn write(
    host: &Rc<Host>,
    lua: &Lua,
    value: &Value,
    reply: &mut Reply,
) -> mlua::Result<Option<ScriptError>> {
    let from = reply.len();
    let mut writer = Writer { lua, host, reply, from };
    let Value::Table(table) = value else { return writer.value(value, 0).map(|()| None) };
    if text(table, "err")?.is_some() {
        let text = errors::field(lua, table, "err").unwrap_or_default();
        let was_counted = errors::was_counted(table);
        return Ok(Some(ScriptError { was_counted, ..ScriptError::of(text) }));
    }
    host.spend(lua, 1)?;
    writer.sound_table(table, 0).map(|()| None)
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        self.host.spend(self.lua, 1)?;
        let bytes_max = self.host.meter.limits.reply_bytes;
        if self.reply.len() - self.from > bytes_max {
            let text = format!("ERR the script answers more than {bytes_max} bytes");
            return Err(errors::table(self.lua, text.as_bytes()));
        }
        if depth > DEPTH_MAX {
            self.reply.error("ERR reached lua stack limit");
            return Ok(());
        }
        match value {
            Value::String(text) => {
                self.host.spend(self.lua, text.as_bytes().len() / STEP_BYTES)?;
                self.reply.bulk(&*text.as_bytes());
            }
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(to_integer(*number)),
            // In RESP2 there are no booleans: false is null, true is 1.
            Value::Boolean(value) => match (self.host.protocol.get(), value) {
                (Protocol::Resp2, true) => self.reply.integer(1),
                (Protocol::Resp2, false) => self.reply.null(),
                (Protocol::Resp3, value) => self.reply.boolean(*value),
            },
            Value::Table(table) => self.table(table, depth)?,
            _ => self.reply.null(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if text(table, "err")?.is_some() {
            let error = errors::field(self.lua, table, "err").unwrap_or_default();
            self.host.spend(self.lua, error.len() / STEP_BYTES)?;
            self.reply.error(error);
            return Ok(());
        }
        self.sound_table(table, depth)
    }

    /// Appends a table that is no error.
    fn sound_table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if self.status(table)? {
            return Ok(());
        }
        match table.raw_get("double")? {
            Value::Integer(number) => return self.double(number as f64),
            Value::Number(number) => return self.double(number),
            _ => {}
        }
        if let Some(number) = text(table, "big_number")? {
            self.host.spend(self.lua, number.as_bytes().len() / STEP_BYTES)?;
            // A big number may contain no line end, in neither protocol.
            let blank = |&byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
            self.reply.big_number(number.as_bytes().iter().map(blank).collect::<Vec<u8>>());
            return Ok(());
        }
        if let Value::Table(inner) = table.raw_get("verbatim_string")?
            && let (Some(format), Some(text)) = (text(&inner, "format")?, text(&inner, "string")?)
        {
            let bytes = format.as_bytes().len() + text.as_bytes().len();
            self.host.spend(self.lua, bytes / STEP_BYTES)?;
            let mut mark = *b"   ";
            for (to, from) in mark.iter_mut().zip(errors::until_nul(&format.as_bytes())) {
                *to = *from;
            }
            self.reply.verbatim(&mark, &*text.as_bytes());
            return Ok(());
        }
        if let Value::Table(inner) = table.raw_get("map")? {
            return self.map(&inner, depth);
        }
        if let Value::Table(inner) = table.raw_get("set")? {
            return self.set(&inner, depth);
        }
        self.array(table, depth)
    }

    /// Appends a table that is a status; returns whether it is one.
    fn status(&mut self, table: &Table) -> mlua::Result<bool> {
        // A copy is far quicker than a reference, and with little memory in use it is short. But of
        // a number `mlua` makes a string too, which never begins with such a letter.
        if self.lua.used_memory() < COPIED_MEMORY_BYTES {
            match table.raw_get::<Option<BString>>("ok") {
                Ok(None) => return Ok(false),
                Ok(Some(status)) if status.first().is_some_and(u8::is_ascii_uppercase) => {
                    return self.simple(&status);
                }
                Ok(Some(_)) | Err(_) => {}
            }
        }
        match text(table, "ok")? {
            Some(status) => self.simple(&status.as_bytes()),
            None => Ok(false),
        }
    }

    fn simple(&mut self, status: &[u8]) -> mlua::Result<bool> {
        self.host.spend(self.lua, status.len() / STEP_BYTES)?;
        self.reply.simple(errors::until_nul(status));
        Ok(true)
    }

    fn double(&mut self, number: f64) -> mlua::Result<()> {
        self.reply.double(number);
        Ok(())
    }

    fn array(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let header = self.reply.begin_array();
        let mut count = 0;
        loop {
            let value = table.raw_get::<Value>(count + 1)?;
            if value.is_nil() {
                break;
            }
            self.value(&value, depth + 1)?;
            count += 1;
        }
        self.reply.end(header, count);
        Ok(())
    }

    fn map(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let header = self.reply.begin_map();
        let mut count = 0;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.value(&key, depth + 1)?;
            self.value(&value, depth + 1)?;
            count += 1;
        }
        self.reply.end(header, count);
        Ok(())
    }

    fn set(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let header = self.reply.begin_set();
        let mut count = 0;
        for pair in table.pairs::<Value, Value>() {
            let (member, _) = pair?;
            self.value(&member, depth + 1)?;
            count += 1;
        }
        self.reply.end(header, count);
        Ok(())
    }
}

/// A field, if it is a string.
fn text(table: &Table, name: &str) -> mlua::Result<Option<LuaString>> {
    if !has(table, name)? {
        return Ok(None);
    }
    Ok(match table.raw_get(name)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Whether the table has a field of this name. It is asked as a boolean: to get the value would
/// make a reference, which takes longer.
fn has(table: &Table, name: &str) -> mlua::Result<bool> {
    table.raw_get::<Option<bool>>(name).map(|value| value.is_some())
}
