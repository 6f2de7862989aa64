//! `cjson`: values as JSON (RFC 8259), with its options and its errors.

mod decode;
mod encode;
mod number;

use super::Library;
use crate::given::Given;
use crate::host::Host;
use mlua::{IntoLuaMulti, Lua, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// The options that a script may set. They are reset after the script.
#[derive(Clone)]
pub(crate) struct Options {
    /// Whether a sparse list becomes an object; otherwise it is an error.
    sparse_to_object: bool,
    /// A list with more indices than this times its elements is sparse; 0: never.
    sparse_ratio: i32,
    /// A list whose greatest index is at most this is never sparse.
    sparse_safe: i32,
    encode_depth_max: i32,
    decode_depth_max: i32,
    /// Significant digits of numbers.
    precision: i32,
    keeps_buffer: bool,
    /// How infinities and not-a-number are encoded.
    encode_invalid: Invalid,
    decodes_invalid: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sparse_to_object: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            precision: 14,
            keeps_buffer: true,
            encode_invalid: Invalid::Refused,
            decodes_invalid: true,
        }
    }
}

type Shared = Rc<RefCell<Options>>;

/// Builds the library. Its options are returned too, to be reset after each script.
pub(crate) fn build(lua: &Lua, host: &Rc<Host>) -> mlua::Result<(Table, Shared)> {
    let options = Shared::default();
    let library = Library::new(lua, host)?;
    let shared = Rc::clone(&options);
    library.add("encode", move |lua, host, given| {
        if given.len() != 1 {
            return Err(given.refuse(1, "expected 1 argument"));
        }
        encode::encode(lua, host, &shared.borrow().clone(), given.at(1))
    })?;
    let shared = Rc::clone(&options);
    library.add("decode", move |lua, host, given| {
        if given.len() != 1 {
            return Err(given.refuse(1, "expected 1 argument"));
        }
        let text = given.string(1)?;
        decode::decode(lua, host, &shared.borrow().clone(), &text.as_bytes())
    })?;
    add_options(&library, &options)?;
    library.add("new", |lua, host, _| build(lua, host).map(|(table, _)| table))?;
    library.table.raw_set("null", Value::NULL)?;
    library.table.raw_set("_NAME", "cjson")?;
    library.table.raw_set("_VERSION", "2.1.0")?;
    Ok((library.table, options))
}

fn add_options(library: &Library<'_>, options: &Shared) -> mlua::Result<()> {
    add(library, options, "encode_sparse_array", 3, |options, given| {
        Ok((
            switch(given, &mut options.sparse_to_object)?,
            integer(given, 2, &mut options.sparse_ratio, 0, i32::MAX)?,
            integer(given, 3, &mut options.sparse_safe, 0, i32::MAX)?,
        ))
    })?;
    add(library, options, "encode_max_depth", 1, |options, given| {
        integer(given, 1, &mut options.encode_depth_max, 1, i32::MAX)
    })?;
    add(library, options, "decode_max_depth", 1, |options, given| {
        integer(given, 1, &mut options.decode_depth_max, 1, i32::MAX)
    })?;
    add(library, options, "encode_number_precision", 1, |options, given| {
        integer(given, 1, &mut options.precision, 1, 14)
    })?;
    add(library, options, "encode_keep_buffer", 1, |options, given| {
        switch(given, &mut options.keeps_buffer)
    })?;
    add(library, options, "decode_invalid_numbers", 1, |options, given| {
        switch(given, &mut options.decodes_invalid)
    })?;
    add(library, options, "encode_invalid_numbers", 1, |options, given| {
        match given.at(1) {
            Value::Nil => {}
            Value::Boolean(false) => options.encode_invalid = Invalid::Refused,
            Value::Boolean(true) => options.encode_invalid = Invalid::Written,
            _ => {
                let choices = [Invalid::Refused, Invalid::Written, Invalid::Null];
                options.encode_invalid = choices[given.choice(1, &["off", "on", "null"])?];
            }
        }
        Ok(match options.encode_invalid {
            Invalid::Refused => Value::Boolean(false),
            Invalid::Written => Value::Boolean(true),
            Invalid::Null => Value::String(given.lua().create_string("null")?),
        })
    })
}

fn add<R: IntoLuaMulti>(
    library: &Library<'_>,
    options: &Shared,
    name: &str,
    arguments_max: usize,
    function: impl Fn(&mut Options, &Given<'_>) -> mlua::Result<R> + 'static,
) -> mlua::Result<()> {
    let options = Rc::clone(options);
    library.add(name, move |_, _, given| {
        if given.len() > arguments_max {
            return Err(given.refuse(arguments_max + 1, "found too many arguments"));
        }
        function(&mut options.borrow_mut(), &given)
    })
}

/// Sets an option to the first argument, if there is one; returns its value.
fn switch(given: &Given<'_>, option: &mut bool) -> mlua::Result<bool> {
    match given.at(1) {
        Value::Nil => {}
        Value::Boolean(value) => *option = *value,
        _ => *option = given.choice(1, &["off", "on"])? == 1,
    }
    Ok(*option)
}

/// As [`switch`], for a number.
fn integer(
    given: &Given<'_>,
    index: usize,
    option: &mut i32,
    min: i32,
    max: i32,
) -> mlua::Result<i32> {
    if !given.is_none(index) {
        let value = given.int(index)?;
        if !(min..=max).contains(&value) {
            return Err(given.refuse(1, &format!("expected integer between {min} and {max}")));
        }
        *option = value;
    }
    Ok(*option)
}
