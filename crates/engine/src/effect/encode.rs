//! Effects into bytes.

use super::operand::Operand;
use super::table::is_keyless;
use super::{Effect, NEW_DATABASE, SAME_KEY, UNIT_BEGINS};
use base::DatabaseId;
use bytes::BytesMut;

/// Encodes the effects of one unit after another into one buffer, behind room for a record's
/// header, so that the log stamps the record in place.
#[derive(Debug)]
pub struct EffectEncoder {
    bytes: BytesMut,
    /// Bytes at the front left for the header.
    reserved: usize,
    /// The database of the last effect; the first effect of a record always names its own.
    database: Option<DatabaseId>,
    /// Where the last key stands in `bytes`.
    key: Option<(usize, usize)>,
    /// The next effect is the first of a unit, and others stand before it.
    begins_unit: bool,
}

impl EffectEncoder {
    /// An encoder whose buffers begin with `reserved` zero bytes.
    pub fn new(reserved: usize) -> Self {
        let bytes = BytesMut::zeroed(reserved);
        Self { bytes, reserved, database: None, key: None, begins_unit: false }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.reserved
    }

    /// Encoded length so far, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.reserved
    }

    /// The effects encoded so far.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.reserved..]
    }

    /// Begins a unit: its first effect names its database and key, and a byte tells it from the
    /// unit before it, if there is one. Units without effects leave nothing.
    pub fn begin_unit(&mut self) {
        self.database = None;
        self.key = None;
        self.begins_unit = !self.is_empty();
    }

    /// Moves the unit that is encoded behind those that `gathered` holds, which begins with as many
    /// reserved bytes; where in `gathered` the unit begins. The first to come gives its buffer
    /// away, so that a large unit is not copied.
    pub fn move_into(&mut self, gathered: &mut BytesMut) -> usize {
        if !self.is_empty() && gathered.len() > self.reserved {
            gathered.extend_from_slice(&[UNIT_BEGINS]);
        }
        let begins = gathered.len();
        if begins == self.reserved {
            std::mem::swap(gathered, &mut self.bytes);
        } else {
            gathered.extend_from_slice(self.payload());
            self.bytes.truncate(self.reserved);
        }
        self.begin_unit();
        begins
    }

    /// Takes the buffer, reserved bytes first, and starts the next one.
    pub fn take(&mut self) -> BytesMut {
        let capacity = self.bytes.len().min(1 << 20);
        self.database = None;
        self.key = None;
        self.begins_unit = false;
        let mut next = BytesMut::with_capacity(capacity.max(self.reserved));
        next.resize(self.reserved, 0);
        std::mem::replace(&mut self.bytes, next)
    }

    /// Appends one effect on `key` (empty and ignored for effects on whole databases).
    pub fn push(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        if std::mem::take(&mut self.begins_unit) {
            self.bytes.extend_from_slice(&[UNIT_BEGINS]);
        }
        let same_database = self.database == Some(database);
        let number = effect.opcode();
        let keyless = is_keyless(number);
        let same_key = !keyless
            && same_database
            && self.key.is_some_and(|(start, end)| &self.bytes[start..end] == key);
        let mut code = number;
        if !same_database {
            code |= NEW_DATABASE;
            self.database = Some(database);
        }
        if same_key {
            code |= SAME_KEY;
        }
        self.bytes.extend_from_slice(&[code]);
        if !same_database {
            database.put(&mut self.bytes);
        }
        if !keyless && !same_key {
            key.put(&mut self.bytes);
            self.key = Some((self.bytes.len() - key.len(), self.bytes.len()));
        }
        effect.put_operands(&mut self.bytes);
    }
}
