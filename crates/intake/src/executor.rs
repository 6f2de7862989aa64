//! Requests of an append-only file, executed as a loading Redis does: without rights, limits or
//! replies.
//!
//! | request | what becomes of it |
//! |---|---|
//! | about keys, FLUSHALL, SWAPDB, PUBLISH … | executed by the engine |
//! | SELECT, MULTI, EXEC, DISCARD | as a client's. A transaction without its end never happened |
//! | EVAL, EVALSHA, SCRIPT LOAD, SCRIPT FLUSH | executed (`scripts`) |
//! | FUNCTION LOAD, DELETE, FLUSH, RESTORE | the libraries are changed; servers compile them |
//! | any other | refused by its name |
//!
//! A command that is refused ends the loading: what is in memory then is not what the other server
//! had. (Redis goes on, and differs in silence.)

use crate::scripts::{Hash, Scripts};
use crate::target::Target;
use base::{Clock, DatabaseId};
use catalog::{Catalog, Kind};
use engine::command::{Args, DataFn, FAMILIES};
use engine::dump::libraries_of;
use engine::effect::Effect;
use engine::functions::Header;
use lua::Arguments;
use resp::integer::parse_u64;
use resp::{Protocol, Reply};
use std::sync::Arc;

/// How much one request may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the requests of one transaction, which wait for its EXEC. More than a server's
    /// input buffer may hold of them (`client-query-buffer-limit`, 1 GiB).
    pub transaction_bytes_max: usize,
    /// Pauses after which a script counts as one that never ends. Each is about 10,000 instructions
    /// of Lua, some 100 microseconds: ten minutes, which no server would have waited for.
    pub script_pauses_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { transaction_bytes_max: 2 << 30, script_pauses_max: 6_000_000 }
    }
}

/// Characters of a command's name that are shown.
const NAME_SHOWN_MAX: usize = 64;

/// The commands about keys.
pub(crate) struct Commands {
    catalog: Catalog,
    functions: Vec<Option<DataFn>>,
}

impl Commands {
    fn new() -> Self {
        let rows = FAMILIES.iter().flat_map(|family| family.iter().copied());
        let (catalog, functions) = Catalog::new(rows, |function| match function {
            DataFn::Read(_) => Kind::Read,
            DataFn::Write(_) => Kind::Write,
        });
        Self { catalog, functions }
    }

    /// The function of a request.
    ///
    /// # Errors
    /// There is none, or it has another number of arguments.
    pub(crate) fn find(&self, args: Args<'_>) -> Result<DataFn, String> {
        let found = self.catalog.find(args.at(0), args.get(1));
        let function =
            found.and_then(|it| Some((it, self.functions.get(usize::from(it.id.0))?.as_ref()?)));
        let Some((command, function)) = function else { return Err(unknown(args)) };
        if !command.admits(args.len()) {
            return Err(format!("{}: the wrong number of arguments", name(args)));
        }
        Ok(*function)
    }
}

/// Executes requests in a [`Target`].
pub struct Executor {
    pub target: Target,
    pub(crate) commands: Commands,
    scripts: Scripts,
    database: DatabaseId,
    /// The requests behind a MULTI, and their bytes.
    transaction: Option<(Vec<Arguments>, usize)>,
    limits: Limits,
}

impl Executor {
    /// `clock`: by which scripts pause.
    pub fn new(target: Target, clock: Arc<dyn Clock>) -> Self {
        Self {
            target,
            commands: Commands::new(),
            scripts: Scripts::new(clock),
            database: DatabaseId(0),
            transaction: None,
            limits: Limits::default(),
        }
    }

    /// The same, with these limits.
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Begins a file: each one selects its database anew.
    pub fn begin_file(&mut self) {
        self.database = DatabaseId(0);
        self.transaction = None;
    }

    /// Whether a MULTI waits for its EXEC.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Executes a request, or keeps it for its EXEC.
    ///
    /// # Errors
    /// It cannot be executed; the reason names the command and shows no argument.
    pub fn execute(&mut self, args: Args<'_>) -> Result<(), String> {
        if args.is(0, "EXEC") {
            let (requests, _) = self.transaction.take().ok_or("EXEC without MULTI")?;
            return requests
                .iter()
                .try_for_each(|request| self.run(Args::new(request.source(), request.ranges())));
        }
        if args.is(0, "DISCARD") {
            return self.transaction.take().map(drop).ok_or("DISCARD without MULTI".to_owned());
        }
        if let Some((requests, bytes)) = &mut self.transaction {
            if args.is(0, "MULTI") {
                return Err("MULTI within MULTI".to_owned());
            }
            *bytes += args.from(0).map(|word| word.len() + size_of::<(u32, u32)>()).sum::<usize>();
            let bytes_max = self.limits.transaction_bytes_max;
            if *bytes > bytes_max {
                return Err(format!("a transaction of more than {bytes_max} bytes"));
            }
            let request = Arguments::of(args.from(0)).ok_or("a request of more than 4 GiB")?;
            requests.push(request);
            return Ok(());
        }
        if args.is(0, "MULTI") {
            self.transaction = Some((Vec::new(), 0));
            return Ok(());
        }
        self.run(args)
    }

