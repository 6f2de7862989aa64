//! The real world: the only crate that touches the operating system.
//!
//! | file | holds |
//! |---|---|
//! | [`disk`] | the machine's file system |
//! | [`disk_queue`] | a thread that runs disk jobs in order |

pub mod disk;
pub mod disk_queue;
