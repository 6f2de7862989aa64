//! Long values on their way back: decoded by the thread that has read them.

use crate::keyspace::Keyspace;
use crate::settings::Settings;
use crate::value::content::with_payload;
use crate::value::{Recipe, Value};
use crate::work::Work;
use structures::KeyHasher;
use structures::entry::Payload;

/// Settings and seed of a keyspace, with which another thread decodes values for it.
pub struct Builder {
    settings: Settings,
    hasher: KeyHasher,
}

/// A value as it was read of the store, decoded if it is long. Made by the thread that reads.
pub enum Brought {
    /// The content of a record.
    Content(Vec<u8>),
    /// The value in it.
    Value(Box<Value>),
}

impl Builder {
    /// Decodes the content of a record. What is short has no box of its own, and is left as it is.
    ///
    /// # Errors
    /// It is no value's.
    pub fn build(&self, content: &[u8]) -> Result<Brought, String> {
        // Long work of a command lets the loop do what is urgent between its steps. This is none.
        let work = Work::default();
        let recipe = Recipe { settings: &self.settings, hasher: self.hasher, work: &work };
        let built = with_payload(content, &recipe, |payload| match payload {
            Payload::Boxed(value) => Some(value),
            _ => None,
        });
        let built = built.map_err(|error| format!("a value cannot be decoded: {error}"))?;
        Ok(built.map_or_else(|| Brought::Content(content.to_vec()), Brought::Value))
    }
}

impl Keyspace {
    /// A decoder of values for this keyspace, for another thread.
    pub fn builder(&self) -> Builder {
        Builder { settings: self.settings.clone(), hasher: self.hasher }
    }
}
