//! What every archive must keep, as tests over an implementation of [`Bench`].
//!
//! Archives differ in how they find out that a writer is dead: by a lock that ended with it, or by
//! its silence. The suite lets time pass where it must, and asks for what both promise.

use crate::archive::{Archive, CLAIM_BYTES_MAX, Draft, StoredPart, Unfinished};
use crate::encrypted::EncryptedArchive;
use crate::names::Content;
use encryption::{Keyring, Keys};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An archive under test.
pub trait Bench {
    /// Begins with an archive that was never used.
    fn reset(&mut self);
    /// A handle, as another process gets it. Earlier handles live on.
    fn open(&mut self) -> Arc<dyn Archive>;
    /// Lets so much time pass that who is silent counts as dead, and who lives has shown itself.
    /// Nothing where locks tell.
    fn pass_silence(&mut self);
    /// Bytes of a part that is as large as the archive's own pieces and blocks make interesting.
    fn large_bytes(&self) -> usize;
    /// Does some things at once, or one after the other where there are no threads.
    fn at_once(&self, works: Vec<Box<dyn FnOnce() + Send + '_>>) {
        works.into_iter().for_each(|work| work());
    }
}

/// An archive under test, with keys: what it is given is encrypted, and nothing else may change.
struct Encrypted<'a> {
    bench: &'a mut dyn Bench,
    keys: Keys,
}

/// A key that nobody has to keep secret, and data keys of which none is made twice.
fn test_keys() -> Keys {
    let text = format!("test {}", "5a".repeat(32));
    let ring = Keyring::parse(text.as_bytes()).expect("it is a key");
    let made = AtomicU64::new(0);
    let entropy = move |bytes: &mut [u8]| {
        for piece in bytes.chunks_mut(8) {
            let next = made.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            piece.copy_from_slice(&next[..piece.len()]);
        }
    };
    Keys::new(Arc::new(ring), Arc::new(entropy)).expect("the keys are local")
}

/// Runs the whole suite over the archive as it is with keys.
///
/// # Panics
/// At the first promise that it breaks.
pub fn run_encrypted(bench: &mut dyn Bench) {
    run(&mut Encrypted { bench, keys: test_keys() });
}

impl Bench for Encrypted<'_> {
    fn reset(&mut self) {
        self.bench.reset();
    }

    fn open(&mut self) -> Arc<dyn Archive> {
        Arc::new(EncryptedArchive::over(self.bench.open(), self.keys.clone()))
    }

    fn pass_silence(&mut self) {
        self.bench.pass_silence();
    }

    fn large_bytes(&self) -> usize {
        self.bench.large_bytes()
    }

    fn at_once(&self, works: Vec<Box<dyn FnOnce() + Send + '_>>) {
        self.bench.at_once(works);
    }
}

/// Runs the whole suite.
///
/// # Panics
/// At the first promise that the archive breaks.
pub fn run(bench: &mut dyn Bench) {
    let cases: [fn(&mut dyn Bench); 13] = [
        parts_are_read_as_they_were_written,
        several_parts_are_written_at_a_time,
        only_what_is_published_is_a_snapshot,
        each_content_is_listed_alone,
        what_is_published_is_never_replaced,
        what_is_published_is_told_at_once,
        a_name_has_one_writer,
        what_is_removed_is_gone,
        what_is_abandoned_or_dropped_leaves_nothing,
        a_dead_writers_snapshot_is_tidied_away,
        a_living_writers_snapshot_is_left_alone,
        one_has_the_claim_until_it_gives_it_up,
        a_dead_holders_claim_is_taken_over,
    ];
    for case in cases {
        bench.reset();
        case(bench);
    }
}

const NAME: &str = "snapshot-00000000000000000007-000";
const OTHER: &str = "snapshot-00000000000000000008-000";

/// Bytes that repeat at no length that an archive might mix up.
fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn write(draft: &mut dyn Draft, index: usize, bytes: &[u8]) -> String {
    let name = draft.part_name(index);
    let mut part = draft.part(&name).expect("a part can be begun");
    // In pieces that divide no block.
    for piece in bytes.chunks(300_007) {
        part.append(piece).expect("bytes can be appended");
    }
    part.finish().expect("the part can be finished");
    name
}

