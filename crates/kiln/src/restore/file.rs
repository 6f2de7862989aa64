//! RDB files: written whole from an engine, and read into one.

use base::UnixMillis;
use base::disk::{Disk, create_directory_durably};
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::rdb::Crc64;
use engine::save::checksum;
use shard::loading::Failure;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::{Claimed, Phase, Worker};
use world::disk::RealDisk;

/// Keys, and bytes of small values, between two writes.
const STEP_KEYS: u64 = 1024;
const STEP_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 1 << 20;

/// Keys that are loaded between two looks at the clock.
const LOAD_KEYS: u64 = 4096;

/// What was written.
pub struct Written {
    pub keys: u64,
    pub bytes: u64,
}

/// Looks whether a file may be written here: a device, a link or a directory is not replaced.
///
/// # Errors
/// It may not.
pub fn may_write(path: &Path) -> Result<(), String> {
    match path.symlink_metadata() {
        Ok(there) if !there.is_file() => Err(format!("{} is there and no file", path.display())),
        _ => Ok(()),
    }
}

/// Writes what an engine holds as one file of Redis's, which gets its name when it is whole. A file
/// of this name is replaced.
///
/// # Errors
/// The disk's.
pub fn write(mut engine: Engine, now: UnixMillis, path: &Path) -> io::Result<Written> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_directory_durably(&RealDisk, folder)?;
    match RealDisk.remove(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = RealDisk.create_new(&unfinished)?;
    let keyspace = &mut engine.keyspace;
    let keys = keyspace.len() as u64;
    let (mut crc, mut at) = (Crc64::default(), 0);
    keyspace.begin_snapshot(now);
    loop {
        let is_walked = keyspace.walk_snapshot(STEP_KEYS, STEP_BYTES);
        if is_walked || keyspace.snapshot_bytes() >= CHUNK_BYTES {
            let bytes = keyspace.take_snapshot_bytes(Vec::with_capacity(CHUNK_BYTES));
            crc.update(&bytes);
            file.write_at(at, &bytes)?;
            at += bytes.len() as u64;
        }
        if is_walked {
            break;
        }
    }
    file.write_at(at, &checksum(crc))?;
    file.sync_data()?;
    RealDisk.rename(&unfinished, path)?;
    RealDisk.sync_directory(folder)?;
    Ok(Written { keys, bytes: at + 8 })
}

/// A file from its beginning to its end.
struct Stream {
    file: Arc<dyn base::disk::DiskFile>,
    at: u64,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.at, into)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Reads a file of Redis's.
///
/// # Errors
/// The disk's; the file is damaged, or holds what this release does not know.
pub fn read(worker: &mut Worker, path: &Path, claimed: &mut Claimed) -> Result<Engine, Failure> {
    let named = |error: io::Error| format!("{}: {error}", path.display());
    let file = RealDisk.open_read(path).map_err(named)?;
    let total = file.length().map_err(named)?;
    let keyspace = Keyspace::new(worker.settings.clone(), worker.seeds.hash);
    let mut engine = Engine::new(keyspace, worker.seeds.chance);
    let now = worker.clock.unix_millis();
    let mut loader = Loader::new(Stream { file, at: 0 }, now);
    loop {
        let is_done = loader.load(&mut engine.keyspace, LOAD_KEYS);
        let is_done = is_done.map_err(|error| format!("{}: {error}", path.display()))?;
        worker.note(claimed, Phase::Restoring, loader.offset(), total)?;
        if is_done {
            return Ok(engine);
        }
    }
}
