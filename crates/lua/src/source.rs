//! Source code into functions.

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, Table};

/// Compiles a chunk, whose globals are `globals`. An error is Lua's own text.
///
/// The collector stands still meanwhile: the parser of Lua 5.1 does not hold on to the chunk's
/// name.
pub(crate) fn compile(
    lua: &Lua,
    source: &[u8],
    name: &str,
    globals: &Table,
) -> Result<Function, Vec<u8>> {
    lua.gc_stop();
    let chunk = lua.load(source).set_name(name).set_mode(ChunkMode::Text);
    let result = chunk.set_environment(globals.clone()).into_function();
    lua.gc_restart();
    result.map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => message.into_bytes(),
        mlua::Error::MemoryError(_) => b"not enough memory".to_vec(),
        other => other.to_string().into_bytes(),
    })
}
