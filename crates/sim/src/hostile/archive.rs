//! What an archive holds, as an enemy or a bad store may hand it back: manifests and stretches of
//! the log, with and without encryption, and what is encrypted by itself.

use super::NOW;
use crate::disk::SimDisk;
use archive::{
    Candidate, ChainPoint, Extent, Facts, LogStore, SnapshotPoint, SnapshotStore, StretchFacts,
};
use base::disk::Disk;
use base::{Epoch, Incarnation, Position, Sequence};
use bytes::BytesMut;
use encryption::{Entropy, Keyring, Keys, object};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const STORE: &str = "/archive";

/// The part of the snapshot, and the records of the stretch: opaque here.
const PART: &[u8] = b"the keys and values of a snapshot";
const RECORDS: &[u8] = b"the records of a log, one behind the other";

/// Two master keys; the first one is current.
const KEYS: &str = "one 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\
                    two ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

/// What encrypted bytes are bound to.
const CONTEXT: &str = "place 7";

/// Reads bytes as the input's first byte says: as a stretch's manifest, as a file of keys, as
/// patches to an encrypted object or payload, or as patches to an archive, `e` to an encrypted one.
///
/// # Panics
/// If something is read that is not what was written: the finding.
pub fn read_archive(input: &[u8]) {
    match input {
        [b's', bytes @ ..] => read_stretch(bytes),
        [b'k', bytes @ ..] => read_keys(bytes),
        [b'o', patches @ ..] => open_object(patches),
        [b'y', patches @ ..] => open_payload(patches),
        [b'e', patches @ ..] => read_patched(patches, keys()),
        [_, patches @ ..] => read_patched(patches, Keys::none()),
        [] => {}
    }
}

/// Bytes in the place of a stretch's manifest: what it names is read or refused.
fn read_stretch(bytes: &[u8]) {
    let (disk, store) = published(Keys::none());
    let manifest = files(&disk).into_iter().find(|it| it.ends_with("manifest.json"));
    let manifest = manifest.expect("the stretch, whose name comes first, has a manifest");
    overwrite(&disk, &manifest, bytes);
    for extent in store.log().list().expect("a disk without faults lists") {
        if let Ok(stretch) = store.log().find(&extent) {
            let facts = stretch.facts;
            assert_eq!((facts.first.sequence, facts.last), (extent.first, extent.last));
            let _ = records_of(&store.log(), &extent);
        }
    }
}

/// A file of keys is refused, or has a first key that wraps what it unwraps.
fn read_keys(text: &[u8]) {
    let Ok(keyring) = Keyring::parse(text) else { return };
    let keys = Keys::new(Arc::new(keyring), entropy()).expect("the keys are local");
    let current = keys.current().expect("there is a first one");
    let stored = object::encrypt(&keys, CONTEXT, PART).expect("the keys are local");
    assert_eq!(object::decrypt(&keys, CONTEXT, &stored).as_deref(), Ok(PART), "{current}");
}

/// An encrypted object with changed bytes is refused, or is what was encrypted.
fn open_object(patches: &[u8]) {
    let stored = object::encrypt(&keys(), CONTEXT, PART).expect("the keys are local");
    let changed = patched(stored, patches);
    if let Ok(plain) = object::decrypt(&keys(), CONTEXT, &changed) {
        assert_eq!(plain, PART, "what changed is refused");
    }
}

/// The same of a record's payload.
fn open_payload(patches: &[u8]) {
    let mut payload = BytesMut::from(PART);
    keys().encrypt_payload(CONTEXT.as_bytes(), &mut payload, 0);
    let changed = patched(payload.to_vec(), patches);
    let _ = encryption::key_name_of_payload(&changed);
    if let Ok(plain) = keys().decrypt_payload(CONTEXT.as_bytes(), &changed) {
        assert_eq!(plain, PART, "what changed is refused");
    }
}

/// A snapshot and a stretch some of whose bytes have changed are refused, or are what was
/// published.
fn read_patched(patches: &[u8], keys: Keys) {
    let (disk, store) = published(keys);
    patch(&disk, patches);
    for candidate in store.list().expect("a disk without faults lists") {
        let Candidate::Whole(snapshot) = candidate else { continue };
        let mut part = Vec::new();
        let read = store.open_part(&snapshot, 0).and_then(|mut it| it.read_to_end(&mut part));
        assert_eq!(snapshot.point, point(), "what changed is refused");
        assert!(read.is_err() || part == PART, "what changed is refused");
    }
    for extent in store.log().list().expect("a disk without faults lists") {
        if let Ok(records) = records_of(&store.log(), &extent) {
            assert_eq!(records, RECORDS, "what changed is refused");
        }
    }
}

fn records_of(log: &LogStore, extent: &Extent) -> io::Result<Vec<u8>> {
    let mut records = Vec::new();
    log.open(&log.find(extent)?)?.read_to_end(&mut records)?;
    Ok(records)
}

