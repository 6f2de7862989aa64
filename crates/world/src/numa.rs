//! Memory nodes: which there are, which are slow, and memory that lies on a chosen one.
//!
//! A machine may have memory that is larger, cheaper and slower than the one beside its processors:
//! behind CXL, in persistent modules, or in another machine's socket. Linux shows it as a *node*
//! without processors, and by default takes pages from it only when the fast nodes are full. Kiln
//! decides by itself which values lie there, so it asks for a range of addresses whose pages come
//! from that node.
//!
//! | file | holds |
//! |---|---|
//! | [`nodes`] | the nodes as the kernel describes them; which of them are slow |
//! | `sysfs` | the kernel's numbers and lists, read without trust |
//! | [`kernel_moves`] | what in the kernel moves pages by itself |
//! | [`slow_range`] | a range of addresses whose memory lies on one node |
//! | `calls` | the system calls: neither std nor rustix has them |
//! | [`error`] | why there is no slow memory, and what to do about it |
//!
//! Everything is read below a root that is passed in, so that tests can show machines that nobody
//! has. Absent on purpose: which values belong there, and moving pages. A page holds values of many
//! keys, so whoever wants a value elsewhere allocates it anew.

pub mod error;
pub mod kernel_moves;
pub mod nodes;
pub mod slow_range;

mod calls;
mod sysfs;

pub use error::NumaError;
pub use kernel_moves::KernelMoves;
pub use nodes::{Node, Nodes};
pub use slow_range::SlowRange;

use std::fmt;

/// The number of a memory node, as the kernel counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// Numbers of nodes are below this: the largest NODES_SHIFT that Linux can be built with is 10.
const NODES_MAX: u32 = 1024;
