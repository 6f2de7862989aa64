//! The real world: the only crate that touches the operating system.
//!
//! | file | holds |
//! |---|---|
//! | [`clock`] | the machine's clocks |
//! | [`disk`] | the machine's file system |
//! | [`disk_queue`] | a thread that runs disk jobs in order |
//! | [`net`] | sockets, signals and wake-ups: the loop's driver |

pub mod clock;
pub mod disk;
pub mod disk_queue;
pub mod net;
