//! Functions of `table` for unusual arguments. The usual ones are in `sandbox.lua`.

use crate::errors;
use crate::given::Given;
use crate::host::Host;
use mlua::{Lua, Value};
use std::rc::Rc;

/// `table.insert`, element by element: at an index below 1, the original moves all elements from
/// there on, which may be billions, without a pause.
pub(crate) fn insert(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
    let table = given.table(1)?;
    let behind = i64::try_from(table.raw_len()).unwrap_or(i64::MAX).saturating_add(1);
    let (at, value) = match given.len() {
        2 => (behind, given.at(2)),
        3 => (i64::from(given.int(2)?), given.at(3)),
        _ => return Err(errors::complain(lua, "wrong number of arguments to 'insert'")),
    };
    for to in (at + 1..=behind).rev() {
        host.spend(lua, 1)?;
        table.raw_set(to, table.raw_get::<Value>(to - 1)?)?;
    }
    table.raw_set(at, value)
}
