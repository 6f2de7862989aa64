//! `struct`: numbers and strings, packed as C structures.
//!
//! | option | is |
//! |---|---|
//! | `>` `<` `!n` | big-endian, little-endian, alignment up to n |
//! | `x` | a byte of padding |
//! | `b` `h` `l`, `i`n; `B` `H` `L` `T`, `I`n | signed integers; unsigned ones |
//! | `f` `d` | a float, a double |
//! | `s`, `c`n, `c0` | a string to its NUL; of n bytes; of as many as the number before it says |

use super::{Library, RESULTS_MAX};
use crate::errors;
use crate::given::{Given, number, to_integer};
use crate::host::{Host, STEP_BYTES};
use mlua::{Lua, LuaString, MultiValue, Table, Value};
use std::rc::Rc;

/// The most bytes of an integer.
const INTEGER_BYTES_MAX: usize = 32;

/// The alignment for `!` without a number.
const ALIGNMENT: usize = 8;

pub(crate) fn build(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let library = Library::new(lua, host)?;
    library.add("pack", |lua, host, given| pack(lua, host, &given))?;
    library.add("unpack", |lua, host, given| unpack(lua, host, &given))?;
    library.add("size", |_, host, given| size(host, &given))?;
    Ok(library.table)
}

/// A reader of a format string.
struct Format<'a> {
    given: &'a Given<'a>,
    text: &'a [u8],
    is_big_endian: bool,
    alignment: usize,
}

/// An option with its size in bytes, and its place in the packed text.
struct Item {
    option: u8,
    size: usize,
    padding: usize,
}

impl<'a> Format<'a> {
    fn new(given: &'a Given<'a>, text: &'a [u8]) -> Self {
        Self { given, text: errors::until_nul(text), is_big_endian: false, alignment: 1 }
    }

    fn fail(&self, text: &str) -> mlua::Error {
        errors::complain(self.given.lua(), text)
    }

    /// Reads the next option; `place` is the length of the packed text so far.
    fn next(&mut self, place: usize) -> mlua::Result<Option<Item>> {
        let Some((&option, rest)) = self.text.split_first() else { return Ok(None) };
        self.text = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => match self.number(4)? {
                size @ ..=INTEGER_BYTES_MAX => size,
                size => {
                    return Err(self.fail(&format!(
                        "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                    )));
                }
            },
            _ => 0,
        };
        let padding = match (size, option) {
            (0, _) | (_, b'c') => 0,
            // Computed as the original does, also for sizes that are no power of two.
            _ => {
                let unit = size.min(self.alignment);
                unit.wrapping_sub(place & (unit - 1)) & (unit - 1)
            }
        };
        Ok(Some(Item { option, size, padding }))
    }

    /// Reads a number, if one follows.
    fn number(&mut self, default: usize) -> mlua::Result<usize> {
        if !self.text.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut number = 0i32;
        while let Some((&digit, rest)) = self.text.split_first().filter(|(d, _)| d.is_ascii_digit())
        {
            let next = number.checked_mul(10);
            let next = next.and_then(|next| next.checked_add(i32::from(digit - b'0')));
            number = next.ok_or_else(|| self.fail("integral size overflow"))?;
            self.text = rest;
        }
        Ok(number.unsigned_abs() as usize)
    }

    /// Applies an option that packs no value.
    fn control(&mut self, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.is_big_endian = true,
            b'<' => self.is_big_endian = false,
            b'!' => {
                let alignment = self.number(ALIGNMENT)?;
                if !alignment.is_power_of_two() {
                    let text = format!("alignment {alignment} is not a power of 2");
                    return Err(self.fail(&text));
                }
                self.alignment = alignment;
            }
            _ => {
                let option = char::from(option);
                return Err(self.given.refuse(1, &format!("invalid format option '{option}'")));
            }
        }
        Ok(())
    }

    /// Little-endian bytes in the byte order of the format.
    fn ordered<const N: usize>(&self, mut bytes: [u8; N]) -> [u8; N] {
        if self.is_big_endian {
            bytes.reverse();
        }
        bytes
    }
}

fn pack(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<LuaString> {
    let text = given.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(given, &text);
    let mut packed = Vec::new();
    let mut argument = 2;
    while let Some(item) = format.next(packed.len())? {
        host.spend(lua, 1)?;
        packed.resize(packed.len() + item.padding, 0);
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = to_unsigned(number_at(given, argument)?);
                put_integer(&mut packed, value, item.size, format.is_big_endian);
            }
            b'x' => packed.push(0),
            b'f' => {
                let bytes = (number_at(given, argument)? as f32).to_le_bytes();
                packed.extend_from_slice(&format.ordered(bytes));
            }
            b'd' => {
                let bytes = number_at(given, argument)?.to_le_bytes();
                packed.extend_from_slice(&format.ordered(bytes));
            }
            b'c' | b's' => {
                if argument > given.len() {
                    return Err(given.refuse(argument, "string expected, got nil"));
                }
                let value = given.string(argument)?;
                let value = value.as_bytes();
                let size = if item.size == 0 { value.len() } else { item.size };
                if value.len() < size {
                    return Err(given.refuse(argument + 1, "string too short"));
                }
                host.spend_copy(lua, size, packed.len())?;
                packed.extend_from_slice(&value[..size]);
                if item.option == b's' {
                    packed.push(0);
                }
            }
            option => format.control(option)?,
        }
        let is_value = item.option.is_ascii_alphabetic() && item.option != b'x';
        argument += usize::from(is_value);
    }
    lua.create_string(packed)
}

