//! The globals of scripts: which of Lua's functions exist, which are replaced, and that all are
//! read-only.
//!
//! A script sees each library, and the globals, through a [view](views).

mod deprecated;
mod views;

use crate::errors;
use crate::given::{Given, WORD_BYTES_SHOWN};
use crate::host::{COLLECTING_STEPS, Host};
use crate::library::redis::{self, Callers};
use crate::library::{Library, RESULTS_MAX, bit, json, msgpack, packing, strings};
use crate::limits::SOURCE_BYTES_MAX;
use crate::script::{CodeKind, ScriptRef};
use crate::source;
use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};
use std::cell::RefCell;
use std::rc::Rc;
use views::{READ_ONLY, SEEN, Views};

/// Functions of Lua that scripts get unchanged.
const KEPT: [&str; 9] =
    ["assert", "error", "ipairs", "rawequal", "select", "tonumber", "tostring", "type", "_VERSION"];

pub(crate) struct Sandbox {
    /// The view of the globals, which scripts see as `_G`.
    pub(crate) globals: Table,
    /// The real table of the globals.
    pub(crate) values: Table,
    /// The Lua function that chooses the script to be run, with tables of keys and arguments.
    enter: Function,
    /// The same for the code of a library, which has neither.
    enter_code: Function,
    /// The same for one key, with the key and the arguments behind it themselves.
    enter_with_key: Function,
    /// The Lua function that runs the chosen script.
    run: Function,
    xpcall: Function,
    handler: Function,
    /// The globals of a library's code while it is loaded.
    library: Table,
    /// The options of `cjson`, which a script may change for itself.
    json: Rc<RefCell<json::Options>>,
}

/// Builds the globals, step by step.
struct Builder<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    views: Rc<Views>,
    values: Table,
    original: Table,
    /// The set of all views, for `sandbox.lua`.
    marks: Table,
}

impl Sandbox {
    /// Builds the globals. `compiled` holds the scripts and functions.
    pub(crate) fn build(
        lua: &Lua,
        host: &Rc<Host>,
        callers: &Callers,
        compiled: &Table,
    ) -> mlua::Result<Self> {
        let builder = Builder {
            lua,
            host,
            views: Rc::default(),
            values: lua.create_table()?,
            original: lua.globals(),
            marks: lua.create_table()?,
        };
        builder.keep_functions()?;
        builder.add_table_functions()?;
        let prelude = builder.add_prelude(compiled)?;
        builder.add_collector()?;
        let json = builder.add_libraries(callers)?;
        let missing = lua.create_function(missing_global)?;
        let strict = lua.create_table()?;
        strict.raw_set("__index", missing.clone())?;
        let seen = lua.create_table()?;
        seen.raw_set("__index", missing)?;
        strict.raw_set(SEEN, builder.view(&seen)?)?;
        builder.values.set_metatable(Some(strict.clone()))?;
        let globals = builder.view(&builder.values)?;
        builder.values.raw_set("_G", globals.clone())?;
        if host.offers_deprecated {
            builder.add_deprecated(&globals)?;
        }
        let library = builder.library_globals(&strict)?;
        Ok(Self {
            globals,
            enter: prelude.raw_get("enter")?,
            enter_code: prelude.raw_get("enter_code")?,
            enter_with_key: prelude.raw_get("enter_with_key")?,
            run: prelude.raw_get("run")?,
            xpcall: builder.original.get("xpcall")?,
            handler: builder.handler()?,
            values: builder.values,
            library,
            json,
        })
    }

    /// Chooses a script or a function to be run, with its keys and arguments.
    pub(crate) fn enter(&self, script: ScriptRef, given: (Table, Table)) -> mlua::Result<()> {
        self.enter.call((script.0, given.0, given.1))
    }

    /// Chooses the code of a library to be run.
    pub(crate) fn enter_code(&self, code: &Function) -> mlua::Result<()> {
        self.enter_code.call(code)
    }

    /// As [`Self::enter`], with one key and the arguments behind it.
    pub(crate) fn enter_with_key(
        &self,
        script: ScriptRef,
        given: Variadic<&str>,
    ) -> mlua::Result<()> {
        self.enter_with_key.call((script.0, given))
    }

