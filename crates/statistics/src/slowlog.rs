//! The slow log: the latest commands that took long (Redis documentation, SLOWLOG).

use engine::command::Args;
use engine::command::secrets::REDACTED;
use std::collections::VecDeque;

/// Arguments kept of one command; the last place says how many more there were (Redis 7.0).
const ARGUMENTS_MAX: usize = 32;

/// Bytes kept of one argument (Redis 7.0).
const ARGUMENT_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub id: u64,
    /// When it ended, in seconds since 1970.
    pub at_seconds: i64,
    pub micros: u64,
    pub arguments: Vec<Vec<u8>>,
    pub peer: String,
    pub name: Vec<u8>,
}

/// Entries, the newest first.
#[derive(Default, Debug)]
pub struct Slowlog {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Slowlog {
    /// Adds an entry, which gets its id here, and drops the oldest beyond `entries_max`.
    pub fn push(&mut self, mut entry: Entry, entries_max: usize) {
        entry.id = self.next_id;
        self.next_id += 1;
        self.entries.push_front(entry);
        self.entries.truncate(entries_max);
    }

    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn reset(&mut self) {
        self.entries.clear();
    }
}

/// The arguments as the log keeps them: long ones and many are cut, those that `is_secret` names
/// are hidden.
pub fn abridge(args: Args<'_>, is_secret: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
    let kept = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut arguments: Vec<Vec<u8>> = args
        .range(0..kept)
        .enumerate()
        .map(|(index, argument)| match argument {
            _ if is_secret(index) => REDACTED.as_bytes().to_vec(),
            long if long.len() > ARGUMENT_BYTES_MAX => {
                let more = long.len() - ARGUMENT_BYTES_MAX;
                let note = format!("... ({more} more bytes)");
                [&long[..ARGUMENT_BYTES_MAX], note.as_bytes()].concat()
            }
            short => short.to_vec(),
        })
        .collect();
    if args.len() > kept {
        let more = args.len() - kept;
        arguments.push(format!("... ({more} more arguments)").into_bytes());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            id: 0,
            at_seconds: 0,
            micros: 1,
            arguments: Vec::new(),
            peer: String::new(),
            name: Vec::new(),
        }
    }

    #[test]
    fn the_oldest_entries_go_first_and_ids_go_on() {
        let mut log = Slowlog::default();
        for _ in 0..5 {
            log.push(entry(), 3);
        }
        assert_eq!(log.entries().map(|entry| entry.id).collect::<Vec<_>>(), [4, 3, 2]);
        log.reset();
        log.push(entry(), 3);
        assert_eq!(log.entries().map(|entry| entry.id).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn long_commands_are_cut() {
        let bytes = vec![b'x'; 200];
        let ranges = vec![(0, 1); 40];
        let arguments = abridge(Args::new(&bytes, &ranges), |index| index == 2);
        assert_eq!(arguments.len(), 32);
        assert_eq!(arguments[2], b"(redacted)");
        assert_eq!(arguments[31], b"... (9 more arguments)");
        let arguments = abridge(Args::new(&bytes, &[(0, 200)]), |_| false);
        assert_eq!(&arguments[0][128..], b"... (72 more bytes)");
    }
}
