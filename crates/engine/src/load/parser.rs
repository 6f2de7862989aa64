//! A file read entry by entry, into what is to be put into a keyspace.

use super::decoded::Decoded;
use crate::access;
use crate::master::{self, ReplicaOf};
use crate::rdb::{OWN_FIELDS, PARTIAL, RdbError, Source, VERSION_TIMED, opcode};
use crate::value::growing::{Begun, Growing};
use crate::value::{Entry, Recipe};
use base::{DatabaseId, UnixMillis};
use std::io::Read;
use structures::entry::Payload;

/// The auxiliary field that says how much memory the data took, in bytes.
const USED_MEMORY: &[u8] = b"used-mem";

/// Reads one file.
pub(super) struct Parser<R> {
    pub source: Source<R>,
    database: DatabaseId,
    has_header: bool,
    pub is_done: bool,
    /// The key of the entry being read.
    key: Vec<u8>,
    /// That entry, if its value did not fit into the last slice.
    pub unfinished: Option<Unfinished>,
    /// The instant against which idle times count.
    now: UnixMillis,
    /// Keys for which tables may be laid out beforehand, and have been. What the file itself says
    /// is not believed: its bytes may be damaged.
    keys_known: u64,
    keys_reserved: u64,
    /// Keys read so far.
    pub keys: u64,
}

/// An entry of which a part was read.
pub(super) struct Unfinished {
    value: Growing,
    traits: Traits,
}

/// The attributes of an entry, which stand before its type.
#[derive(Clone, Copy, Default)]
struct Traits {
    expire_at: Option<i64>,
    /// The access word, if the file has one.
    access: Option<u32>,
}

/// How far one slice goes: to whichever comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Until {
    /// Keys of the whole file.
    pub keys: u64,
    /// The offset in the file. An element of a value may go beyond it.
    pub bytes: u64,
}

impl<R: Read> Parser<R> {
    pub fn new(source: Source<R>, keys_known: u64, now: UnixMillis) -> Self {
        Self {
            source,
            database: DatabaseId(0),
            has_header: false,
            is_done: false,
            key: Vec::new(),
            unfinished: None,
            now,
            keys_known,
            keys_reserved: 0,
            keys: 0,
        }
    }

    /// Reads on. What was read before stays as it is in `decoded`.
    ///
    /// # Errors
    /// [`RdbError`]; then what was read of the file is of no use.
    pub fn read(
        &mut self,
        recipe: &Recipe<'_>,
        until: Until,
        decoded: &mut Decoded,
    ) -> Result<(), RdbError> {
        let began = self.source.offset();
        if !self.has_header {
            self.header()?;
            self.has_header = true;
        }
        while !self.is_done && self.keys < until.keys && self.source.offset() < until.bytes {
            match self.unfinished.take() {
                Some(unfinished) => self.go_on(unfinished, recipe, until.bytes, decoded)?,
                None => self.next(recipe, until.bytes, decoded)?,
            }
        }
        decoded.bytes += self.source.offset() - began;
        decoded.is_end = self.is_done;
        Ok(())
    }

    fn header(&mut self) -> Result<(), RdbError> {
        let head: [u8; 9] = self.source.array()?;
        let digits = std::str::from_utf8(&head[5..]).ok();
        let version = digits.and_then(|digits| digits.parse::<u32>().ok());
        match version {
            Some(version) if head.starts_with(b"REDIS") && version >= 1 => {
                if version > VERSION_TIMED {
                    return Err(self.source.unsupported(format!("RDB version {version}")));
                }
                Ok(())
            }
            _ => Err(self.source.damaged("no RDB header")),
        }
    }

    /// Reads up to the end of the next entry, or of the file, or to `bytes_until` within an entry.
    fn next(
        &mut self,
        recipe: &Recipe<'_>,
        bytes_until: u64,
        decoded: &mut Decoded,
    ) -> Result<(), RdbError> {
        let mut traits = Traits::default();
        loop {
            let code = self.source.byte()?;
            match code {
                opcode::EXPIRE_MILLIS => {
                    traits.expire_at = Some(i64::from_le_bytes(self.source.array()?));
                }
                opcode::EXPIRE_SECONDS => {
                    let seconds = i32::from_le_bytes(self.source.array()?);
                    traits.expire_at = Some(i64::from(seconds) * 1000);
                }
                opcode::IDLE => {
                    let idle = self.source.length()?;
                    traits.access = Some(access::of_idle(idle, self.now));
                }
                opcode::FREQUENCY => {
                    traits.access = Some(access::of_frequency(self.source.byte()?, self.now));
                }
                opcode::AUX => self.auxiliary(decoded)?,
                opcode::RESIZE_DATABASE => self.sizes(decoded)?,
                opcode::SELECT_DATABASE => self.select(recipe)?,
                opcode::FUNCTION => {
                    let code = self.source.owned()?;
                    decoded.said().libraries.push((code, self.source.offset()));
                }
                opcode::FUNCTION_PREVIEW => {
                    return Err(self
                        .source
                        .unsupported("a library of functions of 7.0's previews"));
                }
                opcode::EOF => return self.end(),
                kind => return self.entry(kind, traits, recipe, bytes_until, decoded),
            }
        }
    }

