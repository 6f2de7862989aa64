//! Files with secrets, which an operator names.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Longest file, in bytes: two hundred keys and comments take a tenth of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Rights of everybody who is neither the owner nor of the group. The group may read: that is how
/// orchestrators hand secrets to a process that is not root.
const RIGHTS_OF_OTHERS: u32 = 0o007;

/// Reads a whole file that nobody else may read.
///
/// # Errors
/// Why it is not read, without the file's name.
#[expect(clippy::disallowed_methods, reason = "this crate is where they are called")]
pub fn read(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |why: &dyn fmt::Display| why.to_string();
    // Opening a FIFO would wait for somebody to write into it.
    let kind = std::fs::metadata(file).map_err(|error| failed(&error))?;
    if !kind.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let opened = std::fs::File::open(file).map_err(|error| failed(&error))?;
    let mode = opened.metadata().map_err(|error| failed(&error))?.permissions().mode() & 0o777;
    if mode & RIGHTS_OF_OTHERS != 0 {
        return Err(format!("its mode {mode:03o} lets everybody at it: chmod o-rwx"));
    }
    let mut bytes = Vec::new();
    let mut bounded = opened.take(FILE_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is longer than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this crate is where they are called")]
    fn a_file_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("kiln-secret-{}", std::process::id()));
        fs::write(&path, "secret").expect("it can be written");
        for (mode, is_read) in [(0o600, true), (0o640, true), (0o644, false), (0o601, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            let read = read(&path);
            assert_eq!(read.is_ok(), is_read, "{mode:o}");
            assert!(read.is_ok() || read.is_err_and(|why| why.contains("chmod o-rwx")));
        }
        fs::remove_file(&path).expect("it is ours");
        assert!(read(&path).is_err());
        assert!(read(&std::env::temp_dir()).is_err_and(|why| why.contains("no regular file")));
    }
}
