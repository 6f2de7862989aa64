//! An archive in which nothing can be read without a key, over one that keeps bytes.
//!
//! ```text
//! part-0000.rdb  ── in chunks, as it is written ──▶  part-0000.rdb.enc
//! manifest.json  ── as a whole                  ──▶  manifest.json
//! ```
//! Each has a data key of its own ([`encryption::object`]) and is bound to its snapshot's and its
//! own name. Names, numbers of bytes and the words of a claim stay readable. What was written
//! without encryption is read as it is, so it can be switched on over an archive that is in use.

mod part;

use crate::archive::{Archive, Claim, Draft, Entry, NewPart, Published, StoredPart, Unfinished};
use crate::manifest::MANIFEST;
use crate::names::Content;
use encryption::object::{self, Encryptor};
use encryption::{KeyError, Keys};
use part::EncryptedPart;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Behind the name of an encrypted part, so that nobody takes it for an RDB file.
const SUFFIX: &str = ".enc";

/// Reads what is encrypted and what is not, and encrypts what it writes if there are keys.
pub(crate) struct EncryptedArchive {
    archive: Arc<dyn Archive>,
    keys: Keys,
}

impl EncryptedArchive {
    pub fn over(archive: Arc<dyn Archive>, keys: Keys) -> Self {
        Self { archive, keys }
    }
}

impl Archive for EncryptedArchive {
    fn location(&self) -> String {
        self.archive.location()
    }

    fn list(&self, of: Content) -> io::Result<Vec<Entry>> {
        self.archive.list(of)
    }

    fn published(&self, of: Content) -> io::Result<Vec<Published>> {
        let published = self.archive.published(of)?.into_iter();
        let plain = published.map(|it| Published { parts: it.parts.map(plain_parts), ..it });
        Ok(plain.collect())
    }

    fn begin(&self, name: &str) -> io::Result<Box<dyn Draft>> {
        let draft = self.archive.begin(name)?;
        if !self.keys.are_there() {
            return Ok(draft);
        }
        Ok(Box::new(EncryptedDraft { draft, name: name.to_owned(), keys: self.keys.clone() }))
    }

    fn manifest(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let stored = self.archive.manifest(name, object::stored_bytes(bytes_max))?;
        let plain = match object::is_encrypted(&stored) {
            true => object::decrypt(&self.keys, &context(name, MANIFEST), &stored).map_err(told)?,
            false => stored,
        };
        if plain.len() as u64 > bytes_max {
            let what = format!("{} bytes are more than a manifest has", plain.len());
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        Ok(plain)
    }

    fn parts(&self, name: &str) -> io::Result<BTreeMap<String, u64>> {
        Ok(plain_parts(self.archive.parts(name)?))
    }

    fn open(&self, name: &str, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        let encrypted = || -> io::Result<Arc<dyn StoredPart>> {
            let stored = self.archive.open(name, &format!("{part}{SUFFIX}"))?;
            Ok(Arc::new(EncryptedPart::new(stored, self.keys.clone(), context(name, part))))
        };
        let plain = || self.archive.open(name, part);
        let is_missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
        // The likely one first, because each is a journey to the archive.
        let [first, second]: [&dyn Fn() -> io::Result<Arc<dyn StoredPart>>; 2] =
            if self.keys.are_there() { [&encrypted, &plain] } else { [&plain, &encrypted] };
        first().or_else(|error| if is_missing(&error) { second() } else { Err(error) })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.archive.remove(name)
    }

    fn remove_unpublished(&self, of: Unfinished) -> io::Result<()> {
        self.archive.remove_unpublished(of)
    }

    fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        self.archive.claim(said)
    }

    fn claimed(&self) -> io::Result<Option<Vec<u8>>> {
        self.archive.claimed()
    }
}

/// The names and lengths that parts have when they are decrypted.
fn plain_parts(stored: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let plain = stored.into_iter().map(|(part, bytes)| match part.strip_suffix(SUFFIX) {
        // One that was cut has a length that no part has, and none that the manifest says.
        Some(plain) => (plain.to_owned(), object::plain_bytes(bytes).unwrap_or(bytes)),
        None => (part, bytes),
    });
    plain.collect()
}

struct EncryptedDraft {
    draft: Box<dyn Draft>,
    name: String,
    keys: Keys,
}

impl Draft for EncryptedDraft {
    fn part_name(&self, index: usize) -> String {
        self.draft.part_name(index)
    }

    fn part(&mut self, name: &str) -> io::Result<Box<dyn NewPart>> {
        let context = context(&self.name, name);
        let (encryptor, stored) = Encryptor::begin(&self.keys, &context).map_err(told)?;
        let part = self.draft.part(&format!("{name}{SUFFIX}"))?;
        Ok(Box::new(EncryptedNewPart { part, encryptor, stored }))
    }

    fn read_back(&self, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        let stored = self.draft.read_back(&format!("{part}{SUFFIX}"))?;
        let context = context(&self.name, part);
        Ok(Arc::new(EncryptedPart::new(stored, self.keys.clone(), context)))
    }

    fn publish(&mut self, manifest: &[u8]) -> io::Result<()> {
        let context = context(&self.name, MANIFEST);
        let stored = object::encrypt(&self.keys, &context, manifest).map_err(told)?;
        self.draft.publish(&stored)
    }

    fn abandon(self: Box<Self>) -> io::Result<()> {
        self.draft.abandon()
    }
}

struct EncryptedNewPart {
    part: Box<dyn NewPart>,
    encryptor: Encryptor,
    /// Encrypted, and not yet handed on.
    stored: Vec<u8>,
}

impl NewPart for EncryptedNewPart {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // In steps, so that what is handed over at once is not in memory twice.
        for piece in bytes.chunks(object::CHUNK_BYTES) {
            self.encryptor.append(piece, &mut self.stored);
            if !self.stored.is_empty() {
                self.part.append(&self.stored)?;
                self.stored.clear();
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.encryptor.finish(&mut self.stored);
        self.part.append(&self.stored)?;
        self.part.finish()
    }
}

/// What an object is bound to.
fn context(name: &str, object: &str) -> String {
    format!("{name}/{object}")
}

/// A failure to decrypt, as an archive's. Without the key nothing is known of what is stored, so it
/// must not count as damaged.
fn told(error: KeyError) -> io::Error {
    let kind = match &error {
        KeyError::Service(_) => ErrorKind::Other,
        error if error.may_be_whole() => ErrorKind::PermissionDenied,
        _ => ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests;
