use super::*;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A tree of files as a kernel would show it, removed when it is dropped.
struct Shown(PathBuf);

impl Shown {
    fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("kiln-numa-{}-{number}", std::process::id()));
        let shown = Self(root);
        for (path, text) in files {
            shown.put(path, text.as_bytes());
        }
        shown
    }

    #[allow(clippy::disallowed_methods, reason = "files stand for the kernel's")]
    fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn node(&self, id: u32, processors: &str, mebibytes: u64, distances: &str) {
        let folder = format!("sys/devices/system/node/node{id}");
        let meminfo = format!(
            "Node {id} MemTotal:       {} kB\nNode {id} MemFree:        {} kB\n",
            mebibytes << 10,
            mebibytes << 9
        );
        self.put(&format!("{folder}/cpulist"), format!("{processors}\n").as_bytes());
        self.put(&format!("{folder}/meminfo"), meminfo.as_bytes());
        self.put(&format!("{folder}/distance"), format!("{distances}\n").as_bytes());
    }

    fn access(&self, id: u32, latency_ns: u64, bandwidth_mib: u64) {
        let folder = format!("sys/devices/system/node/node{id}/access0/initiators");
        let put = |name, number: u64| {
            self.put(&format!("{folder}/{name}"), format!("{number}\n").as_bytes());
        };
        put("read_latency", latency_ns);
        put("read_bandwidth", bandwidth_mib);
    }

    fn read(&self) -> Nodes {
        Nodes::read(&self.0)
    }

    fn slow(&self) -> Vec<u32> {
        self.read().slow().iter().map(|node| node.id.0).collect()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two processors with 1 GiB, and 512 MiB without any.
fn two_nodes() -> Shown {
    let shown = Shown::new(&[
        ("sys/devices/system/node/online", "0-1\n"),
        ("proc/self/status", "Name:\tkiln\nMems_allowed:\t3\nMems_allowed_list:\t0-1\n"),
    ]);
    shown.node(0, "0-1", 1024, "10 20");
    shown.node(1, "", 512, "20 10");
    shown
}

#[test]
fn a_machine_with_one_node_has_nothing_slow() {
    let shown = Shown::new(&[("proc/self/status", "Mems_allowed_list:\t0\n")]);
    shown.node(0, "0-1", 1024, "10");
    let nodes = shown.read();
    let node = nodes.check(NodeId(0)).unwrap();
    assert_eq!((node.memory_bytes, node.free_bytes), (1 << 30, 512 << 20));
    assert_eq!((node.has_processors, node.distance, node.tier), (true, Some(10), None));
    assert!(nodes.slow().is_empty());
    assert_eq!(nodes.why_none_is_slow(), "As the kernel shows them: node 0 has processors");
    let error = nodes.check(NodeId(7)).unwrap_err();
    assert_eq!(error, NumaError::NodeMissing { node: NodeId(7), present: vec![NodeId(0)] });
    assert!(error.to_string().starts_with("there is no memory node 7: this machine has 0."));
}

#[test]
fn a_kernel_without_nodes_is_named() {
    let nodes = Shown::new(&[]).read();
    assert_eq!(nodes, Nodes::default());
    assert!(nodes.why_none_is_slow().contains("built without NUMA"));
    let error = nodes.check(NodeId(0)).unwrap_err();
    assert!(error.to_string().contains("built without NUMA"), "{error}");
}

#[test]
fn memory_without_processors_is_slow() {
    let shown = two_nodes();
    assert_eq!(shown.slow(), [1]);
    let nodes = shown.read();
    let node = nodes.check(NodeId(1)).unwrap();
    assert_eq!((node.has_processors, node.distance), (false, Some(20)));
    assert_eq!((node.memory_bytes, node.access), (512 << 20, Access::default()));
    // The kernel keeps such a node in the tier of all, unless it is persistent memory.
    shown.put("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", b"0-1\n");
    assert_eq!(shown.slow(), [1]);
}

#[test]
fn a_node_without_memory_is_neither_slow_nor_usable() {
    let shown = two_nodes();
    shown.node(1, "2-3", 0, "20 10");
    shown.node(2, "", 0, "30 30 10");
    assert!(shown.slow().is_empty());
    assert!(shown.read().why_none_is_slow().contains("daxctl online-memory"));
    let error = shown.read().check(NodeId(2)).unwrap_err();
    assert_eq!(error, NumaError::NodeEmpty { node: NodeId(2) });
}

#[test]
fn firmware_tells_how_fast_a_node_is() {
    let shown = two_nodes();
    shown.node(0, "0-1", 1024, "10 20 20");
    shown.node(1, "", 512, "20 10 20");
    shown.node(2, "", 512, "20 20 10");
    for (id, latency, bandwidth) in [(0, 90, 100_000), (1, 300, 20_000), (2, 250, 20_000)] {
        shown.access(id, latency, bandwidth);
    }
    let nodes = shown.read();
    let access = Access { read_latency_ns: Some(300), read_bandwidth_mib: Some(20_000) };
    assert_eq!(nodes.find(NodeId(1)).unwrap().access, access);
    assert_eq!(shown.slow(), [2, 1], "the quickest first");
    // Memory on the processor's own package, with higher bandwidth.
    shown.access(1, 95, 400_000);
    assert_eq!(shown.slow(), [2]);
    // A second channel of the same kind.
    shown.access(2, 90, 100_000);
    assert!(shown.slow().is_empty());
    // Firmware that says nothing.
    shown.access(1, 0, 0);
    assert_eq!(shown.slow(), [1]);
}

#[test]
fn the_kernels_tiers_come_first() {
    let shown = two_nodes();
    shown.access(0, 90, 100_000);
    shown.access(1, 90, 100_000);
    shown.put("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", b"0\n");
    shown.put("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", b"1\n");
    assert_eq!(shown.read().find(NodeId(1)).unwrap().tier, Some(22));
    assert_eq!(shown.slow(), [1]);
    let shown = two_nodes();
    shown.put("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", b"0\n");
    shown.put("sys/devices/virtual/memory_tiering/memory_tier2/nodelist", b"1\n");
    assert!(shown.slow().is_empty(), "a faster tier");
}

#[test]
fn a_node_can_give_what_is_free_and_what_its_cache_holds() {
    let shown = two_nodes();
    let available = || available_bytes_below(&shown.0, NodeId(1));
    let free = shown.read().find(NodeId(1)).unwrap().free_bytes;
    assert_eq!(available(), Some(free));
    let meminfo = "Node 1 MemFree:  1024 kB\nNode 1 Inactive(file):  512 kB\n";
    shown.put("sys/devices/system/node/node1/meminfo", meminfo.as_bytes());
    assert_eq!(available(), Some(1536 << 10));
    assert_eq!(available_bytes_below(&shown.0, NodeId(7)), None);
}

#[test]
fn a_cpuset_may_leave_a_node_out() {
    let shown = two_nodes();
    shown.put("proc/self/status", b"Mems_allowed_list:\t0\n");
    let error = shown.read().check(NodeId(1)).unwrap_err();
    assert_eq!(error, NumaError::NodeNotAllowed { node: NodeId(1), allowed: vec![NodeId(0)] });
    assert!(error.to_string().contains("cpuset.mems"), "{error}");
}

#[test]
fn files_that_make_no_sense_are_as_good_as_none() {
    let wrong: [&[u8]; 8] = [
        b"",
        b"\n",
        b"-1",
        b"Node 1 MemTotal:",
        b"\xff\xfe\x00",
        b"99999999999999999999999",
        b"Node 1 MemTotal: 99999999999999999999 kB\nMems_allowed_list:\t5-1\n",
        b"0-4294967295",
    ];
    let files = [
        "proc/self/status",
        "proc/sys/kernel/numa_balancing",
        "sys/devices/system/node/node0/distance",
        "sys/devices/system/node/node1/cpulist",
        "sys/devices/system/node/node1/meminfo",
        "sys/devices/system/node/node1/access0/initiators/read_latency",
        "sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
        "sys/kernel/mm/numa/demotion_enabled",
    ];
    for bytes in wrong {
        for file in files {
            let shown = two_nodes();
            shown.put(file, bytes);
            let nodes = shown.read();
            assert_eq!(nodes.iter().count(), 2, "{file}: {bytes:?}");
            assert_eq!(super::super::KernelMoves::read(&shown.0), Default::default());
            let _ = (nodes.slow(), nodes.check(NodeId(1)));
        }
    }
    // Names that are no nodes, and a number beyond all.
    let shown = two_nodes();
    for name in ["node", "nodes", "node-1", "node4294967295", "node1024"] {
        shown.put(&format!("sys/devices/system/node/{name}/cpulist"), b"");
    }
    assert_eq!(shown.read().iter().count(), 2);
    // A node of which it is unknown whether it has processors does not pass for a slow one.
    let shown = two_nodes();
    fs::remove_file(shown.0.join("sys/devices/system/node/node1/cpulist")).unwrap();
    assert!(shown.slow().is_empty());
}

#[test]
fn what_moves_pages_by_itself_is_found() {
    use super::super::KernelMoves;
    let shown = two_nodes();
    assert_eq!(KernelMoves::read(&shown.0), KernelMoves::default());
    shown.put("proc/sys/kernel/numa_balancing", b"1\n");
    shown.put("sys/kernel/mm/numa/demotion_enabled", b"false\n");
    // Balancing of the older kind leaves ranges alone that have a policy of their own.
    assert_eq!(KernelMoves::read(&shown.0), KernelMoves::default());
    assert!(KernelMoves::default().warnings().is_empty());
    shown.put("proc/sys/kernel/numa_balancing", b"3\n");
    shown.put("sys/kernel/mm/numa/demotion_enabled", b"true\n");
    let moves = KernelMoves::read(&shown.0);
    assert_eq!(moves, KernelMoves { promotes: true, demotes: true });
    assert_eq!(moves.warnings().len(), 2);
}