    fn auxiliary(&mut self, decoded: &mut Decoded) -> Result<(), RdbError> {
        let name = self.source.owned()?;
        let value = self.source.owned()?;
        self.own_field(&name, &value, decoded)?;
        if name == USED_MEMORY {
            let text = std::str::from_utf8(&value).ok();
            decoded.said().used_memory = text.and_then(|text| text.parse().ok());
        }
        Ok(())
    }

    /// Takes a field of our own. One that is not known says what must be known: a newer version
    /// wrote it.
    fn own_field(&self, name: &[u8], value: &[u8], decoded: &mut Decoded) -> Result<(), RdbError> {
        if !name.starts_with(OWN_FIELDS.as_bytes()) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        match &*name {
            PARTIAL => decoded.said().is_partial = true,
            master::FIELD => {
                let said = std::str::from_utf8(value).ok().and_then(ReplicaOf::parse);
                let said = said.ok_or_else(|| self.source.damaged("no value of kiln-replicaof"))?;
                decoded.said().replica_of = Some(said);
            }
            _ => return Err(self.source.unsupported(format!("the field {name}"))),
        }
        Ok(())
    }

    fn select(&mut self, recipe: &Recipe<'_>) -> Result<(), RdbError> {
        let number = self.source.length()?;
        let count = recipe.settings.databases;
        if number >= u64::from(count) {
            let what = format!("database {number} (there are {count})");
            return Err(self.source.unsupported(what));
        }
        self.database = DatabaseId(number as u32);
        Ok(())
    }

    fn sizes(&mut self, decoded: &mut Decoded) -> Result<(), RdbError> {
        let keys = self.source.length()?.min(self.keys_known - self.keys_reserved);
        let _expiring = self.source.length()?;
        self.keys_reserved += keys;
        if keys > 0 {
            decoded.said().sizes.push((self.database, keys));
        }
        Ok(())
    }

    fn entry(
        &mut self,
        kind: u8,
        traits: Traits,
        recipe: &Recipe<'_>,
        bytes_until: u64,
        decoded: &mut Decoded,
    ) -> Result<(), RdbError> {
        let Self { source, key, .. } = self;
        source.text_into(key)?;
        match source.begin_value(kind, recipe, bytes_until)? {
            Begun::Whole(payload) => {
                let entry = Entry::new(key, payload, traits.expire_at);
                self.add(entry, traits, recipe, decoded);
                Ok(())
            }
            Begun::Growing(value) => {
                self.unfinished = Some(Unfinished { value, traits });
                Ok(())
            }
        }
    }

    /// Reads on in an entry that an earlier slice began.
    fn go_on(
        &mut self,
        mut unfinished: Unfinished,
        recipe: &Recipe<'_>,
        bytes_until: u64,
        decoded: &mut Decoded,
    ) -> Result<(), RdbError> {
        if !unfinished.value.grow(&mut self.source, recipe, bytes_until)? {
            self.unfinished = Some(unfinished);
            return Ok(());
        }
        let Unfinished { value, traits } = unfinished;
        let payload = Payload::Boxed(value.finish(&self.source)?);
        let entry = Entry::new(&self.key, payload, traits.expire_at);
        self.add(entry, traits, recipe, decoded);
        Ok(())
    }

    fn add(&mut self, entry: Entry, traits: Traits, recipe: &Recipe<'_>, decoded: &mut Decoded) {
        let fresh = || access::fresh(self.now, recipe.settings);
        entry.set_access(traits.access.unwrap_or_else(fresh));
        decoded.add(self.database, recipe.hasher.hash(&self.key), entry);
        self.keys += 1;
    }

    fn end(&mut self) -> Result<(), RdbError> {
        let computed = self.source.checksum();
        let stored = u64::from_le_bytes(self.source.array()?);
        // 0: whoever wrote the file had checksums switched off.
        if stored != 0 && computed.is_some_and(|computed| stored != computed) {
            return Err(self.source.damaged("a wrong checksum"));
        }
        if !self.source.is_at_end()? {
            return Err(self.source.damaged("bytes behind the end of the file, right"));
        }
        self.is_done = true;
        Ok(())
    }
}
