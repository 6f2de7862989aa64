//! The machine: sockets, files, clocks, threads and signals, behind the traits of `base`.
//!
//! | file | holds |
//! |---|---|
//! | [`net`] | sockets, signals and wake-ups: the loop's driver |
//! | [`tls`] | the TLS configurations in force |
//! | [`clock`] | the machine's clocks |
//! | `vmclock` | the hypervisor's word that the clocks were disrupted |
//! | [`descriptors`] | how many file descriptors there are, and for whom |
//! | [`disk`] | the machine's file system |
//! | `direct` | long files past the page cache |
//! | [`block_device`] | a block device, for this process alone |
//! | [`disk_queue`] | a thread that runs disk jobs in order |
//! | [`disk_pool`] | threads that run disk jobs at a time |
//! | `disk_ring` | short reads by io_uring, for such a pool |
//! | [`garbage`] | a thread that frees big values |
//! | `reclaim` | a thread that gives the space of removed files back |
//! | `entropy` | unpredictable bits from the kernel |
//! | [`machine`] | the process as the kernel describes it |
//! | [`numa`] | memory nodes: which are slow, and ranges of addresses that lie on one |
//! | [`secret_file`] | files that only who may can read |
//! | [`secret_page`] | secrets in memory that no core dump has |
//! | [`process`] | files about the process: its log, its id |
//! | [`metrics_http`] | a thread that answers scrapes of the metrics |
//! | [`stocktaking`] | a thread that takes stock of the allocator's memory |
//! | [`systemd`] | readiness, told to the service manager |
//!
//! Absent on purpose: everything of Kiln but `base`. What is decided is decided above, so that the
//! simulator replaces this crate and nothing else; `async` and the clients of services, which are
//! `services`; the allocator, which is `allocator`.

pub mod block_device;
pub mod clock;
pub mod descriptors;
mod direct;
pub mod disk;
pub mod disk_pool;
pub mod disk_queue;
mod disk_ring;
pub mod entropy;
pub mod garbage;
pub mod machine;
pub mod metrics_http;
pub mod net;
pub mod numa;
pub mod process;
mod reclaim;
pub mod secret_file;
pub mod secret_page;
pub mod stocktaking;
pub mod systemd;
pub mod tls;
mod vmclock;
