//! The settings as plain typed fields, for the code that obeys them.
//!
//! Derived from [`Config`] after every change. The engine's share has a type of its own, because
//! the engine does not know that configuration files exist.

pub mod defrag;
pub mod slow_memory;
pub mod tier;
pub mod tls;

use crate::Config;
use crate::table::row;
use crate::value::{BUFFER_CLASSES, BufferLimit, Value};
use base::tls::TlsSettings;
use engine::settings::{EvictionPolicy, Limits, Settings};
use engine::value::text::STRING_BYTES_MAX;
use slow_memory::{SlowMemorySettings, slow_memory_settings};
use std::path::PathBuf;
use tier::{TierSettings, tier_settings};
use tls::tls_settings;

/// Who may use a guarded command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowed {
    No,
    /// Clients on the loopback interface or a Unix socket.
    Local,
    Yes,
}

impl Allowed {
    /// Whether a client may.
    pub const fn permits(self, is_local: bool) -> bool {
        matches!(self, Self::Yes) || matches!(self, Self::Local) && is_local
    }

    fn from_word(word: &str) -> Self {
        match word {
            "yes" => Self::Yes,
            "local" => Self::Local,
            _ => Self::No,
        }
    }
}

/// Where the transaction log is, or the snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// Absolute.
    Folder(PathBuf),
    /// Of a service. A log's may hold a password.
    Url(String),
}

/// How clients find this server: directives that begin with `cluster` in Redis, and one more.
#[derive(Clone, PartialEq, Debug)]
pub struct DiscoverySettings {
    /// What INFO and HELLO say to those who look for it.
    pub cluster_enabled: bool,
    /// Where clients find this server; empty and 0: as `replica-announce-ip` and `-port` say.
    pub announce_ip: Vec<u8>,
    pub announce_port: u16,
    /// Counts instead of the address if `preferred_endpoint_type` is `hostname`.
    pub announce_hostname: Vec<u8>,
    pub preferred_endpoint_type: &'static str,
    /// What the shard is called where a Sentinel is expected.
    pub sentinel_master_name: Vec<u8>,
}

