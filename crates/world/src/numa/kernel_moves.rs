//! What in the kernel moves pages between nodes by itself, and so works against a placement.
//!
//! *NUMA balancing* moves pages towards the processors that use them. It leaves ranges with a
//! policy of their own alone (`vma_policy_mof` in `mm/mempolicy.c`), so a [`super::SlowRange`]
//! stays where it is; but it goes on looking at all other memory. *Demotion* moves pages that are
//! not used to lower tiers when memory gets short, and asks no policy (`can_demote` in
//! `mm/vmscan.c`): then the table of keys may end up in slow memory.

use super::sysfs;
use std::path::Path;

/// The switches of NUMA balancing: a sum of bits. 1 is balancing between processors.
const BALANCING_AT: &str = "proc/sys/kernel/numa_balancing";

/// The bit of [`BALANCING_AT`] that makes it move hot pages from lower tiers to higher ones.
const TIERING: u64 = 2;

const DEMOTION_AT: &str = "sys/kernel/mm/numa/demotion_enabled";

/// Which of the kernel's own movers are switched on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelMoves {
    /// NUMA balancing moves hot pages out of lower tiers.
    pub promotes: bool,
    /// Pages that are not used go to lower tiers when memory is short.
    pub demotes: bool,
}

impl KernelMoves {
    pub fn of_machine() -> Self {
        Self::read(Path::new("/"))
    }

    /// What the files below `root` say. A file that is absent is a mover that the kernel lacks.
    pub fn read(root: &Path) -> Self {
        let balancing = sysfs::number(&root.join(BALANCING_AT)).unwrap_or(0);
        let demotion = sysfs::text(&root.join(DEMOTION_AT)).unwrap_or_default();
        Self {
            promotes: balancing & TIERING != 0,
            demotes: matches!(demotion.trim(), "true" | "1"),
        }
    }

    /// A line for each mover that works against slow memory: what it does, and how it is ended.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.demotes {
            warnings.push(format!(
                "the kernel may move any memory of this process to slow nodes, the table of keys \
                 too: write false to /{DEMOTION_AT}"
            ));
        }
        if self.promotes {
            warnings.push(format!(
                "the kernel looks for hot pages in slow memory, which costs page faults and moves \
                 what is not bound: write 0 to /{BALANCING_AT}"
            ));
        }
        warnings
    }
}
