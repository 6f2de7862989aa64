//! The code on the interpreter's own stack: a loop that carries out orders, and leaves the stack
//! after each, or amid a script that asks for something.

use crate::compiled::Compiled;
use crate::errors;
use crate::given::Given;
use crate::host::{Host, Order, Stage, Told, keep_arguments};
use crate::library::redis::{self, Callers};
use crate::limits::Limits;
use crate::outgoing;
use crate::sandbox::Sandbox;
use crate::script::{Invocation, ScriptRef};
use crate::source::compile;
use crate::step::{Arguments, Ending, ScriptError, Step};
use corosensei::Yielder;
use mlua::{Lua, LuaOptions, MultiValue, StdLib, Table, Value, Variadic};
use std::rc::Rc;

/// Scripts between two steps of the garbage collector: somewhat fewer than in Redis (50), whose
/// tests allow all scripts 100 KiB, because more of that is alive here. Lua would let half of its
/// memory be garbage, and short scripts would take long to allocate as much as a large one left.
const COLLECT_EVERY: u32 = 40;

/// Approximate bytes of a Lua string beside its text, and of its slot in a table.
const STRING_BYTES: usize = 64;

/// The part of the memory limit that may be garbage when a script ends. Lua 5.1 collects none when
/// memory runs short, so more would be missing to the next script.
const GARBAGE_PART: usize = 4;

/// Bytes of keys and arguments that may stay in Lua when their script has ended.
const KEPT_BYTES: usize = 16 << 10;

/// The most keys and arguments that are handed to a script on Lua's stack, not in a table made for
/// them: enough for a usual call, and far fewer than the stack holds.
const FEW_ARGUMENTS: usize = 64;

/// The Lua state with its sandbox and its compiled scripts.
struct Runner {
    lua: Lua,
    host: Rc<Host>,
    sandbox: Sandbox,
    compiled: Rc<Compiled>,
    runs: u32,
    /// The memory in use from which all garbage is collected when a script ends, in bytes.
    collect_above: usize,
}

/// Carries out orders until [`Order::End`].
pub(crate) fn work(yielder: &Yielder<(), ()>, host: &Rc<Host>) {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua =
        Lua::new_with(libraries, LuaOptions::new()).expect("none of these libraries is refused");
    give_secret(&lua, host.secret).expect("the function is there");
    let done = lua.scope(|scope| {
        let exit = scope.create_function(|_, ()| {
            yielder.suspend(());
            Ok(())
        })?;
        host.set_exit(Some(exit));
        let caller = |raises| {
            scope.create_function(move |lua, arguments: MultiValue| {
                let given = Given::new(lua, &arguments);
                let result = redis::call(lua, host, &given, raises, || yielder.suspend(()));
                host.collecting_errors(lua, result)
            })
        };
        let callers = Callers { call: caller(true)?, pcall: caller(false)? };
        let compiled = Rc::new(Compiled::new(&lua)?);
        host.set_compiled(Some(Rc::clone(&compiled)));
        let sandbox = Sandbox::build(&lua, host, &callers, &compiled.table)?;
        let mut runner = Runner {
            lua: lua.clone(),
            host: Rc::clone(host),
            sandbox,
            compiled,
            runs: 0,
            collect_above: collect_above(&host.meter.limits, 0),
        };
        loop {
            let order = host.order.borrow_mut().take();
            match order {
                Some(Order::End) | None => break,
                Some(order) => runner.obey(order),
            }
            host.used_bytes.set(lua.used_memory() + host.held_bytes());
            yielder.suspend(());
        }
        Ok(())
    });
    host.set_exit(None);
    host.set_compiled(None);
    host.registered.borrow_mut().clear();
    done.expect("the sandbox is made of what is there");
}

/// Gives the state the secret that strings and keys are hashed under where they collide
/// (`vendor/lua-src/README.md`), and takes away the function for it.
fn give_secret(lua: &Lua, secret: u128) -> mlua::Result<()> {
    /// Integers that a double holds.
    const BITS: u32 = 53;
    let half = |bits: u128| (bits as u64 & ((1 << BITS) - 1)) as f64;
    let globals = lua.globals();
    let set = globals.raw_get::<mlua::Function>("setsecrets")?;
    set.call::<()>((half(secret), half(secret >> 64)))?;
    globals.raw_remove("setsecrets")
}

impl Runner {
    fn obey(&mut self, order: Order) {
        match order {
            Order::Compile(body) => {
                let result = self.compile(&body);
                self.tell(Told::Compiled(result));
            }
            Order::Forget(script) => {
                self.compiled.forget(script);
                self.tell(Told::Done);
            }
            Order::Collect => {
                self.collect();
                self.tell(Told::Done);
            }
            Order::Run(invocation) => self.run(invocation),
            Order::Load(code) => self.load(&code),
            Order::End => {}
        }
    }

    fn tell(&self, told: Told) {
        *self.host.told.borrow_mut() = Some(told);
    }

    /// Collects all garbage, with pauses.
    fn collect(&self) {
        // It fails for want of memory. Then pauses are where the last script would have made them.
        let _ = self.host.begin_metering(&self.lua);
        self.host.collect_to_the_end(&self.lua);
    }

    fn compile(&mut self, body: &[u8]) -> Result<ScriptRef, ScriptError> {
        // Of code that was refused, too: no script runs behind it that would collect it.
        if self.lua.used_memory() > self.collect_above && self.host.collect_for_a_while(&self.lua) {
            self.collect_above = collect_above(&self.host.meter.limits, self.lua.used_memory());
        }
        let compiled = self.host.within_limit(&self.lua, || {
            compile(&self.lua, &self.host, body, "@user_script", &self.sandbox.globals)
        });
        let function = compiled
            .map_err(|why| prefixed(b"ERR Error compiling script (new function): ", why))?;
        self.compiled
            .keep(&function, 0)
            .map_err(|_| ScriptError::no_memory(self.host.memory_text()))
    }

