//! Libraries of functions, compiled.
//!
//! The shard's state holds only their code ([`engine::functions`]), which commands, the log and
//! snapshots may change. FUNCTION LOAD and FUNCTION RESTORE compile what they bring. The loop
//! compiles all else, a slice per turn (`libraries/loading`), and requests that need it wait.

mod loading;
#[cfg(test)]
mod tests;

use crate::scripts::{Declared, PAUSE_WORK_STEPS};
use engine::functions::{self, Header};
use engine::refusal::Refusal;
use engine::work::Work;
pub use loading::Slice;
use loading::{Failed, Loading};
use lua::{
    Answer, CodeKind, Ending, Interpreter, LOAD_STEPS_MAX, Limits, LoadedFunction,
    RELOAD_STEPS_MAX, ScriptError, ScriptRef, Step,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The part of the interpreter's memory that may be in use when FUNCTION LOAD or RESTORE has
/// compiled a library. The rest is for functions that run, and for libraries that take more while
/// they are loaded: after a restart they are loaded in another order.
const LOADED_PART: usize = 2;

/// Lines that the code of one library writes to the server's log while it is loaded, at most. It
/// may be a hostile master's, and its steps allow millions.
const LOGGED_MAX: u32 = 100;

/// The error of a library whose code runs for too long when it is loaded.
const TIMEOUT: Refusal = Refusal::of("ERR FUNCTION LOAD timeout");

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Function {
    pub compiled: ScriptRef,
    pub declared: Declared,
    pub flags: Vec<&'static str>,
    pub description: Option<Vec<u8>>,
}

/// The functions of a library, by their names.
pub type Registered = BTreeMap<Vec<u8>, Function>;

/// A compiled library.
pub struct Library {
    pub code: Arc<[u8]>,
    pub functions: Registered,
}

/// Where a function is found.
struct Owner {
    /// Its library's name, of which there is one copy for all functions: a master's may be long.
    library: Arc<[u8]>,
    /// Its name, as it was registered.
    function: Vec<u8>,
}

/// The compiled libraries, and their interpreter.
///
/// Each library of the shard is compiled, or missing, or being loaded, or has failed.
pub struct CompiledLibraries {
    by_name: BTreeMap<Vec<u8>, Library>,
    /// The owner of each function, by the function's name in lower case: FCALL ignores case.
    owners: BTreeMap<Vec<u8>, Owner>,
    /// Names of libraries that are still to be loaded.
    missing: BTreeSet<Vec<u8>>,
    /// Names of libraries that did not fit into memory behind others: they are loaded before them.
    first: Vec<Vec<u8>>,
    loading: Option<Loading>,
    failed: BTreeMap<Vec<u8>, Failed>,
    /// Functions to free when the interpreter is between scripts.
    unwanted: Vec<ScriptRef>,
    /// Lines that the code that runs now has written to the server's log.
    logged: u32,
    /// The count of changes of the shard's libraries that is followed so far.
    followed: u64,
    /// Steps of one library that a command brings, and of one that the shard has.
    load_steps_max: u64,
    reload_steps_max: u64,
    pub interpreter: Interpreter,
}

impl Default for CompiledLibraries {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl CompiledLibraries {
    fn new(limits: Limits) -> Self {
        Self {
            by_name: BTreeMap::new(),
            owners: BTreeMap::new(),
            missing: BTreeSet::new(),
            first: Vec::new(),
            loading: None,
            failed: BTreeMap::new(),
            unwanted: Vec::new(),
            logged: 0,
            followed: 0,
            load_steps_max: LOAD_STEPS_MAX,
            reload_steps_max: RELOAD_STEPS_MAX,
            interpreter: Interpreter::new(CodeKind::Functions, limits),
        }
    }

    /// A library that is compiled.
    pub fn library(&self, name: &[u8]) -> Option<&Library> {
        self.by_name.get(name)
    }

    /// Whether a library is there, compiled or not.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.by_name.contains_key(name)
            || self.failed.contains_key(name)
            || self.missing.contains(name)
            || self.loading.as_ref().is_some_and(|loading| loading.name == name)
    }

    /// The number of libraries that could not be loaded: their functions cannot be called.
    pub fn failed_len(&self) -> usize {
        self.failed.len()
    }

    /// The number of compiled functions.
    pub fn functions_len(&self) -> usize {
        self.by_name.values().map(|library| library.functions.len()).sum()
    }

    /// A function, with its registered name.
    pub fn function(&self, name: &[u8]) -> Option<(&[u8], &Function)> {
        let Owner { library, function } = self.owners.get(&name.to_ascii_lowercase())?;
        Some((function, self.by_name.get(&**library)?.functions.get(function)?))
    }

    /// The refusal for a function that is not there. It may be in a library that failed.
    pub fn not_found(&self) -> Refusal {
        let Some((name, failed)) = self.failed.first_key_value() else {
            return Refusal::of("ERR Function not found");
        };
        let (name, why) = (String::from_utf8_lossy(name), &failed.why);
        Refusal::new(format!(
            "ERR Function not found, and the library '{name}' could not be loaded: {why}"
        ))
    }

    /// The name of a function's library.
    pub fn owner(&self, function: &[u8]) -> Option<&[u8]> {
        self.owners.get(&function.to_ascii_lowercase()).map(|owner| &*owner.library)
    }

    /// Bytes of all code.
    pub fn bytes(&self) -> usize {
        self.by_name.values().map(|library| library.code.len()).sum()
    }

    /// Whether some of the shard's libraries are still to be compiled or forgotten.
    pub fn is_behind(&self, data: &functions::Libraries) -> bool {
        self.followed != data.changes() || self.loading.is_some() || !self.missing.is_empty()
    }

    /// Follows the shard's changes: forgets the libraries that are gone, and notes those that are
    /// to be loaded.
    pub fn follow(&mut self, data: &functions::Libraries, work: &Work) {
        if self.followed == data.changes() {
            return;
        }
        self.followed = data.changes();
        let is_kept = |name: &[u8], code: &Arc<[u8]>| {
            work.step();
            data.code(name) == Some(code)
        };
        if self.loading.as_ref().is_some_and(|it| !is_kept(&it.name, &it.code)) {
            self.give_loading_up();
        }
        self.first.retain(|name| data.code(name).is_some());
        self.failed.retain(|name, failed| is_kept(name, &failed.code));
        let gone = self.by_name.iter().filter(|(name, library)| !is_kept(name, &library.code));
        for name in gone.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.forget(&name);
        }
        self.missing.clear();
        for (name, _) in data.iter() {
            work.step();
            if !self.contains(name) {
                self.missing.insert(name.to_vec());
            }
        }
    }

    /// Keeps the functions of a library that a command has compiled and put into the shard's state.
    pub fn adopt(&mut self, name: &[u8], functions: Registered, data: &functions::Libraries) {
        let Some(code) = data.code(name) else { return self.discard(functions) };
        self.failed.remove(name);
        self.missing.remove(name);
        self.keep(name, code, functions);
        if self.followed + 1 == data.changes() {
            // Nothing else changed, so there is nothing to look at.
            self.followed = data.changes();
        }
    }

    /// Keeps compiled functions, in place of a library with the same name.
    fn keep(&mut self, name: &[u8], code: &Arc<[u8]>, functions: Registered) {
        self.forget(name);
        let library: Arc<[u8]> = Arc::from(name);
        for function in functions.keys() {
            let owner = Owner { library: Arc::clone(&library), function: function.clone() };
            self.owners.insert(function.to_ascii_lowercase(), owner);
        }
        self.by_name.insert(name.to_vec(), Library { code: Arc::clone(code), functions });
    }

    /// Forgets a compiled library. It may have been in the way of those that failed.
    fn forget(&mut self, name: &[u8]) {
        let Some(library) = self.by_name.remove(name) else { return };
        for function in library.functions.keys() {
            let function = function.to_ascii_lowercase();
            // It may be another library's by now: FUNCTION RESTORE moves functions.
            if self.owners.get(&function).is_some_and(|owner| *owner.library == *name) {
                self.owners.remove(&function);
            }
        }
        self.discard(library.functions);
        self.try_failed_again();
    }

    /// Frees compiled functions that are not kept.
    pub fn discard(&mut self, functions: Registered) {
        self.unwanted.extend(functions.into_values().map(|function| function.compiled));
        self.free_unwanted();
    }

    fn free_unwanted(&mut self) {
        if !self.interpreter.is_running() {
            self.unwanted.drain(..).for_each(|function| self.interpreter.forget(function));
        }
    }

    /// Whether libraries and what their functions keep leave enough memory for another order of
    /// loading, and for functions that run.
    pub fn leaves_room(&mut self, work: &Work) -> bool {
        let room = self.interpreter.limits().memory_bytes / LOADED_PART;
        if self.interpreter.used_bytes() > room {
            self.interpreter.collect(|| work.steps(PAUSE_WORK_STEPS));
        }
        self.interpreter.used_bytes() <= room
    }

    /// Runs the code of a library and returns the functions that it registers. `is_late` is asked
    /// before it begins and at each pause: short code never pauses, and there may be much of it.
    ///
    /// # Errors
    /// The code is no library, or ran for too long; in Redis's words.
    pub fn compile(
        &mut self,
        code: &[u8],
        is_late: &mut dyn FnMut() -> bool,
    ) -> Result<Registered, Refusal> {
        if is_late() {
            return Err(TIMEOUT);
        }
        self.begin(code)?;
        let mut answer = Answer::Begin;
        loop {
            if let Some(ending) = self.step(answer) {
                return Ok(registered(ending)?);
            }
            // Also what time would allow: no replica may give up on it later, which counts steps.
            if is_late() || self.interpreter.spent_steps() > self.load_steps_max {
                self.interpreter.kill(&TIMEOUT.0);
            }
            answer = Answer::GoOn;
        }
    }

    /// Prepares the interpreter to run the code of a library.
    fn begin(&mut self, code: &[u8]) -> Result<(), NotLoaded> {
        let header = header_of(code)?;
        self.logged = 0;
        Ok(self.interpreter.start_loading(header.body)?)
    }

    /// Runs the code of a library up to its next pause; how it ended, if it has.
    fn step(&mut self, answer: Answer) -> Option<Ending> {
        match self.interpreter.resume(answer) {
            Step::Done(ending) => return Some(ending),
            Step::Log { level, text } => {
                self.logged += 1;
                match self.logged {
                    ..=LOGGED_MAX => crate::scripts::log_line(level, &text),
                    line if line == LOGGED_MAX + 1 => {
                        tracing::warn!("a library that is loaded logs without end: no more of it");
                    }
                    _ => {}
                }
            }
            Step::Paused => {}
            // `redis` has neither while a library is loaded.
            Step::Call(_) | Step::CheckRights(_) => {
                self.interpreter.kill("ERR the code of a library calls no commands");
            }
        }
        None
    }
}

