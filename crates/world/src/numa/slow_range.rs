//! A range of addresses whose memory lies on one node.
//!
//! The whole range is reserved at the start, and the node preferred for it before any page of it
//! has memory. A policy holds for pages that come later, and each range with a policy of its own is
//! a mapping of its own: one for each extent, as it is needed, would run into `vm.max_map_count`.
//! Whether a value is slow is then one comparison of its address, with no bit beside it.
//!
//! ```text
//! reserved ─▶ accessible ─▶ the node preferred ─▶ one page touched: is it there? ─▶ given back
//! ```
//! When the node is full, memory comes from other nodes. Of a range that is *bound* to a node the
//! kernel would kill the process then.
//!
//! Absent on purpose: handing out parts of the range (an allocator's), and moving what lies in it.

use super::calls::{self, Mode};
use super::{NodeId, Nodes, NumaError};
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use rustix::param::page_size;
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};

/// Pages asked about in one call: a page of pointers. A guess.
const ASKED_PAGES: usize = 512;

/// Addresses of this process whose memory lies on one node. Dropping it ends the mapping, so what
/// is handed out of it must not outlive it.
#[derive(Debug)]
pub struct SlowRange {
    start: NonNull<u8>,
    bytes: usize,
    node: NodeId,
}

// SAFETY: it is a mapping of the process, and nothing is read or written through it.
unsafe impl Send for SlowRange {}
// SAFETY: as above.
unsafe impl Sync for SlowRange {}

impl SlowRange {
    /// Reserves at least `bytes` of addresses, readable and writable, whose memory is to come from
    /// `node`. They take no memory until they are written to, and begin as zeros.
    ///
    /// # Errors
    /// [`NumaError`], by name; nothing stays reserved then.
    pub fn reserve(nodes: &Nodes, node: NodeId, bytes: usize) -> Result<Self, NumaError> {
        nodes.check(node)?;
        let no_room = |error| NumaError::NoRoom { bytes, error };
        let range = Self::map(bytes, node).map_err(no_room)?;
        range.make_accessible().map_err(no_room)?;
        range.prefer_node()?;
        // Reads would be a few percent faster of huge pages. But all wait for the kernel to clear
        // one where it is touched first: 0.2 ms at best, and 6 ms were measured on a machine of
        // which the hypervisor takes back what is free.
        range.advise(Advice::LinuxNoHugepage);
        range.verify()?;
        Ok(range)
    }

    /// The first address. All of the range is mapped, and zeros where nobody wrote.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes of addresses there are: what was asked for, in whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Whether an address lies in the range, and so in slow memory, but for what fell back to other
    /// nodes because this one was full.
    #[inline]
    pub fn contains(&self, address: *const u8) -> bool {
        address.addr().wrapping_sub(self.start.as_ptr().addr()) < self.bytes
    }

    /// The bytes of the range that have memory, by the nodes on which they lie. Asks about each
    /// page, so it is for tests and for operators, not for every second.
    ///
    /// # Errors
    /// [`NumaError`] if the process may not ask.
    pub fn bytes_by_node(&self) -> Result<BTreeMap<NodeId, usize>, NumaError> {
        let page_bytes = page_size();
        let offsets: Vec<usize> = (0..self.bytes).step_by(page_bytes).collect();
        let mut found = BTreeMap::new();
        for some in offsets.chunks(ASKED_PAGES) {
            let start = self.start.as_ptr();
            let pages: Vec<_> =
                some.iter().map(|offset| start.wrapping_add(*offset).cast()).collect();
            for node in calls::nodes_of(&pages)?.into_iter().flatten() {
                *found.entry(node).or_default() += page_bytes;
            }
        }
        Ok(found)
    }

