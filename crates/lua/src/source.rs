//! Compilation of source code into Lua functions.
//!
//! Lua's compiler is not linear: it walks the list of all jumps out of a loop for each `break`, and
//! so for `elseif`, `and` and `or`. A megabyte can take it a minute. So long code is handed to it
//! in pieces, and between them it pauses, or is given up.

use crate::errors;
use crate::host::{Host, Stage};
use crate::limits::COMPILE_MS_MAX;
use crate::step::ScriptError;
use base::MonotonicNanos;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Table, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The first byte of bytecode. Lua does not validate bytecode, so it could do anything.
const BYTECODE: u8 = 0x1b;

/// The longest code that is compiled at once, in bytes: some 100 µs.
const WHOLE_BYTES: usize = 4 << 10;

/// Bytes of longer code that are compiled between two looks at the clock. Some 20 `break`s fit, and
/// with 4 MiB of them each takes half a millisecond.
const COMPILED_PIECE_BYTES: usize = 256;

/// Bytes of source code that are compiled in one step.
pub const COMPILED_STEP_BYTES: usize = 4;

/// Compiles a chunk with these globals. An error is Lua's own text. While a script runs or a
/// library is loaded, this pauses; if it is killed meanwhile, the error says nothing.
///
/// The garbage collector is stopped meanwhile: the parser of Lua 5.1 keeps no reference to the
/// chunk's name.
pub(crate) fn compile(
    lua: &Lua,
    host: &Rc<Host>,
    source: &[u8],
    name: &str,
    globals: &Table,
) -> Result<Function, ScriptError> {
    if let Some((&BYTECODE, rest)) = source.split_first() {
        // The error is that of another control character, with this byte's number in it.
        let text = compile(lua, host, &[&[1], rest].concat(), name, globals).map(drop);
        let text = text.err().map(|why| why.text).unwrap_or_default();
        let end = text.strip_suffix(b"'char(1)'").unwrap_or(&text);
        return Err(ScriptError::of([end, b"'char(27)'"].concat()));
    }
    lua.gc_stop();
    let result = match source.len() {
        ..=WHOLE_BYTES => whole(lua, host, source, name),
        _ => in_pieces(lua, host, source, name),
    };
    lua.gc_restart();
    let function = result?;
    function.set_environment(globals.clone()).map_err(|why| failed(&why))?;
    Ok(function)
}

fn failed(why: &mlua::Error) -> ScriptError {
    match why {
        mlua::Error::SyntaxError { message, .. } => ScriptError::of(message.as_str()),
        mlua::Error::MemoryError(_) => ScriptError::no_memory(errors::NO_MEMORY),
        other => ScriptError::of(other.to_string()),
    }
}

fn whole(lua: &Lua, host: &Rc<Host>, source: &[u8], name: &str) -> Result<Function, ScriptError> {
    if host.stage.get() != Stage::Idle {
        host.spend(lua, source.len() / COMPILED_STEP_BYTES).map_err(|why| failed(&why))?;
    }
    let chunk = lua.load(source).set_name(name).set_mode(ChunkMode::Text);
    chunk.into_function().map_err(|why| failed(&why))
}

/// Compiles through Lua's `load`, which asks for piece after piece. Where no more is to be
/// compiled, the code ends for it, and what it makes of that is dropped.
fn in_pieces(
    lua: &Lua,
    host: &Rc<Host>,
    source: &[u8],
    name: &str,
) -> Result<Function, ScriptError> {
    let (at, given_up) = (Cell::new(0), RefCell::new(None));
    let began = host.meter.now();
    let loaded = lua.scope(|scope| {
        let reader = scope.create_function(|lua, ()| {
            let rest = source.get(at.get()..).unwrap_or_default();
            let piece = &rest[..rest.len().min(COMPILED_PIECE_BYTES)];
            if piece.is_empty() {
                return Ok(None);
            }
            at.set(at.get() + piece.len());
            let allowed = go_on(lua, host, began, piece.len());
            match allowed.and_then(|()| lua.create_string(piece).map_err(|why| failed(&why))) {
                Ok(piece) => Ok(Some(piece)),
                Err(why) => {
                    *given_up.borrow_mut() = Some(why);
                    Ok(None)
                }
            }
        })?;
        let load = lua.globals().raw_get::<Function>("load")?;
        load.call::<(Option<Function>, Value)>((reader, name))
    });
    if let Some(why) = given_up.take() {
        return Err(why);
    }
    match loaded.map_err(|why| failed(&why))? {
        (Some(function), _) => Ok(function),
        (None, Value::String(text)) if text.as_bytes() != errors::NO_MEMORY => {
            Err(ScriptError::of(text.as_bytes().to_vec()))
        }
        (None, _) => Err(ScriptError::no_memory(errors::NO_MEMORY)),
    }
}

/// Looks at the time between two pieces: pauses if others are to have their turn, where one can.
///
/// # Errors
/// The script was killed meanwhile; or nobody can pause, and compiling took too long.
fn go_on(
    lua: &Lua,
    host: &Rc<Host>,
    began: Option<MonotonicNanos>,
    bytes: usize,
) -> Result<(), ScriptError> {
    if host.stage.get() != Stage::Idle {
        return host.spend_long(lua, bytes / COMPILED_STEP_BYTES).map_err(|why| failed(&why));
    }
    let took = host.meter.now().zip(began).map(|(now, began)| now.since(began));
    if took.is_some_and(|nanos| nanos > COMPILE_MS_MAX * 1_000_000) {
        let text = format!("the code takes longer than {COMPILE_MS_MAX} ms to compile");
        return Err(ScriptError::of(text));
    }
    Ok(())
}
