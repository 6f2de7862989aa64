//! `redis.register_function`: its arguments, by position or by name, checked as Redis checks them.

use super::error;
use crate::errors;
use crate::given::Given;
use crate::host::{Host, Stage};
use crate::step::{FUNCTION_FLAGS, LoadedFunction};
use mlua::{Function, Lua, Table, Value};
use std::rc::Rc;

/// The arguments of `redis.register_function`.
#[derive(Default)]
struct Registration {
    name: Option<Vec<u8>>,
    description: Option<Vec<u8>>,
    callback: Option<Function>,
    flags: Vec<&'static str>,
}

pub(super) fn register_function(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
    if host.stage.get() != Stage::Loading {
        let text = "redis.register_function can only be called on FUNCTION LOAD command";
        return Err(error(lua, text));
    }
    let registration = match given.len() {
        1 => named(lua, given.at(1)),
        2 => positional(lua, given),
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let registration = registration.map_err(|text| error(lua, text))?;
    let (Some(name), Some(callback)) = (registration.name, registration.callback) else {
        return Err(error(lua, "redis.register_function must get a function name argument"));
    };
    if !is_name(&name) {
        let text = "Library names can only contain letters, numbers, or underscores(_) and must \
                    be at least one character long";
        return Err(error(lua, text));
    }
    let mut registered = host.registered.borrow_mut();
    if registered.contains_key(&name) {
        return Err(error(lua, "Function already exists in the library"));
    }
    let Registration { description, flags, .. } = registration;
    let callback = host.keep(&callback)?;
    registered.insert(name.clone(), LoadedFunction { name, description, flags, callback });
    Ok(())
}

/// Whether a name is allowed for a library or function.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn positional(lua: &Lua, given: &Given<'_>) -> Result<Registration, &'static str> {
    let name = string(lua, given.at(1))
        .ok_or("first argument to redis.register_function must be a string")?;
    let Value::Function(callback) = given.at(2) else {
        return Err("second argument to redis.register_function must be a function");
    };
    Ok(Registration { name: Some(name), callback: Some(callback.clone()), ..Default::default() })
}

fn named(lua: &Lua, value: &Value) -> Result<Registration, &'static str> {
    let Value::Table(table) = value else {
        return Err(
            "calling redis.register_function with a single argument is only applicable to \
                    Lua table (representing named arguments).",
        );
    };
    let mut found = Registration::default();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|_| "unknown argument given to redis.register_function")?;
        let key = string(lua, &key)
            .ok_or("named argument key given to redis.register_function is not a string")?;
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => {
                found.name = Some(string(lua, &value).ok_or(
                    "function_name argument given to redis.register_function must be a string",
                )?);
            }
            b"description" => {
                found.description = Some(string(lua, &value).ok_or(
                    "description argument given to redis.register_function must be a string",
                )?);
            }
            b"callback" => match value {
                Value::Function(callback) => found.callback = Some(callback),
                _ => {
                    return Err("callback argument given to redis.register_function must be a \
                                function");
                }
            },
            b"flags" => match value {
                Value::Table(names) => found.flags = flags(lua, &names)?,
                _ => {
                    return Err("flags argument to redis.register_function must be a table \
                                representing function flags");
                }
            },
            _ => return Err("unknown argument given to redis.register_function"),
        }
    }
    if found.name.is_none() {
        return Err("redis.register_function must get a function name argument");
    }
    if found.callback.is_none() {
        return Err("redis.register_function must get a callback argument");
    }
    Ok(found)
}

fn flags(lua: &Lua, names: &Table) -> Result<Vec<&'static str>, &'static str> {
    const UNKNOWN: &str = "unknown flag given";
    let mut flags = Vec::new();
    for index in 1.. {
        let value = names.raw_get::<Value>(index).map_err(|_| UNKNOWN)?;
        if value.is_nil() {
            break;
        }
        let name = string(lua, &value).ok_or(UNKNOWN)?;
        let known = FUNCTION_FLAGS
            .into_iter()
            .find(|flag| flag.as_bytes().eq_ignore_ascii_case(errors::until_nul(&name)));
        let flag = known.ok_or(UNKNOWN)?;
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    Ok(flags)
}

/// A string, or a number's text.
fn string(lua: &Lua, value: &Value) -> Option<Vec<u8>> {
    let is_text = matches!(value, Value::String(_) | Value::Integer(_) | Value::Number(_));
    let text = is_text.then(|| lua.coerce_string(value.clone()).ok().flatten()).flatten()?;
    Some(text.as_bytes().to_vec())
}
