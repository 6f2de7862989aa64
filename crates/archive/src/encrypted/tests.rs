//! The store over an archive that is encrypted.

use super::*;
use crate::conformance;
use crate::tests::memory::{Kept, MemoryArchive};
use crate::tests::{MemoryBench, whole, write};
use crate::{Candidate, Limits, Snapshot, SnapshotStore};
use encryption::Keyring;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const TWO: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn ring(text: &str) -> Arc<Keyring> {
    Arc::new(Keyring::parse(text.as_bytes()).expect("the keys are right"))
}

/// Keys of which none is made twice.
fn keys(text: &str) -> Keys {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let entropy = |bytes: &mut [u8]| {
        for piece in bytes.chunks_mut(8) {
            let next = COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            piece.copy_from_slice(&next[..piece.len()]);
        }
    };
    Keys::new(ring(text), Arc::new(entropy)).expect("the keys are local")
}

fn one() -> Keys {
    keys(&format!("one {ONE}"))
}

fn store(keys: Keys) -> (MemoryArchive, SnapshotStore) {
    let archive = MemoryArchive::default();
    (archive.clone(), SnapshotStore::over(Arc::new(archive)).with_keys(keys))
}

/// Words that are found again.
fn words(count: usize) -> Vec<u8> {
    (0..count).flat_map(|n| format!("word {n:08}; ").into_bytes()).collect()
}

