//! What a snapshot holds: an RDB file of anybody's, a manifest, the directory with both.

use super::{HASH_SEED, NOW, STEP_KEYS, load_all, save, survives_a_snapshot};
use crate::disk::SimDisk;
use archive::SnapshotPoint;
use archive::{Candidate, Facts, Manifest, Snapshot, SnapshotStore};
use base::disk::Disk;
use base::{DatabaseId, Epoch, HashKey, Incarnation, Position, Sequence, UnixMillis};
use engine::digest::Digest;
use engine::effect::{Effect, End};
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::settings::Settings;
use std::path::Path;
use std::sync::Arc;

const STORE: &str = "/snapshots";

/// Reads bytes as the input's first byte says: as an RDB file, as a manifest, or as patches to a
/// snapshot that was published.
///
/// # Panics
/// If what is read is not what was written: the finding.
pub fn load_snapshot(input: &[u8]) {
    match input {
        [b'm', bytes @ ..] => read_manifest(bytes),
        [b'p', bytes @ ..] => load_patched(bytes),
        [_, bytes @ ..] => load_file(bytes),
        [] => {}
    }
}

/// A foreign file is refused, or what it holds can be written and read back.
fn load_file(bytes: &[u8]) {
    if let Ok(keyspace) = load_all(Loader::new(bytes, NOW)) {
        survives_a_snapshot(&keyspace);
    }
}

/// A manifest that is read is written the same way.
fn read_manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        manifest.point().expect("a manifest that was decoded has a point");
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}

/// A published snapshot some of whose bytes have changed is refused, or it is what was published.
///
/// The input is a list of patches: one byte for the file, two bytes of offset, one byte of length,
/// that many bytes. A patch of no bytes cuts the file there.
fn load_patched(input: &[u8]) {
    let disk = SimDisk::new(1);
    let store = SnapshotStore::open(Arc::new(disk.clone()), Path::new(STORE))
        .expect("a disk without faults makes directories");
    let keyspace = sample();
    publish(&store, &keyspace);
    patch(&disk, input);
    for candidate in store.list().expect("a disk without faults lists") {
        let Candidate::Whole(snapshot) = candidate else { continue };
        let Some(read) = load_parts(&store, &snapshot) else { continue };
        let (keys, digest) = (keyspace.len() as u64, Digest::of_keyspace(&keyspace));
        assert_eq!(snapshot.manifest.keys, keys);
        assert_eq!(Digest::of_keyspace(&read), digest, "what changed is refused");
    }
}

/// All parts of a snapshot as a start loads them, if each is whole.
fn load_parts(store: &SnapshotStore, snapshot: &Snapshot) -> Option<Keyspace> {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(HASH_SEED + 1));
    for index in 0..snapshot.manifest.parts.len() {
        let part = store.open_part(snapshot, index).ok()?;
        let mut loader = Loader::of_own_file(part, snapshot.manifest.keys, NOW);
        while !loader.load(&mut keyspace, STEP_KEYS).ok()? {}
    }
    Some(keyspace)
}

/// In two parts: the first has all keys, and the second none.
fn publish(store: &SnapshotStore, keyspace: &Keyspace) {
    let position = Position { incarnation: Incarnation(7), sequence: Sequence(42) };
    let point = SnapshotPoint {
        position,
        chain: 0x0123_4567_89ab_cdef,
        epoch: Epoch(3),
        log_sum: None,
        clock: UnixMillis(NOW.0),
        began: UnixMillis(NOW.0),
    };
    let mut writer = store.begin(position).expect("a disk without faults makes files");
    writer.write_part(&save(keyspace)).expect("a disk without faults takes bytes");
    let empty = Keyspace::new(Settings::default(), HashKey::fixed(HASH_SEED));
    writer.write_part(&save(&empty)).expect("a disk without faults takes bytes");
    let facts = Facts::unproven(point, keyspace.len() as u64, 10);
    writer.publish(&facts).expect("a disk without faults reads back what was written");
}

fn sample() -> Keyspace {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(HASH_SEED));
    let effects: [(&[u8], Effect<'_>); 6] = [
        (b"s", Effect::SetString { value: b"text", expire_at: Some(NOW.0 + 1) }),
        (b"n", Effect::SetInteger { value: 7 }),
        (b"l", Effect::ListPush { end: End::Tail, value: b"1" }),
        (b"h", Effect::HashSet { field: b"f", value: b"v", expire_at: None }),
        (b"m", Effect::SetAdd { member: b"a" }),
        (b"z", Effect::SortedAdd { member: b"a", score: 1.5 }),
    ];
    for (key, effect) in effects {
        keyspace.apply(DatabaseId(0), key, &effect).expect("every key takes its own type");
    }
    keyspace
}

fn patch(disk: &SimDisk, mut input: &[u8]) {
    let directories = disk.list(Path::new(STORE)).expect("the store is there");
    let directory = directories.first().expect("the store has a snapshot");
    let directory = Path::new(STORE).join(&directory.name);
    while let Some((&[file, low, high, length], rest)) = input.split_first_chunk() {
        let (bytes, rest) = rest.split_at(usize::from(length).min(rest.len()));
        input = rest;
        let name = ["manifest.json", "part-0000.rdb", "manifest.json", "part-0001.rdb"];
        let name = name[usize::from(file & 3)];
        let Ok(file) = disk.open_write(&directory.join(name)) else { continue };
        let offset = u64::from(u16::from_le_bytes([low, high])) % 1024;
        // A disk without faults fails nothing.
        let _ = if length == 0 { file.set_length(offset) } else { file.write_at(offset, bytes) };
    }
}
