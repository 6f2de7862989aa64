//! An append-only file of Redis: one file, until Redis 7.0; since then a directory with a manifest,
//! a base (RDB or commands) and the files of commands behind it.
//!
//! ```text
//! appendonlydir/appendonly.aof.manifest         names the others, in their order
//!               appendonly.aof.1.base.rdb
//!               appendonly.aof.1.incr.aof …
//! ```
//! Source: Redis documentation, "Redis persistence", and the files of Redis 7.0.15.

mod manifest;

use base::disk::{Disk, DiskEntry, DiskFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the name of a manifest ends with.
const MANIFEST: &str = ".manifest";

/// What the name of a manifest begins with that Redis was writing when it was killed.
const UNFINISHED: &str = "temp-";

/// The directory and the file of Redis's configuration, if it says nothing else.
const DIRECTORY: &str = "appendonlydir";
const SINGLE_FILE: &str = "appendonly.aof";

/// The longest manifest. A line is at most 1 KiB, and there are a few.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// One of the files that count.
pub struct Part {
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// In bytes.
    pub length: u64,
}

/// The files of the append-only file at a path, in the order in which they count. The path is a
/// file, a manifest, the directory with the manifest, or the data directory of a server.
///
/// # Errors
/// There is none, or more than one, or a file is missing.
pub fn parts(disk: &dyn Disk, path: &Path) -> Result<Vec<Part>, String> {
    let entries = match disk.list(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return of_file(disk, path),
        Err(error) => return Err(named(path, &error)),
    };
    if let Some(manifest) = manifest_among(path, &entries)? {
        return of_manifest(disk, &manifest);
    }
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if has(DIRECTORY) {
        let folder = path.join(DIRECTORY);
        let within = disk.list(&folder).map_err(|error| named(&folder, &error))?;
        let manifest = manifest_among(&folder, &within)?;
        let manifest = manifest.ok_or_else(|| format!("{} has no manifest", folder.display()))?;
        return of_manifest(disk, &manifest);
    }
    if has(SINGLE_FILE) {
        return of_file(disk, &path.join(SINGLE_FILE));
    }
    Err(format!("{} has no '{DIRECTORY}', no manifest and no '{SINGLE_FILE}'", path.display()))
}

/// The manifest among a directory's entries.
fn manifest_among(folder: &Path, entries: &[DiskEntry]) -> Result<Option<PathBuf>, String> {
    let is_manifest = |name: &str| name.ends_with(MANIFEST) && !name.starts_with(UNFINISHED);
    let mut found = entries.iter().filter(|entry| is_manifest(&entry.name));
    let first = found.next();
    match (first, found.next()) {
        (Some(first), Some(second)) => Err(format!(
            "{} has several manifests, '{}' and '{}': name one of them",
            folder.display(),
            first.name,
            second.name
        )),
        (first, _) => Ok(first.map(|entry| folder.join(&entry.name))),
    }
}

fn of_file(disk: &dyn Disk, path: &Path) -> Result<Vec<Part>, String> {
    if path.to_string_lossy().ends_with(MANIFEST) {
        return of_manifest(disk, path);
    }
    Ok(vec![open(disk, path.to_owned())?])
}

fn of_manifest(disk: &dyn Disk, path: &Path) -> Result<Vec<Part>, String> {
    let Part { file, length, .. } = open(disk, path.to_owned())?;
    if length > MANIFEST_BYTES_MAX {
        return Err(format!("{} is longer than any manifest", path.display()));
    }
    let mut text = vec![0; length as usize];
    let count = file.read_at(0, &mut text).map_err(|error| named(path, &error))?;
    let names = manifest::files(&text[..count]);
    let names = names.map_err(|why| format!("{}: {why}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    names.iter().map(|name| open(disk, folder.join(name))).collect()
}

/// Opens one of the files, or an RDB file.
///
/// # Errors
/// It cannot be opened; names it.
pub fn open(disk: &dyn Disk, path: PathBuf) -> Result<Part, String> {
    let file = disk.open_read(&path).map_err(|error| named(&path, &error))?;
    let length = file.length().map_err(|error| named(&path, &error))?;
    Ok(Part { path, file, length })
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
