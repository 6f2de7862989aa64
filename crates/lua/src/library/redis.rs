//! The table `redis`, and math.random.

use super::Library;
use crate::errors;
use crate::given::{Given, number, to_integer};
use crate::host::{Host, Stage};
use crate::incoming;
use crate::random::{RANDOM_MAX, Random};
use crate::script::ScriptRef;
use crate::step::{Answer, Arguments, Call, FUNCTION_FLAGS, LoadedFunction, Step};
use mlua::{Function, Lua, Table, Value};
use resp::Protocol;
use resp::format_double::format_double;
use std::rc::Rc;

/// The release of Redis whose scripts run here, as they read it.
const REDIS_VERSION: &str = "7.0.15";
const REDIS_VERSION_NUM: i64 = 0x0007_000f;

/// The levels of `redis.log`.
const LEVELS: [(&str, i64); 4] =
    [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)];

/// What `redis.set_repl` takes.
const REPLICATION: [(&str, i64); 5] =
    [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];

/// Bytes of an argument that count as one step.
const STEP_BYTES: usize = 64;

/// The table that scripts and functions find.
pub(crate) fn build(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let library = Library::new(lua, host)?;
    library.add("call", |lua, host, given| call(lua, host, &given, true))?;
    library.add("pcall", |lua, host, given| call(lua, host, &given, false))?;
    library.add("sha1hex", |lua, host, given| {
        if given.len() != 1 {
            return Err(error(lua, "wrong number of arguments"));
        }
        let text = given.string(1)?;
        host.spend(lua, text.as_bytes().len() / STEP_BYTES)?;
        Ok(hex(&base::sha1::sha1(&text.as_bytes())))
    })?;
    library.add("error_reply", |lua, _, given| match given.at(1) {
        Value::String(text) if given.len() == 1 => {
            let text = text.as_bytes();
            let text = text.strip_prefix(b"-").unwrap_or(&text);
            errors::error_table(lua, &incoming::with_code(text))
        }
        _ => errors::error_table(lua, b"ERR wrong number or type of arguments"),
    })?;
    library.add("status_reply", |lua, _, given| match given.at(1) {
        Value::String(text) if given.len() == 1 => {
            let table = lua.create_table()?;
            table.raw_set("ok", text)?;
            Ok(table)
        }
        _ => errors::error_table(lua, b"ERR wrong number or type of arguments"),
    })?;
    library.add("setresp", |lua, host, given| set_protocol(lua, host, &given))?;
    library.add("set_repl", |lua, host, given| check_replication(lua, host, &given))?;
    library.add("acl_check_cmd", |lua, host, given| check_rights(lua, host, &given))?;
    if host.kind == crate::script::Kind::Scripts {
        // There is no debugger: nothing stops at a breakpoint, and nobody reads what `debug` says.
        library.add("breakpoint", |_, _, _| Ok(false))?;
        library.add("debug", |_, _, _| Ok(()))?;
        library.add("replicate_commands", |_, _, _| Ok(true))?;
    }
    for (name, flag) in REPLICATION {
        library.table.raw_set(name, flag)?;
    }
    add_log(&library)?;
    Ok(library.table)
}

