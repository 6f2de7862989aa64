//! The memory nodes of this machine, as Linux describes them under `/sys/devices/system/node`.
//!
//! Nothing there says "slow" in one word. A node is slow if the kernel put it into a lower memory
//! tier than the processors' own. Kernels before 6.7 do so only for persistent memory, so else a
//! node without processors is slow, unless firmware (ACPI's HMAT) says that it is not: memory with
//! high bandwidth is a node of its own, too.
//!
//! Sources: `Documentation/admin-guide/mm/numaperf.rst` and
//! `Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers` of Linux.

use super::{NODES_MAX, NodeId, NumaError, sysfs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A memory node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub id: NodeId,
    pub has_processors: bool,
    /// All of its memory; 0 for a node that has only processors, or whose memory is offline.
    pub memory_bytes: u64,
    /// Memory that nobody uses. The kernel can take back more: its cache of files is not in here.
    pub free_bytes: u64,
    /// From the nearest processors, as firmware says (ACPI's SLIT): their own memory is at 10.
    pub distance: Option<u32>,
    /// The kernel's memory tier: the larger, the slower.
    pub tier: Option<u32>,
    /// How fast the nearest processors reach it, if firmware says so.
    pub access: Access,
}

/// What firmware (ACPI's HMAT) says of a node, seen from the nearest processors.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Access {
    pub read_latency_ns: Option<u64>,
    /// MiB per second.
    pub read_bandwidth_mib: Option<u64>,
}

/// All memory nodes that are online.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Nodes {
    /// In the order of their numbers.
    nodes: Vec<Node>,
    /// Those that the process may take memory from (its cpuset's `mems`).
    allowed: BTreeSet<NodeId>,
}

impl Nodes {
    /// The nodes of the machine that this process runs on. None if its kernel has no NUMA.
    pub fn of_machine() -> Self {
        Self::read(Path::new("/"))
    }

