//! Files about the process itself: its log and its id.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Opens a log file to append to; it is created if absent.
///
/// # Errors
/// Whatever the file system says.
pub fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Writes the process's id into a file, replacing what is there.
///
/// # Errors
/// Whatever the file system says.
pub fn write_pid(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    writeln!(file, "{}", std::process::id())
}

/// Removes the file of the process's id, if it is still there.
pub fn remove_pid(path: &Path) {
    // Somebody may have removed it; nothing depends on it any more.
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_file_holds_this_process() {
        let path = std::env::temp_dir().join(format!("kiln-pid-{}", std::process::id()));
        write_pid(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
        remove_pid(&path);
        assert!(!path.exists());
    }
}
