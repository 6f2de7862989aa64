//! `redis.register_function`: its arguments, by position or by name, checked as Redis checks them.

use super::error;
use crate::errors;
use crate::given::Given;
use crate::host::{Host, Stage};
use crate::step::{FUNCTION_FLAGS, LoadedFunction};
use mlua::{Function, Lua, LuaString, Table, Value};
use std::rc::Rc;

/// The arguments of `redis.register_function`.
#[derive(Default)]
struct Registration {
    name: Option<Vec<u8>>,
    description: Option<Vec<u8>>,
    callback: Option<Function>,
    flags: Vec<&'static str>,
}

impl Registration {
    /// Bytes of what was copied so far.
    fn bytes(&self) -> usize {
        [&self.name, &self.description].into_iter().flatten().map(Vec::len).sum()
    }
}

/// Bytes of a function beside its description and the copies of its name: nodes of trees, a number,
/// flags. About.
const FUNCTION_BYTES: usize = 400;

/// Copies of a function's name: it is a key and a value here, and both in `node`'s index of all
/// functions.
const NAME_COPIES: usize = 4;

pub(super) fn register_function(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
    if host.stage.get() != Stage::Loading {
        let text = "redis.register_function can only be called on FUNCTION LOAD command";
        return Err(error(lua, text));
    }
    let registration = match given.len() {
        1 => named(lua, host, given.at(1)),
        2 => positional(lua, host, given),
        _ => Err(error(lua, "wrong number of arguments to redis.register_function")),
    }?;
    let (Some(name), Some(callback)) = (registration.name, registration.callback) else {
        return Err(error(lua, "redis.register_function must get a function name argument"));
    };
    if !is_name(&name) {
        let text = "Library names can only contain letters, numbers, or underscores(_) and must \
                    be at least one character long";
        return Err(error(lua, text));
    }
    if host.registered.borrow().contains_key(&name) {
        return Err(error(lua, "Function already exists in the library"));
    }
    let Registration { description, flags, .. } = registration;
    let described = description.as_ref().map_or(0, Vec::len);
    let bytes = FUNCTION_BYTES + NAME_COPIES * name.len() + described;
    host.check_room(lua, bytes)?;
    let callback = host.keep(&callback, bytes)?;
    let function = LoadedFunction { name: name.clone(), description, flags, callback };
    host.registered.borrow_mut().insert(name, function);
    Ok(())
}

/// Whether a name is allowed for a library or function.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn positional(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<Registration> {
    const NO_NAME: &str = "first argument to redis.register_function must be a string";
    let name = copied(lua, host, given.at(1), 0, NO_NAME)?;
    let Value::Function(callback) = given.at(2) else {
        let text = "second argument to redis.register_function must be a function";
        return Err(error(lua, text));
    };
    Ok(Registration { name: Some(name), callback: Some(callback.clone()), ..Default::default() })
}

fn named(lua: &Lua, host: &Rc<Host>, value: &Value) -> mlua::Result<Registration> {
    const UNKNOWN: &str = "unknown argument given to redis.register_function";
    let refuse = |text| Err(error(lua, text));
    let Value::Table(table) = value else {
        return refuse(
            "calling redis.register_function with a single argument is only applicable to Lua \
             table (representing named arguments).",
        );
    };
    let mut found = Registration::default();
    for pair in table.pairs::<Value, Value>() {
        host.spend(lua, 1)?;
        let (key, value) = pair.map_err(|_| error(lua, UNKNOWN))?;
        let Some(key) = text(lua, &key) else {
            return refuse("named argument key given to redis.register_function is not a string");
        };
        let key = key.as_bytes();
        let key = word(&key);
        let is = |name: &str| key.eq_ignore_ascii_case(name.as_bytes());
        if is("function_name") {
            let otherwise =
                "function_name argument given to redis.register_function must be a string";
            found.name = Some(copied(lua, host, &value, found.bytes(), otherwise)?);
        } else if is("description") {
            let otherwise =
                "description argument given to redis.register_function must be a string";
            found.description = Some(copied(lua, host, &value, found.bytes(), otherwise)?);
        } else if is("callback") {
            let Value::Function(callback) = value else {
                return refuse(
                    "callback argument given to redis.register_function must be a function",
                );
            };
            found.callback = Some(callback);
        } else if is("flags") {
            let Value::Table(names) = value else {
                return refuse(
                    "flags argument to redis.register_function must be a table representing \
                     function flags",
                );
            };
            found.flags = flags(lua, host, &names)?;
        } else {
            return refuse(UNKNOWN);
        }
    }
    if found.name.is_none() {
        return refuse("redis.register_function must get a function name argument");
    }
    if found.callback.is_none() {
        return refuse("redis.register_function must get a callback argument");
    }
    Ok(found)
}

fn flags(lua: &Lua, host: &Rc<Host>, names: &Table) -> mlua::Result<Vec<&'static str>> {
    let unknown = || error(lua, "unknown flag given");
    let mut flags = Vec::new();
    for index in 1.. {
        host.spend(lua, 1)?;
        let value = names.raw_get::<Value>(index).map_err(|_| unknown())?;
        if value.is_nil() {
            break;
        }
        let name = text(lua, &value).ok_or_else(unknown)?;
        let name = name.as_bytes();
        let name = word(&name);
        let is_it = |flag: &&str| flag.as_bytes().eq_ignore_ascii_case(name);
        let flag = FUNCTION_FLAGS.into_iter().find(is_it).ok_or_else(unknown)?;
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    Ok(flags)
}

/// As much of the name of an argument or flag as is looked at, which is more than any has. In C it
/// ends with a NUL.
fn word(text: &[u8]) -> &[u8] {
    const LOOKED_AT: usize = 64;
    errors::until_nul(&text[..text.len().min(LOOKED_AT)])
}

/// A string, or a number's text.
fn text(lua: &Lua, value: &Value) -> Option<LuaString> {
    let is_text = matches!(value, Value::String(_) | Value::Integer(_) | Value::Number(_));
    is_text.then(|| lua.coerce_string(value.clone()).ok().flatten()).flatten()
}

/// A copy of a string, or a number's text, for which there is room beside the bytes that are held.
fn copied(
    lua: &Lua,
    host: &Rc<Host>,
    value: &Value,
    held: usize,
    otherwise: &str,
) -> mlua::Result<Vec<u8>> {
    let text = text(lua, value).ok_or_else(|| error(lua, otherwise))?;
    let text = text.as_bytes();
    host.spend_copy(lua, text.len(), held)?;
    Ok(text.to_vec())
}
