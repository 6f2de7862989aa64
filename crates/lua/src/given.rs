//! The arguments of a Rust function called from Lua, checked as C's `luaL_check…` do, with their
//! errors.

use crate::errors;
use mlua::{Error, Lua, LuaString, MultiValue, Table, Value};

/// The most bytes of a word that an error shows.
pub(crate) const WORD_BYTES_SHOWN: usize = 100;

/// The arguments of a call, counted from 1.
pub(crate) struct Given<'a> {
    lua: &'a Lua,
    values: &'a MultiValue,
}

impl<'a> Given<'a> {
    pub(crate) fn new(lua: &'a Lua, values: &'a MultiValue) -> Self {
        Self { lua, values }
    }

    pub(crate) fn lua(&self) -> &'a Lua {
        self.lua
    }

    pub(crate) fn values(&self) -> &'a MultiValue {
        self.values
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// An argument; nil if it is absent.
    pub(crate) fn at(&self, index: usize) -> &'a Value {
        const NIL: &Value = &Value::Nil;
        self.values.get(index - 1).unwrap_or(NIL)
    }

    /// Whether the argument is absent or nil.
    pub(crate) fn is_none(&self, index: usize) -> bool {
        self.at(index).is_nil()
    }

    /// Refuses a missing argument; nil is not missing.
    pub(crate) fn present(&self, index: usize) -> mlua::Result<()> {
        if index > self.len() {
            return Err(self.refuse(index, "value expected"));
        }
        Ok(())
    }

    pub(crate) fn string(&self, index: usize) -> mlua::Result<LuaString> {
        match self.at(index) {
            Value::String(text) => Ok(text.clone()),
            Value::Integer(_) | Value::Number(_) => {
                let text = self.lua.coerce_string(self.at(index).clone())?;
                text.ok_or_else(|| self.wrong_type(index, "string"))
            }
            _ => Err(self.wrong_type(index, "string")),
        }
    }

    pub(crate) fn number(&self, index: usize) -> mlua::Result<f64> {
        number(self.lua, self.at(index)).ok_or_else(|| self.wrong_type(index, "number"))
    }

    pub(crate) fn integer(&self, index: usize) -> mlua::Result<i64> {
        self.number(index).map(to_integer)
    }

    /// An integer cut to C's `int`, its lower 32 bits.
    pub(crate) fn int(&self, index: usize) -> mlua::Result<i32> {
        self.integer(index).map(|number| number as i32)
    }

    pub(crate) fn integer_or(&self, index: usize, default: i64) -> mlua::Result<i64> {
        if self.is_none(index) { Ok(default) } else { self.integer(index) }
    }

    /// Whether the argument is true in Lua: neither nil nor false.
    pub(crate) fn is_true(&self, index: usize) -> bool {
        !matches!(self.at(index), Value::Nil | Value::Boolean(false))
    }

    pub(crate) fn table(&self, index: usize) -> mlua::Result<Table> {
        match self.at(index) {
            Value::Table(table) => Ok(table.clone()),
            _ => Err(self.wrong_type(index, "table")),
        }
    }

    /// The index of the argument among these words.
    pub(crate) fn choice(&self, index: usize, words: &[&str]) -> mlua::Result<usize> {
        let word = self.string(index)?;
        let word = word.as_bytes();
        let word = errors::until_nul(&word);
        words.iter().position(|choice| choice.as_bytes() == word).ok_or_else(|| {
            let word = String::from_utf8_lossy(&word[..word.len().min(WORD_BYTES_SHOWN)]);
            self.refuse(index, &format!("invalid option '{word}'"))
        })
    }

    /// The error `bad argument #1 to 'f' (number expected, got nil)`.
    pub(crate) fn wrong_type(&self, index: usize, expected: &str) -> Error {
        let got = if index > self.values.len() { "no value" } else { type_name(self.at(index)) };
        self.refuse(index, &format!("{expected} expected, got {got}"))
    }

    /// The error `bad argument #1 to 'f' (why)`.
    pub(crate) fn refuse(&self, index: usize, why: &str) -> Error {
        // A function of the sandbox has the name of the Lua function that it replaces.
        let level = usize::from(errors::is_in_sandbox(self.lua, 1));
        let named = self.lua.inspect_stack(level, |debug| {
            let names = debug.names();
            (names.name.map(|name| name.into_owned()), names.name_what == Some("method"))
        });
        let (name, is_method) = named.unwrap_or_default();
        let name = name.unwrap_or_else(|| "?".to_owned());
        let what = match (index, is_method) {
            (1, true) => format!("calling '{name}' on bad self ({why})"),
            (index, true) => format!("bad argument #{} to '{name}' ({why})", index - 1),
            (index, false) => format!("bad argument #{index} to '{name}' ({why})"),
        };
        errors::complain(self.lua, what)
    }
}

/// A number, or a string that reads as one.
pub(crate) fn number(lua: &Lua, value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::String(_) => lua.coerce_number(value.clone()).ok().flatten(),
        _ => None,
    }
}

/// A number converted as C does on x86-64: truncated; the smallest integer if it does not fit.
pub(crate) fn to_integer(number: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) { number as i64 } else { i64::MIN }
}

/// The name of a value's type, as Lua's `type` says it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}
