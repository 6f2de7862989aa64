//! An encrypted part, read by ranges of what it held.

use super::told;
use crate::archive::StoredPart;
use encryption::Keys;
use encryption::object::{CHUNK_BYTES, HEADER_BYTES, ObjectKey, STORED_CHUNK_BYTES, chunk_at};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

/// Chunks read at once: readers ask for some hundred KiB.
const CHUNKS_MAX: usize = 16;

/// A part that is decrypted as it is read. Its header is read with its first bytes, so that one
/// that is damaged shows as what any other damage is.
pub(super) struct EncryptedPart {
    stored: Arc<dyn StoredPart>,
    keys: Keys,
    /// What the part is bound to.
    context: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    object: Option<ObjectKey>,
    /// The chunk that was decrypted last and not read to its end: whoever reads on needs it.
    chunk: Option<Chunk>,
}

struct Chunk {
    number: u64,
    bytes: Vec<u8>,
}

impl EncryptedPart {
    pub fn new(stored: Arc<dyn StoredPart>, keys: Keys, context: String) -> Self {
        Self { stored, keys, context, state: Mutex::default() }
    }

    /// The key, and the chunk that is remembered. Others that read meanwhile go without it.
    fn take(&self) -> io::Result<(ObjectKey, Option<Chunk>)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = state.chunk.take();
        if let Some(object) = &state.object {
            return Ok((object.clone(), chunk));
        }
        let mut header = [0; HEADER_BYTES];
        let count = self.stored.read_at(0, &mut header)?;
        let object = ObjectKey::open(&self.keys, &self.context, &header[..count]).map_err(told)?;
        state.object = Some(object.clone());
        Ok((object, chunk))
    }

    fn remember(&self, chunk: Chunk) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).chunk = Some(chunk);
    }

    /// Where nothing is stored a part either ended before, with a chunk that is not full, or was
    /// cut.
    fn must_have_ended(&self, number: u64, begin: u64) -> io::Result<()> {
        let is_cut = number == 0 || self.stored.read_at(begin - 1, &mut [0])? == 1;
        if is_cut {
            let what = format!("it is cut before its chunk {number}");
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        Ok(())
    }
}

impl StoredPart for EncryptedPart {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let (object, mut remembered) = self.take()?;
        let mut filled = 0;
        while filled < into.len() {
            let at = offset.saturating_add(filled as u64);
            let number = at / CHUNK_BYTES as u64;
            let within = usize::try_from(at % CHUNK_BYTES as u64).expect("less than a chunk");
            if let Some(chunk) = remembered.take().filter(|chunk| chunk.number == number) {
                let is_last = chunk.bytes.len() < CHUNK_BYTES;
                let count = copy(&chunk.bytes, within, &mut into[filled..]);
                filled += count;
                if within + count < chunk.bytes.len() {
                    self.remember(chunk);
                }
                if is_last {
                    break;
                }
                continue;
            }
            let wanted = (within + into.len() - filled).div_ceil(CHUNK_BYTES).min(CHUNKS_MAX);
            let mut stored = vec![0; wanted * STORED_CHUNK_BYTES];
            // Behind the last number nothing can be stored.
            let Some(begin) = chunk_at(number) else { break };
            let read = self.stored.read_at(begin, &mut stored)?;
            if read == 0 {
                self.must_have_ended(number, begin)?;
                break;
            }
            let (chunk, ended) =
                self.decrypt(&object, number, &mut stored[..read], within, into, &mut filled)?;
            if let Some(chunk) = chunk {
                self.remember(chunk);
            }
            if ended {
                break;
            }
        }
        Ok(filled)
    }
}

impl EncryptedPart {
    /// Decrypts stored chunks, from this number on, and copies what lies behind `within` of the
    /// first. The chunk that was not read to its end, and whether the part ended.
    fn decrypt(
        &self,
        object: &ObjectKey,
        first: u64,
        stored: &mut [u8],
        mut within: usize,
        into: &mut [u8],
        filled: &mut usize,
    ) -> io::Result<(Option<Chunk>, bool)> {
        for (number, stored) in (first..).zip(stored.chunks_mut(STORED_CHUNK_BYTES)) {
            let count = object.decrypt_chunk(number, stored).map_err(|error| {
                let error = told(error);
                io::Error::new(error.kind(), format!("chunk {number}: {error}"))
            })?;
            let bytes = &stored[..count];
            let copied = copy(bytes, within, &mut into[*filled..]);
            *filled += copied;
            let is_left = within + copied < count;
            if is_left || count < CHUNK_BYTES {
                let chunk = is_left.then(|| Chunk { number, bytes: bytes.to_vec() });
                return Ok((chunk, count < CHUNK_BYTES));
            }
            within = 0;
        }
        Ok((None, false))
    }
}

/// Copies from a place in some bytes on; how many.
fn copy(bytes: &[u8], from: usize, into: &mut [u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let count = rest.len().min(into.len());
    into[..count].copy_from_slice(&rest[..count]);
    count
}