fn read(part: &dyn StoredPart, offset: u64, count: usize) -> Vec<u8> {
    let mut into = vec![0; count];
    let count = part.read_at(offset, &mut into).expect("the part can be read");
    into.truncate(count);
    into
}

fn publish(archive: &dyn Archive, name: &str) -> String {
    let mut draft = archive.begin(name).expect("nobody has the name");
    let part = write(&mut *draft, 0, b"part");
    draft.publish(b"manifest").expect("it was not published yet");
    part
}

fn is_published(archive: &dyn Archive, name: &str) -> bool {
    let entries = archive.list(Content::Snapshots).expect("the archive can be listed");
    entries.iter().any(|entry| entry.name == name && entry.is_published)
}

/// Whether any part is there. An archive may know of no snapshot of this name any more.
fn has_parts(archive: &dyn Archive, name: &str) -> bool {
    match archive.parts(name) {
        Ok(parts) => parts.keys().any(|part| part.starts_with("part-")),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            false
        }
    }
}

fn assert_kind<T>(result: io::Result<T>, kind: ErrorKind, what: &str) {
    match result {
        Ok(_) => panic!("no error: {what}"),
        Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
    }
}

fn parts_are_read_as_they_were_written(bench: &mut dyn Bench) {
    let archive = bench.open();
    let mut draft = archive.begin(NAME).expect("nobody has the name");
    let large = bench.large_bytes();
    for (index, length) in [0, 1, 4096, 300_007, large].into_iter().enumerate() {
        let written = bytes(length);
        let name = write(&mut *draft, index, &written);
        let part = draft.read_back(&name).expect("it is finished");
        assert_eq!(read(&*part, 0, length + 1), written, "{length} bytes at once");
        let mut at = 0;
        while at < length {
            let piece = read(&*part, at as u64, 262_144);
            assert_eq!(piece, written[at..length.min(at + 262_144)], "{length} bytes, at {at}");
            at += piece.len();
        }
        assert!(read(&*part, length as u64, 1).is_empty(), "it ends");
        assert!(read(&*part, length as u64 + 1_000_000, 1).is_empty(), "it ended");
    }
    let lengths = archive.parts(NAME).expect("it is there");
    assert_eq!(lengths.get(&draft.part_name(4)), Some(&(large as u64)));
    draft.publish(b"manifest").expect("it was not published yet");
    // Another process reads it, by several threads.
    let part = bench.open().open(NAME, &draft.part_name(4)).expect("it is there");
    let expected = bytes(large);
    let (part, expected) = (&*part, &*expected);
    let reader = |begin: usize| {
        let work = move || {
            for at in (begin..large).step_by(1_000_003) {
                assert_eq!(read(part, at as u64, 1000), expected[at..large.min(at + 1000)], "{at}");
            }
        };
        Box::new(work) as Box<dyn FnOnce() + Send>
    };
    bench.at_once([0, 7, large / 2, large - 1].map(reader).into());
}

fn several_parts_are_written_at_a_time(bench: &mut dyn Bench) {
    let archive = bench.open();
    let mut draft = archive.begin(NAME).expect("nobody has the name");
    let names: Vec<String> = (0..4).map(|index| draft.part_name(index)).collect();
    let writer = |(index, name): (usize, &String)| {
        let mut part = draft.part(name).expect("a part can be begun");
        let work = move || {
            for _ in 0..100 {
                part.append(&[index as u8; 1000]).expect("bytes can be appended");
            }
            part.finish().expect("the part can be finished");
        };
        Box::new(work) as Box<dyn FnOnce() + Send>
    };
    let writers = names.iter().enumerate().map(writer).collect();
    bench.at_once(writers);
    for (index, name) in names.iter().enumerate() {
        let part = draft.read_back(name).expect("it is finished");
        assert_eq!(read(&*part, 0, 200_000), vec![index as u8; 100_000]);
    }
}

