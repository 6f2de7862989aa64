//! Scripts that clients sent, compiled, by their hashes.
//!
//! They are a cache: a restart forgets them, and clients send them again. A script that came by
//! SCRIPT LOAD stays until SCRIPT FLUSH. Those that were only ever sent to be run go when there are
//! too many, the one that was used longest ago first (Redis 7.4): clients that put values into
//! their scripts' text make a new one with every call.

mod declared;

use base::sha1::sha1;
pub use declared::Declared;
use engine::refusal::Refusal;
use lua::{Interpreter, Kind, Limits, ScriptError, ScriptRef};
use std::collections::BTreeMap;

/// Bytes of all bodies that are kept, with what it takes to keep them. Applications have some tens
/// of scripts, of some KiB; what is generated without end must not fill the memory. A guess.
const SCRIPTS_BYTES_MAX: usize = 64 << 20;

/// Bytes of a script beside its body: its hash and its place in the tree. About.
const SCRIPT_OVERHEAD_BYTES: usize = 128;

/// Scripts that were sent to be run and are kept (Redis 7.4).
const EVALUATED_MAX: usize = 500;

/// Places for scripts that are found without hashing all of their text.
const RECENT: usize = 64;

/// A script's SHA-1.
pub type Hash = [u8; 20];

/// A script that is kept.
struct Kept {
    body: Vec<u8>,
    compiled: ScriptRef,
    declared: Option<Declared>,
    /// When it was used last, if it was only ever sent to be run.
    used: Option<u64>,
}

/// A script that can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    pub hash: Hash,
    pub compiled: ScriptRef,
    pub declared: Option<Declared>,
}

/// The scripts, and the interpreter that compiled them.
pub struct Scripts {
    kept: BTreeMap<Hash, Kept>,
    /// How many of them were only ever sent to be run.
    evaluated: usize,
    /// Uses so far.
    uses: u64,
    /// Where texts of this form were found last.
    recent: [Option<Hash>; RECENT],
    bytes: usize,
    pub interpreter: Interpreter,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call more than they should.
    pub may_call_more: bool,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            kept: BTreeMap::new(),
            evaluated: 0,
            uses: 0,
            recent: [None; RECENT],
            bytes: 0,
            interpreter: Interpreter::new(Kind::Scripts, Limits::default()),
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

    /// Bytes that the scripts' texts occupy, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a script until all are flushed; its hash.
    ///
    /// # Errors
    /// It is no script, or there is no room for it.
    pub fn load(&mut self, body: &[u8]) -> Result<Hash, Refusal> {
        let hash = self.hash(body);
        if !self.kept.contains_key(&hash) {
            self.keep(hash, body, None)?;
        } else if let Some(kept) = self.kept.get_mut(&hash)
            && kept.used.take().is_some()
        {
            self.evaluated -= 1;
        }
        Ok(hash)
    }

    /// The script of a text that is to be run. It is compiled and kept, if it is new.
    ///
    /// # Errors
    /// It is no script, or there is no room for it.
    pub fn of_body(&mut self, body: &[u8]) -> Result<Found, Refusal> {
        let hash = self.hash(body);
        if let Some(found) = self.by_hash(hash) {
            return Ok(found);
        }
        self.uses += 1;
        let found = self.keep(hash, body, Some(self.uses))?;
        if self.evaluated > EVALUATED_MAX {
            self.forget_oldest();
        }
        Ok(found)
    }

    /// The script that is kept under this hash, in hexadecimal of either case, to be run.
    pub fn of_hash(&mut self, text: &[u8]) -> Option<Found> {
        self.by_hash(parse_hash(text)?)
    }

    fn by_hash(&mut self, hash: Hash) -> Option<Found> {
        let kept = self.kept.get_mut(&hash)?;
        self.uses += 1;
        if let Some(used) = &mut kept.used {
            *used = self.uses;
        }
        Some(Found { hash, compiled: kept.compiled, declared: kept.declared })
    }

    /// What the script declares that is meant by this text, its own or that of its hash. `None`: it
    /// declares nothing, or makes no sense.
    pub fn declared(&mut self, text: &[u8]) -> Option<Declared> {
        let hash = parse_hash(text).filter(|hash| self.kept.contains_key(hash));
        let hash = hash.unwrap_or_else(|| self.hash(text));
        match self.kept.get(&hash) {
            Some(kept) => kept.declared,
            None => Declared::of_script(text).ok().flatten(),
        }
    }

    /// The text of the script that is kept under this hash, in hexadecimal of either case.
    pub fn body(&self, text: &[u8]) -> Option<&[u8]> {
        self.kept.get(&parse_hash(text)?).map(|kept| kept.body.as_slice())
    }

    /// Whether a script is kept under this hash, in hexadecimal of either case.
    pub fn contains(&self, text: &[u8]) -> bool {
        parse_hash(text).is_some_and(|hash| self.kept.contains_key(&hash))
    }

