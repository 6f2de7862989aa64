//! The compiled scripts and functions of an interpreter.
//!
//! They lie in a table of Lua. A reference from Rust is a slot of a stack, of which Lua 5.1 has
//! some 8,000, and a server may keep more scripts than that.

use crate::script::ScriptRef;
use mlua::{Function, Lua, Table, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The compiled scripts and functions, each under a number.
pub(crate) struct Compiled {
    /// Each function under the number of its reference.
    pub(crate) table: Table,
    /// The numbers given out, 1 to this.
    last: Cell<u32>,
    /// Those among them that are free again.
    free: RefCell<Vec<u32>>,
    /// Bytes that others keep beside a function, for those that have any, and for all.
    beside: RefCell<BTreeMap<u32, usize>>,
    all_beside: Cell<usize>,
}

impl Compiled {
    pub(crate) fn new(lua: &Lua) -> mlua::Result<Self> {
        let table = lua.create_table()?;
        Ok(Self {
            table,
            last: Cell::new(0),
            free: RefCell::default(),
            beside: RefCell::default(),
            all_beside: Cell::new(0),
        })
    }

    /// Keeps a function until it is forgotten, and counts so many bytes that others keep beside it.
    ///
    /// # Errors
    /// There is no memory for one more.
    pub(crate) fn keep(&self, function: &Function, beside: usize) -> mlua::Result<ScriptRef> {
        let mut free = self.free.borrow_mut();
        let number = free.last().copied().unwrap_or(self.last.get() + 1);
        self.table.raw_set(number, function)?;
        if free.pop().is_none() {
            self.last.set(number);
        }
        if beside > 0 {
            self.beside.borrow_mut().insert(number, beside);
            self.all_beside.set(self.all_beside.get() + beside);
        }
        Ok(ScriptRef(number))
    }

    /// Frees a function. One that was freed before stays so.
    pub(crate) fn forget(&self, script: ScriptRef) {
        if matches!(self.table.raw_get(script.0), Ok(Value::Function(_))) {
            self.table.raw_set(script.0, Value::Nil).expect("a field is emptied in its place");
            self.free.borrow_mut().push(script.0);
            let beside = self.beside.borrow_mut().remove(&script.0).unwrap_or(0);
            self.all_beside.set(self.all_beside.get() - beside);
        }
    }

    /// Bytes that others keep beside all functions.
    pub(crate) fn beside(&self) -> usize {
        self.all_beside.get()
    }
}
