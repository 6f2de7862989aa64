//! The master keys that the operator gives the process: in a file, or in the environment.
//!
//! The text is the same in both: a key in a line, its name and its 32 bytes in hexadecimal or
//! base64; the first one is current. In the environment a comma ends a line too.

use base::machine::KeyHolder;
use config::settings::NodeSettings;
use encryption::{Keyring, Keys, MasterKeys};
use std::env;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use world::entropy::fill_random;
use world::secret_file;

/// The variable of the environment.
const VARIABLE: &str = "KILN_ENCRYPTION_KEYS";

/// The keys that a configuration or the environment gives.
///
/// # Errors
/// What the operator must correct.
pub fn of(settings: &NodeSettings) -> Result<Keys, Box<dyn Error>> {
    read(settings.encryption_key_file.as_deref())
}

/// The keys of a file, or else those of the environment, or none.
///
/// # Errors
/// As [`of`].
pub fn read(file: Option<&Path>) -> Result<Keys, Box<dyn Error>> {
    let text = env::var_os(VARIABLE);
    let keyring = match (file, &text) {
        (None, None) => return Ok(Keys::none()),
        (Some(file), _) => of_file_alone(file, text.is_some())?,
        (None, Some(text)) => {
            let parsed = of_variable(text.as_encoded_bytes());
            parsed.map_err(|why| format!("{VARIABLE}: {why}"))?
        }
    };
    Ok(Keys::new(Arc::new(keyring), Arc::new(fill_random))?)
}

/// The keys of a file, where the environment gives none: of two givers nobody could say which one
/// is meant, and the next start would refuse both.
fn of_file_alone(file: &Path, has_variable: bool) -> Result<Keyring, String> {
    if has_variable {
        let what = format!("encryption-key-file and {VARIABLE} both give keys: take one away");
        return Err(what);
    }
    of_file(file)
}

fn of_file(file: &Path) -> Result<Keyring, String> {
    let parsed = secret_file::read(file).and_then(|text| Keyring::parse(&text));
    parsed.map_err(|why| format!("encryption-key-file {}: {why}", file.display()))
}

fn of_variable(text: &[u8]) -> Result<Keyring, String> {
    let lines: Vec<u8> = text.iter().map(|&it| if it == b',' { b'\n' } else { it }).collect();
    Keyring::parse(&lines)
}

/// The keys of a process that runs: its file can be read again.
#[derive(Clone)]
pub struct Holder {
    keys: Keys,
    /// Those before the last reading.
    before: Arc<Mutex<Option<Arc<dyn MasterKeys>>>>,
}

impl Holder {
    pub fn new(keys: Keys) -> Self {
        Self { keys, before: Arc::default() }
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder").field("current", &self.keys.current()).finish_non_exhaustive()
    }
}

impl KeyHolder for Holder {
    fn read(&self, file: &Path) -> Result<(), String> {
        let before = self.keys.current();
        let keyring = of_file_alone(file, env::var_os(VARIABLE).is_some())?;
        let replaced = self.keys.replace(Arc::new(keyring));
        let replaced = replaced.map_err(|error| error.to_string())?;
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(replaced);
        let current = self.keys.current();
        if before != current {
            tracing::info!(key = current, "what is written is encrypted with another master key");
        }
        Ok(())
    }

    fn put_back(&self) {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(why)) = before.map(|before| self.keys.replace(before)) {
            tracing::warn!("the keys of before cannot be taken again: {why}");
        }
    }

    fn current(&self) -> Option<String> {
        self.keys.current()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encryption::MasterKeys;

    #[test]
    fn a_file_is_not_read_beside_the_environment() {
        // Of the two reasons to refuse it, the first one counts.
        let read =
            |has_variable| of_file_alone(Path::new("/nonexistent"), has_variable).map(|_| ());
        let (alone, beside) = (read(false), read(true));
        let why = alone.expect_err("there is no such file");
        assert!(why.starts_with("encryption-key-file /nonexistent: "), "{why}");
        let why = beside.expect_err("two give keys");
        assert!(why.contains("KILN_ENCRYPTION_KEYS both give keys"), "{why}");
    }

    #[test]
    fn a_comma_ends_a_line_in_the_environment() {
        let (one, two) = ("11".repeat(32), "22".repeat(32));
        for text in [format!("a {one}, b {two}"), format!("a {one}\nb {two}\n")] {
            let keyring = of_variable(text.as_bytes()).expect("the keys are right");
            assert_eq!(
                (keyring.current(), format!("{keyring:?}").as_str()),
                ("a", r#"["a", "b"]"#)
            );
        }
        assert!(of_variable(format!("a {one} {two}").as_bytes()).is_err());
    }
}
