//! The directives of memKeyDB about slow memory, and which nodes it is.

use crate::Config;
use crate::table::row;
use crate::value::Value;
use base::slow_memory::MemoryPolicy;

/// Which values lie in slow memory, and where that is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowMemorySettings {
    /// Of which kind it is, is settled when the server starts.
    pub policy: MemoryPolicy,
    /// Whether tables lie in ordinary memory, whatever the policy.
    pub table_on_dram: bool,
    /// The memory nodes that are slow; `None`: those that the kernel describes as slow.
    pub nodes: Option<Vec<u32>>,
    /// How often the division is looked at.
    pub check_period_ms: u64,
}

pub(super) fn slow_memory_settings(config: &Config) -> SlowMemorySettings {
    SlowMemorySettings {
        policy: policy(config),
        table_on_dram: config.is_on(const { row("hashtable-on-dram") }),
        nodes: nodes(config.text(const { row("slow-memory-nodes") })),
        check_period_ms: config.number(const { row("memory-ratio-check-period") }),
    }
}

fn policy(config: &Config) -> MemoryPolicy {
    match config.word(const { row("memory-alloc-policy") }) {
        "only-pmem" => MemoryPolicy::OnlyPmem,
        "threshold" => {
            MemoryPolicy::Threshold { bytes: config.number(const { row("static-threshold") }) }
        }
        "ratio" => {
            let Value::Ratio(dram, pmem) = *config.value(const { row("dram-pmem-ratio") }) else {
                unreachable!("made by `parse` of this row")
            };
            MemoryPolicy::Ratio {
                dram,
                pmem,
                first_bytes: config.number(const { row("initial-dynamic-threshold") }),
                min_bytes: config.number(const { row("dynamic-threshold-min") }),
                max_bytes: config.number(const { row("dynamic-threshold-max") }),
            }
        }
        _ => MemoryPolicy::OnlyDram,
    }
}

/// The numbers of nodes; none for `auto`.
fn nodes(text: &[u8]) -> Option<Vec<u32>> {
    let text = std::str::from_utf8(text).ok()?;
    text.split([',', ' ']).map(|number| number.parse().ok()).collect()
}
