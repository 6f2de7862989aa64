//! The functions `getfenv`, `setfenv` and `newproxy`, which `lua-enable-deprecated-api` adds.
//!
//! Lua's own would open the sandbox: the environment of its functions is the original table of
//! globals, with all that is kept from scripts. So that table is never shown, and a function that
//! has it keeps it. What a script may change is the environment of Lua code, which stays as it is
//! changed until the script is forgotten, as in Redis.
//!
//! A finalizer (`__gc` of a proxy's metatable) is never taken, and so never run. Lua counts no
//! instructions while it runs one, so an endless one could not be stopped.

use super::Builder;
use crate::errors;
use crate::given::Given;
use mlua::{Function, Lua, MultiValue, Table, Value};
use std::rc::Rc;

/// Levels of the stack between a function of Lua that is called here and the script: the function
/// `pcall`, and the function that scripts see.
const LEVELS: i32 = 2;

/// The original functions, called so that their errors can be corrected.
struct Originals {
    pcall: Function,
    getfenv: Function,
    setfenv: Function,
    /// The original table of globals.
    hidden: Table,
    /// The view of the globals that scripts have.
    shown: Table,
}

impl Builder<'_> {
    /// Adds the functions. `shown` is the view of the globals.
    pub(super) fn add_deprecated(&self, shown: &Table) -> mlua::Result<()> {
        let original = |name| self.original.get::<Function>(name);
        let originals = Rc::new(Originals {
            pcall: original("pcall")?,
            getfenv: original("getfenv")?,
            setfenv: original("setfenv")?,
            hidden: self.original.clone(),
            shown: shown.clone(),
        });
        let values = self.over(&self.values);
        let own = Rc::clone(&originals);
        values.add("getfenv", move |lua, _, given| {
            let of = target(&given, true)?;
            if of == Value::Integer(0) {
                return Ok(own.shown.clone());
            }
            let table = own.environment(lua, of)?;
            Ok(if own.is_hidden(&table) { own.shown.clone() } else { table })
        })?;
        values.add("setfenv", move |lua, _, given| {
            let of = target(&given, false)?;
            let environment = given.table(2)?;
            if of == Value::Integer(0)
                || originals.is_hidden(&originals.environment(lua, of.clone())?)
            {
                let text = "'setfenv' cannot change environment of given object";
                return Err(errors::complain(lua, text));
            }
            let changed = (&originals.setfenv, of, environment);
            results(lua, "setfenv", originals.pcall.call(changed)?)
        })?;
        let make = original("newproxy")?;
        let set = self.lua.create_function(set_field)?;
        let (pcall, metatable_of) = (original("pcall")?, original("getmetatable")?);
        values.add("newproxy", move |lua, host, given| {
            host.spend(lua, 10)?;
            // One that is made like another has its metatable.
            let proxy = results(lua, "newproxy", pcall.call((&make, given.at(1)))?)?;
            if *given.at(1) == Value::Boolean(true) {
                let metatable = metatable_of.call::<Table>(&proxy)?;
                metatable.raw_set("__metatable", window(lua, &metatable, &set)?)?;
            }
            Ok(proxy)
        })
    }
}

impl Originals {
    /// The environment of a function, or of the function at a level.
    fn environment(&self, lua: &Lua, of: Value) -> mlua::Result<Table> {
        let found = results(lua, "getfenv", self.pcall.call((&self.getfenv, of))?)?;
        found.as_table().cloned().ok_or_else(|| errors::complain(lua, "no environment"))
    }

    fn is_hidden(&self, table: &Table) -> bool {
        table.to_pointer() == self.hidden.to_pointer()
    }
}

/// The function that is meant, or its level as the original functions count it. 0 is the running
/// coroutine.
fn target(given: &Given<'_>, is_optional: bool) -> mlua::Result<Value> {
    if let Value::Function(_) = given.at(1) {
        return Ok(given.at(1).clone());
    }
    let level = if is_optional && given.is_none(1) { 1 } else { given.int(1)? };
    match level {
        0 => Ok(Value::Integer(0)),
        1.. => Ok(Value::Integer(i64::from(level.saturating_add(LEVELS)))),
        _ => Err(given.refuse(1, "level must be non-negative")),
    }
}

/// The first result of a protected call of the original function `name`, or its error.
fn results(lua: &Lua, name: &str, mut results: MultiValue) -> mlua::Result<Value> {
    let is_ok = results.pop_front() == Some(Value::Boolean(true));
    let first = results.pop_front().unwrap_or(Value::Nil);
    if is_ok {
        return Ok(first);
    }
    Err(errors::renamed(lua, errors::visible(lua, first)?, name, false))
}

/// Creates the table by which a script changes the metatable of a proxy. `set` is [`set_field`].
/// Only Lua's tables refer to the metatable, so that it can be collected.
fn window(lua: &Lua, metatable: &Table, set: &Function) -> mlua::Result<Table> {
    let window = lua.create_table()?;
    let rules = lua.create_table()?;
    rules.raw_set("__index", metatable)?;
    rules.raw_set("__newindex", set)?;
    rules.raw_set("__metatable", false)?;
    window.set_metatable(Some(rules))?;
    Ok(window)
}

/// Sets a field of the metatable behind a [`window`], unless it is the finalizer, or the window
/// itself: without it the metatable would be seen, and take a finalizer.
fn set_field(lua: &Lua, (window, key, value): (Table, Value, Value)) -> mlua::Result<()> {
    let Some(rules) = window.metatable() else { return Ok(()) };
    match key {
        Value::String(name) if matches!(&*name.as_bytes(), b"__gc" | b"__metatable") => Ok(()),
        Value::Nil => Err(errors::complain(lua, "table index is nil")),
        Value::Number(number) if number.is_nan() => {
            Err(errors::complain(lua, "table index is NaN"))
        }
        key => rules.raw_get::<Table>("__index")?.raw_set(key, value),
    }
}