    /// The nodes that the files below `root` describe.
    pub fn read(root: &Path) -> Self {
        let folder = root.join("sys/devices/system/node");
        let ids = sysfs::numbered(&folder, "node").into_iter().filter(|id| *id < NODES_MAX);
        let tiers = read_tiers(root);
        let mut nodes: Vec<Node> =
            ids.map(|id| read_node(&folder, NodeId(id), tiers.get(&NodeId(id)).copied())).collect();
        let distances: Vec<_> = nodes.iter().map(|node| read_distances(&folder, node)).collect();
        for (column, node) in nodes.iter_mut().enumerate() {
            let from_processors = distances.iter().flatten();
            node.distance = from_processors.filter_map(|row| row.get(column)).min().copied();
        }
        let allowed = read_allowed(root);
        let allowed = allowed.unwrap_or_else(|| nodes.iter().map(|node| node.id).collect());
        Self { nodes, allowed }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    pub fn find(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    pub fn is_allowed(&self, id: NodeId) -> bool {
        self.allowed.contains(&id)
    }

    /// The nodes with slow memory, the quickest first: by latency, and then by distance.
    pub fn slow(&self) -> Vec<&Node> {
        let mut slow: Vec<&Node> = self.nodes.iter().filter(|node| self.is_slow(node)).collect();
        let unknown_last = |value: Option<u64>| value.unwrap_or(u64::MAX);
        slow.sort_by_key(|node| {
            (unknown_last(node.access.read_latency_ns), unknown_last(node.distance.map(u64::from)))
        });
        slow
    }

    fn is_slow(&self, node: &Node) -> bool {
        let ordinary =
            || self.nodes.iter().filter(|node| node.has_processors && node.memory_bytes > 0);
        if node.memory_bytes == 0 {
            return false;
        }
        if let (Some(tier), Some(own)) = (node.tier, ordinary().filter_map(|node| node.tier).min())
            && tier != own
        {
            return tier > own;
        }
        let bandwidth = ordinary().filter_map(|node| node.access.read_bandwidth_mib).max();
        let latency = ordinary().filter_map(|node| node.access.read_latency_ns).min();
        let is_wider = bandwidth.is_some() && node.access.read_bandwidth_mib > bandwidth;
        let is_as_near = node.access.read_latency_ns.zip(latency).is_some_and(|(a, b)| a <= b);
        !node.has_processors && !is_wider && !is_as_near
    }

    /// Why [`Self::slow`] finds none, for who expects one.
    pub fn why_none_is_slow(&self) -> String {
        if self.nodes.is_empty() {
            return "The kernel shows no memory nodes: it was built without NUMA, or /sys is not \
                    mounted"
                .to_owned();
        }
        let why = |node: &Node| match node.id {
            id if node.has_processors => format!("node {id} has processors"),
            id if node.memory_bytes == 0 => NumaError::NodeEmpty { node: id }.to_string(),
            id => format!("memory node {id} is no slower than others, says the firmware"),
        };
        let reasons: Vec<String> = self.nodes.iter().map(why).collect();
        format!("As the kernel shows them: {}", reasons.join("; "))
    }

    /// Whether this process may put memory on a node.
    ///
    /// # Errors
    /// [`NumaError`], by name: the node is not there, has no memory, or is not allowed.
    pub fn check(&self, id: NodeId) -> Result<&Node, NumaError> {
        let Some(node) = self.find(id) else {
            let present = self.nodes.iter().map(|node| node.id).collect();
            return Err(NumaError::NodeMissing { node: id, present });
        };
        if node.memory_bytes == 0 {
            return Err(NumaError::NodeEmpty { node: id });
        }
        if !self.is_allowed(id) {
            let allowed = self.allowed.iter().copied().collect();
            return Err(NumaError::NodeNotAllowed { node: id, allowed });
        }
        Ok(node)
    }
}

/// Bytes that a node can still give: memory that nobody uses, and the part of its cache of files
/// that the kernel takes back first. `None` if it does not say. Reads one small file.
pub fn available_bytes(id: NodeId) -> Option<u64> {
    available_bytes_below(Path::new("/"), id)
}

fn available_bytes_below(root: &Path, id: NodeId) -> Option<u64> {
    let meminfo = sysfs::text(&root.join(format!("sys/devices/system/node/node{id}/meminfo")))?;
    let bytes = |name| sysfs::meminfo_bytes(&meminfo, name);
    Some(bytes("MemFree")?.saturating_add(bytes("Inactive(file)").unwrap_or(0)))
}

fn read_node(folder: &Path, id: NodeId, tier: Option<u32>) -> Node {
    let folder = folder.join(format!("node{id}"));
    let meminfo = sysfs::text(&folder.join("meminfo")).unwrap_or_default();
    let bytes = |name| sysfs::meminfo_bytes(&meminfo, name).unwrap_or(0);
    // A node of which this is unknown has processors, so that it does not pass for a slow one.
    let processors = sysfs::text(&folder.join("cpulist"));
    let initiators = folder.join("access0/initiators");
    // 0 is what the kernel shows for what firmware does not tell.
    let told = |name: &str| sysfs::number(&initiators.join(name)).filter(|number| *number > 0);
    Node {
        id,
        has_processors: processors.is_none_or(|list| !list.trim().is_empty()),
        memory_bytes: bytes("MemTotal"),
        free_bytes: bytes("MemFree"),
        distance: None,
        tier,
        access: Access {
            read_latency_ns: told("read_latency"),
            read_bandwidth_mib: told("read_bandwidth"),
        },
    }
}

/// The distances from a node's processors to all nodes, in the order of their numbers.
fn read_distances(folder: &Path, node: &Node) -> Option<Vec<u32>> {
    let path = folder.join(format!("node{}/distance", node.id));
    let text = sysfs::text(&path).filter(|_| node.has_processors)?;
    text.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

fn read_tiers(root: &Path) -> BTreeMap<NodeId, u32> {
    let folder = root.join("sys/devices/virtual/memory_tiering");
    let mut tiers = BTreeMap::new();
    for tier in sysfs::numbered(&folder, "memory_tier") {
        let text = sysfs::text(&folder.join(format!("memory_tier{tier}/nodelist")));
        let nodes = text.and_then(|text| sysfs::list(&text)).unwrap_or_default();
        tiers.extend(nodes.into_iter().map(|node| (node, tier)));
    }
    tiers
}

fn read_allowed(root: &Path) -> Option<BTreeSet<NodeId>> {
    let status = sysfs::text(&root.join("proc/self/status"))?;
    sysfs::list(sysfs::row(&status, "Mems_allowed_list")?)
}

#[cfg(test)]
mod tests;