    /// Runs the chosen script. An error has the place at which it happened.
    pub(crate) fn run(&self, lua: &Lua) -> mlua::Result<Value> {
        let (ok, value): (bool, Value) = self.xpcall.call((&self.run, &self.handler))?;
        if ok { Ok(value) } else { Err(errors::value(lua, value)) }
    }

    /// Chooses the globals: those of a library's code, or those of scripts and functions.
    pub(crate) fn show_library_globals(&self, are_shown: bool) -> mlua::Result<()> {
        let metatable = self.globals.metatable().expect("the globals are a view");
        metatable.raw_set("__index", if are_shown { &self.library } else { &self.values })
    }

    /// Resets the options that a script may change for itself.
    pub(crate) fn reset(&self) {
        *self.json.borrow_mut() = json::Options::default();
    }

    /// Forgets the chosen script, its keys and its arguments.
    ///
    /// # Errors
    /// It was killed while this ran. The next script replaces what is left.
    pub(crate) fn leave(&self) -> mlua::Result<()> {
        self.enter_code.call(())
    }
}

/// The most bytes of a global's name that the error for its absence shows, and of a chunk's name
/// that are kept: Lua shows 60 of that.
const NAME_BYTES_SHOWN: usize = 1024;

fn missing_global(lua: &Lua, arguments: MultiValue) -> mlua::Result<()> {
    let name = arguments.get(1).cloned().unwrap_or(Value::Nil);
    let Some(name) = lua.coerce_string(name)? else {
        let text = "Second argument to luaProtectedTableError must be a string or number";
        return Err(errors::complain(lua, text));
    };
    let mut text = b"Script attempted to access nonexistent global variable '".to_vec();
    let name = name.as_bytes();
    let shown = &name[..name.len().min(NAME_BYTES_SHOWN)];
    text.extend_from_slice(errors::until_nul(shown));
    text.push(b'\'');
    Err(errors::complain(lua, text))
}

