//! Files about the process itself: its log, its id, its arguments, its output.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
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

/// Whether whoever read this pipe or terminal has gone. Does not block. Of a file: never.
pub fn is_unread(output: &impl AsFd) -> bool {
    // Errors and hang-ups are told unasked.
    let mut polled = [PollFd::new(output, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What cannot be told now is told by the next write.
    poll(&mut polled, Some(&at_once)).is_ok_and(|count| count > 0)
}

/// Puts other text in the place of the process's last arguments, where `ps` and
/// `/proc/PID/cmdline` show them to every user of the machine. Each of `shown` is as long as the
/// argument that it stands for. Those that the program has read already are copies of its own.
///
/// # Errors
/// Whatever `/proc` says, or that the arguments do not lie where it says.
pub fn show_arguments(arguments: &[Vec<u8>], shown: &[Vec<u8>]) -> io::Result<()> {
    let joined = |words: &[Vec<u8>]| -> Vec<u8> {
        words.iter().flat_map(|word| word.iter().chain(&[0])).copied().collect()
    };
    let (before, after) = (joined(arguments), joined(shown));
    if before == after {
        return Ok(());
    }
    let all = all_arguments()?;
    let Some(others) = all.strip_suffix(&before[..]).filter(|_| before.len() == after.len()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "they are not where they were"));
    };
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    memory.write_all_at(&after, arguments_at()? + others.len() as u64)
}

/// The arguments as others see them, each with a zero byte behind it.
fn all_arguments() -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    OpenOptions::new().read(true).open("/proc/self/cmdline")?.read_to_end(&mut all)?;
    Ok(all)
}

/// The address of the first argument (proc_pid_stat(5), `arg_start`).
fn arguments_at() -> io::Result<u64> {
    /// Of the fields behind the program's name, which may hold blanks and parentheses itself.
    const ARG_START: usize = 45;
    let fields = fs::read_to_string("/proc/self/stat")?;
    let behind = fields.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = behind.split_ascii_whitespace().nth(ARG_START).and_then(|text| text.parse().ok());
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat lacks arg_start");
    field.filter(|at| *at != 0).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_unread_once_its_reader_has_gone() {
        let (reader, writer) = io::pipe().expect("a pipe takes two descriptors");
        assert!(!is_unread(&writer));
        drop(reader);
        assert!(is_unread(&writer));
        let file =
            OpenOptions::new().read(true).open("/proc/self/stat").expect("every process has it");
        assert!(!is_unread(&file));
    }

    #[test]
    fn the_id_file_holds_this_process() {
        let path = std::env::temp_dir().join(format!("kiln-pid-{}", std::process::id()));
        write_pid(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
        remove_pid(&path);
        assert!(!path.exists());
    }

    #[test]
    fn what_ps_shows_can_be_replaced() {
        // Of this very process: its last argument, letter by letter, and back.
        let before = all_arguments().unwrap();
        let last = before[..before.len() - 1].rsplit(|byte| *byte == 0).next().unwrap().to_vec();
        let (last, stars) = ([last.clone()], [vec![b'*'; last.len()]]);
        show_arguments(&last, &stars).unwrap();
        assert!(all_arguments().unwrap().ends_with(&[&stars[0][..], b"\0"].concat()));
        show_arguments(&stars, &last).unwrap();
        assert_eq!(all_arguments().unwrap(), before);
        let foreign = [b"not an argument of this process".to_vec()];
        show_arguments(&foreign, &[vec![b'*'; foreign[0].len()]]).unwrap_err();
    }
}
