//! Effects from bytes. None are believed: they may be damaged, or of a newer version.

use super::operand::Operand;
use super::table::is_keyless;
use super::{Effect, EffectError, NEW_DATABASE, SAME_KEY, UNIT_BEGINS};
use base::DatabaseId;

/// Reads effects back from a record's payload.
#[derive(Debug)]
pub struct EffectDecoder<'a> {
    payload: &'a [u8],
    offset: usize,
    database: Option<DatabaseId>,
    key: Option<&'a [u8]>,
    /// Of the effect that was read last, counted from 0.
    unit: u64,
}

impl<'a> EffectDecoder<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload, offset: 0, database: None, key: None, unit: 0 }
    }

    /// The unit of the effect that was read last, counted from 0 in this payload. Releases before
    /// this rule told units apart by records only: to them a payload was one unit.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// The next effect with its database and key, `None` at the end.
    ///
    /// # Errors
    /// [`EffectError`] if the bytes are not effects: damage, or a newer version's opcode.
    #[allow(clippy::type_complexity, reason = "a name for the triple would tell less than it does")]
    pub fn next_effect(
        &mut self,
    ) -> Result<Option<(DatabaseId, &'a [u8], Effect<'a>)>, EffectError> {
        let Some(mut first) = self.opcode() else { return Ok(None) };
        if first == UNIT_BEGINS {
            // Behind an effect, always: where there is none there is no database.
            self.database.take().ok_or_else(|| self.error("a unit without effects"))?;
            self.key = None;
            self.unit += 1;
            first = self.opcode().ok_or_else(|| self.error("a unit without effects"))?;
        }
        if first & NEW_DATABASE != 0 {
            self.database = Some(DatabaseId::take(self)?);
        }
        let database = self.database.ok_or_else(|| self.error("effect without a database"))?;
        let code = first & !(NEW_DATABASE | SAME_KEY);
        let key = if is_keyless(code) {
            &[][..]
        } else if first & SAME_KEY != 0 {
            self.key.ok_or_else(|| self.error("effect repeats a key that is not there"))?
        } else {
            let key = self.bytes()?;
            self.key = Some(key);
            key
        };
        Ok(Some((database, key, self.operands(code)?)))
    }

    fn opcode(&mut self) -> Option<u8> {
        let opcode = *self.payload.get(self.offset)?;
        self.offset += 1;
        Some(opcode)
    }

    pub(super) fn error(&self, what: &'static str) -> EffectError {
        EffectError { offset: self.offset, what }
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], EffectError> {
        let bytes = self.payload.get(self.offset..).and_then(|rest| rest.first_chunk::<N>());
        let bytes = *bytes.ok_or_else(|| self.error("effect cut short"))?;
        self.offset += N;
        Ok(bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], EffectError> {
        let length = u32::from_le_bytes(self.fixed()?) as usize;
        let bytes = self.payload.get(self.offset..self.offset.saturating_add(length));
        let bytes = bytes.ok_or_else(|| self.error("effect cut short"))?;
        self.offset += length;
        Ok(bytes)
    }
}
