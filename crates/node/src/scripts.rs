//! The cache of compiled scripts, by their SHA-1.
//!
//! A restart empties it, and clients send their scripts again. A script from SCRIPT LOAD stays
//! until SCRIPT FLUSH. Scripts that only EVAL has sent are limited in number, and the least
//! recently used one is removed first, as in Redis 7.4: clients that put values into a script's
//! text create a new script with every call.

mod declared;

use base::sha1::{self, sha1};
pub use declared::Declared;
use engine::refusal::Refusal;
use engine::work::Work;
use lua::{
    COMPILED_STEP_BYTES, CodeKind, Interpreter, Limits, SOURCE_BYTES_MAX, ScriptError, ScriptRef,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of all bodies that are kept, with what it takes to keep them. Applications have some tens
/// of scripts, of some KiB. Compiled they take up to 16 times as much, of the memory that scripts
/// run in: half of it at most.
const SCRIPTS_BYTES_MAX: usize = 8 << 20;

/// Bytes of the bodies from SCRIPT LOAD among them, which stay: so few that the longest script can
/// be run beside them.
const LOADED_BYTES_MAX: usize = SCRIPTS_BYTES_MAX - SOURCE_BYTES_MAX - SCRIPT_OVERHEAD_BYTES;

/// Bytes of a script beside its body: its hash, also as text and in the tree, and counts. About.
const SCRIPT_OVERHEAD_BYTES: usize = 224;

/// The most scripts kept that only EVAL has sent. Redis 7.4's number.
const EVALUATED_MAX: usize = 500;

/// Scripts that are remembered by their texts, to be found by comparison.
const RECENT: usize = 64;

/// Steps of work that count for one pause of Lua: 10,000 instructions take some 100 microseconds.
pub const PAUSE_WORK_STEPS: usize = 100;

/// A script's SHA-1.
pub type Hash = [u8; 20];

/// A cached script.
struct Kept {
    hash: Hash,
    /// The hash as text.
    name: Rc<str>,
    body: Vec<u8>,
    compiled: ScriptRef,
    declared: Option<Declared>,
    /// The count of uses at its last use, if only EVAL has sent it; `None` for SCRIPT LOAD.
    used: Cell<Option<u64>>,
}

impl Kept {
    fn found(&self) -> Found {
        let name = Rc::clone(&self.name);
        Found { name, compiled: self.compiled, declared: self.declared }
    }
}

/// A cached script, ready to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its hash as text.
    pub name: Rc<str>,
    pub compiled: ScriptRef,
    pub declared: Option<Declared>,
}

/// The cached scripts, and their interpreter.
pub struct Scripts {
    kept: BTreeMap<Hash, Rc<Kept>>,
    /// The number of scripts that only EVAL has sent.
    evaluated: usize,
    /// Counts uses, to order the scripts.
    uses: u64,
    /// Some of them that ran lately, by [`recent_index`].
    recent: [Option<Rc<Kept>>; RECENT],
    bytes: usize,
    /// Bytes of those from SCRIPT LOAD.
    loaded_bytes: usize,
    pub interpreter: Interpreter,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: whether scripts may call commands that are denied to them.
    pub may_call_more: bool,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            kept: BTreeMap::new(),
            evaluated: 0,
            uses: 0,
            recent: [const { None }; RECENT],
            bytes: 0,
            loaded_bytes: 0,
            interpreter: Interpreter::new(CodeKind::Scripts, Limits::default()),
            may_call_more: false,
        }
    }
}