/// The settings that the node obeys. A field is named after its directive.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeSettings {
    /// Addresses to listen on; a leading `-` means that it may be missing.
    pub bind: Vec<String>,
    /// 0: no TCP.
    pub port: u16,
    /// 0: clients cannot connect over TLS.
    pub tls_port: u16,
    pub tls: TlsSettings,
    pub tls_replication: bool,
    /// The address that the link to a master comes from; `None`: the system chooses.
    pub bind_source_addr: Option<String>,
    pub tls_cluster: bool,
    /// Whether a client is logged in as the user that its certificate names
    /// (`tls-auth-clients-user`).
    pub tls_user_is_common_name: bool,
    pub protected_mode: bool,
    pub tcp_backlog: u32,
    /// In seconds; 0: off.
    pub tcp_keepalive: u32,
    pub unixsocket: Option<PathBuf>,
    /// File mode bits; 0: as the umask says.
    pub unixsocketperm: u32,
    /// 0: no metrics.
    pub metrics_port: u16,
    /// Seconds without a command after which a client is disconnected; 0: never.
    pub timeout: u32,
    pub maxclients: u32,
    /// Relative to `dir`; `None`: users are kept in the configuration file, if at all.
    pub aclfile: Option<PathBuf>,
    /// The RDB file that DEBUG RELOAD NOSAVE loads.
    pub dbfilename: PathBuf,
    /// Entries of ACL LOG.
    pub acllog_max_len: usize,
    /// For normal clients, replicas and subscribers.
    pub client_output_buffer_limits: [BufferLimit; BUFFER_CLASSES.len()],
    /// In bytes.
    pub client_query_buffer_limit: u64,
    /// In bytes.
    pub proto_max_bulk_len: u64,
    /// In bytes, all clients together; 0: no limit.
    pub maxmemory_clients: u64,
    /// Turns a second of the periodic work.
    pub hz: u32,
    /// In microseconds; negative: off, 0: every command.
    pub slowlog_log_slower_than: i64,
    pub slowlog_max_len: u64,
    /// The greatest number of keys remembered for clients with CLIENT TRACKING; 0: no limit.
    pub tracking_table_max_keys: u64,
    /// How long a script may run, in milliseconds, before other clients are told BUSY; 0: they
    /// never are.
    pub busy_reply_threshold_ms: u64,
    /// Whether scripts may call Lua's getfenv, setfenv and newproxy.
    pub lua_enable_deprecated_api: bool,
    /// In milliseconds; 0: off.
    pub latency_monitor_threshold: u64,
    pub latency_tracking: bool,
    pub latency_tracking_info_percentiles: Vec<f64>,
    pub enable_debug_command: Allowed,
    pub enable_module_command: Allowed,
    /// As INFO shows it; the engine obeys it.
    pub maxmemory_policy: &'static str,
    pub tier: TierSettings,
    pub slow_memory: SlowMemorySettings,
    /// In bytes.
    pub repl_backlog_size: u64,
    /// Who this server is to its master; the password may be empty.
    pub masteruser: Vec<u8>,
    pub masterauth: Vec<u8>,
    pub replica_serve_stale_data: bool,
    pub replica_read_only: bool,
    pub replica_ignore_maxmemory: bool,
    /// As INFO shows them.
    pub replica_announced: bool,
    pub replica_priority: u32,
    /// What the master is told of this server; empty and 0: what it sees, and `port`.
    pub replica_announce_ip: Vec<u8>,
    pub replica_announce_port: u16,
    pub discovery: DiscoverySettings,
    /// In seconds.
    pub repl_timeout: u32,
    /// In seconds; 0: for ever.
    pub repl_backlog_ttl: u64,
    /// In seconds.
    pub repl_ping_replica_period: u32,
    /// 0: writes need no replica.
    pub min_replicas_to_write: u32,
    /// In seconds; 0: writes need no replica.
    pub min_replicas_max_lag: u32,
    /// Absolute.
    pub dir: PathBuf,
    pub transaction_log: Location,
    /// In milliseconds.
    pub transaction_log_lease: u64,
    /// Seconds by which the wall clock may be ahead of the newest record if this server is to lead;
    /// 0: any.
    pub clock_ahead_max: u64,
    /// When this server next leads, its wall clock becomes the shard's, whatever the log says.
    pub shard_clock_is_wall: bool,
    pub snapshot_store: Location,
    pub retention: Retention,
    /// Holds the master keys with which log and snapshots are encrypted; `None`: another source has
    /// them, or nothing is encrypted.
    pub encryption_key_file: Option<PathBuf>,
    /// A service keeps the log, so that other machines reach it, and nobody has said that they
    /// reach the snapshots as well.
    pub snapshots_are_private: bool,
    /// `debug`, `verbose`, `notice` or `warning`.
    pub loglevel: &'static str,
    /// Relative to `dir`; `None`: the standard error.
    pub logfile: Option<PathBuf>,
    pub pidfile: Option<PathBuf>,
    /// `no`, `systemd`, `upstart` or `auto`.
    pub supervised: &'static str,
}

fn allowed(config: &Config, row: usize) -> Allowed {
    Allowed::from_word(config.word(row))
}

fn source_address(config: &Config) -> Option<String> {
    let text = config.text(const { row("bind-source-addr") });
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// The path that a directive names, if it names one.
fn path_of_row(config: &Config, row: usize) -> Option<PathBuf> {
    let text = config.text(row);
    (!text.is_empty()).then(|| crate::resolve(&config.directory(), text))
}

/// What stays of snapshots and of the log, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Whole snapshots that always stay.
    pub snapshots: usize,
    /// The restore window, in seconds; 0: none.
    pub window: u64,
    /// Seconds from one snapshot that stays for the window to the next.
    pub spacing: u64,
    /// No snapshot is written in a newer format.
    pub format_max: u32,
}

fn retention(config: &Config) -> Retention {
    Retention {
        snapshots: config.number(const { row("snapshots-retained") }),
        window: config.number(const { row("restore-window") }),
        spacing: config.number(const { row("restore-window-spacing") }),
        format_max: config.number(const { row("snapshot-format") }),
    }
}