fn only_what_is_published_is_a_snapshot(bench: &mut dyn Bench) {
    let (archive, other) = (bench.open(), bench.open());
    assert_eq!(archive.list(Content::Snapshots).expect("it can be listed"), []);
    let mut draft = archive.begin(NAME).expect("nobody has the name");
    write(&mut *draft, 0, b"part");
    for archive in [&archive, &other] {
        let entries = archive.list(Content::Snapshots).expect("it can be listed");
        let names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, [NAME], "a draft has its name");
        assert!(!is_published(&**archive, NAME));
        assert_kind(archive.manifest(NAME, 100), ErrorKind::NotFound, "not published");
    }
    draft.publish(b"manifest").expect("it was not published yet");
    drop(draft);
    publish(&*archive, OTHER);
    for archive in [archive, other] {
        let entries = archive.list(Content::Snapshots).expect("it can be listed");
        let names: Vec<(&str, bool)> =
            entries.iter().map(|entry| (&*entry.name, entry.is_published)).collect();
        assert_eq!(names, [(NAME, true), (OTHER, true)], "sorted, each once");
        assert_eq!(archive.manifest(NAME, 8).expect("it is published"), b"manifest");
        assert_kind(archive.manifest(NAME, 7), ErrorKind::InvalidData, "too long");
        assert_kind(archive.open(NAME, "part-9999.rdb"), ErrorKind::NotFound, "no such part");
        assert_kind(archive.open("snapshot-none", "x"), ErrorKind::NotFound, "no snapshot");
    }
}

fn each_content_is_listed_alone(bench: &mut dyn Bench) {
    let archive = bench.open();
    let stretch = "log-00000000000000000001-00000000000000000007";
    let part = publish(&*archive, stretch);
    publish(&*archive, NAME);
    for (content, name) in [(Content::Log, stretch), (Content::Snapshots, NAME)] {
        let listed = bench.open().list(content).expect("the archive can be listed");
        let named: Vec<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(named, [name]);
    }
    // What is not spelled as a stretch or a pin is another's: a log, perhaps.
    for other in ["log-1", "log-orders", "pin-x", "log-00000000000000000001"] {
        drop(archive.begin(other).expect("nobody has the name"));
        archive.remove_unpublished(Unfinished::All).expect("it can be tidied");
        for content in Content::ALL {
            let listed = archive.list(content).expect("the archive can be listed");
            assert!(listed.iter().all(|entry| entry.name != other), "{other}");
        }
    }
    let stored = archive.open(stretch, &part).expect("it is there");
    assert_eq!(read(&*stored, 0, 5), b"part");
    // What its writer left is tidied away as a snapshot's is.
    drop(archive.begin("log-00000000000000000008-00000000000000000009").expect("it is free"));
    for _ in 0..3 {
        archive.remove_unpublished(Unfinished::Signed).expect("it can be tidied");
        bench.pass_silence();
    }
    archive.remove_unpublished(Unfinished::Signed).expect("it can be tidied");
    archive.remove(stretch).expect("it can be removed");
    let left = archive.list(Content::Log).expect("the archive can be listed");
    assert!(left.iter().all(|entry| !entry.is_published), "{left:?}");
    assert!(is_published(&*archive, NAME));
}

fn what_is_published_is_never_replaced(bench: &mut dyn Bench) {
    let archive = bench.open();
    let mut draft = archive.begin(NAME).expect("nobody has the name");
    let part = write(&mut *draft, 0, b"part");
    assert_kind(draft.part(&part), ErrorKind::AlreadyExists, "a part is written once");
    draft.publish(b"manifest").expect("it was not published yet");
    assert_kind(draft.publish(b"manifest"), ErrorKind::AlreadyExists, "published once");
    assert_kind(draft.publish(b"another"), ErrorKind::AlreadyExists, "published once");
    assert_kind(bench.open().begin(NAME), ErrorKind::AlreadyExists, "the name is taken");
    assert_eq!(archive.manifest(NAME, 100).expect("it is published"), b"manifest");
    let stored = archive.open(NAME, &part).expect("it is there");
    assert_eq!(read(&*stored, 0, 100), b"part");
}

