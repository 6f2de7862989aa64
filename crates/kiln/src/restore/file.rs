//! RDB files, written whole from an engine.

use base::UnixMillis;
use base::disk::{Disk, create_directory_durably};
use engine::execute::Engine;
use engine::rdb::Crc64;
use engine::save::checksum;
use std::io;
use std::path::{Path, PathBuf};
use world::disk::RealDisk;

/// Keys, and bytes of small values, between two writes.
const STEP_KEYS: u64 = 1024;
const STEP_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 1 << 20;

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
