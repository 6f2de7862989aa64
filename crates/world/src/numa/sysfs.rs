//! The kernel's small text files: numbers, lists and tables of a node's memory.
//!
//! A file that is absent or makes no sense is `None`: kernels differ in what they show, firmware in
//! what it tells, and nothing here is worth a start that fails.

use super::{NODES_MAX, NodeId};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

pub(super) fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The number that a file consists of.
pub(super) fn number(path: &Path) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

/// The numbers of entries that are called `prefix` and a number, in order.
pub(super) fn numbered(folder: &Path, prefix: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect()
}

/// Reads a list of nodes as the kernel writes it: `0-1,4`. Empty text is the empty list.
pub(super) fn list(text: &str) -> Option<BTreeSet<NodeId>> {
    let mut nodes = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= NODES_MAX {
            return None;
        }
        nodes.extend((first..=last).map(NodeId));
    }
    Some(nodes)
}

/// The bytes of a row of a node's `meminfo`: `Node 0 MemFree:  21125164 kB`.
pub(super) fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(2);
        let is_it = words.next()?.strip_suffix(':')? == name;
        let kib: u64 = words.next().filter(|_| is_it)?.parse().ok()?;
        kib.checked_mul(1024)
    })
}

/// What follows the colon in the row `name` of a file such as `/proc/self/status`.
pub(super) fn row<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        let numbers = |text| list(text).map(|nodes| nodes.iter().map(|n| n.0).collect::<Vec<_>>());
        assert_eq!(numbers("0\n"), Some(vec![0]));
        assert_eq!(numbers("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(numbers("\n"), Some(vec![]));
        for wrong in ["a", "1-", "-1", "3-1", "0-4294967295", "0 1", "0-1024", "99999999999"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rows_of_meminfo_are_found_by_their_name() {
        let text = "Node 0 MemTotal:    2 kB\nNode 0 MemFree:   1 kB\nNode 0 Bad: x kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(2048));
        assert_eq!(meminfo_bytes(text, "MemFree"), Some(1024));
        assert_eq!(meminfo_bytes(text, "Bad"), None);
        assert_eq!(meminfo_bytes("Node 0 MemFree: 99999999999999999999 kB", "MemFree"), None);
        assert_eq!(meminfo_bytes(&format!("Node 0 MemFree: {} kB", u64::MAX), "MemFree"), None);
    }
}
