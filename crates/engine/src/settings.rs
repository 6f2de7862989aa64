//! The engine's share of the configuration: encodings' thresholds, policies, limits.
//!
//! `config` owns the text form and sets these fields; the names are Redis's directives with
//! underscores.

/// The rule by which keys go when memory is short, as `maxmemory-policy` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvictionPolicy {
    NoEviction,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
}

impl EvictionPolicy {
    /// Whether the access word of an entry holds an LFU counter instead of an LRU clock.
    pub const fn is_lfu(self) -> bool {
        matches!(self, Self::AllKeysLfu | Self::VolatileLfu)
    }

    /// Whether keys go by when or how often they were used.
    pub const fn is_by_use(self) -> bool {
        self.is_lfu() || matches!(self, Self::AllKeysLru | Self::VolatileLru)
    }
}

/// Settings that change how commands run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How many numbered databases there are.
    pub databases: u32,
    pub hash_max_listpack_entries: u64,
    /// In bytes.
    pub hash_max_listpack_value: u64,
    /// Positive: elements a node. -1 to -5: 4, 8, 16, 32, 64 KiB a node.
    pub list_max_listpack_size: i64,
    pub list_compress_depth: i64,
    pub set_max_intset_entries: u64,
    pub zset_max_listpack_entries: u64,
    /// In bytes.
    pub zset_max_listpack_value: u64,
    /// `stream-node-max-entries`: the most entries in a block of a stream; 0: no limit.
    pub stream_node_max_entries: u64,
    /// `stream-node-max-bytes`: the most bytes in a block of a stream; 0: as many as a listpack can
    /// have.
    pub stream_node_max_bytes: u64,
    /// In bytes.
    pub hll_sparse_max_bytes: u64,
    /// Longest string value, in bytes.
    pub proto_max_bulk_len: u64,
    /// Bits of [`crate::notify::Class`]; 0 switches keyspace notifications off.
    pub notify_keyspace_events: u32,
    /// 0: no limit. In bytes.
    pub maxmemory: u64,
    pub maxmemory_policy: EvictionPolicy,
    pub maxmemory_samples: u64,
    pub lfu_log_factor: u64,
    /// In minutes.
    pub lfu_decay_time: u64,
    /// No directive changes them.
    pub limits: Limits,
}

/// The sizes from which on work is divided. Small ones in tests walk the edges at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Entries that a snapshot visits between two looks at the bounds of its slice: six cells of
    /// the table or so.
    pub walk_entries: usize,
    /// Bytes of memory from which on a snapshot writes a value in pieces. It is written in 0.1 ms
    /// or so.
    pub whole_value_bytes_max: usize,
    /// Bytes that a snapshot keeps aside after which the value that they wait for is finished at
    /// once. A guess: memory that nobody counts on, against a step of some tenths of a second.
    pub aside_bytes_max: usize,
    /// Bytes of a file that one slice of loading takes, and a small value. A millisecond or so, so
    /// that whoever is told LOADING meanwhile need not wait; one buffer of a source.
    pub load_slice_bytes: u64,
    /// Elements of a value that is freed on the loop; larger ones go to a background thread.
    /// Redis's lazyfree threshold.
    pub freed_inline_elements_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            walk_entries: 32,
            whole_value_bytes_max: 128 << 10,
            aside_bytes_max: 64 << 20,
            load_slice_bytes: 256 << 10,
            freed_inline_elements_max: 64,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            databases: 16,
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            list_max_listpack_size: -2,
            list_compress_depth: 0,
            set_max_intset_entries: 512,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            stream_node_max_entries: 100,
            stream_node_max_bytes: 4096,
            hll_sparse_max_bytes: 3000,
            proto_max_bulk_len: 512 << 20,
            notify_keyspace_events: 0,
            maxmemory: 0,
            maxmemory_policy: EvictionPolicy::NoEviction,
            maxmemory_samples: 5,
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            limits: Limits::default(),
        }
    }
}
