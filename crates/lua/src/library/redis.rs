//! The library `redis`, and `math.random`.

mod registration;

use super::Library;
use crate::errors;
use crate::given::{Given, number, to_integer};
use crate::host::{Host, STEP_BYTES, Stage, keep_bytes};
use crate::incoming;
use crate::random::{RANDOM_MAX, Random};
use crate::step::{Answer, Arguments, Call, Step};
use base::sha1::{self, Sha1};
use mlua::{Function, Lua, Table, Value};
use registration::register_function;
use resp::Protocol;
use resp::format_double::format_double;
use std::rc::Rc;

/// The release of Redis whose scripts run here, as scripts see it.
const REDIS_VERSION: &str = "7.0.15";
const REDIS_VERSION_NUM: i64 = 0x0007_000f;

/// The levels of `redis.log`.
const LEVELS: [(&str, i64); 4] =
    [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)];

/// The flags of `redis.set_repl`.
const REPLICATION: [(&str, i64); 5] =
    [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];

/// Bytes of a line that a script writes into the server's log; the rest is cut off.
const LOG_BYTES_MAX: usize = 16 << 10;

/// The functions `redis.call` and `redis.pcall`. They leave the interpreter's stack by themselves,
/// which is quicker than through a Lua function that does.
pub(crate) struct Callers {
    pub(crate) call: Function,
    pub(crate) pcall: Function,
}

/// Blocks that are hashed between two pauses at most.
const HASHED_BLOCKS: usize = 1024;

/// Builds the table `redis` of scripts and functions.
pub(crate) fn build(lua: &Lua, host: &Rc<Host>, callers: &Callers) -> mlua::Result<Table> {
    let library = Library::new(lua, host)?;
    library.table.raw_set("call", &callers.call)?;
    library.table.raw_set("pcall", &callers.pcall)?;
    library.add("sha1hex", |lua, host, given| {
        if given.len() != 1 {
            return Err(error(lua, "wrong number of arguments"));
        }
        // What is no string and no number has the digest of nothing.
        let text = lua.coerce_string(given.at(1).clone())?;
        let text = text.as_ref().map(|text| text.as_bytes());
        let bytes = text.as_deref().unwrap_or_default();
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut hash = Sha1::default();
        for blocks in blocks.chunks(HASHED_BLOCKS) {
            // A block takes a microsecond.
            host.spend(lua, blocks.len() * 64)?;
            hash.add(blocks);
        }
        Ok(sha1::hex(&hash.finish(rest)))
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
    if host.kind == crate::script::CodeKind::Scripts {
        // There is no debugger, and effects are always what is logged: these three do nothing.
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

/// Builds the table `redis` of a library's code while it is loaded.
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

/// Replaces the functions of `math` that draw random numbers.
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
            // Computed in C's int, which wraps.
            let count = to.wrapping_sub(from).wrapping_add(1);
            Ok((drawn * f64::from(count)).floor() + f64::from(from))
        }
        _ => Err(errors::complain(lua, "wrong number of arguments")),
    }
}

/// An error table without a place, as commands' errors are.
fn error(lua: &Lua, text: &str) -> mlua::Error {
    errors::table(lua, format!("ERR {text}").as_bytes())
}

/// Room for what returns from a call to the script, through pcall too, beside the reply: a command
/// is not executed without it, since the script could take a lack of it for the command's failure.
const CALL_ROOM_BYTES: usize = 16 << 10;

/// Bytes of an argument that is copied without being counted, as it would count for one step: as
/// many arguments as Lua can hand over take a megabyte then, in a buffer of two at most.
const SHORT_BYTES_MAX: usize = 2 * STEP_BYTES - 1;

/// `redis.call` and `redis.pcall`. `leave` leaves the interpreter's stack, and comes back.
pub(crate) fn call(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
    raises: bool,
    leave: impl FnOnce(),
) -> mlua::Result<Value> {
    needs_script(lua, host, "redis.call/pcall")?;
    let arguments = match command(lua, host, given)? {
        Ok(arguments) => arguments,
        Err(text) if raises => return Err(error(lua, text)),
        Err(text) => {
            return errors::error_table(lua, format!("ERR {text}").as_bytes()).map(Value::Table);
        }
    };
    let protocol = host.protocol.get();
    let step = Step::Call(Call { arguments, raises, protocol });
    let Answer::Reply(reply) = host.ask_through(lua, step, leave)? else {
        return Err(error(lua, "the command was not answered"));
    };
    let outcome = match reply.first() {
        Some(b'-') if raises => incoming::read_error(host, lua, &reply).map(Err),
        _ => incoming::read(host, lua, &reply).map(Ok),
    };
    let outcome = outcome.map_err(|why| host.end_untold(lua, &why))?;
    keep_bytes(&mut host.spare.borrow_mut().reply, reply);
    outcome
}

/// Refuses a function that a library's code may not call while it is loaded.
fn needs_script(lua: &Lua, host: &Host, what: &str) -> mlua::Result<()> {
    if host.stage.get() == Stage::Running {
        return Ok(());
    }
    Err(error(lua, &format!("{what} can only be called inside a script invocation")))
}

/// The arguments as those of a command, or the error text if they cannot be. From the first long
/// one on they are counted before they are copied: one string may be there many times over, and the
/// last argument may be none that a command takes.
///
/// # Errors
/// There is no memory for them, or the script was killed.
fn command(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
) -> mlua::Result<Result<Arguments, &'static str>> {
    if given.len() == 0 {
        return Ok(Err("Please specify at least one argument for this redis lib call"));
    }
    host.spend(lua, 1 + given.len())?;
    host.check_room(lua, CALL_ROOM_BYTES)?;
    let mut are_counted = false;
    let mut arguments = std::mem::take(&mut host.spare.borrow_mut().arguments);
    for index in 1..=given.len() {
        let fits = match given.at(index) {
            Value::String(text) => {
                let text = text.as_bytes();
                if text.len() > SHORT_BYTES_MAX && !are_counted {
                    let bytes = text_bytes(given, index);
                    host.spend_copy(lua, bytes, CALL_ROOM_BYTES)?;
                    arguments.reserve(given.len(), bytes);
                    are_counted = true;
                }
                arguments.push(&text)
            }
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

/// Bytes of the strings among the arguments from this one on.
fn text_bytes(given: &Given<'_>, from: usize) -> usize {
    let bytes = |index| match given.at(index) {
        Value::String(text) => text.as_bytes().len(),
        _ => 0,
    };
    (from..=given.len()).map(bytes).sum()
}

fn check_rights(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<bool> {
    needs_script(lua, host, "redis.acl_check_cmd")?;
    let arguments = command(lua, host, given)?.map_err(|text| error(lua, text))?;
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

/// `redis.set_repl`: checks its argument and does nothing. All changes of a script go to the log,
/// or an acknowledged write could be lost.
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
        if text.len() >= LOG_BYTES_MAX {
            break;
        }
        if let Some(piece) = lua.coerce_string(given.at(index).clone())? {
            if index > 2 {
                text.push(b' ');
            }
            let piece = piece.as_bytes();
            text.extend_from_slice(&piece[..piece.len().min(LOG_BYTES_MAX)]);
        }
    }
    text.truncate(LOG_BYTES_MAX);
    host.ask(lua, Step::Log { level, text }).map(drop)
}