/// The table that the code of a library finds.
pub(crate) fn build_for_libraries(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Table> {
    let library = Library::new(lua, host)?;
    library.add("register_function", |lua, host, given| register_function(lua, host, &given))?;
    add_log(&library)?;
    Ok(library.table)
}

fn add_log(library: &Library<'_>) -> mlua::Result<()> {
    library.add("log", |lua, host, given| log(lua, host, &given))?;
    for (name, level) in LEVELS {
        library.table.raw_set(name, level)?;
    }
    library.table.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    library.table.raw_set("REDIS_VERSION_NUM", REDIS_VERSION_NUM)
}

/// Replaces the generator of numbers by one that draws the same everywhere.
pub(crate) fn add_random(lua: &Lua, host: &Rc<Host>, math: &Table) -> mlua::Result<()> {
    let library = Library::over(lua, host, math.clone());
    library.add("random", |lua, host, given| random(lua, host, &given))?;
    library.add("randomseed", |lua, host, given| {
        if host.stage.get() != Stage::Running {
            let text = "math.randomseed can only be called inside a script invocation";
            return Err(errors::complain(lua, text));
        }
        host.random.set(Random::seeded(given.int(1)?));
        Ok(())
    })
}

fn random(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<f64> {
    if host.stage.get() != Stage::Running {
        let text = "math.random can only be called inside a script invocation";
        return Err(errors::complain(lua, text));
    }
    let mut generator = host.random.get();
    let drawn = f64::from(generator.next() % RANDOM_MAX) / f64::from(RANDOM_MAX);
    host.random.set(generator);
    match given.len() {
        0 => Ok(drawn),
        1 => {
            let to = given.int(1)?;
            if to < 1 {
                return Err(given.refuse(1, "interval is empty"));
            }
            Ok((drawn * f64::from(to)).floor() + 1.0)
        }
        2 => {
            let (from, to) = (given.int(1)?, given.int(2)?);
            if from > to {
                return Err(given.refuse(2, "interval is empty"));
            }
            // In C's int, which is cut off.
            let count = to.wrapping_sub(from).wrapping_add(1);
            Ok((drawn * f64::from(count)).floor() + f64::from(from))
        }
        _ => Err(errors::complain(lua, "wrong number of arguments")),
    }
}

/// An error without a place, as those of commands are.
fn error(lua: &Lua, text: &str) -> mlua::Error {
    errors::table(lua, format!("ERR {text}").as_bytes())
}

/// Bytes of a reply that is read without a look at the memory limit for each part of it, and bytes
/// that its values may take: an element of 3 bytes becomes a value of up to 100.
const SHORT_REPLY_BYTES: usize = 4 << 10;
const SHORT_REPLY_ROOM: usize = 256 << 10;

fn call(lua: &Lua, host: &Rc<Host>, given: &Given<'_>, raises: bool) -> mlua::Result<Value> {
    needs_script(lua, host, "redis.call/pcall")?;
    let arguments = match command(lua, given)? {
        Ok(arguments) => arguments,
        Err(text) if raises => return Err(error(lua, text)),
        Err(text) => {
            return errors::error_table(lua, format!("ERR {text}").as_bytes()).map(Value::Table);
        }
    };
    host.spend(lua, 1 + arguments.source().len() / STEP_BYTES)?;
    let protocol = host.protocol.get();
    let Answer::Reply(reply) = host.ask(lua, Step::Call(Call { arguments, raises, protocol }))?
    else {
        return Err(error(lua, "the command was not answered"));
    };
    let is_short = reply.len() <= SHORT_REPLY_BYTES && host.has_room(lua, SHORT_REPLY_ROOM);
    let read = || incoming::read(host, lua, &reply);
    let value = if is_short { host.freely(lua, read) } else { read() }?;
    if raises && reply.first() == Some(&b'-') {
        return Err(errors::value(value));
    }
    Ok(value)
}

/// Refuses what the code of a library may not do.
fn needs_script(lua: &Lua, host: &Host, what: &str) -> mlua::Result<()> {
    if host.stage.get() == Stage::Running {
        return Ok(());
    }
    Err(error(lua, &format!("{what} can only be called inside a script invocation")))
}

/// The arguments of a command, or why they are none.
fn command(lua: &Lua, given: &Given<'_>) -> mlua::Result<Result<Arguments, &'static str>> {
    if given.len() == 0 {
        return Ok(Err("Please specify at least one argument for this redis lib call"));
    }
    let mut arguments = Arguments::default();
    for index in 1..=given.len() {
        let fits = match given.at(index) {
            Value::String(text) => arguments.push(&text.as_bytes()),
            Value::Integer(number) if number.unsigned_abs() < 1 << 53 => {
                arguments.push(number.to_string().as_bytes())
            }
            value => match number(lua, value) {
                Some(number) => arguments.push(format_double(number).as_bytes()),
                None => {
                    return Ok(Err("Lua redis lib command arguments must be strings or integers"));
                }
            },
        };
        if !fits {
            return Ok(Err("the arguments of a command are too long"));
        }
    }
    Ok(Ok(arguments))
}

fn check_rights(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<bool> {
    needs_script(lua, host, "redis.acl_check_cmd")?;
    let arguments = command(lua, given)?.map_err(|text| error(lua, text))?;
    match host.ask(lua, Step::CheckRights(arguments))? {
        Answer::Allowed(allowed) => Ok(allowed),
        _ => Err(error(lua, "Invalid command passed to redis.acl_check_cmd()")),
    }
}

fn set_protocol(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
    needs_script(lua, host, "redis.setresp")?;
    if given.len() != 1 {
        return Err(error(lua, "redis.setresp() requires one argument."));
    }
    host.protocol.set(match number(lua, given.at(1)).map(to_integer) {
        Some(2) => Protocol::Resp2,
        Some(3) => Protocol::Resp3,
        _ => return Err(error(lua, "RESP version must be 2 or 3.")),
    });
    Ok(())
}

/// Checks what a script says of replication, and does nothing: whatever a script changes goes to
/// the log, or an acknowledged write could be lost.
fn check_replication(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
    needs_script(lua, host, "redis.set_repl")?;
    if given.len() != 1 {
        return Err(error(lua, "redis.set_repl() requires two arguments."));
    }
    let flags = number(lua, given.at(1)).map_or(0, to_integer);
    if flags & !3 != 0 {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(error(lua, text));
    }
    Ok(())
}

fn log(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
    if given.len() < 2 {
        return Err(error(lua, "redis.log() requires two arguments or more."));
    }
    let Some(level) = number(lua, given.at(1)) else {
        return Err(error(lua, "First argument must be a number (log level)."));
    };
    let level = u8::try_from(to_integer(level)).ok().filter(|level| *level <= 3);
    let Some(level) = level else { return Err(error(lua, "Invalid debug level.")) };
    let mut text = Vec::new();
    for index in 2..=given.len() {
        if let Some(piece) = lua.coerce_string(given.at(index).clone())? {
            if index > 2 {
                text.push(b' ');
            }
            text.extend_from_slice(&piece.as_bytes());
        }
    }
    host.ask(lua, Step::Log { level, text }).map(drop)
}

/// What a library tells of one function.
#[derive(Default)]
struct Registration {
    name: Option<Vec<u8>>,
    description: Option<Vec<u8>>,
    callback: Option<Function>,
    flags: Vec<&'static str>,
}

fn register_function(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<()> {
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
    if registered.iter().any(|(other, _)| other.name == name) {
        return Err(error(lua, "Function already exists in the library"));
    }
    let Registration { description, flags, .. } = registration;
    let function = LoadedFunction { name, description, flags, callback: ScriptRef(0) };
    registered.push((function, callback));
    Ok(())
}

/// Whether a library or function may be called so.
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

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}