    fn run(&mut self, invocation: Invocation) {
        let Invocation { script, name, keys, given, mut reply } = invocation;
        let from = reply.len();
        let result = self.call(script, keys, &given).and_then(|value| {
            let failed = outgoing::write(&self.host, &self.lua, &value, &mut reply)?;
            // The script may have been killed while its value was written.
            self.host.check_alive(&self.lua).map(|()| failed)
        });
        let result = match self.host.killed() {
            Some(text) if result.is_ok() => Err(ScriptError::of(text)),
            _ => match result {
                Ok(failed) => failed.map_or(Ok(()), Err),
                Err(error) => {
                    Err(errors::report(&self.lua, &error, &name, &self.host.memory_text()))
                }
            },
        };
        self.clean_up(given.source().len());
        keep_arguments(&mut self.host.spare.borrow_mut().script_arguments, given);
        self.tell(Told::Step(Step::Done(match result {
            Ok(()) => Ending::Reply(reply),
            Err(error) => {
                reply.truncate(from);
                Ending::Failed(reply, error)
            }
        })));
    }

    fn call(&self, script: ScriptRef, keys: usize, given: &Arguments) -> mlua::Result<Value> {
        self.host.begin(&self.lua, Stage::Running)?;
        let bytes = given.source().len() + given.len() * STRING_BYTES;
        self.host.check_room(&self.lua, bytes)?;
        // Strings are made where memory is not limited: see `Host::freely`.
        if keys == 1
            && given.len() <= FEW_ARGUMENTS
            && let Some(given) = texts(given)
        {
            self.sandbox.enter_with_key(script, given)?;
        } else {
            let mut strings = given.iter();
            let tables = (
                self.strings(strings.by_ref().take(keys), keys)?,
                self.strings(strings, given.len() - keys)?,
            );
            self.sandbox.enter(script, tables)?;
        }
        self.host.within_limit(&self.lua, || self.sandbox.run(&self.lua))
    }

    fn strings<'a>(
        &self,
        strings: impl Iterator<Item = &'a [u8]>,
        count: usize,
    ) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(count, 0)?;
        for string in strings {
            self.host.spend_string(&self.lua, string.len())?;
            table.raw_push(self.lua.create_string(string)?)?;
        }
        Ok(table)
    }

    fn load(&mut self, code: &[u8]) {
        let result = self.run_library(code);
        // However it ended. It sets a field that is there, which does not fail.
        let _ = self.sandbox.show_library_globals(false);
        self.clean_up(usize::MAX);
        let registered = self.host.registered.take();
        let ending = match result {
            Ok(()) => Ending::Loaded(registered.into_values().collect()),
            Err(error) => {
                registered.values().for_each(|it| self.compiled.forget(it.callback));
                Ending::NotLoaded(error)
            }
        };
        self.tell(Told::Step(Step::Done(ending)));
    }

    fn run_library(&self, code: &[u8]) -> Result<(), ScriptError> {
        let result = self.compile_and_run_library(code);
        match self.host.killed() {
            Some(text) => {
                Err(prefixed(b"ERR Error registering functions: ", ScriptError::of(text)))
            }
            None => result,
        }
    }

    fn compile_and_run_library(&self, code: &[u8]) -> Result<(), ScriptError> {
        let fails = |error: mlua::Error| {
            let why = errors::plain(&self.lua, &error, &self.host.memory_text());
            prefixed(b"ERR Error registering functions: ", why)
        };
        self.host.begin(&self.lua, Stage::Loading).map_err(fails)?;
        let compiled = self.host.within_limit(&self.lua, || {
            compile(&self.lua, &self.host, code, "@user_function", &self.sandbox.globals)
        });
        let function = compiled.map_err(|why| prefixed(b"ERR Error compiling function: ", why))?;
        self.sandbox.show_library_globals(true).map_err(fails)?;
        self.sandbox.enter_code(&function).map_err(fails)?;
        let result = self.host.within_limit(&self.lua, || self.sandbox.run(&self.lua));
        result.map(drop).map_err(fails)
    }

    /// Removes what a script has left. It was given this many bytes of keys and arguments: where
    /// those are few they stay, until the next script replaces them.
    fn clean_up(&mut self, given_bytes: usize) {
        self.host.end();
        self.sandbox.reset();
        if given_bytes > KEPT_BYTES {
            // It fails only if the script is killed now, and the next one replaces what is left.
            let _ = self.sandbox.leave();
        }
        self.runs = self.runs.wrapping_add(1);
        if self.lua.used_memory() > self.collect_above {
            self.host.collect_to_the_end(&self.lua);
            self.collect_above = collect_above(&self.host.meter.limits, self.lua.used_memory());
        } else if self.runs.is_multiple_of(COLLECT_EVERY) {
            let _ = self.lua.gc_step();
        }
    }
}

/// The memory in use from which all garbage is collected when a script ends, after a collection
/// that left `live` bytes. Those stay, however often it is done.
fn collect_above(limits: &Limits, live: usize) -> usize {
    let room = limits.memory_bytes.saturating_sub(live);
    live + room / GARBAGE_PART
}

/// Strings as texts, which `mlua` hands over without a reference to each; none if one is no text.
fn texts(strings: &Arguments) -> Option<Variadic<&str>> {
    strings.iter().map(|string| str::from_utf8(string).ok()).collect()
}

/// An error whose text begins with a prefix.
fn prefixed(prefix: &[u8], why: ScriptError) -> ScriptError {
    ScriptError { text: [prefix, &why.text].concat(), ..why }
}
