//! `bit`: operations on integers of 32 bits.

use super::Library;
use crate::given::{Given, number};
use crate::host::Host;
use mlua::{Lua, Table};
use std::rc::Rc;

/// 2^52 + 2^51. A double plus this has the lowest 32 bits of its nearest integer as the lowest bits
/// of its fraction.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

pub(crate) fn build(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let library = Library::new(lua, host)?;
    add(&library, "tobit", |given| argument(given, 1))?;
    add(&library, "bnot", |given| Ok(!argument(given, 1)?))?;
    add(&library, "band", |given| fold(given, |a, b| a & b))?;
    add(&library, "bor", |given| fold(given, |a, b| a | b))?;
    add(&library, "bxor", |given| fold(given, |a, b| a ^ b))?;
    add(&library, "lshift", |given| shift(given, |bits, by| bits << by))?;
    add(&library, "rshift", |given| shift(given, |bits, by| bits >> by))?;
    add(&library, "arshift", |given| {
        shift(given, |bits, by| (bits.cast_signed() >> by).cast_unsigned())
    })?;
    add(&library, "rol", |given| shift(given, u32::rotate_left))?;
    add(&library, "ror", |given| shift(given, u32::rotate_right))?;
    add(&library, "bswap", |given| argument(given, 1).map(u32::swap_bytes))?;
    library.add("tohex", |_, _, given| {
        let bits = argument(&given, 1)?;
        let digits = if given.len() < 2 { 8 } else { argument(&given, 2)?.cast_signed() };
        let count = digits.unsigned_abs().min(8) as usize;
        let text = if digits < 0 { format!("{bits:08X}") } else { format!("{bits:08x}") };
        Ok(text[8 - count..].to_owned())
    })?;
    Ok(library.table)
}

/// Adds a function whose result is a signed integer.
fn add(
    library: &Library<'_>,
    name: &str,
    function: impl Fn(&Given<'_>) -> mlua::Result<u32> + 'static,
) -> mlua::Result<()> {
    library.add(name, move |_, _, given| function(&given).map(u32::cast_signed))
}

fn argument(given: &Given<'_>, index: usize) -> mlua::Result<u32> {
    let value = number(given.lua(), given.at(index));
    value
        .map(|value| (value + ROUNDER).to_bits() as u32)
        .ok_or_else(|| given.wrong_type(index, "number"))
}

fn fold(given: &Given<'_>, with: impl Fn(u32, u32) -> u32) -> mlua::Result<u32> {
    let first = argument(given, 1)?;
    // From the last one, because that is the order in which Redis checks the arguments.
    (2..=given.len()).rev().try_fold(first, |bits, index| Ok(with(bits, argument(given, index)?)))
}

fn shift(given: &Given<'_>, with: impl Fn(u32, u32) -> u32) -> mlua::Result<u32> {
    let bits = argument(given, 1)?;
    Ok(with(bits, argument(given, 2)? & 31))
}