fn point() -> SnapshotPoint {
    let position = Position { incarnation: Incarnation(7), sequence: Sequence(42) };
    let (chain, epoch) = (0x0123_4567_89ab_cdef, Epoch(3));
    SnapshotPoint { position, chain, epoch, log_sum: Some(5), clock: NOW, began: NOW }
}

/// An archive with a snapshot and a stretch of the log.
fn published(keys: Keys) -> (SimDisk, SnapshotStore) {
    let disk = SimDisk::new(1);
    let store = SnapshotStore::open(Arc::new(disk.clone()), Path::new(STORE));
    let store = store.expect("a disk without faults makes directories").with_keys(keys);
    let mut writer = store.begin(point().position).expect("a disk without faults makes files");
    writer.write_part(PART).expect("a disk without faults takes bytes");
    let facts = Facts::unproven(point(), 1, 10);
    writer.publish(&facts).expect("a disk without faults reads back what was written");
    let at = |chain| ChainPoint { chain, epoch: Epoch(3) };
    let first = Position { sequence: Sequence(40), ..point().position };
    let last = Sequence(42);
    let facts = StretchFacts { first, last, before: at(1), behind: at(2), clock: NOW };
    store.log().write(facts, RECORDS).expect("a disk without faults takes bytes");
    (disk, store)
}

/// The files of the archive's entries, by name.
fn files(disk: &SimDisk) -> Vec<PathBuf> {
    let list = |path: &Path| disk.list(path).expect("a disk without faults lists");
    let folders = list(Path::new(STORE)).into_iter().filter(|entry| entry.is_directory);
    let folders = folders.map(|entry| Path::new(STORE).join(entry.name));
    let mut files: Vec<PathBuf> =
        folders.flat_map(|at| list(&at).into_iter().map(move |it| at.join(it.name))).collect();
    files.sort();
    files
}

fn overwrite(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open_write(path).expect("it is there");
    file.set_length(0).and_then(|()| file.write_at(0, bytes)).expect("there are no faults");
}

/// Changes files. The input is a list of patches: one byte for the file, two bytes of offset, one
/// byte of length, that many bytes. A patch of no bytes cuts the file there.
fn patch(disk: &SimDisk, mut input: &[u8]) {
    let files = files(disk);
    while let Some((&[file, low, high, length], rest)) = input.split_first_chunk() {
        let (bytes, rest) = rest.split_at(usize::from(length).min(rest.len()));
        input = rest;
        let Ok(file) = disk.open_write(&files[usize::from(file) % files.len()]) else { continue };
        let offset = u64::from(u16::from_le_bytes([low, high])) % 2048;
        // A disk without faults fails nothing.
        let _ = if length == 0 { file.set_length(offset) } else { file.write_at(offset, bytes) };
    }
}

/// The bytes with patches as of [`patch`], but for the byte that names a file.
fn patched(mut bytes: Vec<u8>, mut input: &[u8]) -> Vec<u8> {
    while let Some((&[low, high, length], rest)) = input.split_first_chunk() {
        let (new, rest) = rest.split_at(usize::from(length).min(rest.len()));
        input = rest;
        let offset = usize::from(u16::from_le_bytes([low, high])) % (bytes.len() + 1);
        if length == 0 {
            bytes.truncate(offset);
        } else {
            bytes.resize(bytes.len().max(offset + new.len()), 0);
            bytes[offset..offset + new.len()].copy_from_slice(new);
        }
    }
    bytes
}

fn keys() -> Keys {
    let keyring = Keyring::parse(KEYS.as_bytes()).expect("the keys are right");
    Keys::new(Arc::new(keyring), entropy()).expect("the keys are local")
}

/// The same bytes in each run.
fn entropy() -> Entropy {
    let count = AtomicU8::new(0);
    Arc::new(move |bytes: &mut [u8]| bytes.fill_with(|| count.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn random_patches_are_survived() {
        let mut random = Random::stream(1, "archive");
        for _ in 0..600 {
            let mut input = vec![b"koyep"[random.within(0..5) as usize]];
            for _ in 0..random.within(0..4) {
                let length = random.within(0..8) as u8;
                input.extend([random.draw() as u8, random.draw() as u8, random.within(0..6) as u8]);
                input.push(length);
                input.extend((0..length).map(|_| random.draw() as u8));
            }
            read_archive(&input);
        }
    }

    #[test]
    fn what_was_not_changed_is_read() {
        for keys in [keys(), Keys::none()] {
            let (_, store) = published(keys);
            let extent = Extent::of(Sequence(40), Sequence(42));
            assert_eq!(records_of(&store.log(), &extent).expect("it is whole"), RECORDS);
            assert!(store.list().expect("it lists")[0].whole().is_some());
        }
    }
}
