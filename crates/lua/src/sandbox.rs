//! The globals of scripts: what there is of Lua, what replaces it, and that none can be changed.
//!
//! Lua 5.1 has no tables that cannot be changed. So a script sees an empty table in place of each
//! library and of the globals; its metatable reads from the real one, which no script can reach,
//! and refuses to write. The functions that look past metatables know these tables ([`Views`]).

use crate::errors;
use crate::given::Given;
use crate::host::Host;
use crate::library::{Library, bit, json, msgpack, packing, redis, strings, tables};
use crate::script::Kind;
use crate::source;
use mlua::{Function, IntoLuaMulti, Lua, MultiValue, Table, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Functions of Lua that scripts find as they are.
const KEPT: [&str; 9] =
    ["assert", "error", "ipairs", "rawequal", "select", "tonumber", "tostring", "type", "_VERSION"];

const READ_ONLY: &str = "Attempt to modify a readonly table";

/// The field of a hidden metatable for what scripts see of it.
const SEEN: &str = "seen";

/// Steps that a full collection of garbage counts per KiB of memory.
const COLLECTING_STEPS: usize = 20;

/// Elements from which on a list is sorted by a comparison of Lua's, which can be interrupted.
const LONG_LIST: usize = 50_000;

/// Bytes of memory per step of a function that may look at all of a table: how long that is, only
/// the memory tells.
const STEP_MEMORY_BYTES: usize = 4096;

/// Bytes of source code that are compiled in one step.
const COMPILED_STEP_BYTES: usize = 4;

/// Results that a function may have. Lua's number, less some that its callers occupy.
const RESULTS_MAX: i64 = 7990;

pub(crate) struct Sandbox {
    /// What scripts see as `_G`.
    pub(crate) globals: Table,
    /// Where the globals really are.
    pub(crate) values: Table,
    views: Rc<Views>,
    xpcall: Function,
    /// Calls a function for its first result alone: there may be more than a stack holds.
    only: Function,
    handler: Function,
    lua: Lua,
    /// What the code of a library finds in place of the globals.
    library: Table,
    /// What scripts choose of `cjson`.
    json: Rc<RefCell<json::Options>>,
}

/// The tables that scripts cannot change, with the real one behind each.
#[derive(Default)]
struct Views(RefCell<Vec<(usize, Table, Table)>>);

impl Views {
    fn behind(&self, table: &Table) -> Option<Table> {
        let address = table.to_pointer() as usize;
        let views = self.0.borrow();
        views.iter().find(|view| view.0 == address).map(|view| view.2.clone())
    }

    fn contains(&self, table: &Table) -> bool {
        let address = table.to_pointer() as usize;
        self.0.borrow().iter().any(|view| view.0 == address)
    }

    /// A view of `real`.
    fn add(&self, lua: &Lua, real: &Table) -> mlua::Result<Table> {
        let view = lua.create_table()?;
        let metatable = lua.create_table()?;
        metatable.raw_set("__index", real.clone())?;
        metatable.raw_set("__newindex", lua.create_function(refuse_to_write)?)?;
        view.set_metatable(Some(metatable))?;
        self.0.borrow_mut().push((view.to_pointer() as usize, view.clone(), real.clone()));
        Ok(view)
    }
}

fn refuse_to_write(lua: &Lua, _: MultiValue) -> mlua::Result<()> {
    Err(errors::complain(lua, READ_ONLY))
}

/// Builds libraries, one after the other.
struct Builder<'a> {
    lua: &'a Lua,
    host: &'a Rc<Host>,
    views: Rc<Views>,
    values: Table,
    original: Table,
    /// The views, for Lua.
    marks: Table,
}

impl Sandbox {
    pub(crate) fn build(lua: &Lua, host: &Rc<Host>) -> mlua::Result<Self> {
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
        let only = builder.add_prelude()?;
        builder.add_collector()?;
        let json = builder.add_libraries()?;
        let missing = lua.create_function(missing_global)?;
        let strict = lua.create_table()?;
        strict.raw_set("__index", missing.clone())?;
        let seen = lua.create_table()?;
        seen.raw_set("__index", missing)?;
        strict.raw_set(SEEN, builder.view(&seen)?)?;
        builder.values.set_metatable(Some(strict.clone()))?;
        let globals = builder.view(&builder.values)?;
        builder.values.raw_set("_G", globals.clone())?;
        let library = builder.library_globals(&strict)?;
        Ok(Self {
            globals,
            xpcall: builder.original.get("xpcall")?,
            only,
            lua: lua.clone(),
            handler: lua.create_function(errors::handle)?,
            values: builder.values,
            views: builder.views,
            library,
            json,
        })
    }

