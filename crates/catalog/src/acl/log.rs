//! ACL LOG: what was denied lately, equal events as one (Redis documentation, ACL LOG; 7.0.15).

use base::MonotonicNanos;
use std::collections::VecDeque;

/// Events of one kind count as one entry while less than this passes between them (Redis 7.0).
/// In nanoseconds.
const GROUPED_NANOS_MAX: u64 = 60_000_000_000;

/// The newest entries, among which an equal one is looked for (Redis 7.0).
const SEARCHED_ENTRIES_MAX: usize = 10;

/// Bytes kept of a key or of a user's name. Redis keeps all of them; here a client that may do
/// nothing but name long keys cannot fill the memory. A guess: longer than any real key.
const NAME_BYTES_MAX: usize = 4096;

/// What was missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    Command,
    Key,
    Channel,
    Auth,
}

impl Reason {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Auth => "auth",
        }
    }
}

/// Where the request stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryContext {
    Toplevel,
    Multi,
    /// The command was called by a script or function.
    Lua,
}

impl EntryContext {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Toplevel => "toplevel",
            Self::Multi => "multi",
            Self::Lua => "lua",
        }
    }
}

/// One kind of event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// How often it happened.
    pub count: u64,
    pub reason: Reason,
    pub context: EntryContext,
    /// The command, the key, the channel; of a failed AUTH the word the client used.
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    /// When it happened last.
    pub at: MonotonicNanos,
    /// The client of the last time, as CLIENT LIST shows it.
    pub client: String,
}

impl Entry {
    fn is_like(&self, other: &Self) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.at.0.abs_diff(other.at.0) <= GROUPED_NANOS_MAX
            && self.object == other.object
            && self.user == other.user
    }
}

/// The log, the newest entry first.
#[derive(Default, Debug)]
pub struct Log {
    entries: VecDeque<Entry>,
}

impl Log {
    /// Adds an event, and drops the oldest entries beyond `entries_max` (`acllog-max-len`).
    pub fn add(&mut self, mut event: Entry, entries_max: usize) {
        event.object.truncate(NAME_BYTES_MAX);
        event.user.truncate(NAME_BYTES_MAX);
        let mut newest = self.entries.iter().take(SEARCHED_ENTRIES_MAX);
        if let Some(at) = newest.position(|entry| entry.is_like(&event)) {
            let earlier = self.entries.remove(at).expect("it was just found there");
            event.count += earlier.count;
            self.entries.push_front(event);
        } else {
            self.entries.push_front(event);
            self.entries.truncate(entries_max);
        }
    }

    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn reset(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(object: &str, at: u64) -> Entry {
        Entry {
            count: 1,
            reason: Reason::Key,
            context: EntryContext::Toplevel,
            object: object.as_bytes().to_vec(),
            user: b"alice".to_vec(),
            at: MonotonicNanos(at),
            client: format!("at {at}"),
        }
    }

    fn shown(log: &Log) -> Vec<(String, u64, String)> {
        let shown = |entry: &Entry| {
            let object = String::from_utf8_lossy(&entry.object).into_owned();
            (object, entry.count, entry.client.clone())
        };
        log.entries().map(shown).collect()
    }

    #[test]
    fn equal_events_are_one_entry_that_comes_to_the_front() {
        let mut log = Log::default();
        for (object, at) in [("a", 0), ("b", 10), ("a", 20), ("a", 20 + GROUPED_NANOS_MAX)] {
            log.add(event(object, at), 9);
        }
        let last = format!("at {}", 20 + GROUPED_NANOS_MAX);
        assert_eq!(shown(&log), [("a".into(), 3, last), ("b".into(), 1, "at 10".into())]);
        log.add(event("a", 21 + 2 * GROUPED_NANOS_MAX), 9);
        assert_eq!(log.entries().len(), 3, "too long ago to be the same");
    }

    #[test]
    fn the_log_and_its_entries_are_bounded() {
        let mut log = Log::default();
        for index in 0..5 {
            log.add(event(&index.to_string(), 0), 3);
        }
        assert_eq!(shown(&log).iter().map(|e| e.0.clone()).collect::<Vec<_>>(), ["4", "3", "2"]);
        log.add(event(&"x".repeat(10 * NAME_BYTES_MAX), 0), 3);
        assert_eq!(log.entries().next().expect("just added").object.len(), NAME_BYTES_MAX);
        log.add(event("y", 0), 0);
        assert_eq!(log.entries().len(), 0);
    }
}
