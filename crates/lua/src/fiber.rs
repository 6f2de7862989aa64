//! What happens on the interpreter's own stack: a loop that does what it is told, and leaves the
//! stack whenever there is something to tell.

use crate::errors;
use crate::host::{Host, Order, Stage, Told};
use crate::outgoing;
use crate::sandbox::Sandbox;
use crate::script::{Invocation, Kind, ScriptRef};
use crate::source::compile;
use crate::step::{Outcome, ScriptError, Step};
use corosensei::Yielder;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};
use std::rc::Rc;

/// Scripts between two steps of the garbage collector, as in Redis.
const COLLECT_EVERY: u32 = 50;

/// Bytes that a string of Lua takes beside its text, and its place in a table. About.
const STRING_BYTES: usize = 64;

/// Used memory, as a part of the limit, from which on a script leaves no garbage behind it.
const TIDY_PART: usize = 4;

/// The scripts, and the world that they live in.
struct Workshop {
    lua: Lua,
    host: Rc<Host>,
    sandbox: Sandbox,
    scripts: Vec<Option<Function>>,
    free: Vec<u32>,
    runs: u32,
}

/// Runs until it is told to end.
pub(crate) fn work(yielder: &Yielder<(), ()>, host: &Rc<Host>) {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua =
        Lua::new_with(libraries, LuaOptions::new()).expect("none of these libraries is refused");
    let done = lua.scope(|scope| {
        let door = scope.create_function(|_, ()| {
            yielder.suspend(());
            Ok(())
        })?;
        host.set_door(Some(door));
        let sandbox = Sandbox::build(&lua, host)?;
        let mut workshop = Workshop {
            lua: lua.clone(),
            host: Rc::clone(host),
            sandbox,
            scripts: Vec::new(),
            free: Vec::new(),
            runs: 0,
        };
        loop {
            let order = host.order.borrow_mut().take();
            match order {
                Some(Order::End) | None => break,
                Some(order) => workshop.obey(order),
            }
            host.used_bytes.set(lua.used_memory());
            yielder.suspend(());
        }
        Ok(())
    });
    host.set_door(None);
    host.registered.borrow_mut().clear();
    done.expect("the sandbox is made of what is there");
}

impl Workshop {
    fn obey(&mut self, order: Order) {
        match order {
            Order::Compile(body) => {
                let result = self.compile(&body);
                self.tell(Told::Compiled(result));
            }
            Order::Forget(script) => {
                self.forget(script);
                self.tell(Told::Forgotten);
            }
            Order::Run(invocation) => self.run(invocation),
            Order::Load(code) => self.load(&code),
            Order::End => {}
        }
    }

    fn tell(&self, told: Told) {
        *self.host.told.borrow_mut() = Some(told);
    }

    fn compile(&mut self, body: &[u8]) -> Result<ScriptRef, ScriptError> {
        let compiled = self.host.within_limit(&self.lua, || {
            compile(&self.lua, body, "@user_script", &self.sandbox.globals)
        });
        let function = compiled
            .map_err(|text| failure(b"ERR Error compiling script (new function): ", &text))?;
        Ok(self.keep(function))
    }

    fn keep(&mut self, function: Function) -> ScriptRef {
        if let Some(at) = self.free.pop() {
            self.scripts[at as usize] = Some(function);
            return ScriptRef(at);
        }
        self.scripts.push(Some(function));
        ScriptRef(u32::try_from(self.scripts.len() - 1).expect("scripts fit into memory"))
    }

    fn forget(&mut self, script: ScriptRef) {
        if self.scripts.get_mut(script.0 as usize).and_then(Option::take).is_some() {
            self.free.push(script.0);
        }
    }

