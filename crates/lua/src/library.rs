//! The libraries of scripts that are written in Rust: all but those that Lua provides unchanged.

pub(crate) mod bit;
pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod packing;
pub(crate) mod pattern;
pub(crate) mod redis;
pub(crate) mod strings;

use crate::given::Given;
use crate::host::Host;
use mlua::{Function, IntoLuaMulti, Lua, MultiValue, Table};
use std::rc::Rc;

/// The deepest nesting of values that are encoded or decoded. The interpreter's stack has room for
/// it wherever a script calls. In Redis the limit is that of Lua's own stack, some thousands too.
pub(crate) const NESTING_MAX: usize = 4000;

/// The most results of one call: Lua's limit, less some slots that its callers occupy.
pub(crate) const RESULTS_MAX: usize = 7990;

/// A Lua table to which Rust functions are added.
pub(crate) struct Library<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) host: &'a Rc<Host>,
    pub(crate) table: Table,
}

impl<'a> Library<'a> {
    pub(crate) fn new(lua: &'a Lua, host: &'a Rc<Host>) -> mlua::Result<Self> {
        Ok(Self::over(lua, host, lua.create_table()?))
    }

    pub(crate) fn over(lua: &'a Lua, host: &'a Rc<Host>, table: Table) -> Self {
        Self { lua, host, table }
    }

    pub(crate) fn add<R: IntoLuaMulti>(
        &self,
        name: &str,
        function: impl Fn(&Lua, &Rc<Host>, Given<'_>) -> mlua::Result<R> + 'static,
    ) -> mlua::Result<()> {
        self.table.raw_set(name, self.function(function)?)
    }

    pub(crate) fn function<R: IntoLuaMulti>(
        &self,
        function: impl Fn(&Lua, &Rc<Host>, Given<'_>) -> mlua::Result<R> + 'static,
    ) -> mlua::Result<Function> {
        let host = Rc::clone(self.host);
        self.lua.create_function(move |lua, arguments: MultiValue| {
            let result = function(lua, &host, Given::new(lua, &arguments));
            host.collecting_errors(lua, result)
        })
    }
}
