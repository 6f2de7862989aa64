//! RDB files, written whole from an engine.

use base::UnixMillis;
use base::disk::{Disk, DiskFile, create_directory_durably};
use engine::execute::Engine;
use engine::rdb::Crc64;
use engine::save::checksum;
use std::io;
use std::path::{Path, PathBuf};
use world::disk::RealDisk;
use world::entropy::entropy;

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
/// of this name is replaced. Until then it has a name of its own: another process that writes the
/// same one disturbs nothing.
///
/// # Errors
/// The disk's.
pub fn write(engine: Engine, now: UnixMillis, path: &Path) -> io::Result<Written> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{:016x}.unfinished", entropy()));
    let unfinished = PathBuf::from(unfinished);
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_directory_durably(&RealDisk, folder)?;
    let file = RealDisk.create_new(&unfinished)?;
    let written = write_to(&*file, engine, now).and_then(|written| {
        RealDisk.rename(&unfinished, path)?;
        RealDisk.sync_directory(folder)?;
        Ok(written)
    });
    if written.is_err() {
        // What made it fail says more than what comes of that.
        let _ = RealDisk.remove(&unfinished);
    }
    written
}

fn write_to(file: &dyn DiskFile, mut engine: Engine, now: UnixMillis) -> io::Result<Written> {
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
    Ok(Written { keys, bytes: at + 8 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::HashKey;
    use engine::keyspace::Keyspace;
    use engine::settings::Settings;

    #[test]
    fn a_file_is_replaced_and_none_beside_it_is_touched() {
        let root = std::env::temp_dir().join(format!("kiln-export-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("there is space");
        let path = root.join("dump.rdb");
        RealDisk.create_new(&root.join("dump.rdb.unfinished")).expect("there is space");
        for _ in 0..2 {
            let keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
            let written = write(Engine::new(keyspace, 1), UnixMillis(0), &path);
            let bytes = written.expect("there is space").bytes;
            assert_eq!(std::fs::metadata(&path).expect("it is there").len(), bytes);
        }
        let names = std::fs::read_dir(&root).expect("it is there").flatten();
        let mut names: Vec<_> = names.map(|it| it.file_name()).collect();
        names.sort();
        assert_eq!(names, ["dump.rdb", "dump.rdb.unfinished"]);
        std::fs::remove_dir_all(&root).expect("it is ours");
    }
}
