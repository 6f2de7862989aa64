//! The real world: the only crate that touches the operating system.
//!
//! | file | holds |
//! |---|---|
//! | [`clock`] | the machine's clocks |
//! | `direct` | long files past the page cache |
//! | [`disk`] | the machine's file system |
//! | [`disk_queue`] | a thread that runs disk jobs in order |
//! | [`garbage`] | a thread that frees big values |
//! | [`machine`] | the process as the kernel describes it |
//! | [`metrics_http`] | a thread that answers scrapes of the metrics |
//! | [`net`] | sockets, signals and wake-ups: the loop's driver |
//! | [`process`] | files about the process: its log, its id |
//! | `reclaim` | a thread that gives the space of removed files back |
//! | [`systemd`] | readiness, told to the service manager |
//! | `vmclock` | the hypervisor's word that the clocks were disrupted |

pub mod clock;
mod direct;
pub mod disk;
pub mod disk_queue;
pub mod garbage;
pub mod machine;
pub mod metrics_http;
pub mod net;
pub mod process;
mod reclaim;
pub mod systemd;
mod vmclock;