/// The node's share.
pub fn node_settings(config: &Config) -> NodeSettings {
    NodeSettings {
        bind: addresses(config.value(const { row("bind") })),
        port: config.number(const { row("port") }),
        tls_port: config.number(const { row("tls-port") }),
        tls: tls_settings(config),
        bind_source_addr: source_address(config),
        tls_replication: config.is_on(const { row("tls-replication") }),
        tls_cluster: config.is_on(const { row("tls-cluster") }),
        tls_user_is_common_name: config.word(const { row("tls-auth-clients-user") }) == "CN",
        protected_mode: config.is_on(const { row("protected-mode") }),
        tcp_backlog: config.number(const { row("tcp-backlog") }),
        tcp_keepalive: config.number(const { row("tcp-keepalive") }),
        unixsocket: path_of_row(config, const { row("unixsocket") }),
        unixsocketperm: config.number(const { row("unixsocketperm") }),
        metrics_port: config.number(const { row("metrics-port") }),
        timeout: config.number(const { row("timeout") }),
        maxclients: config.number(const { row("maxclients") }),
        aclfile: path_of_row(config, const { row("aclfile") }),
        dbfilename: crate::resolve(&config.directory(), config.text(const { row("dbfilename") })),
        acllog_max_len: config.number(const { row("acllog-max-len") }),
        client_output_buffer_limits: output_limits(config),
        client_query_buffer_limit: config.number(const { row("client-query-buffer-limit") }),
        proto_max_bulk_len: config.number(const { row("proto-max-bulk-len") }),
        maxmemory_clients: maxmemory_clients(config),
        hz: config.number(const { row("hz") }),
        slowlog_log_slower_than: config.number(const { row("slowlog-log-slower-than") }),
        busy_reply_threshold_ms: config.number(const { row("busy-reply-threshold") }),
        lua_enable_deprecated_api: config.is_on(const { row("lua-enable-deprecated-api") }),
        slowlog_max_len: config.number(const { row("slowlog-max-len") }),
        tracking_table_max_keys: config.number(const { row("tracking-table-max-keys") }),
        latency_monitor_threshold: config.number(const { row("latency-monitor-threshold") }),
        latency_tracking: config.is_on(const { row("latency-tracking") }),
        latency_tracking_info_percentiles: latency_percentiles(config),
        enable_debug_command: allowed(config, const { row("enable-debug-command") }),
        enable_module_command: allowed(config, const { row("enable-module-command") }),
        maxmemory_policy: config.word(const { row("maxmemory-policy") }),
        tier: tier_settings(config),
        slow_memory: slow_memory_settings(config),
        repl_backlog_size: config.number(const { row("repl-backlog-size") }),
        masteruser: config.text(const { row("masteruser") }).to_vec(),
        masterauth: config.text(const { row("masterauth") }).to_vec(),
        replica_serve_stale_data: config.is_on(const { row("replica-serve-stale-data") }),
        replica_read_only: config.is_on(const { row("replica-read-only") }),
        replica_ignore_maxmemory: config.is_on(const { row("replica-ignore-maxmemory") }),
        replica_announced: config.is_on(const { row("replica-announced") }),
        replica_priority: config.number(const { row("replica-priority") }),
        replica_announce_ip: config.text(const { row("replica-announce-ip") }).to_vec(),
        replica_announce_port: config.number(const { row("replica-announce-port") }),
        discovery: discovery_settings(config),
        repl_timeout: config.number(const { row("repl-timeout") }),
        repl_backlog_ttl: config.number(const { row("repl-backlog-ttl") }),
        repl_ping_replica_period: config.number(const { row("repl-ping-replica-period") }),
        min_replicas_to_write: config.number(const { row("min-replicas-to-write") }),
        min_replicas_max_lag: config.number(const { row("min-replicas-max-lag") }),
        dir: config.directory(),
        transaction_log: location(config, const { row("transaction-log") }),
        transaction_log_lease: config.number(const { row("transaction-log-lease") }),
        clock_ahead_max: config.number(const { row("clock-ahead-max") }),
        shard_clock_is_wall: config.word(const { row("shard-clock") }) == "wall",
        encryption_key_file: path_of_row(config, const { row("encryption-key-file") }),
        snapshot_store: location(config, const { row("snapshot-store") }),
        retention: retention(config),
        snapshots_are_private: config.keeps_snapshots_private(),
        loglevel: config.word(const { row("loglevel") }),
        logfile: path_of_row(config, const { row("logfile") }),
        pidfile: path_of_row(config, const { row("pidfile") }),
        supervised: config.word(const { row("supervised") }),
    }
}

