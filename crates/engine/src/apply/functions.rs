//! Effects on libraries of functions.

use super::Applied;
use crate::effect::Effect;
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;

impl Keyspace {
    /// # Errors
    /// The first line of the code names no library.
    pub(super) fn change_libraries(&mut self, effect: &Effect<'_>) -> Result<Applied, Refusal> {
        let has_changed = match *effect {
            Effect::FunctionLoad { code } => {
                self.libraries.load(code).map_err(Refusal::new)?;
                true
            }
            Effect::FunctionDelete { name } => self.libraries.delete(name),
            Effect::FunctionFlush => self.libraries.flush(),
            _ => unreachable!("only effects on libraries are handed in"),
        };
        Ok(if has_changed { Applied::Changed } else { Applied::Nothing })
    }
}
