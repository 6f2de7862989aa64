//! The system calls about memory nodes (man 2 mbind, get_mempolicy, move_pages). Neither the
//! standard library nor rustix has them, and libc has their numbers only.

use super::{NODES_MAX, NodeId, NumaError};
use libc::{c_int, c_long, c_ulong, c_void};
use rustix::io::Errno;
use std::io;
use std::ptr::{self, NonNull};

/// `MPOL_PREFERRED_MANY` of `linux/mempolicy.h`, since Linux 5.15. libc does not have it.
const PREFERRED_MANY: c_int = 5;

/// What `get_mempolicy` is asked for: a node (`MPOL_F_NODE`), by an address (`MPOL_F_ADDR`).
const NODE_OF_ADDRESS: c_ulong = 1 | 2;

/// Where the pages of a range come from, as the kernel distinguishes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// From these nodes, and from others once they are full. `EINVAL` before Linux 5.15.
    PreferMany,
    /// The same, of one node.
    Prefer,
}

impl Mode {
    /// The numbers of nodes are the machine's, whatever the cpuset becomes (`STATIC_NODES`).
    fn number(self) -> c_int {
        let mode = match self {
            Self::PreferMany => PREFERRED_MANY,
            Self::Prefer => libc::MPOL_PREFERRED,
        };
        mode | libc::MPOL_F_STATIC_NODES
    }
}

const WORD_BITS: u32 = c_ulong::BITS;

/// A set of one node, as the kernel takes it.
type Mask = [c_ulong; (NODES_MAX / WORD_BITS) as usize];

/// Sets where the pages of whole pages of addresses will come from. What lies there already stays.
pub(super) fn mbind(
    start: NonNull<u8>,
    bytes: usize,
    mode: Mode,
    node: NodeId,
) -> Result<(), Errno> {
    let mut mask: Mask = [0; _];
    let word = mask.get_mut((node.0 / WORD_BITS) as usize).ok_or(Errno::INVAL)?;
    *word |= 1 << (node.0 % WORD_BITS);
    // The kernel takes one bit less than it is told (`get_nodes` in `mm/mempolicy.c`).
    let mask_bits = c_ulong::from(NODES_MAX) + 1;
    let address: *mut c_void = start.as_ptr().cast();
    // SAFETY: the mask is read up to its length and outlives the call. A policy changes no content
    // of memory, and the kernel refuses addresses at which nothing is mapped.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            address,
            bytes as c_ulong,
            c_long::from(mode.number()),
            mask.as_ptr(),
            mask_bits,
            c_long::from(0),
        )
    };
    check(outcome)
}

/// The node on which the page at an address lies. A page that was never touched is made first.
pub(super) fn node_of(address: NonNull<u8>) -> Result<NodeId, NumaError> {
    let mut node: c_int = -1;
    let address: *mut c_void = address.as_ptr().cast();
    // SAFETY: the kernel writes one integer, which outlives the call; with these flags it takes no
    // mask. It refuses an address at which nothing is mapped.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            ptr::from_mut(&mut node),
            ptr::null_mut::<c_ulong>(),
            c_ulong::from(0u8),
            address,
            NODE_OF_ADDRESS,
        )
    };
    let found = check(outcome).and_then(|()| u32::try_from(node).map_err(|_| Errno::INVAL));
    found.map(NodeId).map_err(|error| NumaError::of_call("get_mempolicy", error))
}

/// The node of each page, by an address in it; none of a page that has no memory. Moves nothing.
pub(super) fn nodes_of(pages: &[*mut c_void]) -> Result<Vec<Option<NodeId>>, NumaError> {
    let mut status: Vec<c_int> = vec![-1; pages.len()];
    // SAFETY: both arrays have as many elements as the kernel is told, and outlive the call.
    // Without an array of nodes nothing is moved, and what an address leads to is not touched.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            c_long::from(0),
            pages.len() as c_ulong,
            pages.as_ptr(),
            ptr::null::<c_int>(),
            status.as_mut_ptr(),
            c_long::from(0),
        )
    };
    check(outcome).map_err(|error| NumaError::of_call("move_pages", error))?;
    // A status below 0 is an error's number: mostly ENOENT, there is no page.
    Ok(status.into_iter().map(|node| u32::try_from(node).ok().map(NodeId)).collect())
}

fn check(outcome: c_long) -> Result<(), Errno> {
    match outcome {
        0.. => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