    /// Calls a script or function; an error has the place where it happened.
    pub(crate) fn invoke(
        &self,
        function: Function,
        arguments: impl IntoLuaMulti,
    ) -> mlua::Result<Value> {
        let function = self.only.bind((function, arguments.into_lua_multi(&self.lua)?))?;
        let (ok, value): (bool, Value) = self.xpcall.call((function, self.handler.clone()))?;
        if ok { Ok(value) } else { Err(errors::value(value)) }
    }

    /// Lets the code of a library find what it may use, or functions find all.
    pub(crate) fn show_library_globals(&self, are_shown: bool) -> mlua::Result<()> {
        let metatable = self.globals.metatable().expect("the globals are a view");
        metatable.raw_set("__index", if are_shown { &self.library } else { &self.values })
    }

    /// Takes out what a script left: keys and arguments, and what functions of C put into a view
    /// behind Lua's back.
    pub(crate) fn clean(&self) -> mlua::Result<()> {
        *self.json.borrow_mut() = json::Options::default();
        self.values.raw_set("KEYS", Value::Nil)?;
        self.values.raw_set("ARGV", Value::Nil)?;
        for (_, view, _) in self.views.0.borrow().iter() {
            if view.raw_len() > 0 {
                view.clear()?;
            }
        }
        Ok(())
    }
}

