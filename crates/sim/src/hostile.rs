//! What an enemy, a bad disk or a bad line may hand to this program: the bodies of the fuzzer's
//! targets, each a function of bytes that panics when something is wrong.
//!
//! They live here, and not in `fuzz/`, so that the replay of the fuzzer's corpus is an ordinary
//! test on any machine.
//!
//! | file | what is hostile |
//! |---|---|
//! | [`requests`] | a client's requests |
//! | [`log`] | a record, a log directory |
//! | [`effects`] | a record's payload |
//! | [`snapshot`] | an RDB file, a manifest, a snapshot directory |
//! | [`archive`] | an archive's manifests and stretches, and what is encrypted |
//! | [`intake`] | another server's RDB file, append-only file or data set |
//! | [`config`] | a configuration file |
//! | [`scripts`] | a script, and replies to its commands |
//! | [`streams`] | requests about streams, a payload for RESTORE |

pub mod archive;
pub mod config;
pub mod effects;
pub mod intake;
pub mod log;
pub mod requests;
pub mod scripts;
pub mod snapshot;
pub mod streams;

use base::{HashKey, UnixMillis};
use engine::digest::Digest;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::rdb::{Crc64, RdbError};
use engine::save::{checksum, put_database, put_end, put_entry, put_header, put_libraries};
use engine::settings::Settings;

/// A target's name, which is that of its folder of seeds, and what it runs.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of this crate.
pub const TARGETS: [Target; 10] = [
    ("resp", requests::decode_requests),
    ("record", log::decode_record),
    ("log_segment", log::open_patched_log),
    ("effects", effects::apply_payload),
    ("snapshot", snapshot::load_snapshot),
    ("config", config::read_config),
    ("lua", scripts::run_script),
    ("streams", streams::play_streams),
    ("intake", intake::take_in),
    ("archive", archive::read_archive),
];

/// The time for everything here: no target's subject is the clock.
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// Seed of the keys' hash.
const HASH_SEED: u64 = 1;

/// Keys read at a time: few, so that reading goes through many slices.
const STEP_KEYS: u64 = 3;

/// The keyspace as an RDB file.
fn save(keyspace: &Keyspace) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, keyspace.file_version(), &[("redis-ver", "7.0.15")]);
    put_libraries(&mut out, keyspace.libraries());
    for (id, database) in keyspace.databases().filter(|(_, database)| !database.is_empty()) {
        put_database(&mut out, id);
        for entry in database.table().iter() {
            put_entry(&mut out, entry, NOW, &keyspace.settings, &keyspace.work);
        }
    }
    put_end(&mut out);
    let mut crc = Crc64::default();
    crc.update(&out);
    out.extend_from_slice(&checksum(crc));
    out
}

/// Everything that a loader loads, with another hash than the other keyspaces'.
fn load_all<R: std::io::Read>(mut loader: Loader<R>) -> Result<Keyspace, RdbError> {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(HASH_SEED + 1));
    while !loader.load(&mut keyspace, STEP_KEYS)? {}
    Ok(keyspace)
}

/// What can be in memory can be written, read back by either reader, and is the same then.
fn survives_a_snapshot(keyspace: &Keyspace) {
    let digest = Digest::of_keyspace(keyspace);
    let file = save(keyspace);
    let keys = keyspace.len() as u64;
    for loader in [Loader::new(&file[..], NOW), Loader::of_own_file(&file[..], keys, NOW)] {
        let read = load_all(loader).expect("a file that was written can be read");
        assert_eq!(read.len(), keyspace.len(), "every key is read back");
        assert_eq!(Digest::of_keyspace(&read), digest, "what is read back is what was written");
    }
}