impl Scripts {
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Approximate bytes of the scripts' texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Caches a script until SCRIPT FLUSH; returns its hash.
    ///
    /// # Errors
    /// The text is no script, or memory is short.
    pub fn load(&mut self, body: &[u8], work: &Work) -> Result<Hash, Refusal> {
        check_length(body)?;
        let hash = self.hash(body);
        let kept = self.kept.get(&hash);
        if kept.is_some_and(|kept| kept.used.get().is_none()) {
            return Ok(hash);
        }
        let bytes = body.len() + SCRIPT_OVERHEAD_BYTES;
        if self.loaded_bytes + bytes > LOADED_BYTES_MAX {
            return Err(Refusal::of("ERR the scripts that are kept take too much memory"));
        }
        match kept {
            Some(kept) => {
                kept.used.set(None);
                self.evaluated -= 1;
            }
            None => drop(self.keep(hash, body, None, work)?),
        }
        self.loaded_bytes += bytes;
        Ok(hash)
    }

    /// The script with this text, for EVAL. It is compiled and cached if it is new.
    ///
    /// # Errors
    /// The text is no script, or memory is short.
    pub fn of_body(&mut self, body: &[u8], work: &Work) -> Result<Found, Refusal> {
        check_length(body)?;
        self.uses += 1;
        if let Some(kept) = self.recent(body) {
            return Ok(note_use(kept, self.uses));
        }
        let hash = sha1(body);
        let kept = match self.kept.get(&hash) {
            Some(kept) => Rc::clone(kept),
            None => self.keep(hash, body, Some(self.uses), work)?,
        };
        if self.evaluated > EVALUATED_MAX {
            self.forget_oldest();
        }
        let found = note_use(&kept, self.uses);
        self.recent[recent_index(body)] = Some(kept);
        Ok(found)
    }

    /// The script with this hash (hexadecimal, in either case), for EVALSHA.
    pub fn of_hash(&mut self, text: &[u8]) -> Option<Found> {
        let kept = self.kept.get(&parse_hash(text)?)?;
        self.uses += 1;
        Some(note_use(kept, self.uses))
    }

    /// The flags that a script declares, given its text or its hash. `None`: it declares none, or
    /// has an invalid first line.
    pub fn declared(&self, text: &[u8]) -> Option<Declared> {
        check_length(text).ok()?;
        if let Some(kept) = self.recent(text) {
            return kept.declared;
        }
        match parse_hash(text).and_then(|hash| self.kept.get(&hash)) {
            Some(kept) => kept.declared,
            None => Declared::of_script(text).ok().flatten(),
        }
    }

    /// The text of the script with this hash (hexadecimal, in either case).
    pub fn body(&self, text: &[u8]) -> Option<&[u8]> {
        self.kept.get(&parse_hash(text)?).map(|kept| kept.body.as_slice())
    }

    /// Whether a script is kept under this hash, in hexadecimal of either case.
    pub fn contains(&self, text: &[u8]) -> bool {
        parse_hash(text).is_some_and(|hash| self.kept.contains_key(&hash))
    }

    /// Empties the cache, and frees the memory of Lua.
    pub fn flush(&mut self) {
        self.interpreter.clear();
        self.kept.clear();
        self.recent = [const { None }; RECENT];
        (self.evaluated, self.bytes, self.loaded_bytes) = (0, 0, 0);
    }

    fn keep(
        &mut self,
        hash: Hash,
        body: &[u8],
        used: Option<u64>,
        work: &Work,
    ) -> Result<Rc<Kept>, Refusal> {
        let declared = Declared::of_script(body)?;
        let bytes = body.len() + SCRIPT_OVERHEAD_BYTES;
        while self.bytes + bytes > SCRIPTS_BYTES_MAX && self.forget_oldest() {}
        // Before it is done, since it may take a quarter of a second: a transaction may have any
        // number of scripts.
        work.steps(body.len() / COMPILED_STEP_BYTES);
        let compiled = self.interpreter.compile(Declared::source(body)).map_err(refusal)?;
        self.bytes += bytes;
        self.evaluated += usize::from(used.is_some());
        let name = Rc::<str>::from(sha1::hex(&hash));
        let (body, used) = (body.to_vec(), Cell::new(used));
        let kept = Rc::new(Kept { hash, name, body, compiled, declared, used });
        self.kept.insert(hash, Rc::clone(&kept));
        Ok(kept)
    }

