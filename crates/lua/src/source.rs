//! Compilation of source code into Lua functions.

use crate::errors;
use crate::step::ScriptError;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Table};

/// The first byte of bytecode. Lua does not validate bytecode, so it could do anything.
const BYTECODE: u8 = 0x1b;

/// Compiles a chunk with these globals. An error is Lua's own text.
///
/// The garbage collector is stopped meanwhile: the parser of Lua 5.1 keeps no reference to the
/// chunk's name.
pub(crate) fn compile(
    lua: &Lua,
    source: &[u8],
    name: &str,
    globals: &Table,
) -> Result<Function, ScriptError> {
    if let Some((&BYTECODE, rest)) = source.split_first() {
        // The error is that of another control character, with this byte's number in it.
        let text = compile(lua, &[&[1], rest].concat(), name, globals).map(drop);
        let text = text.err().map(|why| why.text).unwrap_or_default();
        let end = text.strip_suffix(b"'char(1)'").unwrap_or(&text);
        return Err(ScriptError::of([end, b"'char(27)'"].concat()));
    }
    lua.gc_stop();
    let chunk = lua.load(source).set_name(name).set_mode(ChunkMode::Text);
    let result = chunk.set_environment(globals.clone()).into_function();
    lua.gc_restart();
    result.map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => ScriptError::of(message),
        mlua::Error::MemoryError(_) => ScriptError::no_memory(errors::NO_MEMORY),
        other => ScriptError::of(other.to_string()),
    })
}