impl Builder<'_> {
    fn keep_functions(&self) -> mlua::Result<()> {
        for name in KEPT {
            self.values.raw_set(name, self.original.get::<Value>(name)?)?;
        }
        Ok(())
    }

    /// The error handler of scripts.
    fn handler(&self) -> mlua::Result<Function> {
        let host = Rc::clone(self.host);
        self.lua.create_function(move |lua, caught: Value| match &caught {
            Value::Error(_) => host.freely(lua, || errors::handle(lua, caught)),
            _ => errors::handle(lua, caught),
        })
    }

    fn over(&self, table: &Table) -> Library<'_> {
        Library::over(self.lua, self.host, table.clone())
    }

    /// The Rust functions that `sandbox.lua` uses.
    fn rust_functions(&self) -> mlua::Result<Library<'_>> {
        let rust = self.over(&self.lua.create_table()?);
        rust.add("visible", |lua, host, given| visible(lua, host, &given))?;
        rust.add("message", |lua, host, given| {
            let error = visible(lua, host, &given)?;
            let Value::Table(table) = &error else { return Ok(MultiValue::from_iter([error])) };
            let text = table.get::<Value>("err")?;
            let is_text = matches!(text, Value::String(_) | Value::Integer(_) | Value::Number(_));
            // A field that is no text is there beside the table, as in Redis.
            let seen = if is_text { vec![text] } else { vec![error, text] };
            Ok(MultiValue::from_iter(seen))
        })?;
        rust.add("is_killed", |_, host, _| Ok(host.killed().is_some()))?;
        rust.add("spend", |lua, host, _| host.spend(lua, 10))?;
        let values = self.values.clone();
        rust.add("compile", move |lua, host, given| compile(lua, host, &given, &values))?;
        rust.add("bad_argument", |_, _, given| -> mlua::Result<()> {
            let (index, why) = (given.int(1)?, given.string(2)?.to_string_lossy());
            Err(given.refuse(usize::try_from(index).unwrap_or(1), &why))
        })?;
        rust.table.raw_set("is_view", self.marks.clone())?;
        rust.table.raw_set("has_libraries", self.host.kind == CodeKind::Functions)?;
        rust.add("next_match", |lua, host, given| strings::next_match(lua, host, &given))?;
        rust.add("unpack_slowly", |lua, host, given| unpack(lua, host, &given))?;
        Ok(rust)
    }

    /// Runs `sandbox.lua` and adds its functions. Returns all of them.
    fn add_prelude(&self, compiled: &Table) -> mlua::Result<Table> {
        let rust = self.rust_functions()?;
        rust.table.raw_set("compiled", compiled)?;
        let original = |name| self.original.get::<Value>(name);
        let tables = self.original.get::<Table>("table")?;
        let guarded = |name| self.guarded(name, tables.raw_get(name)?);
        rust.table.raw_set("guarded_insert", guarded("insert")?)?;
        rust.table.raw_set("guarded_remove", guarded("remove")?)?;
        let coroutines = self.original.get::<Table>("coroutine")?;
        let chunk =
            self.lua.load(include_str!("sandbox.lua")).set_name(format!("={}", errors::SANDBOX));
        let made: Table = chunk.call(MultiValue::from_iter([
            Value::Table(rust.table.clone()),
            original("pcall")?,
            original("xpcall")?,
            original("error")?,
            original("type")?,
            original("select")?,
            original("unpack")?,
            Value::Table(coroutines.clone()),
            Value::Table(tables.clone()),
            Value::Table(self.values.clone()),
        ]))?;
        for name in ["pcall", "xpcall", "unpack", "load"] {
            self.values.raw_set(name, made.raw_get::<Value>(name)?)?;
        }
        let values = self.values.clone();
        self.over(&self.values)
            .add("loadstring", move |lua, host, given| compile(lua, host, &given, &values))?;
        tables.raw_set("sort", guarded("sort")?)?;
        for name in ["insert", "remove"] {
            tables.raw_set(name, made.raw_get::<Value>(name)?)?;
        }
        strings::add(
            self.lua,
            self.host,
            &self.original.get("string")?,
            strings::Parts {
                iterate: made.raw_get("iterate")?,
                replace_all: made.raw_get("replace_all")?,
                pcall: self.original.get("pcall")?,
            },
        )?;
        for name in ["resume", "wrap"] {
            coroutines.raw_set(name, made.raw_get::<Value>(name)?)?;
        }
        self.values.raw_set("coroutine", self.view(&coroutines)?)?;
        Ok(made)
    }

    /// Wraps a function that changes a table: it refuses those that are read-only, and corrects the
    /// errors of the original, which is called under another name.
    fn guarded(&self, name: &'static str, original: Function) -> mlua::Result<Function> {
        let views = Rc::clone(&self.views);
        let pcall = self.original.get::<Function>("pcall")?;
        self.over(&self.values).function(move |lua, _, given| {
            if let Value::Table(table) = given.at(1)
                && views.contains(table)
            {
                return Err(errors::text(lua, READ_ONLY));
            }
            let mut arguments = given.values().clone();
            arguments.push_front(Value::Function(original.clone()));
            let mut results: MultiValue = pcall.call(arguments)?;
            if results.pop_front() == Some(Value::Boolean(true)) {
                return Ok(results);
            }
            match results.pop_front().unwrap_or(Value::Nil) {
                // Of a function that the original called.
                Value::Error(error) => Err(*error),
                error if errors::is_from_sandbox(&error) => {
                    Err(errors::value(lua, errors::visible(lua, error)?))
                }
                error => {
                    let calls_another = name == "sort"
                        && matches!(given.at(1), Value::Table(_))
                        && matches!(given.at(2), Value::Function(_));
                    Err(errors::renamed(lua, error, name, calls_another))
                }
            }
        })
    }

    /// Adds `collectgarbage` and `gcinfo`. The collector runs by itself; a script can hurry it, but
    /// not stop it.
    fn add_collector(&self) -> mlua::Result<()> {
        let values = self.over(&self.values);
        values.add("gcinfo", |lua, _, _| Ok((lua.used_memory() >> 10) as f64))?;
        values.add("collectgarbage", |lua, host, given| {
            let what = if given.is_none(1) {
                b"collect".to_vec()
            } else {
                let word = given.string(1)?;
                let word = word.as_bytes();
                word[..word.len().min(WORD_BYTES_SHOWN)].to_vec()
            };
            match what.as_slice() {
                b"collect" => {
                    host.collect(lua)?;
                    Ok(Value::Integer(0))
                }
                b"count" => Ok(Value::Number(lua.used_memory() as f64 / 1024.0)),
                b"step" => {
                    host.spend(lua, COLLECTING_STEPS)?;
                    Ok(Value::Boolean(lua.gc_step()?))
                }
                b"stop" | b"restart" => Ok(Value::Integer(0)),
                b"setpause" | b"setstepmul" => Ok(Value::Integer(200)),
                other => {
                    let other = String::from_utf8_lossy(other);
                    Err(given.refuse(1, &format!("invalid option '{other}'")))
                }
            }
        })
    }

    fn add_libraries(&self, callers: &Callers) -> mlua::Result<Rc<RefCell<json::Options>>> {
        for name in ["string", "table", "math"] {
            let library = self.original.get::<Table>(name)?;
            if name == "math" {
                redis::add_random(self.lua, self.host, &library)?;
            }
            self.values.raw_set(name, self.view(&library)?)?;
        }
        let (cjson, options) = json::build(self.lua, self.host)?;
        for (name, library) in [
            ("redis", redis::build(self.lua, self.host, callers)?),
            ("cjson", cjson),
            ("cmsgpack", msgpack::build(self.lua, self.host)?),
            ("struct", packing::build(self.lua, self.host)?),
            ("bit", bit::build(self.lua, self.host)?),
        ] {
            self.values.raw_set(name, self.view(&library)?)?;
        }
        Ok(options)
    }

    /// The globals of a library's code while it is loaded: only `redis`, with few functions.
    fn library_globals(&self, strict: &Table) -> mlua::Result<Table> {
        let globals = self.lua.create_table()?;
        if self.host.kind == CodeKind::Functions {
            let redis = redis::build_for_libraries(self.lua, self.host)?;
            redis.set_metatable(Some(strict.clone()))?;
            globals.raw_set("redis", self.view(&redis)?)?;
        }
        globals.set_metatable(Some(strict.clone()))?;
        Ok(globals)
    }
}