    /// Removes the least recently used script that only EVAL has sent; returns whether there was
    /// one.
    fn forget_oldest(&mut self) -> bool {
        let used = self.kept.values().filter_map(|kept| Some((kept.used.get()?, kept.hash)));
        let Some((_, oldest)) = used.min() else { return false };
        if let Some(kept) = self.kept.remove(&oldest) {
            let recent = &mut self.recent[recent_index(&kept.body)];
            if recent.as_ref().is_some_and(|recent| Rc::ptr_eq(recent, &kept)) {
                *recent = None;
            }
            self.interpreter.forget(kept.compiled);
            self.bytes -= kept.body.len() + SCRIPT_OVERHEAD_BYTES;
            self.evaluated -= 1;
        }
        true
    }

    /// The hash of a text.
    fn hash(&self, body: &[u8]) -> Hash {
        self.recent(body).map_or_else(|| sha1(body), |kept| kept.hash)
    }

    /// The script with this text, if it ran lately: it is compared, which is ten times as fast as
    /// to hash it.
    fn recent(&self, body: &[u8]) -> Option<&Kept> {
        self.recent[recent_index(body)].as_deref().filter(|kept| kept.body == body)
    }
}

/// A script that runs now, the latest of so many uses.
fn note_use(kept: &Kept, uses: u64) -> Found {
    if kept.used.get().is_some() {
        kept.used.set(Some(uses));
    }
    kept.found()
}

/// Lua's error as a refusal.
pub fn refusal(error: ScriptError) -> Refusal {
    Refusal::new(String::from_utf8_lossy(&error.text).into_owned())
}