    /// Forgets all of them, and all that Lua keeps.
    pub fn flush(&mut self) {
        self.interpreter.clear();
        self.kept.clear();
        (self.evaluated, self.bytes) = (0, 0);
    }

    fn keep(&mut self, hash: Hash, body: &[u8], used: Option<u64>) -> Result<Found, Refusal> {
        let declared = Declared::of_script(body)?;
        let bytes = body.len() + SCRIPT_OVERHEAD_BYTES;
        while self.bytes + bytes > SCRIPTS_BYTES_MAX {
            if !self.forget_oldest() {
                return Err(Refusal::of("ERR the scripts that are kept take too much memory"));
            }
        }
        let compiled = self.interpreter.compile(Declared::source(body)).map_err(refusal)?;
        self.bytes += bytes;
        self.evaluated += usize::from(used.is_some());
        self.kept.insert(hash, Kept { body: body.to_vec(), compiled, declared, used });
        Ok(Found { hash, compiled, declared })
    }

    /// Forgets the script that was used longest ago, of those that were sent to be run; whether
    /// there was one.
    fn forget_oldest(&mut self) -> bool {
        let used = self.kept.iter().filter_map(|(hash, kept)| kept.used.map(|used| (used, *hash)));
        let Some((_, oldest)) = used.min() else { return false };
        if let Some(kept) = self.kept.remove(&oldest) {
            self.interpreter.forget(kept.compiled);
            self.bytes -= kept.body.len() + SCRIPT_OVERHEAD_BYTES;
            self.evaluated -= 1;
        }
        true
    }

    /// A text's hash. For one that was hashed lately, the text is compared instead, which is ten
    /// times as fast.
    fn hash(&mut self, body: &[u8]) -> Hash {
        let place = &mut self.recent[place(body)];
        if let Some(hash) = place
            && self.kept.get(hash).is_some_and(|kept| kept.body == body)
        {
            return *hash;
        }
        let hash = sha1(body);
        *place = Some(hash);
        hash
    }
}

/// What Lua says to a text that is no script.
pub fn refusal(error: ScriptError) -> Refusal {
    Refusal::new(String::from_utf8_lossy(&error.text).into_owned())
}

/// Where a text stands among the recent ones: texts of one length that begin or end alike share a
/// place.
fn place(body: &[u8]) -> usize {
    let step = (body.len() / 8).max(1);
    let sampled = body.iter().step_by(step).chain(body.last());
    sampled.fold(body.len(), |sum, byte| sum.wrapping_mul(31) + usize::from(*byte)) % RECENT
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

/// A hash in hexadecimal.
pub fn hash_text(hash: Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// A line that a script writes into the server's log.
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
        let text = hash_text(scripts.load(b"return 1").expect("it is a script"));
        assert_eq!(text, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert!(scripts.contains(text.as_bytes()));
        assert!(scripts.contains(text.to_ascii_uppercase().as_bytes()));
        assert!(!scripts.contains(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8d"));
        assert!(!scripts.contains(b"g0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    }

    #[test]
    fn scripts_stay_within_their_room() {
        let mut scripts = Scripts::default();
        let body = [b"-- ".to_vec(), vec![b'x'; SCRIPTS_BYTES_MAX / 2]].concat();
        scripts.load(&body).expect("there is room");
        scripts.load(&body).expect("it is kept already");
        assert_eq!(scripts.len(), 1);
        assert!(scripts.load(&body[..body.len() - 1]).is_err());
        assert!(scripts.bytes() <= SCRIPTS_BYTES_MAX);
    }

    #[test]
    fn scripts_that_were_only_run_go_the_one_used_longest_ago_first() {
        let mut scripts = Scripts::default();
        let body = |number: usize| format!("return {number}").into_bytes();
        let loaded = scripts.load(&body(9999)).expect("it is a script");
        for number in 0..EVALUATED_MAX {
            scripts.of_body(&body(number)).expect("it is a script");
        }
        scripts.of_body(&body(0)).expect("it is a script");
        scripts.load(&body(2)).expect("it is a script");
        assert_eq!(scripts.len(), EVALUATED_MAX + 1);
        // The loaded one made room.
        scripts.of_body(&body(1000)).expect("it is a script");
        assert!(scripts.contains(hash_text(sha1(&body(1))).as_bytes()));
        scripts.of_body(&body(1001)).expect("it is a script");
        scripts.of_body(&body(1002)).expect("it is a script");
        for (number, is_there) in [(0, true), (1, false), (2, true), (3, false), (4, true)] {
            let hash = hash_text(sha1(&body(number)));
            assert_eq!(scripts.contains(hash.as_bytes()), is_there, "{number}");
        }
        assert!(scripts.contains(hash_text(loaded).as_bytes()));
    }
}
