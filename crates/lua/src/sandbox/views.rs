//! Views: what scripts see in place of tables that they may not change.
//!
//! Lua 5.1 has no read-only tables. So in place of each library and of the globals, a script sees
//! an empty table, a *view*. Its metatable reads from the real table, which no script can reach,
//! and refuses to write. Functions that bypass metatables know the views ([`Views`]).

use super::Builder;
use crate::errors;
use crate::given::Given;
use mlua::{Function, Lua, MultiValue, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;

pub(super) const READ_ONLY: &str = "Attempt to modify a readonly table";

/// The field of a hidden metatable that holds what `getmetatable` shows to scripts.
pub(super) const SEEN: &str = "seen";

/// All views: the address of each, the view, and the real table.
#[derive(Default)]
pub(super) struct Views(RefCell<Vec<(usize, Table, Table)>>);

impl Views {
    pub(super) fn behind(&self, table: &Table) -> Option<Table> {
        let address = table.to_pointer() as usize;
        let views = self.0.borrow();
        views.iter().find(|view| view.0 == address).map(|view| view.2.clone())
    }

    pub(super) fn contains(&self, table: &Table) -> bool {
        let address = table.to_pointer() as usize;
        self.0.borrow().iter().any(|view| view.0 == address)
    }

    /// Creates a view of `real`.
    pub(super) fn add(&self, lua: &Lua, real: &Table) -> mlua::Result<Table> {
        let view = lua.create_table()?;
        let metatable = lua.create_table()?;
        metatable.raw_set("__index", real.clone())?;
        metatable.raw_set("__newindex", lua.create_function(refuse_to_write)?)?;
        view.set_metatable(Some(metatable))?;
        self.0.borrow_mut().push((view.to_pointer() as usize, view.clone(), real.clone()));
        Ok(view)
    }
}

fn refuse_to_write(lua: &Lua, _: MultiValue) -> mlua::Result<()> {
    Err(errors::complain(lua, READ_ONLY))
}

impl Builder<'_> {
    /// Creates a view of a table, and marks it for `sandbox.lua`.
    pub(super) fn view(&self, real: &Table) -> mlua::Result<Table> {
        let view = self.views.add(self.lua, real)?;
        self.marks.raw_set(&view, true)?;
        Ok(view)
    }

    /// Adds the functions that bypass metatables: they treat views as read-only.
    pub(super) fn add_table_functions(&self) -> mlua::Result<()> {
        let values = self.over(&self.values);
        let views = Rc::clone(&self.views);
        values.add("rawget", move |_, _, given| {
            let table = given.table(1)?;
            given.present(2)?;
            let table = views.behind(&table).unwrap_or(table);
            table.raw_get::<Value>(given.at(2))
        })?;
        let views = Rc::clone(&self.views);
        values.add("rawset", move |lua, _, given| {
            let table = given.table(1)?;
            given.present(2)?;
            given.present(3)?;
            if views.contains(&table) {
                return Err(errors::text(lua, READ_ONLY));
            }
            match given.at(2) {
                Value::Nil => return Err(errors::text(lua, "table index is nil")),
                Value::Number(number) if number.is_nan() => {
                    return Err(errors::text(lua, "table index is NaN"));
                }
                key => table.raw_set(key, given.at(3))?,
            }
            Ok(table)
        })?;
        let views = Rc::clone(&self.views);
        values.add("setmetatable", move |lua, _, given| set_metatable(lua, &given, &views))?;
        let views = Rc::clone(&self.views);
        let original = self.original.get::<Function>("getmetatable")?;
        let strings = self.string_metatable()?;
        values.add("getmetatable", move |_, _, given| match given.at(1) {
            Value::Table(table) if views.contains(table) => Ok(views
                .behind(table)
                .and_then(|real| real.metatable())
                .and_then(|metatable| metatable.raw_get(SEEN).ok())
                .unwrap_or(Value::Nil)),
            Value::String(_) => Ok(Value::Table(strings.clone())),
            // Userdata is a proxy (`sandbox/deprecated.rs`): no other is a script's.
            Value::Table(_) | Value::UserData(_) => original.call(given.at(1)),
            _ if given.len() == 0 => Err(given.refuse(1, "value expected")),
            _ => Ok(Value::Nil),
        })?;
        let next = self.original.get::<Function>("next")?;
        let views = Rc::clone(&self.views);
        let raw_next = next.clone();
        values.add("next", move |_, _, given| {
            let table = given.table(1)?;
            let table = views.behind(&table).unwrap_or(table);
            raw_next.call::<MultiValue>((table, given.at(2)))
        })?;
        let views = Rc::clone(&self.views);
        let checked_next = self.values.raw_get::<Function>("next")?;
        values.add("pairs", move |_, _, given| {
            let table = given.table(1)?;
            let next = if views.contains(&table) { &checked_next } else { &next };
            Ok((next.clone(), table))
        })
    }

    /// The view of the metatable of strings.
    fn string_metatable(&self) -> mlua::Result<Table> {
        let seen = self.lua.create_table()?;
        let strings = self.original.get::<Table>("string")?;
        seen.raw_set("__index", self.view(&strings)?)?;
        self.view(&seen)
    }
}

fn set_metatable(lua: &Lua, given: &Given<'_>, views: &Views) -> mlua::Result<Table> {
    let table = given.table(1)?;
    let metatable = match given.at(2) {
        Value::Table(metatable) => Some(metatable.clone()),
        Value::Nil if given.len() >= 2 => None,
        _ => return Err(given.refuse(2, "nil or table expected")),
    };
    if views.contains(&table) {
        return Err(errors::text(lua, READ_ONLY));
    }
    let is_protected = match table.metatable() {
        Some(old) => !old.raw_get::<Value>("__metatable")?.is_nil(),
        None => false,
    };
    if is_protected {
        return Err(errors::complain(lua, "cannot change a protected metatable"));
    }
    table.set_metatable(metatable)?;
    Ok(table)
}