    fn run(&mut self, args: Args<'_>) -> Result<(), String> {
        match args.at(0).to_ascii_uppercase().as_slice() {
            b"SELECT" => {
                self.database = self.selected(args)?;
                Ok(())
            }
            b"EVAL" => {
                let body = args.get(1).ok_or_else(|| unknown(args))?;
                let hash = self.scripts.keep(body)?;
                self.run_script(hash, args)
            }
            b"EVALSHA" => {
                let hash = args.get(1).and_then(Scripts::hash_of);
                self.run_script(hash.ok_or_else(|| unknown(args))?, args)
            }
            b"SCRIPT" if args.is(1, "LOAD") && args.len() == 3 => {
                self.scripts.keep(args.at(2)).map(drop)
            }
            b"SCRIPT" if args.is(1, "FLUSH") => {
                self.scripts.flush();
                Ok(())
            }
            b"FUNCTION" => self.change_libraries(args),
            _ => {
                let function = self.commands.find(args)?;
                let context = self.target.context(self.database);
                let mut reply = Reply::new(Protocol::Resp2);
                let done = self.target.run(&function, context, args, &mut reply);
                done.map_err(|refusal| format!("{}: {}", name(args), refusal.0))
            }
        }
    }

    fn run_script(&mut self, hash: Hash, args: Args<'_>) -> Result<(), String> {
        let Self { target, commands, scripts, database, limits, .. } = self;
        let said = |why: String| format!("{}: {why}", name(args));
        let pauses_max = limits.script_pauses_max;
        scripts.run(hash, args, *database, target, commands, pauses_max).map_err(said)
    }

    fn selected(&self, args: Args<'_>) -> Result<DatabaseId, String> {
        let count = self.target.engine.keyspace.settings.databases;
        let number = args.get(1).and_then(parse_u64).ok_or("SELECT: no number")?;
        match u32::try_from(number) {
            Ok(number) if number < count => Ok(DatabaseId(number)),
            _ => Err(format!("database {number} (there are {count}: directive 'databases')")),
        }
    }

    /// Changes the libraries of functions as one command of FUNCTION says. Their code is compiled
    /// by the servers.
    fn change_libraries(&mut self, args: Args<'_>) -> Result<(), String> {
        let said = |why: &dyn std::fmt::Display| format!("FUNCTION: {why}");
        match (args.get(1).map(<[u8]>::to_ascii_uppercase).as_deref(), args.len()) {
            (Some(b"LOAD"), 3..) => self.load_library(args.at(args.len() - 1)),
            (Some(b"DELETE"), 3) => {
                self.target.change_all(Effect::FunctionDelete { name: args.at(2) });
                Ok(())
            }
            (Some(b"FLUSH"), _) => {
                self.target.change_all(Effect::FunctionFlush);
                Ok(())
            }
            (Some(b"RESTORE"), 3..) => {
                let work = &self.target.engine.keyspace.work;
                let codes = libraries_of(args.at(2), work)
                    .map_err(|error| said(&format!("no payload of libraries ({error:?})")))?;
                if args.is(3, "FLUSH") {
                    self.target.change_all(Effect::FunctionFlush);
                }
                codes.iter().try_for_each(|code| self.load_library(code))
            }
            _ => Err(unknown(args)),
        }
    }

    fn load_library(&mut self, code: &[u8]) -> Result<(), String> {
        Header::of(code).map_err(|why| format!("FUNCTION: {why}"))?;
        self.target.change_all(Effect::FunctionLoad { code });
        Ok(())
    }
}

/// Why a request is not executed of which nothing is known.
pub(crate) fn unknown(args: Args<'_>) -> String {
    format!("the command {}, which cannot be executed here", name(args))
}

/// The name of a request's command, as it may be shown.
fn name(args: Args<'_>) -> String {
    let shown = args.at(0).escape_ascii().to_string();
    shown.chars().take(NAME_SHOWN_MAX).collect::<String>().to_ascii_uppercase()
}

#[cfg(test)]
pub(crate) mod tests;