/// The index of a text among the recent ones. Texts of one length with the same bytes at three
/// places share one.
fn recent_index(body: &[u8]) -> usize {
    let middle = &body[body.len() / 2..];
    let sampled = [body.first_chunk::<8>(), middle.first_chunk::<8>(), body.last_chunk::<8>()];
    let number = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mixed = sampled.into_iter().fold(body.len() as u64, |sum, chunk| {
        (sum ^ number(chunk)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (mixed >> 32) as usize % RECENT
}

/// Refuses what takes too long to hash and to compile, neither of which can be interrupted.
fn check_length(body: &[u8]) -> Result<(), Refusal> {
    if body.len() > SOURCE_BYTES_MAX {
        let text = format!("ERR the script is longer than {SOURCE_BYTES_MAX} bytes");
        return Err(Refusal::new(text));
    }
    Ok(())
}

fn parse_hash(text: &[u8]) -> Option<Hash> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut hash = [0; 20];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != hash.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(hash)
}

/// Writes a script's line (`redis.log`) to the server's log.
pub fn log_line(level: u8, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match level {
        0 | 1 => tracing::debug!("script: {text}"),
        2 => tracing::info!("script: {text}"),
        _ => tracing::warn!("script: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_by_its_hash_in_either_case() {
        let mut scripts = Scripts::default();
        let text = sha1::hex(&scripts.load(b"return 1", &Work::default()).expect("it is a script"));
        assert_eq!(text, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert!(scripts.contains(text.as_bytes()));
        assert!(scripts.contains(text.to_ascii_uppercase().as_bytes()));
        assert!(!scripts.contains(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8d"));
        assert!(!scripts.contains(b"g0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    }

    #[test]
    fn scripts_stay_within_their_room() {
        let mut scripts = Scripts::default();
        let body = [b"-- ".to_vec(), vec![b'x'; SOURCE_BYTES_MAX - 1000]].concat();
        for end in 1..=3 {
            scripts
                .of_body(&body[..body.len() - end], &Work::default())
                .expect("one that was only run makes room");
            assert!(scripts.bytes() <= SCRIPTS_BYTES_MAX);
        }
        assert_eq!(scripts.len(), 2);
        scripts
            .load(&body[..body.len() - 3], &Work::default())
            .expect("there is room for one that stays");
        scripts.load(&body[..body.len() - 3], &Work::default()).expect("it is kept already");
        assert!(
            scripts.load(&body[..body.len() - 2], &Work::default()).is_err(),
            "it was run, but may not stay"
        );
        assert!(scripts.load(&body[..body.len() - 4], &Work::default()).is_err());
        assert_eq!(scripts.len(), 2);
        for end in 5..=7 {
            scripts
                .of_body(&body[..body.len() - end], &Work::default())
                .expect("scripts run beside those that stay");
            assert!(scripts.bytes() <= SCRIPTS_BYTES_MAX);
        }
        scripts.flush();
        scripts.load(&body, &Work::default()).expect("there is room again");
        let longer = [b"-- ".to_vec(), vec![b'x'; SOURCE_BYTES_MAX]].concat();
        assert!(scripts.of_body(&longer, &Work::default()).is_err());
        assert!(scripts.declared(&longer).is_none());
    }

    /// A script is found by its text without a look at its hash: never one that is gone.
    #[test]
    fn a_text_that_ran_lately_is_found_only_while_it_is_kept() {
        let mut scripts = Scripts::default();
        let first = scripts.of_body(b"return 1", &Work::default()).expect("it is a script");
        assert_eq!(scripts.of_body(b"return 1", &Work::default()), Ok(first.clone()));
        scripts.flush();
        assert!(!scripts.contains(first.name.as_bytes()));
        scripts.of_body(b"return 1", &Work::default()).expect("it is compiled again");
        for number in 2..EVALUATED_MAX + 2 {
            scripts
                .of_body(format!("return {number}").as_bytes(), &Work::default())
                .expect("it is a script");
        }
        assert!(!scripts.contains(first.name.as_bytes()), "it was used longest ago");
        let other = scripts
            .of_body(b"return 'other'", &Work::default())
            .expect("it has the place of one that went");
        let again = scripts.of_body(b"return 1", &Work::default()).expect("it is compiled again");
        assert_ne!(again.compiled, other.compiled);
        scripts.load(b"return 1", &Work::default()).expect("it stays from now on");
        for number in 2..2 * EVALUATED_MAX {
            scripts
                .of_body(format!("return {number}").as_bytes(), &Work::default())
                .expect("it is a script");
        }
        assert_eq!(scripts.of_body(b"return 1", &Work::default()), Ok(again));
    }

    #[test]
    fn scripts_that_were_only_run_go_the_one_used_longest_ago_first() {
        let mut scripts = Scripts::default();
        let body = |number: usize| format!("return {number}").into_bytes();
        let loaded = scripts.load(&body(9999), &Work::default()).expect("it is a script");
        for number in 0..EVALUATED_MAX {
            scripts.of_body(&body(number), &Work::default()).expect("it is a script");
        }
        scripts.of_body(&body(0), &Work::default()).expect("it is a script");
        scripts.load(&body(2), &Work::default()).expect("it is a script");
        assert_eq!(scripts.len(), EVALUATED_MAX + 1);
        // The loaded script took the place of an evaluated one.
        scripts.of_body(&body(1000), &Work::default()).expect("it is a script");
        assert!(scripts.contains(sha1::hex(&sha1(&body(1))).as_bytes()));
        scripts.of_body(&body(1001), &Work::default()).expect("it is a script");
        scripts.of_body(&body(1002), &Work::default()).expect("it is a script");
        for (number, is_there) in [(0, true), (1, false), (2, true), (3, false), (4, true)] {
            let hash = sha1::hex(&sha1(&body(number)));
            assert_eq!(scripts.contains(hash.as_bytes()), is_there, "{number}");
        }
        assert!(scripts.contains(sha1::hex(&loaded).as_bytes()));
    }
}