    fn run(&mut self, invocation: Invocation) {
        let Invocation { script, name, keys, arguments, mut reply } = invocation;
        let from = reply.len();
        let result = self.call(script, keys, arguments).and_then(|value| {
            let failed = outgoing::failure(&self.lua, &value)?;
            if failed.is_none() {
                outgoing::write(&self.host, &self.lua, &value, &mut reply)?;
            }
            // Killed while its value was written.
            self.host.check_alive(&self.lua).map(|()| failed)
        });
        let result = match self.host.killed() {
            Some(text) if result.is_ok() => {
                Err(ScriptError { text: text.into_bytes(), was_counted: false })
            }
            _ => match result {
                Ok(failed) => failed.map_or(Ok(()), Err),
                Err(error) => {
                    Err(errors::report(&self.lua, &error, &name, &self.host.memory_text()))
                }
            },
        };
        if result.is_err() {
            reply.truncate(from);
        }
        self.rest();
        self.host.finish(Some(reply), result);
    }

    fn call(
        &self,
        script: ScriptRef,
        keys: Vec<Vec<u8>>,
        arguments: Vec<Vec<u8>>,
    ) -> mlua::Result<Value> {
        let function = self.scripts.get(script.0 as usize).cloned().flatten();
        let function = function.expect("a script is started before it is forgotten");
        self.host.begin(&self.lua, Stage::Running)?;
        let given = keys.iter().chain(&arguments);
        let bytes = given.map(|string| string.len() + STRING_BYTES).sum();
        self.host.check_room(&self.lua, bytes)?;
        let keys = self.strings(keys)?;
        let arguments = self.strings(arguments)?;
        match self.host.kind {
            Kind::Scripts => {
                self.sandbox.values.raw_set("KEYS", keys)?;
                self.sandbox.values.raw_set("ARGV", arguments)?;
                let call = || self.sandbox.invoke(function, ());
                self.host.within_limit(&self.lua, call)
            }
            Kind::Functions => {
                let call = || self.sandbox.invoke(function, (keys, arguments));
                self.host.within_limit(&self.lua, call)
            }
        }
    }

    fn strings(&self, strings: Vec<Vec<u8>>) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(strings.len(), 0)?;
        for string in strings {
            table.raw_push(self.lua.create_string(string)?)?;
        }
        Ok(table)
    }

    fn load(&mut self, code: &[u8]) {
        let result = self.run_library(code);
        self.rest();
        let outcome = match result {
            Ok(()) => {
                let registered = self.host.registered.borrow_mut().drain(..).collect::<Vec<_>>();
                let functions = registered.into_iter().map(|(mut function, callback)| {
                    function.callback = self.keep(callback);
                    function
                });
                Outcome::Loaded(functions.collect())
            }
            Err(error) => {
                self.host.registered.borrow_mut().clear();
                Outcome::NotLoaded(error)
            }
        };
        self.tell(Told::Step(Step::Done(outcome)));
    }

    fn run_library(&self, code: &[u8]) -> Result<(), ScriptError> {
        let compiled = self.host.within_limit(&self.lua, || {
            compile(&self.lua, code, "@user_function", &self.sandbox.globals)
        });
        let function =
            compiled.map_err(|text| failure(b"ERR Error compiling function: ", &text))?;
        let fails = |error: mlua::Error| {
            let text = errors::plain(&self.lua, &error, &self.host.memory_text());
            failure(b"ERR Error registering functions: ", &text)
        };
        self.host.begin(&self.lua, Stage::Loading).map_err(fails)?;
        self.sandbox.show_library_globals(true).map_err(fails)?;
        let invoke = || self.sandbox.invoke(function, ());
        let result = self.host.within_limit(&self.lua, invoke).map_err(fails);
        self.sandbox.show_library_globals(false).map_err(fails)?;
        match self.host.killed() {
            Some(text) => Err(failure(b"ERR Error registering functions: ", text.as_bytes())),
            None => result.map(drop),
        }
    }

    /// Leaves nothing of a script behind it.
    fn rest(&mut self) {
        self.host.end();
        // Neither can fail: no finalizer is Lua's.
        let _ = self.sandbox.clean();
        self.runs += 1;
        if self.lua.used_memory() > self.host.limits.memory_bytes / TIDY_PART {
            let _ = self.lua.gc_collect();
        } else if self.runs.is_multiple_of(COLLECT_EVERY) {
            let _ = self.lua.gc_step();
        }
    }
}

fn failure(prefix: &[u8], text: &[u8]) -> ScriptError {
    ScriptError { text: [prefix, text].concat(), was_counted: false }
}
