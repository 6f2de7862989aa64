//! `cmsgpack`: values as MessagePack (<https://github.com/msgpack/msgpack/blob/master/spec.md>).
//!
//! It writes MessagePack without binary data and extensions, and cannot read these types either.

use super::{Library, NESTING_MAX, RESULTS_MAX};
use crate::errors;
use crate::given::{Given, to_integer};
use crate::host::Host;
use mlua::{Lua, LuaString, MultiValue, Table, Value};
use std::rc::Rc;

/// The deepest nesting of tables that are packed: deeper ones become nil.
const PACKED_DEPTH_MAX: usize = 16;

pub(crate) fn build(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let library = Library::new(lua, host)?;
    library.add("pack", |lua, host, given| pack(lua, host, &given))?;
    library.add("unpack", |lua, host, given| unpack(lua, host, &given, 0, 0))?;
    library.add("unpack_one", |lua, host, given| {
        let offset = given.integer_or(2, 0)?;
        unpack(lua, host, &given, 1, offset)
    })?;
    library.add("unpack_limit", |lua, host, given| {
        let (limit, offset) = (given.integer(2)?, given.integer_or(3, 0)?);
        unpack(lua, host, &given, limit, offset)
    })?;
    library.table.raw_set("_NAME", "cmsgpack")?;
    library.table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    library.table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    library.table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(library.table)
}

struct Packer<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    packed: Vec<u8>,
}