    /// Gives the memory of whole pages back. They are zeros then, and whatever is written to them
    /// next comes from the node again. Whether the kernel did it.
    ///
    /// # Safety
    /// The pages lie in the range, and what stands in them is nobody's.
    pub unsafe fn give_back(&self, start: NonNull<u8>, bytes: usize) -> bool {
        debug_assert!(bytes == 0 || self.contains(start.as_ptr().wrapping_add(bytes - 1)));
        // SAFETY: the caller's promise; the pages are this range's own mapping.
        unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) }.is_ok()
    }

    fn map(bytes: usize, node: NodeId) -> Result<Self, Errno> {
        let bytes = bytes.max(1).checked_next_multiple_of(page_size()).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags)? };
        Ok(Self { start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, bytes, node })
    }

    fn make_accessible(&self) -> Result<(), Errno> {
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the pages are this range's own mapping, and to be allowed more harms nobody.
        unsafe { mprotect(self.start.as_ptr().cast(), self.bytes, access) }
    }

    fn prefer_node(&self) -> Result<(), NumaError> {
        let prefer = |mode| calls::mbind(self.start, self.bytes, mode, self.node);
        // For one node both mean the same, but only the newer one chooses among the rest by their
        // distance to the processor that needs the page.
        let outcome = match prefer(Mode::PreferMany) {
            Err(Errno::INVAL) => prefer(Mode::Prefer),
            outcome => outcome,
        };
        outcome.map_err(|error| NumaError::of_call("mbind", error))
    }

    /// Touches a page, and asks where it lies: what a kernel promises and what a container's filter
    /// or an emulation of Linux does are two things.
    fn verify(&self) -> Result<(), NumaError> {
        // SAFETY: the range is mapped, writable, and handed out to nobody yet. Volatile, since the
        // page must come into being though nobody reads it.
        unsafe { self.start.as_ptr().write_volatile(0) };
        let found = calls::node_of(self.start)?;
        if found != self.node {
            return Err(NumaError::Elsewhere { wanted: self.node, found });
        }
        self.advise(Advice::LinuxDontNeed);
        Ok(())
    }

    /// Advice that the kernel need not follow. Only while nobody has an address of the range yet.
    fn advise(&self, advice: Advice) {
        // SAFETY: the pages are this range's own mapping, and nobody has written to them but
        // `verify`, so it may take their content.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) };
    }
}

impl Drop for SlowRange {
    fn drop(&mut self) {
        // SAFETY: the mapping is this range's own, whole, and what was handed out of it is gone:
        // that is for its holder to keep. If the kernel refuses, its addresses stay taken.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every machine has node 0, whatever it is called there.
    fn reserve(bytes: usize) -> Result<SlowRange, NumaError> {
        let nodes = Nodes::of_machine();
        let node = nodes.iter().find(|node| nodes.check(node.id).is_ok()).map(|node| node.id);
        SlowRange::reserve(&nodes, node.unwrap_or(NodeId(0)), bytes)
    }

    #[test]
    fn a_range_lies_where_it_was_asked_to_or_says_why_it_cannot() {
        let range = match reserve((5 << 20) - 1) {
            Ok(range) => range,
            // Where tests run in a container that forbids it, or on a kernel without NUMA.
            Err(NumaError::NotPermitted { .. } | NumaError::NodeMissing { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(range.bytes(), 5 << 20);
        assert_eq!(range.bytes_by_node(), Ok(BTreeMap::new()), "it takes memory unused");
        // SAFETY: the range is mapped, and nobody else has it.
        unsafe { range.start().as_ptr().write_bytes(7, range.bytes()) };
        let everything = BTreeMap::from([(range.node(), range.bytes())]);
        assert_eq!(range.bytes_by_node(), Ok(everything));
    }

    #[test]
    fn it_contains_its_own_addresses_alone() {
        let range = SlowRange::map(1, NodeId(0)).expect("there are addresses");
        let start = range.start().as_ptr().cast_const();
        assert!(range.contains(start) && range.contains(start.wrapping_add(range.bytes() - 1)));
        assert!(!range.contains(start.wrapping_add(range.bytes())));
        assert!(!range.contains(start.wrapping_sub(1)) && !range.contains(ptr::null()));
    }

    #[test]
    fn more_addresses_than_there_are_is_an_error() {
        for bytes in [usize::MAX, usize::MAX - page_size(), 1 << 60] {
            let error = SlowRange::map(bytes, NodeId(0)).expect_err("nobody has as much");
            assert_eq!(error, Errno::NOMEM);
        }
    }
}