/// As it is told one after the other; and what stands under a name later is told apart.
fn what_is_published_is_told_at_once(bench: &mut dyn Bench) {
    let archive = bench.open();
    publish(&*archive, OTHER);
    publish(&*archive, NAME);
    let mut draft = archive.begin("snapshot-00000000000000000009-000").expect("nobody has it");
    write(&mut *draft, 0, b"part");
    let told = || told_at_once(&*archive);
    let first = told();
    let names: Vec<&str> = first.iter().map(|it| &*it.0).collect();
    assert_eq!(names, [NAME, OTHER], "sorted, and drafts are none");
    assert_eq!(told(), first, "nothing has changed");
    archive.remove(NAME).expect("it can be removed");
    assert_eq!(told().len(), 1);
    let mut again = archive.begin(NAME).expect("nobody has the name");
    write(&mut *again, 0, b"other");
    again.publish(b"otherwise").expect("it was not published yet");
    let second = told();
    assert_eq!(second.len(), 2);
    assert!(second[0].1.is_none() || second[0].1 != first[0].1, "another manifest: {second:?}");
    assert_eq!(second[1], first[1]);
}

/// What is published, with the versions of the manifests, as it is told at once; compared with what
/// is told one after the other.
fn told_at_once(archive: &dyn Archive) -> Vec<(String, Option<String>)> {
    let published = archive.published(Content::Snapshots).expect("it can be asked");
    let each = published.into_iter().map(|it| {
        let parts = it.parts.expect("it can be asked");
        // The manifest itself may be among them, or not.
        let of_parts = |parts: BTreeMap<String, u64>| -> Vec<(String, u64)> {
            parts.into_iter().filter(|(name, _)| name.starts_with("part-")).collect()
        };
        let asked = archive.parts(&it.name).expect("it is there");
        let (parts, asked) = (of_parts(parts), of_parts(asked));
        assert_eq!(parts, asked);
        assert_eq!(parts.len(), 1);
        (it.name, it.manifest_version)
    });
    each.collect()
}

fn a_name_has_one_writer(bench: &mut dyn Bench) {
    let archive = bench.open();
    let mut draft = archive.begin(NAME).expect("nobody has the name");
    assert_kind(bench.open().begin(NAME), ErrorKind::AlreadyExists, "the name is taken");
    assert_kind(archive.begin(NAME), ErrorKind::AlreadyExists, "by whomever");
    write(&mut *draft, 0, b"part");
    draft.publish(b"manifest").expect("it lost nothing by that");
}

fn what_is_removed_is_gone(bench: &mut dyn Bench) {
    let archive = bench.open();
    publish(&*archive, NAME);
    publish(&*archive, OTHER);
    archive.remove(NAME).expect("it can be removed");
    archive.remove(NAME).expect("it is no error that it is gone");
    assert!(!is_published(&*archive, NAME) && !has_parts(&*archive, NAME));
    assert!(is_published(&*archive, OTHER) && has_parts(&*archive, OTHER));
}

fn what_is_abandoned_or_dropped_leaves_nothing(bench: &mut dyn Bench) {
    let archive = bench.open();
    let large = bytes(bench.large_bytes());
    let mut draft = archive.begin(NAME).expect("nobody has the name");
    write(&mut *draft, 0, b"part");
    write(&mut *draft, 1, &large);
    draft.abandon().expect("it can be abandoned");
    assert!(!has_parts(&*archive, NAME));
    let mut draft = archive.begin(OTHER).expect("nobody has the name");
    for bytes in [&b"part"[..], &large] {
        let mut part = draft.part(&draft.part_name(bytes.len())).expect("a part can be begun");
        part.append(bytes).expect("bytes can be appended");
        drop(part);
    }
    draft.abandon().expect("it can be abandoned");
    assert!(!has_parts(&*archive, OTHER));
    archive.remove_unpublished(Unfinished::Signed).expect("there is nothing to remove");
    assert!(!is_published(&*archive, NAME) && !is_published(&*archive, OTHER));
}