/// The value of a caught error, as a script sees it. That of a Rust function is small, and made at
/// the memory limit too.
fn visible(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<Value> {
    let caught = given.at(1);
    match caught {
        Value::Error(_) => host.freely(lua, || errors::visible(lua, caught.clone())),
        _ => errors::visible(lua, caught.clone()),
    }
}

/// The name of a chunk, as far as anybody sees it: of a file's name (`@…`) the end, of any other
/// its beginning.
fn chunk_name(name: &[u8]) -> String {
    let beginning = &name[..name.len().min(NAME_BYTES_SHOWN)];
    if name.len() <= NAME_BYTES_SHOWN || name[0] != b'@' || name.contains(&0) {
        return String::from_utf8_lossy(errors::until_nul(beginning)).into_owned();
    }
    let end = &name[name.len() - NAME_BYTES_SHOWN..];
    format!("@{}", String::from_utf8_lossy(end))
}

/// `loadstring`: compiles source text, not bytecode, with the globals of scripts.
fn compile(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
    values: &Table,
) -> mlua::Result<MultiValue> {
    let source = given.string(1)?;
    let name = if given.is_none(2) { source.clone() } else { given.string(2)? };
    let name = chunk_name(&name.as_bytes());
    let globals = values.raw_get::<Table>("_G")?;
    let bytes = source.as_bytes().len();
    if bytes > SOURCE_BYTES_MAX {
        let text = format!("the code is longer than {SOURCE_BYTES_MAX} bytes");
        return Err(errors::complain(lua, text));
    }
    let result = source::compile(lua, host, &source.as_bytes(), &name, &globals);
    host.check_alive(lua)?;
    // As many results as in Lua.
    Ok(match result {
        Ok(function) => MultiValue::from_iter([Value::Function(function)]),
        Err(why) => {
            MultiValue::from_iter([Value::Nil, Value::String(lua.create_string(&why.text)?)])
        }
    })
}

/// `unpack` for unusual arguments: many values, or arguments that are no numbers.
fn unpack(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<MultiValue> {
    let table = given.table(1)?;
    let from = if given.is_none(2) { 1 } else { i64::from(given.int(2)?) };
    let to = match given.is_none(3) {
        true => table.raw_len() as i64,
        false => i64::from(given.int(3)?),
    };
    if to - from >= RESULTS_MAX as i64 {
        return Err(errors::complain(lua, "too many results to unpack"));
    }
    host.spend(lua, usize::try_from(to - from).unwrap_or(0))?;
    (from..=to).map(|index| table.raw_get::<Value>(index)).collect()
}
