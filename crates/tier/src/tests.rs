//! A tier with a file in memory, and keys that have places.

mod accounts;
mod amplification;
mod damage;
mod large;
mod model;

use super::*;
use std::collections::BTreeMap;

/// Small ones, so that few records fill pieces and segments.
const LIMITS: Limits = Limits {
    segment_bytes: 64 << 10,
    piece_bytes: 8 << 10,
    packed_bytes_max: 4 << 10,
    record_bytes_max: 20 << 10,
    buffered_bytes_max: 64 << 10,
    writes_max: 1,
    fill_percent_max: 90,
    free_percent_min: 5,
    free_segments_min: 4,
    reserve_segments: 2,
    room_percent_min: 5,
    file_bytes_max: u64::MAX,
};

/// What goes to threads and comes back.
const _: () = {
    const fn is_sent<T: Send + Sync>() {}
    is_sent::<Write>();
    is_sent::<Read>();
    is_sent::<Chunk>();
    is_sent::<Found>();
    is_sent::<Sealer>();
    is_sent::<Draft>();
    is_sent::<Shared>();
    is_sent::<Tier>();
};

/// What every content has somewhere, if it is long enough.
const MARK: &[u8] = b"plain text of a value";

/// A content of some length, different for each seed.
fn content(seed: u64, length: usize) -> Vec<u8> {
    let seed = seed.to_le_bytes();
    seed.iter().chain(MARK).chain(&seed).copied().cycle().take(length).collect()
}

fn sealer(number: u8) -> Sealer {
    Sealer::new(&std::array::from_fn(|at| at as u8 ^ number))
}

/// A tier, its file, and the keys whose values lie there: a key is its own hash.
struct Driven {
    tier: Tier,
    sealer: Sealer,
    file: Vec<u8>,
    keys: BTreeMap<u64, (Place, Vec<u8>)>,
    /// Bytes that were written, and those of records that cleaning moved.
    written_bytes: usize,
    moved_bytes: usize,
}

impl Driven {
    fn new(limits: Limits, segments: usize) -> Self {
        let tier = Tier::new(limits, (segments * limits.segment_bytes) as u64);
        let (file, keys) = (Vec::new(), BTreeMap::new());
        Self { tier, sealer: sealer(0), file, keys, written_bytes: 0, moved_bytes: 0 }
    }

    /// Puts a key's new value, and releases the old one.
    fn set(&mut self, key: u64, content: Vec<u8>) -> Result<Place, Refused> {
        let place = self.tier.put(key, &content)?;
        if let Some((old, _)) = self.keys.insert(key, (place, content)) {
            self.tier.release(old);
        }
        Ok(place)
    }

    fn remove(&mut self, key: u64) {
        if let Some((place, _)) = self.keys.remove(&key) {
            self.tier.release(place);
        }
    }

    /// Writes the first bytes of a piece, whatever its fate.
    fn write(&mut self, write: &Write, bytes: usize) {
        let mut pages = Vec::new();
        let start = write.seal_part(&self.sealer, 0..write.length(), &mut pages);
        assert!(pages.as_ptr().wrapping_add(start).addr().is_multiple_of(PAGE_BYTES));
        assert_eq!(pages.len() - start, write.length());
        let offset = write.offset() as usize;
        if self.file.len() < offset + bytes {
            self.file.resize(offset + bytes, 0xee);
        }
        self.file[offset..offset + bytes].copy_from_slice(&pages[start..start + bytes]);
    }

    fn write_all(&mut self) {
        while let Some(write) = self.tier.next_write() {
            self.write(&write, write.length());
            self.written_bytes += write.length();
            self.tier.written(write.id());
        }
    }

    /// Gives the end of the file back that nothing needs.
    fn shrink(&mut self) {
        let length = self.tier.drop_free_end() as usize;
        self.file.truncate(length);
    }

    /// The bytes of the file there, and nothing where it was never written.
    fn bytes(&self, offset: u64, length: usize) -> Vec<u8> {
        let from = (offset as usize).min(self.file.len());
        let to = (offset as usize + length).min(self.file.len());
        self.file[from..to].to_vec()
    }

    /// The content, wherever the record lies.
    fn fetch(&self, place: Place) -> Result<Vec<u8>, Damaged> {
        let mut content = Vec::new();
        if self.tier.in_memory(place, &mut content) {
            let shared = self.tier.share(place);
            assert!(shared.is_none_or(|shared| shared.content() == content));
            return Ok(content);
        }
        let read = self.tier.read(place);
        let mut pages = self.bytes(read.offset(), read.length());
        let range = read.open(&self.sealer, &mut pages)?;
        Ok(pages[range].to_vec())
    }

    fn assert_has(&self, place: Place, key: u64, content: &[u8]) {
        let fetched = self.fetch(place).expect("a record is readable until released");
        assert!(fetched == content, "the value of {key}");
    }

    fn check(&self) {
        for (&key, (place, content)) in &self.keys {
            self.assert_has(*place, key, content);
        }
        self.tier.check(self.keys.values().map(|(place, _)| *place));
    }

    /// Moves what is live of a chunk; tells the next one, or why it went no further.
    fn clean_chunk(&mut self, chunk: Chunk) -> Result<Option<Chunk>, Refused> {
        let mut bytes = self.bytes(chunk.offset(), chunk.length());
        let mut records = Vec::new();
        let next = chunk.open(&self.sealer, &mut bytes, &mut records).expect("it was written");
        for Found { place, hash, content } in records {
            if self.keys.get(&hash).is_none_or(|(now, _)| *now != place) {
                continue;
            }
            let moved = match self.move_on(hash, &bytes[content.clone()]) {
                Err(Refused::Behind) => {
                    self.write_all();
                    self.move_on(hash, &bytes[content])?
                }
                other => other?,
            };
            self.keys.get_mut(&hash).expect("it was there").0 = moved;
            self.moved_bytes += moved.length();
            self.tier.release(place);
        }
        Ok(next)
    }

    /// Puts a survivor, by a copy of its content if it is long.
    fn move_on(&mut self, hash: u64, content: &[u8]) -> Result<Place, Refused> {
        if content.len() < LIMITS.packed_bytes_max {
            return self.tier.put_survivor(hash, content);
        }
        self.tier.put_surviving_draft(hash, Draft::of(content)).map_err(|(why, _)| why)
    }

    /// Cleans as long as the tier asks for it and there is room for survivors.
    fn clean(&mut self) {
        while let Some(cleaning) = self.tier.begin_cleaning() {
            let mut next = Ok(Some(cleaning.first()));
            while let Ok(Some(chunk)) = next {
                next = self.clean_chunk(chunk);
            }
            self.tier.end_cleaning(&cleaning);
            if next.is_err() {
                return;
            }
            self.assert_left(&cleaning);
        }
    }

    /// A cleaning that came to its end has left nothing live.
    fn assert_left(&self, cleaning: &Cleaning) {
        let range = cleaning.range();
        assert!(self.keys.values().all(|(place, _)| !range.contains(&place.offset())));
    }

    fn close(&mut self) {
        self.tier.close_pieces();
        self.write_all();
    }
}

/// Numbers that look random, and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}
