//! Libraries of functions, compiled: what the shard's libraries are in this process.
//!
//! The shard's state holds their code only ([`engine::functions`]), which this follows: with the
//! next request that asks for a function, whoever changed the code, a command, the log or a
//! snapshot.

use crate::scripts::Declared;
use engine::functions::{self, Header};
use engine::refusal::Refusal;
use lua::{Answer, Interpreter, Kind, Limits, LoadedFunction, Outcome, ScriptRef, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pauses that the code of a library may take that was loaded once: about a second.
const FOLLOWED_PAUSES_MAX: usize = 10_000;

/// A function that can be called.
#[derive(Clone, Debug)]
pub struct Function {
    pub compiled: ScriptRef,
    pub declared: Declared,
    pub flags: Vec<&'static str>,
    pub description: Option<Vec<u8>>,
}

/// The functions of a library, by their names.
pub type Registered = BTreeMap<Vec<u8>, Function>;

/// A library that is compiled.
pub struct Library {
    pub code: Arc<[u8]>,
    pub functions: Registered,
}

/// The libraries, and the interpreter that compiled them.
pub struct Libraries {
    by_name: BTreeMap<Vec<u8>, Library>,
    /// The library and the name of each function, by its name in small letters: functions are
    /// called by names in either case.
    owners: BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>,
    /// The changes of the shard's libraries that are followed so far.
    followed: u64,
    pub interpreter: Interpreter,
}

impl Default for Libraries {
    fn default() -> Self {
        Self {
            by_name: BTreeMap::new(),
            owners: BTreeMap::new(),
            followed: 0,
            interpreter: Interpreter::new(Kind::Functions, Limits::default()),
        }
    }
}

impl Libraries {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Library)> {
        self.by_name.iter().map(|(name, library)| (name.as_slice(), library))
    }

    pub fn library(&self, name: &[u8]) -> Option<&Library> {
        self.by_name.get(name)
    }

    /// How many libraries there are, and functions in them.
    pub fn counts(&self) -> (usize, usize) {
        (self.by_name.len(), self.owners.len())
    }

    /// A function, with its name as it was registered.
    pub fn function(&self, name: &[u8]) -> Option<(&[u8], &Function)> {
        let (owner, name) = self.owners.get(&name.to_ascii_lowercase())?;
        Some((name, self.by_name.get(owner)?.functions.get(name)?))
    }

    /// The library of a function.
    pub fn owner(&self, function: &[u8]) -> Option<&[u8]> {
        self.owners.get(&function.to_ascii_lowercase()).map(|(owner, _)| owner.as_slice())
    }

    /// Bytes of the code.
    pub fn bytes(&self) -> usize {
        self.by_name.values().map(|library| library.code.len()).sum()
    }

    /// Whether the shard's libraries changed since they were compiled.
    pub fn is_behind(&self, data: &functions::Libraries) -> bool {
        self.followed != data.changes()
    }

    /// Compiles the shard's libraries, as far as they are new, and forgets those that are gone.
    pub fn follow(&mut self, data: &functions::Libraries) {
        let is_kept = |name: &[u8], library: &Library| data.code(name) == Some(&library.code);
        let gone = self.by_name.iter().filter(|(name, library)| !is_kept(name, library));
        for name in gone.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.forget(&name);
        }
        for (name, code) in data.iter() {
            if self.by_name.contains_key(name) {
                continue;
            }
            let mut pauses = 0;
            let compiled = self.compile(code, &mut || {
                pauses += 1;
                pauses > FOLLOWED_PAUSES_MAX
            });
            let functions = compiled.unwrap_or_else(|refusal| {
                let (name, why) = (String::from_utf8_lossy(name), &refusal.0);
                tracing::error!(%name, %why, "a library of functions can be loaded no more");
                Registered::new()
            });
            self.adopt(name, code, functions);
        }
        self.followed = data.changes();
    }

    /// Takes what was compiled of a library, in place of one of the same name.
    pub fn adopt(&mut self, name: &[u8], code: &Arc<[u8]>, functions: Registered) {
        self.forget(name);
        for function in functions.keys() {
            let owned = (name.to_vec(), function.clone());
            self.owners.insert(function.to_ascii_lowercase(), owned);
        }
        self.by_name.insert(name.to_vec(), Library { code: Arc::clone(code), functions });
    }

    fn forget(&mut self, name: &[u8]) {
        let Some(library) = self.by_name.remove(name) else { return };
        self.owners.retain(|_, (owner, _)| owner != name);
        self.discard(library.functions);
    }

    /// Forgets what was compiled and is not taken.
    pub fn discard(&mut self, functions: Registered) {
        for function in functions.into_values() {
            self.interpreter.forget(function.compiled);
        }
    }

    /// The functions that the code of a library registers. `is_late` is asked at each pause.
    ///
    /// # Errors
    /// It is no library, or took too long; in Redis's words.
    pub fn compile(
        &mut self,
        code: &[u8],
        is_late: &mut dyn FnMut() -> bool,
    ) -> Result<Registered, Refusal> {
        let refuse = |text: String| Refusal::new(format!("ERR {text}"));
        let header = Header::of(code).map_err(refuse)?;
        if !header.engine.eq_ignore_ascii_case(b"lua") {
            let engine = String::from_utf8_lossy(header.engine);
            return Err(refuse(format!("Engine '{engine}' not found")));
        }
        self.interpreter.start_loading(header.body).map_err(crate::scripts::refusal)?;
        let mut answer = Answer::Begin;
        let outcome = loop {
            match self.interpreter.resume(answer) {
                Step::Done(outcome) => break outcome,
                Step::Log { level, text } => crate::scripts::log_line(level, &text),
                Step::Paused if is_late() => {
                    self.interpreter.kill("ERR FUNCTION LOAD timeout");
                }
                Step::Paused => {}
                // The code of a library finds neither.
                Step::Call(_) | Step::CheckRights(_) => {
                    self.interpreter.kill("ERR the code of a library calls no commands");
                }
            }
            answer = Answer::GoOn;
        };
        match outcome {
            Outcome::Loaded(functions) if functions.is_empty() => {
                Err(refuse("No functions registered".to_owned()))
            }
            Outcome::Loaded(functions) => Ok(functions.into_iter().map(registered).collect()),
            Outcome::NotLoaded(error) | Outcome::Failed(_, error) => {
                Err(crate::scripts::refusal(error))
            }
            Outcome::Reply(_) => Err(refuse("the code of a library answers nobody".to_owned())),
        }
    }
}