/// What the first line of a library says, if it is one of Lua.
///
/// # Errors
/// Redis's texts.
pub fn header_of(code: &[u8]) -> Result<Header<'_>, Refusal> {
    let header = Header::of(code).map_err(refuse)?;
    if header.engine.eq_ignore_ascii_case(b"lua") {
        return Ok(header);
    }
    let engine = String::from_utf8_lossy(&header.engine);
    Err(refuse(format!("Engine '{engine}' not found")))
}

fn refuse(text: String) -> Refusal {
    Refusal::new(format!("ERR {text}"))
}

/// Why a library cannot be loaded.
struct NotLoaded {
    refusal: Refusal,
    /// Whether it might be with more memory.
    lacks_memory: bool,
}

impl From<Refusal> for NotLoaded {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, lacks_memory: false }
    }
}

impl From<ScriptError> for NotLoaded {
    fn from(error: ScriptError) -> Self {
        let lacks_memory = error.lacks_memory;
        Self { refusal: crate::scripts::refusal(error), lacks_memory }
    }
}

impl From<NotLoaded> for Refusal {
    fn from(failure: NotLoaded) -> Self {
        failure.refusal
    }
}

/// The functions that a library has registered.
fn registered(ending: Ending) -> Result<Registered, NotLoaded> {
    match ending {
        Ending::Loaded(functions) if functions.is_empty() => {
            Err(refuse("No functions registered".to_owned()).into())
        }
        Ending::Loaded(functions) => Ok(functions.into_iter().map(with_name).collect()),
        Ending::NotLoaded(error) | Ending::Failed(_, error) => Err(error.into()),
        Ending::Reply(_) => Err(refuse("the code of a library answers nobody".to_owned()).into()),
    }
}

fn with_name(function: LoadedFunction) -> (Vec<u8>, Function) {
    let LoadedFunction { name, description, flags, callback } = function;
    let mut declared = Declared::default();
    let known = flags.iter().all(|flag| declared.set(flag.as_bytes()));
    debug_assert!(known, "the interpreter knows the same flags");
    (name, Function { compiled: callback, declared, flags, description })
}