fn read(store: &SnapshotStore, snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for index in 0..snapshot.manifest.parts.len() {
        store.open_part(snapshot, index)?.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[test]
fn it_keeps_what_every_archive_must() {
    conformance::run_encrypted(&mut MemoryBench::default());
}

#[test]
fn a_snapshot_is_read_as_it_was_written_and_shows_nothing() {
    let (archive, store) = store(one());
    let bytes = words(1000);
    let written = write(&store, 7, &bytes).expect("it can be written");
    assert_eq!(whole(&store), std::slice::from_ref(&written));
    assert_eq!(read(&store, &written).expect("it is whole"), bytes);
    let state = archive.state();
    let kept = &state.snapshots[&written.name];
    assert!(kept.parts.len() > 10 && kept.parts.keys().all(|name| name.ends_with(".rdb.enc")));
    let manifest = kept.manifest.as_ref().expect("it is published");
    for stored in kept.parts.values().chain([manifest]) {
        assert!(!holds(stored, b"word") && !holds(stored, b"crc32c"));
    }
}

#[test]
fn a_part_is_read_by_any_ranges() {
    let archive: Arc<dyn Archive> = Arc::new(MemoryArchive::default());
    let encrypted = EncryptedArchive::over(archive, one());
    let bytes = words(20_000);
    let mut draft = encrypted.begin("snapshot-a").expect("nobody has the name");
    let mut part = draft.part("p").expect("it can be begun");
    part.append(&bytes).expect("it can be written");
    part.finish().expect("it can be finished");
    let part = draft.read_back("p").expect("it is finished");
    for size in [1, 4096, object::CHUNK_BYTES - 1, object::CHUNK_BYTES, 150_000, 3 << 20] {
        let from = if size == 1 { bytes.len() - 70_000 } else { 0 };
        let (mut at, mut piece) = (from, vec![0; size]);
        loop {
            let count = part.read_at(at as u64, &mut piece).expect("it is whole");
            assert_eq!(piece[..count], bytes[at..bytes.len().min(at + size)], "{size} at {at}");
            at += count;
            if count == 0 {
                break;
            }
        }
        assert_eq!(at, bytes.len());
    }
    for at in [bytes.len() as u64 + 70_000, u64::MAX - 1] {
        assert_eq!(part.read_at(at, &mut [0; 9]).expect("it ended"), 0);
    }
}

#[test]
fn what_was_written_before_the_encryption_is_read_and_what_comes_behind_it_is_encrypted() {
    let (archive, plain) = store(Keys::none());
    let before = write(&plain, 7, &words(100)).expect("it can be written");
    let store = plain.with_keys(one());
    let behind = write(&store, 8, &words(200)).expect("it can be written");
    assert_eq!(whole(&store), [behind.clone(), before.clone()]);
    assert_eq!(read(&store, &before).expect("it is whole"), words(100));
    assert_eq!(read(&store, &behind).expect("it is whole"), words(200));
    let state = archive.state();
    let is_plain = |snapshot: &Snapshot| {
        state.snapshots[&snapshot.name].parts.keys().all(|name| name.ends_with(".rdb"))
    };
    assert!(is_plain(&before) && !is_plain(&behind));
}

/// Why the one snapshot that is there cannot be used, and whether it may be whole.
fn unusable(store: &SnapshotStore) -> (String, bool) {
    match &store.list().expect("it can be listed")[..] {
        [Candidate::Damaged { why, may_be_whole, .. }] => (why.clone(), *may_be_whole),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lost_key_is_named_and_what_it_encrypted_stays() {
    let (_, store) = store(one());
    let store = store.with_limits(Limits { retained: 1, ..Limits::default() });
    let written = write(&store, 7, &words(10)).expect("it can be written");
    for lost in [Keys::none(), keys(&format!("two {TWO}")), keys(&format!("one {TWO}"))] {
        let store = store.clone().with_keys(lost);
        let (why, may_be_whole) = unusable(&store);
        assert!(why.contains("master key 'one'") && may_be_whole, "{why}");
        let part = read(&store, &written).expect_err("nor can its parts");
        assert_eq!(part.kind(), ErrorKind::PermissionDenied);
        assert!(part.to_string().contains("master key 'one'"), "{part}");
    }
    let without = store.clone().with_keys(keys(&format!("two {TWO}")));
    for sequence in [8, 9, 10] {
        write(&without, sequence, &words(10)).expect("it can be written");
    }
    let failure = without
        .prune(crate::tests::LOG, &[], &[], base::UnixMillis(0), base::Sequence::ZERO)
        .expect("it can be listed")
        .failure;
    assert!(failure.expect("it is told").to_string().contains("master key 'one'"));
    let both = store.with_keys(keys(&format!("two {TWO}\none {ONE}")));
    assert_eq!(whole(&both).len(), 2, "the one that nobody could read is still there");
}

#[test]
fn keys_are_replaced_without_rewriting_what_is_there() {
    let keys = one();
    let (_, store) = store(keys.clone());
    let before = write(&store, 7, &words(10)).expect("it can be written");
    keys.replace(ring(&format!("two {TWO}\none {ONE}"))).expect("they are local");
    let behind = write(&store, 8, &words(20)).expect("it can be written");
    assert_eq!(whole(&store), [behind, before.clone()]);
    keys.replace(ring(&format!("two {TWO}"))).expect("they are local");
    match &store.list().expect("it can be listed")[..] {
        [Candidate::Whole(_), Candidate::Damaged { name, may_be_whole, .. }] => {
            assert!(*may_be_whole && *name == before.name);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_changed_byte_and_every_cut_is_found_by_name() {
    let (archive, store) = store(one());
    // Two parts, one of more than a chunk.
    let archive_of = |archive: &MemoryArchive| archive.state().snapshots.clone();
    let bytes = words(object::CHUNK_BYTES / 10);
    let mut writer =
        store.begin(crate::tests::point(crate::tests::LOG, 7).position).expect("it is the first");
    writer.write_part(&bytes).expect("it can be written");
    writer.write_part(b"little").expect("it can be written");
    let facts = crate::Facts::unproven(crate::tests::point(crate::tests::LOG, 7), 0, 10);
    let written = writer.publish(&facts).expect("it is as it was written");
    let whole_state = archive_of(&archive);
    let kept = &whole_state[&written.name];
    let is_found = |harm: &dyn Fn(&mut Kept)| {
        archive.state().snapshots.clone_from(&whole_state);
        harm(archive.state().snapshots.get_mut(&written.name).expect("it is there"));
        match store.list().expect("it can be listed").remove(0) {
            Candidate::Damaged { .. } => true,
            Candidate::Whole(snapshot) => read(&store, &snapshot).is_err(),
        }
    };
    assert!(!is_found(&|_| {}), "what is whole is read");
    for (name, stored) in &kept.parts {
        let first = (0..1200).chain((1200..stored.len()).step_by(997));
        for at in first.chain(stored.len().saturating_sub(20)..stored.len()) {
            let change = |kept: &mut Kept| {
                let stored = kept.parts.get_mut(name).expect("it is there");
                if let Some(byte) = stored.get_mut(at) {
                    *byte ^= 1 << (at % 8);
                } else {
                    stored.push(0);
                }
            };
            assert!(is_found(&change), "byte {at} of {name}");
            let cut = |kept: &mut Kept| {
                kept.parts.get_mut(name).expect("it is there").truncate(at.min(stored.len() - 1));
            };
            assert!(is_found(&cut), "{name} cut at {at}");
        }
        let names: Vec<String> = kept.parts.keys().cloned().collect();
        let swap = |kept: &mut Kept| {
            let other = names.iter().find(|other| *other != name).expect("there are two");
            let bytes = kept.parts[other].clone();
            kept.parts.insert(name.clone(), bytes);
        };
        assert!(is_found(&swap), "another part in place of {name}");
    }
    let length = kept.manifest.as_ref().map_or(0, Vec::len);
    for at in (0..length).filter(|at| *at < 128 || *at > 1000) {
        let change = |kept: &mut Kept| {
            kept.manifest.as_mut().expect("it is there")[at] ^= 1 << (at % 8);
        };
        assert!(is_found(&change), "byte {at} of the manifest");
        let cut = |kept: &mut Kept| {
            kept.manifest.as_mut().expect("it is there").truncate(at);
        };
        assert!(is_found(&cut), "the manifest cut at {at}");
    }
}

#[test]
fn a_part_that_is_cut_between_chunks_does_not_end_there() {
    let archive = MemoryArchive::default();
    let encrypted = EncryptedArchive::over(Arc::new(archive.clone()), one());
    let mut draft = encrypted.begin("snapshot-a").expect("nobody has the name");
    let mut part = draft.part("p").expect("it can be begun");
    part.append(&words(20_000)).expect("it can be written");
    part.finish().expect("it can be finished");
    for chunks in [0, 1, 2] {
        let mut state = archive.state();
        let kept = state.snapshots.get_mut("snapshot-a").expect("it is there");
        let stored = kept.parts.get_mut("p.enc").expect("it is there");
        let whole = stored.clone();
        let length = object::chunk_at(chunks).expect("it is small");
        stored.truncate(usize::try_from(length).expect("it is small"));
        drop(state);
        let part = encrypted.open("snapshot-a", "p").expect("it is there");
        let mut into = vec![0; 1 << 20];
        let why = part.read_at(0, &mut into).expect_err("it is cut");
        assert_eq!(why.kind(), ErrorKind::InvalidData);
        assert!(why.to_string().contains(&format!("cut before its chunk {chunks}")), "{why}");
        let at = chunks * object::CHUNK_BYTES as u64;
        assert!(part.read_at(at, &mut into).is_err(), "nor for who begins there");
        let mut state = archive.state();
        state
            .snapshots
            .get_mut("snapshot-a")
            .expect("it is there")
            .parts
            .insert("p.enc".into(), whole);
    }
}