/// A numeric argument; a missing one counts as nil.
fn number_at(given: &Given<'_>, index: usize) -> mlua::Result<f64> {
    if index > given.len() {
        return Err(given.refuse(index, "number expected, got nil"));
    }
    given.number(index)
}

fn put_integer(packed: &mut Vec<u8>, value: u64, size: usize, is_big_endian: bool) {
    let start = packed.len();
    packed.extend(value.to_le_bytes().into_iter().chain(std::iter::repeat(0)).take(size));
    if is_big_endian {
        packed[start..].reverse();
    }
}

/// A number converted to an unsigned 64-bit integer as C does on x86-64: a negative one wraps.
fn to_unsigned(number: f64) -> u64 {
    const MIDDLE: f64 = 9_223_372_036_854_775_808.0;
    if number >= MIDDLE {
        to_integer(number - MIDDLE).cast_unsigned() ^ (1 << 63)
    } else {
        to_integer(number).cast_unsigned()
    }
}

fn unpack(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<MultiValue> {
    let (text, data) = (given.string(1)?, given.string(2)?);
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let from = given.integer_or(3, 1)?;
    // A negative place is huge, as C converts it.
    if from == 0 {
        return Err(given.refuse(3, "offset must be 1 or greater"));
    }
    let mut place = (from.cast_unsigned() as usize).wrapping_sub(1);
    let mut format = Format::new(given, &text);
    let mut values = MultiValue::new();
    let too_short = || given.refuse(2, "data string too short");
    while let Some(item) = format.next(place)? {
        host.spend(lua, 1)?;
        place = place.saturating_add(item.padding);
        let rest = data.get(place..).ok_or_else(too_short)?;
        let bytes = rest.get(..item.size).ok_or_else(too_short)?;
        if values.len() >= RESULTS_MAX {
            return Err(format.fail("stack overflow (too many results)"));
        }
        let mut size = item.size;
        let value = match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = item.option.is_ascii_lowercase();
                Some(Value::Number(integer(bytes, format.is_big_endian, is_signed)))
            }
            b'f' => bytes
                .first_chunk()
                .map(|bytes| Value::Number(f64::from(f32::from_le_bytes(format.ordered(*bytes))))),
            b'd' => bytes
                .first_chunk()
                .map(|bytes| Value::Number(f64::from_le_bytes(format.ordered(*bytes)))),
            b'c' if size == 0 => {
                let before = values.pop_back();
                let length = before.as_ref().and_then(|before| number(lua, before));
                let Some(length) = length else {
                    return Err(format.fail("format 'c0' needs a previous size"));
                };
                size = usize::try_from(to_unsigned(length)).unwrap_or(usize::MAX);
                let bytes = rest.get(..size).ok_or_else(too_short)?;
                Some(string(lua, host, bytes, size)?)
            }
            b'c' => Some(string(lua, host, bytes, size)?),
            b's' => {
                let Some(end) = rest.iter().position(|&byte| byte == 0) else {
                    host.spend(lua, rest.len() / STEP_BYTES)?;
                    return Err(format.fail("unfinished string in data"));
                };
                size = end + 1;
                Some(string(lua, host, &rest[..end], size)?)
            }
            b'x' => None,
            option => {
                format.control(option)?;
                None
            }
        };
        values.extend(value);
        place += size;
    }
    values.push_back(Value::Integer(place.wrapping_add(1) as i64));
    Ok(values)
}

/// A string for which so many bytes were visited.
fn string(lua: &Lua, host: &Rc<Host>, bytes: &[u8], visited: usize) -> mlua::Result<Value> {
    host.spend_copy(lua, visited, 0)?;
    host.spend_string(lua, visited)?;
    lua.create_string(bytes).map(Value::String)
}

fn integer(bytes: &[u8], is_big_endian: bool, is_signed: bool) -> f64 {
    let join = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    let value = match is_big_endian {
        true => bytes.iter().fold(0, join),
        false => bytes.iter().rev().fold(0, join),
    };
    match bytes.len() {
        _ if !is_signed => value as f64,
        // For more than 64 bits, C on x86-64 shifts by the remainder.
        0 => 0.0,
        size => {
            let shift = (size * 8 - 1) as u32 % 64;
            let mask = u64::MAX << shift;
            let value = if value & mask == 0 { value } else { value | mask };
            value.cast_signed() as f64
        }
    }
}

fn size(host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<i64> {
    let text = given.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(given, &text);
    let mut place = 0usize;
    while let Some(item) = format.next(place)? {
        host.spend(given.lua(), 1)?;
        place = place.saturating_add(item.padding);
        match (item.option, item.size) {
            (b's', _) => return Err(given.refuse(1, "option 's' has no fixed size")),
            (b'c', 0) => return Err(given.refuse(1, "option 'c0' has no fixed size")),
            (option, _) if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        place = place.saturating_add(item.size);
    }
    Ok(place as i64)
}