fn registered(function: LoadedFunction) -> (Vec<u8>, Function) {
    let LoadedFunction { name, description, flags, callback } = function;
    let mut declared = Declared::default();
    let known = flags.iter().all(|flag| declared.set(flag.as_bytes()));
    debug_assert!(known, "the interpreter knows the same flags");
    (name, Function { compiled: callback, declared, flags, description })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[u8] = b"#!lua name=one\nredis.register_function('f', function() return 1 end)";

    fn compile(libraries: &mut Libraries, code: &str) -> Result<Registered, String> {
        let compiled = libraries.compile(code.as_bytes(), &mut || true);
        compiled.map_err(|refusal| refusal.0.into_owned())
    }

    #[test]
    fn code_that_is_no_library_is_refused_in_redis_words() {
        let libraries = &mut Libraries::default();
        for (code, text) in [
            ("return 1", "ERR Missing library metadata"),
            ("#!perl name=a\n", "ERR Engine 'perl' not found"),
            ("#!lua name=a\nreturn 1", "ERR No functions registered"),
            (
                "#!lua name=a\nbad code",
                "ERR Error compiling function: user_function:2: '=' expected near 'code'",
            ),
        ] {
            assert_eq!(compile(libraries, code).map(drop), Err(text.to_owned()), "{code}");
        }
        let text = compile(libraries, "#!lua name=a\nwhile true do end").expect_err("it is late");
        assert!(text.contains("FUNCTION LOAD timeout"), "{text}");
    }

    #[test]
    fn a_function_is_found_by_its_name_as_long_as_its_library_is_there() {
        let libraries = &mut Libraries::default();
        let functions = libraries.compile(ONE, &mut || true).expect("it is a library");
        libraries.adopt(b"one", &ONE.into(), functions);
        assert_eq!(libraries.owner(b"f"), Some(&b"one"[..]));
        assert_eq!(libraries.function(b"F").map(|(name, _)| name), Some(&b"f"[..]));
        assert_eq!(libraries.counts(), (1, 1));
        libraries.adopt(b"one", &ONE.into(), Registered::new());
        assert!(libraries.function(b"f").is_none());
        libraries.followed = 7;
        libraries.follow(&functions::Libraries::default());
        assert_eq!(libraries.counts(), (0, 0));
    }
}
