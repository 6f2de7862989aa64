//! The directives `tier` and `tier-*` as settings of a tier on disk.

use crate::Config;
pub use crate::table::TIER_VALUE_BYTES_MAX;
use crate::table::{DIRECTIVES, row};
use std::path::PathBuf;

/// The directives about the tier.
pub const TIER_ROWS: [usize; 6] = [
    row("tier"),
    row("tier-max"),
    row("tier-read-threads"),
    row("tier-io-uring"),
    row("tier-value-min"),
    row("tier-value-max"),
];

/// Where values lie that memory has no room for, and which.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TierSettings {
    /// A directory or a block device. Absolute; `None`: all values stay in memory. Not moved by a
    /// later CONFIG SET of `dir`.
    pub path: Option<PathBuf>,
    /// The largest size of the file, in bytes. More than 0 if there is a path.
    pub bytes_max: u64,
    /// 1 to 64.
    pub read_threads: usize,
    /// Whether the kernel's io_uring reads short values, where it can be had.
    pub takes_io_uring: bool,
    /// A value of fewer bytes stays in memory.
    pub value_bytes_min: u64,
    /// A value of more bytes stays in memory. Not less than the minimum if there is a path.
    pub value_bytes_max: u64,
    /// For tests: behind each request every value goes that may.
    pub is_all_cold: bool,
}

pub(super) fn tier_settings(config: &Config) -> TierSettings {
    let path = config.text(const { row("tier") }).strip_prefix(b"file:");
    TierSettings {
        path: path.map(|path| crate::resolve(&config.started_in, path)),
        bytes_max: config.number(const { row("tier-max") }),
        read_threads: config.number(const { row("tier-read-threads") }),
        takes_io_uring: config.is_on(const { row("tier-io-uring") }),
        value_bytes_min: config.number(const { row("tier-value-min") }),
        value_bytes_max: config.number(const { row("tier-value-max") }),
        is_all_cold: config.is_on(const { row("tier-all-cold") }),
    }
}

/// The name of the first directive about the tier among the rows that CONFIG SET named. An error
/// about the tier names this directive.
pub fn tier_directive(named: &[usize]) -> Option<&'static str> {
    let found = named.iter().find(|row| TIER_ROWS.contains(row));
    found.map(|row| DIRECTIVES[*row].name)
}
