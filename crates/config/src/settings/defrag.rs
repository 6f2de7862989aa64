//! The directives `activedefrag` and `active-defrag-*` as settings.

use crate::Config;
use crate::table::row;

/// When memory is won back that is lost between blocks, and how much time that may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefragSettings {
    pub is_on: bool,
    /// In bytes.
    pub ignore_bytes: u64,
    /// Of the bytes in use, in percent.
    pub threshold_lower: u64,
    pub threshold_upper: u64,
    /// Of the time, in percent.
    pub cycle_min: u64,
    pub cycle_max: u64,
    pub max_scan_fields: u64,
}

impl DefragSettings {
    pub fn of(config: &Config) -> Self {
        Self {
            is_on: config.is_on(const { row("activedefrag") }),
            ignore_bytes: config.number(const { row("active-defrag-ignore-bytes") }),
            threshold_lower: config.number(const { row("active-defrag-threshold-lower") }),
            threshold_upper: config.number(const { row("active-defrag-threshold-upper") }),
            cycle_min: config.number(const { row("active-defrag-cycle-min") }),
            cycle_max: config.number(const { row("active-defrag-cycle-max") }),
            max_scan_fields: config.number(const { row("active-defrag-max-scan-fields") }),
        }
    }
}
