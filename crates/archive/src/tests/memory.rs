//! An archive in memory that fails on command: what the store asks of an archive, and no more.

use crate::archive::{
    Archive, CLAIM_BYTES_MAX, Claim, Draft, Entry, NewPart, StoredPart, Unfinished,
};
use crate::names::Content;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

/// What it holds, and what it does wrong.
#[derive(Default)]
pub struct State {
    pub snapshots: BTreeMap<String, Kept>,
    /// Calls so far, and the one that fails.
    pub calls: u64,
    pub fails_at: Option<u64>,
    /// Nothing can be begun for want of space.
    pub is_full: bool,
    /// One bit of what is appended changes on the way.
    pub garbles: bool,
    /// What the claim's holder said last.
    said: Option<Vec<u8>>,
    is_claimed: bool,
}

/// One snapshot, published or not.
#[derive(Clone, Default)]
pub struct Kept {
    pub parts: BTreeMap<String, Vec<u8>>,
    pub manifest: Option<Vec<u8>>,
    /// Its writer lives.
    is_being_written: bool,
}

#[derive(Clone, Default)]
pub struct MemoryArchive(Arc<Mutex<State>>);

impl MemoryArchive {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// A call: counted, and failed if it is its turn.
    fn call(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.calls += 1;
        if state.fails_at == Some(state.calls) {
            return Err(io::Error::other("failed on command"));
        }
        Ok(state)
    }
}

fn check_said(said: &[u8]) -> io::Result<()> {
    if said.len() > CLAIM_BYTES_MAX { Err(ErrorKind::InvalidInput.into()) } else { Ok(()) }
}

fn missing() -> io::Error {
    ErrorKind::NotFound.into()
}

impl Archive for MemoryArchive {
    fn location(&self) -> String {
        "memory".to_owned()
    }

    fn list(&self, of: Content) -> io::Result<Vec<Entry>> {
        let state = self.call()?;
        let entry = |(name, kept): (&String, &Kept)| Entry {
            name: name.clone(),
            is_published: kept.manifest.is_some(),
        };
        let ours = state.snapshots.iter().filter(|(name, _)| Content::of(name) == Some(of));
        Ok(ours.map(entry).collect())
    }

    fn begin(&self, name: &str) -> io::Result<Box<dyn Draft>> {
        let mut state = self.call()?;
        if state.snapshots.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        if state.is_full {
            return Err(ErrorKind::StorageFull.into());
        }
        state.snapshots.insert(name.to_owned(), Kept { is_being_written: true, ..Kept::default() });
        Ok(Box::new(MemoryDraft { archive: self.clone(), name: name.to_owned() }))
    }

    fn manifest(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let state = self.call()?;
        let manifest = state.snapshots.get(name).and_then(|kept| kept.manifest.clone());
        let manifest = manifest.ok_or_else(missing)?;
        if manifest.len() as u64 > bytes_max {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(manifest)
    }

    fn parts(&self, name: &str) -> io::Result<BTreeMap<String, u64>> {
        let state = self.call()?;
        let kept = state.snapshots.get(name).ok_or_else(missing)?;
        Ok(kept.parts.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect())
    }

    fn open(&self, name: &str, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        let state = self.call()?;
        let part = state.snapshots.get(name).and_then(|kept| kept.parts.get(part));
        Ok(Arc::new(Bytes(part.ok_or_else(missing)?.clone())))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call()?.snapshots.remove(name);
        Ok(())
    }

    fn remove_unpublished(&self, _: Unfinished) -> io::Result<()> {
        self.call()?.snapshots.retain(|_, kept| kept.manifest.is_some() || kept.is_being_written);
        Ok(())
    }

    fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        check_said(said)?;
        let mut state = self.call()?;
        if state.is_claimed {
            return Ok(None);
        }
        state.is_claimed = true;
        state.said = Some(said.to_vec());
        Ok(Some(Box::new(MemoryClaim(self.clone()))))
    }

    fn claimed(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.call()?.said.clone())
    }
}

struct MemoryClaim(MemoryArchive);

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        self.0.state().is_claimed = false;
    }
}

impl Claim for MemoryClaim {
    fn renew(&mut self, said: &[u8]) -> io::Result<bool> {
        check_said(said)?;
        self.0.call()?.said = Some(said.to_vec());
        Ok(true)
    }

    fn release(self: Box<Self>) -> io::Result<()> {
        self.0.call()?.said = None;
        Ok(())
    }
}

struct MemoryDraft {
    archive: MemoryArchive,
    name: String,
}

impl Drop for MemoryDraft {
    fn drop(&mut self) {
        if let Some(kept) = self.archive.state().snapshots.get_mut(&self.name) {
            kept.is_being_written = false;
        }
    }
}

impl Draft for MemoryDraft {
    fn part(&mut self, name: &str) -> io::Result<Box<dyn NewPart>> {
        let mut state = self.archive.call()?;
        let kept = state.snapshots.get_mut(&self.name).ok_or_else(missing)?;
        if kept.parts.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let (archive, of, name) = (self.archive.clone(), self.name.clone(), name.to_owned());
        Ok(Box::new(MemoryPart { archive, of, name, bytes: Vec::new() }))
    }

    fn read_back(&self, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        self.archive.open(&self.name, part)
    }

    fn publish(&mut self, manifest: &[u8]) -> io::Result<()> {
        let mut state = self.archive.call()?;
        let kept = state.snapshots.get_mut(&self.name).ok_or_else(missing)?;
        if kept.manifest.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        kept.manifest = Some(manifest.to_vec());
        Ok(())
    }

    fn abandon(self: Box<Self>) -> io::Result<()> {
        self.archive.remove(&self.name)
    }
}

struct MemoryPart {
    archive: MemoryArchive,
    of: String,
    name: String,
    bytes: Vec<u8>,
}

impl NewPart for MemoryPart {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let state = self.archive.call()?;
        self.bytes.extend_from_slice(bytes);
        if state.garbles
            && let Some(last) = self.bytes.last_mut()
        {
            *last ^= 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut state = self.archive.call()?;
        let kept = state.snapshots.get_mut(&self.of).ok_or_else(missing)?;
        kept.parts.insert(self.name, self.bytes);
        Ok(())
    }
}

struct Bytes(Vec<u8>);

impl StoredPart for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