fn pack(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<LuaString> {
    if given.len() == 0 {
        return Err(given.refuse(0, "MessagePack pack needs input."));
    }
    let mut packer = Packer { lua, host, packed: Vec::new() };
    for index in 1..=given.len() {
        packer.value(given.at(index), 0)?;
    }
    lua.create_string(packer.packed)
}

impl Packer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        self.host.spend(self.lua, 1)?;
        self.host.check_room(self.lua, self.packed.len())?;
        match value {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Boolean(value) => self.packed.push(0xc2 + u8::from(*value)),
            Value::Integer(number) => self.integer(*number),
            Value::Number(number) => self.number(*number),
            Value::Table(table) if depth < PACKED_DEPTH_MAX => self.table(table, depth)?,
            _ => self.packed.push(0xc0),
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.host.spend_copy(self.lua, text.len(), self.packed.len())?;
        match text.len() {
            length @ ..32 => self.packed.push(0xa0 | length as u8),
            length @ ..=0xff => self.packed.extend([0xd9, length as u8]),
            length => self.length(0xda, length),
        }
        self.packed.extend_from_slice(text);
        Ok(())
    }

    /// Writes a length: 16 bits behind `mark`, or 32 bits behind `mark + 1`.
    fn length(&mut self, mark: u8, length: usize) {
        match u16::try_from(length) {
            Ok(length) => {
                self.packed.push(mark);
                self.packed.extend(length.to_be_bytes());
            }
            Err(_) => {
                self.packed.push(mark + 1);
                self.packed.extend((length as u32).to_be_bytes());
            }
        }
    }

    fn number(&mut self, number: f64) {
        if to_integer(number) as f64 == number {
            return self.integer(to_integer(number));
        }
        // As a float of 32 bits, if that is exact.
        let short = number as f32;
        if f64::from(short) == number {
            self.packed.push(0xca);
            self.packed.extend(short.to_be_bytes());
        } else {
            self.packed.push(0xcb);
            self.packed.extend(number.to_be_bytes());
        }
    }

    fn integer(&mut self, number: i64) {
        let packed = &mut self.packed;
        match number {
            -32..=127 => packed.push(number as u8),
            128..=0xff => packed.extend([0xcc, number as u8]),
            0x100..=0xffff => {
                packed.push(0xcd);
                packed.extend((number as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                packed.push(0xce);
                packed.extend((number as u32).to_be_bytes());
            }
            0x1_0000_0000.. => {
                packed.push(0xcf);
                packed.extend(number.to_be_bytes());
            }
            -0x80..-32 => packed.extend([0xd0, number as u8]),
            -0x8000..-0x80 => {
                packed.push(0xd1);
                packed.extend((number as i16).to_be_bytes());
            }
            -0x8000_0000..-0x8000 => {
                packed.push(0xd2);
                packed.extend((number as i32).to_be_bytes());
            }
            _ => {
                packed.push(0xd3);
                packed.extend(number.to_be_bytes());
            }
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let (count, is_list) = self.shape(table)?;
        if is_list {
            match count {
                count @ ..16 => self.packed.push(0x90 | count as u8),
                count => self.length(0xdc, count),
            }
            for index in 1..=count {
                let value = table.get::<Value>(index)?;
                self.value(&value, depth + 1)?;
            }
            return Ok(());
        }
        match count {
            count @ ..16 => self.packed.push(0x80 | count as u8),
            count => self.length(0xde, count),
        }
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.value(&key, depth + 1)?;
            self.value(&value, depth + 1)?;
        }
        Ok(())
    }

    /// The number of pairs of a table, and whether their keys are 1 to that number.
    fn shape(&self, table: &Table) -> mlua::Result<(usize, bool)> {
        let (mut count, mut greatest, mut is_list) = (0usize, 0i64, true);
        for pair in table.pairs::<Value, Value>() {
            self.host.spend(self.lua, 1)?;
            count += 1;
            match pair?.0 {
                Value::Integer(key @ 1..=0x7fff_ffff) => greatest = greatest.max(key),
                _ => is_list = false,
            }
        }
        Ok((count, is_list && greatest == count as i64))
    }
}

struct Unpacker<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    left: &'a [u8],
}

fn unpack(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
    limit: i64,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let packed = given.string(1)?;
    let packed = packed.as_bytes();
    if offset < 0 || limit < 0 {
        let (offset, length) = (offset as i32, packed.len());
        return Err(errors::complain(
            lua,
            format!("Invalid request to unpack with offset of {offset} and limit of {length}."),
        ));
    }
    let Some(left) = usize::try_from(offset).ok().and_then(|offset| packed.get(offset..)) else {
        let (offset, length) = (offset as i32, packed.len());
        let text = format!("Start offset {offset} greater than input length {length}.");
        return Err(errors::complain(lua, text));
    };
    let takes_all = limit == 0 && offset == 0;
    let limit = if takes_all { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut unpacker = Unpacker { lua, host, left };
    let mut values = MultiValue::new();
    while !unpacker.left.is_empty() && values.len() < limit {
        if values.len() == RESULTS_MAX {
            let text = "stack overflow (too many return values at once; use unpack_one or \
                        unpack_limit instead.)";
            return Err(errors::complain(lua, text));
        }
        values.push_back(unpacker.value(0)?);
    }
    if !takes_all {
        let next = match unpacker.left.len() {
            0 => -1,
            left => (packed.len() - left) as i64,
        };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

impl<'a> Unpacker<'a> {
    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        self.host.spend(self.lua, 1)?;
        if depth > NESTING_MAX {
            return Err(errors::complain(self.lua, "stack overflow (too deep)"));
        }
        let [mark] = self.take()?;
        Ok(match mark {
            0xcc => integer(u8::from_be_bytes(self.take()?)),
            0xcd => integer(u16::from_be_bytes(self.take()?)),
            0xce => integer(u32::from_be_bytes(self.take()?)),
            // Unsigned by the format; read as signed, as scripts are used to.
            0xcf => Value::Number(i64::from_be_bytes(self.take()?) as f64),
            0xd0 => integer(i8::from_be_bytes(self.take()?)),
            0xd1 => integer(i16::from_be_bytes(self.take()?)),
            0xd2 => integer(i32::from_be_bytes(self.take()?)),
            0xd3 => Value::Number(i64::from_be_bytes(self.take()?) as f64),
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(mark == 0xc3),
            0xca => Value::Number(f64::from(f32::from_be_bytes(self.take()?))),
            0xcb => Value::Number(f64::from_be_bytes(self.take()?)),
            0xd9 => {
                let length = u8::from_be_bytes(self.take()?);
                self.string(usize::from(length))?
            }
            0xda => {
                let length = u16::from_be_bytes(self.take()?);
                self.string(usize::from(length))?
            }
            0xdb => {
                let length = u32::from_be_bytes(self.take()?);
                self.string(length as usize)?
            }
            0xdc => {
                let count = u16::from_be_bytes(self.take()?);
                self.list(usize::from(count), depth)?
            }
            0xdd => {
                let count = u32::from_be_bytes(self.take()?);
                self.list(count as usize, depth)?
            }
            0xde => {
                let count = u16::from_be_bytes(self.take()?);
                self.map(usize::from(count), depth)?
            }
            0xdf => {
                let count = u32::from_be_bytes(self.take()?);
                self.map(count as usize, depth)?
            }
            0..=0x7f => integer(mark),
            0xe0.. => integer(mark.cast_signed()),
            0xa0..=0xbf => self.string(usize::from(mark & 0x1f))?,
            0x90..=0x9f => self.list(usize::from(mark & 0xf), depth)?,
            0x80..=0x8f => self.map(usize::from(mark & 0xf), depth)?,
            _ => return Err(errors::complain(self.lua, "Bad data format in input.")),
        })
    }

    fn missing(&self) -> mlua::Error {
        errors::complain(self.lua, "Missing bytes in input.")
    }

    fn take<const N: usize>(&mut self) -> mlua::Result<[u8; N]> {
        let (bytes, left) = self.left.split_first_chunk().ok_or_else(|| self.missing())?;
        self.left = left;
        Ok(*bytes)
    }

    fn string(&mut self, length: usize) -> mlua::Result<Value> {
        let (text, left) = self.left.split_at_checked(length).ok_or_else(|| self.missing())?;
        self.left = left;
        self.host.spend_copy(self.lua, length, 0)?;
        self.host.spend_string(self.lua, length)?;
        self.lua.create_string(text).map(Value::String)
    }

    fn list(&mut self, count: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for index in 1..=count {
            let value = self.value(depth + 1)?;
            table.raw_set(index, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, count: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..count {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match &key {
                Value::Nil => return Err(errors::text(self.lua, "table index is nil")),
                Value::Number(number) if number.is_nan() => {
                    return Err(errors::text(self.lua, "table index is NaN"));
                }
                _ => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}

fn integer(number: impl Into<i64>) -> Value {
    Value::Integer(number.into())
}