fn output_limits(config: &Config) -> [BufferLimit; BUFFER_CLASSES.len()] {
    match config.value(const { row("client-output-buffer-limit") }) {
        Value::BufferLimits(limits) => *limits,
        _ => Default::default(),
    }
}

fn latency_percentiles(config: &Config) -> Vec<f64> {
    match config.value(const { row("latency-tracking-info-percentiles") }) {
        Value::Percentiles(percentiles) => percentiles.clone(),
        _ => Vec::new(),
    }
}

fn location(config: &Config, row: usize) -> Location {
    match config.url(row) {
        Some(url) => Location::Url(url.to_owned()),
        None => Location::Folder(config.location(row)),
    }
}

fn discovery_settings(config: &Config) -> DiscoverySettings {
    DiscoverySettings {
        cluster_enabled: config.is_on(const { row("cluster-enabled") }),
        announce_ip: config.text(const { row("cluster-announce-ip") }).to_vec(),
        announce_port: config.number(const { row("cluster-announce-port") }),
        announce_hostname: config.text(const { row("cluster-announce-hostname") }).to_vec(),
        preferred_endpoint_type: config.word(const { row("cluster-preferred-endpoint-type") }),
        sentinel_master_name: config.text(const { row("sentinel-master-name") }).to_vec(),
    }
}

fn addresses(value: &Value) -> Vec<String> {
    let Value::Addresses(addresses) = value else { return Vec::new() };
    addresses.iter().map(|address| String::from_utf8_lossy(address).into_owned()).collect()
}

fn maxmemory_clients(config: &Config) -> u64 {
    match config.value(const { row("maxmemory-clients") }) {
        Value::Percent(percent) => {
            let maxmemory: u64 = config.number(const { row("maxmemory") });
            let bytes = i128::from(maxmemory) * percent / 100;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        }
        Value::Integer(bytes) => u64::try_from(*bytes).unwrap_or_default(),
        _ => 0,
    }
}

/// The engine's share.
pub fn engine_settings(config: &Config) -> Settings {
    Settings {
        databases: config.number(const { row("databases") }),
        hash_max_listpack_entries: config.number(const { row("hash-max-listpack-entries") }),
        hash_max_listpack_value: config.number(const { row("hash-max-listpack-value") }),
        list_max_listpack_size: config.number(const { row("list-max-listpack-size") }),
        list_compress_depth: config.number(const { row("list-compress-depth") }),
        set_max_intset_entries: config.number(const { row("set-max-intset-entries") }),
        zset_max_listpack_entries: config.number(const { row("zset-max-listpack-entries") }),
        zset_max_listpack_value: config.number(const { row("zset-max-listpack-value") }),
        stream_node_max_entries: config.number(const { row("stream-node-max-entries") }),
        stream_node_max_bytes: config.number(const { row("stream-node-max-bytes") }),
        hll_sparse_max_bytes: config.number(const { row("hll-sparse-max-bytes") }),
        proto_max_bulk_len: config
            .number::<u64>(const { row("proto-max-bulk-len") })
            .min(STRING_BYTES_MAX),
        notify_keyspace_events: match config.value(const { row("notify-keyspace-events") }) {
            Value::Events(classes) => *classes,
            _ => 0,
        },
        maxmemory: config.number(const { row("maxmemory") }),
        maxmemory_policy: eviction_policy(config.word(const { row("maxmemory-policy") })),
        maxmemory_samples: config.number(const { row("maxmemory-samples") }),
        lfu_log_factor: config.number(const { row("lfu-log-factor") }),
        lfu_decay_time: config.number(const { row("lfu-decay-time") }),
        limits: Limits::default(),
    }
}

fn eviction_policy(word: &str) -> EvictionPolicy {
    match word {
        "allkeys-lru" => EvictionPolicy::AllKeysLru,
        "allkeys-lfu" => EvictionPolicy::AllKeysLfu,
        "allkeys-random" => EvictionPolicy::AllKeysRandom,
        "volatile-lru" => EvictionPolicy::VolatileLru,
        "volatile-lfu" => EvictionPolicy::VolatileLfu,
        "volatile-random" => EvictionPolicy::VolatileRandom,
        "volatile-ttl" => EvictionPolicy::VolatileTtl,
        _ => EvictionPolicy::NoEviction,
    }
}