fn missing_global(lua: &Lua, arguments: MultiValue) -> mlua::Result<()> {
    let name = arguments.get(1).cloned().unwrap_or(Value::Nil);
    let Some(name) = lua.coerce_string(name)? else {
        let text = "Second argument to luaProtectedTableError must be a string or number";
        return Err(errors::complain(lua, text));
    };
    let mut text = b"Script attempted to access nonexistent global variable '".to_vec();
    text.extend_from_slice(errors::until_nul(&name.as_bytes()));
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

    /// What scripts see of a table.
    fn view(&self, real: &Table) -> mlua::Result<Table> {
        let view = self.views.add(self.lua, real)?;
        self.marks.raw_set(&view, true)?;
        Ok(view)
    }

    fn over(&self, table: &Table) -> Library<'_> {
        Library::over(self.lua, self.host, table.clone())
    }

    /// What reads and writes tables past their metatables.
    fn add_table_functions(&self) -> mlua::Result<()> {
        let values = self.over(&self.values);
        let views = Rc::clone(&self.views);
        values.add("rawget", move |_, _, given| {
            let table = given.table(1)?;
            given.present(2)?;
            let table = views.behind(&table).unwrap_or(table);
            table.raw_get::<Value>(given.at(2))
        })?;
        let views = Rc::clone(&self.views);
        values.add("rawset", move |lua, _, given| {
            let table = given.table(1)?;
            given.present(2)?;
            given.present(3)?;
            if views.contains(&table) {
                return Err(errors::text(lua, READ_ONLY));
            }
            match given.at(2) {
                Value::Nil => return Err(errors::text(lua, "table index is nil")),
                Value::Number(number) if number.is_nan() => {
                    return Err(errors::text(lua, "table index is NaN"));
                }
                key => table.raw_set(key, given.at(3))?,
            }
            Ok(table)
        })?;
        let views = Rc::clone(&self.views);
        values.add("setmetatable", move |lua, _, given| set_metatable(lua, &given, &views))?;
        let views = Rc::clone(&self.views);
        let original = self.original.get::<Function>("getmetatable")?;
        let strings = self.string_metatable()?;
        values.add("getmetatable", move |_, _, given| match given.at(1) {
            Value::Table(table) if views.contains(table) => Ok(views
                .behind(table)
                .and_then(|real| real.metatable())
                .and_then(|metatable| metatable.raw_get(SEEN).ok())
                .unwrap_or(Value::Nil)),
            Value::String(_) => Ok(Value::Table(strings.clone())),
            Value::Table(_) => original.call(given.at(1)),
            _ if given.len() == 0 => Err(given.refuse(1, "value expected")),
            _ => Ok(Value::Nil),
        })?;
        let next = self.original.get::<Function>("next")?;
        let views = Rc::clone(&self.views);
        let raw_next = next.clone();
        values.add("next", move |_, _, given| {
            let table = given.table(1)?;
            let table = views.behind(&table).unwrap_or(table);
            raw_next.call::<(Value, Value)>((table, given.at(2)))
        })?;
        let views = Rc::clone(&self.views);
        let checked_next = self.values.raw_get::<Function>("next")?;
        values.add("pairs", move |_, _, given| {
            let table = given.table(1)?;
            let next = if views.contains(&table) { &checked_next } else { &next };
            Ok((next.clone(), table))
        })
    }

    /// What scripts see of the metatable of strings.
    fn string_metatable(&self) -> mlua::Result<Table> {
        let seen = self.lua.create_table()?;
        let strings = self.original.get::<Table>("string")?;
        seen.raw_set("__index", self.view(&strings)?)?;
        self.view(&seen)
    }

    /// The functions of Rust that `sandbox.lua` uses.
    fn rust_functions(&self) -> mlua::Result<Library<'_>> {
        let rust = self.over(&self.lua.create_table()?);
        let returns = |value: Value| value;
        rust.add("visible", move |lua, _, given| {
            errors::visible(lua, given.at(1).clone()).map(returns)
        })?;
        rust.add("message", |lua, _, given| {
            let error = errors::visible(lua, given.at(1).clone())?;
            let Value::Table(table) = &error else { return Ok(error) };
            let text = table.get::<Value>("err")?;
            let is_text = matches!(text, Value::String(_) | Value::Integer(_) | Value::Number(_));
            Ok(if is_text { text } else { error })
        })?;
        rust.add("is_killed", |_, host, _| Ok(host.killed().is_some()))?;
        rust.add("spend", |lua, host, _| host.spend(lua, 10))?;
        rust.add("spend_on", |lua, host, given| match given.at(1) {
            Value::Table(list) => host.spend(lua, list.raw_len()),
            _ => Ok(()),
        })?;
        let values = self.values.clone();
        rust.add("compile", move |lua, host, given| compile(lua, host, &given, &values))?;
        rust.add("bad_argument", |_, _, given| -> mlua::Result<()> {
            let (index, why) = (given.int(1)?, given.string(2)?.to_string_lossy());
            Err(given.refuse(usize::try_from(index).unwrap_or(1), &why))
        })?;
        rust.table.raw_set("is_view", self.marks.clone())?;
        let views = Rc::clone(&self.views);
        rust.add("insert_slowly", move |lua, host, given| match given.at(1) {
            Value::Table(table) if views.contains(table) => Err(errors::text(lua, READ_ONLY)),
            _ => tables::insert(lua, host, &given),
        })?;
        rust.add("unpack_slowly", |lua, host, given| unpack(lua, host, &given))?;
        Ok(rust)
    }

    /// What is written in Lua: see `sandbox.lua`. Its function that calls another for one result.
    fn add_prelude(&self) -> mlua::Result<Function> {
        let rust = self.rust_functions()?;
        let original = |name| self.original.get::<Value>(name);
        let tables = self.original.get::<Table>("table")?;
        // The comparison is for sorting alone.
        let remove = tables.get::<Function>("remove")?;
        rust.table.raw_set("guarded_remove", self.guarded("remove", remove.clone(), &remove)?)?;
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
        ]))?;
        for name in ["pcall", "xpcall", "unpack", "load"] {
            self.values.raw_set(name, made.raw_get::<Value>(name)?)?;
        }
        let values = self.values.clone();
        self.over(&self.values)
            .add("loadstring", move |lua, host, given| compile(lua, host, &given, &values))?;
        for name in ["insert", "remove"] {
            tables.raw_set(name, made.raw_get::<Value>(name)?)?;
        }
        let less = made.raw_get::<Function>("less")?;
        for name in ["concat", "sort", "foreach", "foreachi", "maxn"] {
            let original = tables.raw_get(name)?;
            tables.raw_set(name, self.guarded(name, original, &less)?)?;
        }
        strings::add(
            self.lua,
            self.host,
            &self.original.get("string")?,
            made.raw_get("replace_all")?,
            self.original.get("pcall")?,
        )?;
        for name in ["resume", "wrap"] {
            coroutines.raw_set(name, made.raw_get::<Value>(name)?)?;
        }
        self.values.raw_set("coroutine", self.view(&coroutines)?)?;
        made.raw_get("only")
    }

    /// A function over tables that counts steps for what it may find there. It is not called as
    /// itself, so its errors are put right.
    fn guarded(
        &self,
        name: &'static str,
        original: Function,
        less: &Function,
    ) -> mlua::Result<Function> {
        let (views, less) = (Rc::clone(&self.views), less.clone());
        let pcall = self.original.get::<Function>("pcall")?;
        self.over(&self.values).function(move |lua, host, given| {
            let Value::Table(table) = given.at(1) else {
                return Err(given.wrong_type(1, "table"));
            };
            if views.contains(table) && matches!(name, "sort" | "remove") {
                return Err(errors::text(lua, READ_ONLY));
            }
            // What lies under other keys than 1 to n is at most as much as there is memory.
            host.spend(lua, table.raw_len() + lua.used_memory() / STEP_MEMORY_BYTES)?;
            let mut arguments = given.values().clone();
            if name == "sort" && given.is_none(2) && table.raw_len() > LONG_LIST {
                arguments = MultiValue::from_iter([
                    Value::Table(table.clone()),
                    Value::Function(less.clone()),
                ]);
            }
            arguments.push_front(Value::Function(original.clone()));
            let mut results: MultiValue = pcall.call(arguments)?;
            if results.pop_front() == Some(Value::Boolean(true)) {
                return Ok(results);
            }
            let error = errors::visible(lua, results.pop_front().unwrap_or(Value::Nil))?;
            Err(errors::renamed(lua, error, name))
        })
    }

    /// The collector runs by itself; a script can hurry it, and not stop it.
    fn add_collector(&self) -> mlua::Result<()> {
        let values = self.over(&self.values);
        values.add("gcinfo", |lua, _, _| Ok((lua.used_memory() >> 10) as f64))?;
        values.add("collectgarbage", |lua, host, given| {
            let what = if given.is_none(1) {
                b"collect".to_vec()
            } else {
                given.string(1)?.as_bytes().to_vec()
            };
            match what.as_slice() {
                b"collect" => {
                    host.spend(lua, (lua.used_memory() >> 10) * COLLECTING_STEPS)?;
                    lua.gc_collect()?;
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

    fn add_libraries(&self) -> mlua::Result<Rc<RefCell<json::Options>>> {
        for name in ["string", "table", "math"] {
            let library = self.original.get::<Table>(name)?;
            if name == "math" {
                redis::add_random(self.lua, self.host, &library)?;
            }
            self.values.raw_set(name, self.view(&library)?)?;
        }
        let (cjson, options) = json::build(self.lua, self.host)?;
        for (name, library) in [
            ("redis", redis::build(self.lua, self.host)?),
            ("cjson", cjson),
            ("cmsgpack", msgpack::build(self.lua, self.host)?),
            ("struct", packing::build(self.lua, self.host)?),
            ("bit", bit::build(self.lua, self.host)?),
        ] {
            self.values.raw_set(name, self.view(&library)?)?;
        }
        Ok(options)
    }

    /// The globals that the code of a library sees: `redis` alone, and of that little.
    fn library_globals(&self, strict: &Table) -> mlua::Result<Table> {
        let globals = self.lua.create_table()?;
        if self.host.kind == Kind::Functions {
            let redis = redis::build_for_libraries(self.lua, self.host)?;
            redis.set_metatable(Some(strict.clone()))?;
            globals.raw_set("redis", self.view(&redis)?)?;
        }
        globals.set_metatable(Some(strict.clone()))?;
        Ok(globals)
    }
}

fn set_metatable(lua: &Lua, given: &Given<'_>, views: &Views) -> mlua::Result<Table> {
    let table = given.table(1)?;
    let metatable = match given.at(2) {
        Value::Table(metatable) => Some(metatable.clone()),
        Value::Nil if given.len() >= 2 => None,
        _ => return Err(given.refuse(2, "nil or table expected")),
    };
    if views.contains(&table) {
        return Err(errors::text(lua, READ_ONLY));
    }
    let is_protected = match table.metatable() {
        Some(old) => !old.raw_get::<Value>("__metatable")?.is_nil(),
        None => false,
    };
    if is_protected {
        return Err(errors::complain(lua, "cannot change a protected metatable"));
    }
    table.set_metatable(metatable)?;
    Ok(table)
}

/// `loadstring`: text only, in the globals of scripts.
fn compile(
    lua: &Lua,
    host: &Rc<Host>,
    given: &Given<'_>,
    values: &Table,
) -> mlua::Result<(Value, Value)> {
    let source = given.string(1)?;
    let name = if given.is_none(2) { source.clone() } else { given.string(2)? };
    let name = String::from_utf8_lossy(errors::until_nul(&name.as_bytes())).into_owned();
    let globals = values.raw_get::<Table>("_G")?;
    host.spend(lua, source.as_bytes().len() / COMPILED_STEP_BYTES)?;
    Ok(match source::compile(lua, &source.as_bytes(), &name, &globals) {
        Ok(function) => (Value::Function(function), Value::Nil),
        Err(text) => (Value::Nil, Value::String(lua.create_string(text)?)),
    })
}

/// `unpack` for what is not usual: many values, and arguments that are no numbers.
fn unpack(lua: &Lua, host: &Rc<Host>, given: &Given<'_>) -> mlua::Result<MultiValue> {
    let table = given.table(1)?;
    let from = if given.is_none(2) { 1 } else { i64::from(given.int(2)?) };
    let to = match given.is_none(3) {
        true => table.raw_len() as i64,
        false => i64::from(given.int(3)?),
    };
    if to - from >= RESULTS_MAX {
        return Err(errors::complain(lua, "too many results to unpack"));
    }
    host.spend(lua, usize::try_from(to - from).unwrap_or(0))?;
    (from..=to).map(|index| table.raw_get::<Value>(index)).collect()
}
