//! Files that an operator writes and that the server reads and rewrites: the configuration and the
//! users' rules. Each call blocks until the disk is done.

use base::Disk;
use std::io;
use std::path::Path;

/// The longest such file, in bytes: far above any real one, far below what hurts.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;

/// The bytes of a file, `None` if it is longer than one that an operator wrote.
///
/// # Errors
/// Whatever opening or reading it failed with.
pub fn read_bounded(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = disk.open_read(path)?;
    let length = file.length()?;
    if length > FILE_BYTES_MAX {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let count = file.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(Some(bytes))
}

/// Puts a file in the place of another: at any time one of the two is there, whole.
///
/// # Errors
/// Whatever writing failed with.
pub fn replace_whole(disk: &dyn Disk, path: &Path, new: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".rewrite");
    let beside = Path::new(&beside);
    // What an interrupted rewrite left behind.
    match disk.remove(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create_new(beside)?;
    file.write_at(0, new)?;
    file.sync_data()?;
    drop(file);
    disk.rename(beside, path)?;
    disk.sync_directory(path.parent().unwrap_or(Path::new("/")))
}
