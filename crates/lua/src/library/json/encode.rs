//! Encoding Lua values as JSON.

use super::super::NESTING_MAX;
use super::{Invalid, Options, number};
use crate::errors;
use crate::given::{number as number_of, type_name};
use crate::host::{Host, PIECE_BYTES, STEP_BYTES};
use mlua::{Lua, LuaString, Table, Value};
use std::rc::Rc;

struct Encoder<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    options: &'a Options,
    out: Vec<u8>,
}

pub(super) fn encode(
    lua: &Lua,
    host: &Rc<Host>,
    options: &Options,
    value: &Value,
) -> mlua::Result<LuaString> {
    let mut encoder = Encoder { lua, host, options, out: Vec::new() };
    encoder.value(value, 0)?;
    lua.create_string(encoder.out)
}

impl Encoder<'_> {
    fn refuse(&self, value: &Value, why: &str) -> mlua::Error {
        let what = type_name(value);
        errors::complain(self.lua, format!("Cannot serialise {what}: {why}"))
    }

    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        self.host.spend(self.lua, 1)?;
        self.host.check_room(self.lua, self.out.len())?;
        match value {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Integer(number) => self.number(value, *number as f64)?,
            Value::Number(number) => self.number(value, *number)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            null if *null == Value::NULL => self.out.extend_from_slice(b"null"),
            Value::Table(table) => self.table(value, table, depth + 1)?,
            _ => return Err(self.refuse(value, "type not supported")),
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.out.push(b'"');
        for piece in text.chunks(PIECE_BYTES) {
            self.host.spend(self.lua, 1 + piece.len() / STEP_BYTES)?;
            self.host.check_room(self.lua, self.out.len())?;
            self.piece(piece);
        }
        self.out.push(b'"');
        Ok(())
    }

    fn piece(&mut self, text: &[u8]) {
        for &byte in text {
            let short = match byte {
                b'"' | b'\\' | b'/' => byte,
                0x08 => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                0x0c => b'f',
                b'\r' => b'r',
                0..0x20 | 0x7f => {
                    self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    continue;
                }
                _ => {
                    self.out.push(byte);
                    continue;
                }
            };
            self.out.extend_from_slice(&[b'\\', short]);
        }
    }

    fn number(&mut self, value: &Value, number: f64) -> mlua::Result<()> {
        match self.options.encode_invalid {
            _ if number.is_finite() => {}
            Invalid::Refused => return Err(self.refuse(value, "must not be NaN or Inf")),
            Invalid::Written if number.is_nan() => {
                self.out.extend_from_slice(b"nan");
                return Ok(());
            }
            Invalid::Written => {}
            Invalid::Null => {
                self.out.extend_from_slice(b"null");
                return Ok(());
            }
        }
        number::format(number, self.options.precision as usize, &mut self.out);
        Ok(())
    }

    fn table(&mut self, value: &Value, table: &Table, depth: usize) -> mlua::Result<()> {
        let depth_max = usize::try_from(self.options.encode_depth_max).unwrap_or(0);
        if depth > depth_max.min(NESTING_MAX) {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(errors::complain(self.lua, text));
        }
        match self.list_length(value, table)? {
            Some(length @ 1..) => self.list(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// The length of a table that is a list; `None` for an object.
    fn list_length(&self, value: &Value, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut greatest, mut count) = (0i64, 0i64);
        for pair in table.pairs::<Value, Value>() {
            self.host.spend(self.lua, 1)?;
            match pair?.0 {
                // The original keeps the index in 32 bits.
                Value::Integer(index @ 1..) => {
                    if index as f64 > greatest as f64 {
                        greatest =
                            if index > i64::from(i32::MAX) { i64::from(i32::MIN) } else { index };
                    }
                    count += 1;
                }
                _ => return Ok(None),
            }
        }
        let options = self.options;
        if options.sparse_ratio > 0
            && greatest > count.saturating_mul(i64::from(options.sparse_ratio))
            && greatest > i64::from(options.sparse_safe)
        {
            if !options.sparse_to_object {
                return Err(self.refuse(value, "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok(Some(greatest))
    }

    fn list(&mut self, table: &Table, length: i64, depth: usize) -> mlua::Result<()> {
        self.out.push(b'[');
        for index in 1..=length {
            if index > 1 {
                self.out.push(b',');
            }
            let value = table.raw_get::<Value>(index)?;
            self.value(&value, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => self.string(&text.as_bytes())?,
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    let number = number_of(self.lua, &key).unwrap_or_default();
                    self.number(&key, number)?;
                    self.out.push(b'"');
                }
                _ => return Err(self.refuse(&key, "table key must be a number or string")),
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}