fn a_dead_writers_snapshot_is_tidied_away(bench: &mut dyn Bench) {
    let archive = bench.open();
    let published = publish(&*archive, OTHER);
    let mut draft = bench.open().begin(NAME).expect("nobody has the name");
    write(&mut *draft, 0, b"part");
    drop(draft);
    // The first call may be the first that sees it.
    archive.remove_unpublished(Unfinished::Signed).expect("it is no error that it is there");
    bench.pass_silence();
    archive.remove_unpublished(Unfinished::Signed).expect("it can be removed");
    assert!(!is_published(&*archive, NAME) && !has_parts(&*archive, NAME));
    let stored = archive.open(OTHER, &published).expect("what is published stays");
    assert_eq!(read(&*stored, 0, 100), b"part");
}

fn a_living_writers_snapshot_is_left_alone(bench: &mut dyn Bench) {
    let (archive, own) = (bench.open(), bench.open());
    let mut draft = own.begin(NAME).expect("nobody has the name");
    for (index, of) in [Unfinished::Signed, Unfinished::All, Unfinished::Signed].iter().enumerate()
    {
        write(&mut *draft, index, b"part");
        for archive in [&archive, &own] {
            archive.remove_unpublished(*of).expect("nothing is to be removed");
        }
        bench.pass_silence();
    }
    archive.remove_unpublished(Unfinished::All).expect("nothing is to be removed");
    let part = draft.read_back(&draft.part_name(0)).expect("it is finished");
    assert_eq!(read(&*part, 0, 100), b"part");
    draft.publish(b"manifest").expect("its writer lives");
    archive.remove_unpublished(Unfinished::All).expect("nothing is to be removed");
    assert!(is_published(&*archive, NAME) && has_parts(&*archive, NAME));
}

fn one_has_the_claim_until_it_gives_it_up(bench: &mut dyn Bench) {
    let (archive, other) = (bench.open(), bench.open());
    assert_eq!(archive.claimed().expect("it can be asked"), None);
    let mut claim = archive.claim(b"one").expect("it can be asked").expect("nobody has it");
    assert_eq!(other.claimed().expect("it can be asked").as_deref(), Some(&b"one"[..]));
    assert!(other.claim(b"two").expect("it can be asked").is_none());
    for said in [&b"one, further"[..], b"one, further", b""] {
        assert!(claim.renew(said).expect("it can be renewed"));
        assert_eq!(other.claimed().expect("it can be asked").as_deref(), Some(said));
        bench.pass_silence();
    }
    assert_kind(
        claim.renew(&[b'x'; CLAIM_BYTES_MAX + 1]),
        ErrorKind::InvalidInput,
        "it says too much",
    );
    claim.release().expect("it can be given up");
    assert_eq!(other.claimed().expect("it can be asked"), None);
    assert_kind(
        other.claim(&[b'x'; CLAIM_BYTES_MAX + 1]),
        ErrorKind::InvalidInput,
        "it says too much",
    );
    assert!(other.claim(&[b'x'; CLAIM_BYTES_MAX]).expect("it can be asked").is_some());
}

fn a_dead_holders_claim_is_taken_over(bench: &mut dyn Bench) {
    let (archive, other) = (bench.open(), bench.open());
    let mut claim = archive.claim(b"one").expect("it can be asked").expect("nobody has it");
    // Watched, renewed, and watched again: it lives.
    assert!(other.claim(b"two").expect("it can be asked").is_none());
    assert!(claim.renew(b"one").expect("it can be renewed"));
    assert!(other.claim(b"two").expect("it can be asked").is_none());
    drop(claim);
    // Whoever waits for it asks again, and the first time after its holder's death may be the first
    // look at what it said last.
    let first = other.claim(b"two").expect("it can be asked");
    bench.pass_silence();
    let claim = first.or_else(|| other.claim(b"two").expect("it can be asked"));
    let mut claim = claim.expect("its holder is dead");
    assert_eq!(archive.claimed().expect("it can be asked").as_deref(), Some(&b"two"[..]));
    assert!(claim.renew(b"two, further").expect("it can be renewed"));
    claim.release().expect("it can be given up");
    assert_eq!(archive.claimed().expect("it can be asked"), None);
}
