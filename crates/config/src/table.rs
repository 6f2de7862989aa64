//! The table: every directive, one row each, in the order in which CONFIG REWRITE appends them.
//!
//! The rows follow Redis 7.0.15: names, older names, bounds and defaults are compared with a real
//! server by a test. The file, CONFIG GET, SET and REWRITE, and the page about compatibility are
//! derived from them. Adding a directive means adding a row, and reading it in `settings`.

use crate::check;
use crate::directive::{
    Directive, Kind, choice, flags, integer, location, octal, size, special, text, toggle,
};

/// Upper bound of `tier-value-max`, in bytes: the longest record of `tier`.
pub const TIER_VALUE_BYTES_MAX: u64 = 7 << 20;

const INT_MAX: i128 = i32::MAX as i128;
const INT_MIN: i128 = i32::MIN as i128;
const UINT_MAX: i128 = u32::MAX as i128;
const LONG_MAX: i128 = i64::MAX as i128;
const ULONG_MAX: i128 = u64::MAX as i128;
const MIB: i128 = 1 << 20;
const LEASE_MILLIS_MAX: i128 = (base::time::LEASE_NANOS_MAX / 1_000_000) as i128;

const LOGGED: &str = "every acknowledged write is durable in the transaction log";
const ONE_FILE: &str =
    "the snapshot store names its own files; DEBUG RELOAD NOSAVE alone reads this one";
const NEVER_FORKS: &str = "snapshots never fork, and the snapshot store names its own files";
const LOG_REPLICATES: &str = "replicas follow the transaction log";
const LOADS_AS_IT_COMES: &str = "a master's data set is loaded as its bytes arrive";
const ONE_SHARD: &str = "one shard owns all slots";
const TLS_AUTH_CLIENTS_USER: &str = "CN: a client is the user that its certificate names";
const FOREGROUND: &str = "the process stays in the foreground and logs to its standard error";
const FREED_ASIDE: &str = "big values are always freed on a thread of their own";
const OWN_LOOP: &str = "the execution loop adapts by itself";
const FOR_TESTS: &str = "a switch for Redis's own tests";

// What Kiln's own are for: `kiln server --help` shows these lines.
const TRANSACTION_LOG: &str = "where the log lies: file:PATH or a service's URL";
const LEASE: &str = "milliseconds of silence after which another server may lead";
const SNAPSHOT_STORE: &str = "where snapshots lie: what all servers reach";
const KEY_FILE: &str = "file of the keys that encrypt log and snapshots; \"\": plain";
const METRICS_PORT: &str = "port of figures for Prometheus, at /metrics; 0: none";
const SNAPSHOTS_RETAINED: &str = "whole snapshots that always stay, the newest ones";
const RESTORE_WINDOW: &str = "seconds to each moment of which one can go back; 0: none";
const WINDOW_SPACING: &str = "seconds between the snapshots that stay for the window";
const SNAPSHOT_FORMAT: &str = "no snapshot is written in a newer format: for older servers";
const CLOCK_AHEAD_MAX: &str = "seconds a clock may be ahead of the log at a start; 0: any";
const SHARD_CLOCK: &str = "wall: this machine's clock is right, whatever the log says";
const TIER: &str = "where values lie that memory cannot hold: file:PATH; \"\": none";
const TIER_MAX: &str = "bytes that these may take there, with units as maxmemory";
const TIER_READ_THREADS: &str = "threads that read them, and so how many at a time";
const TIER_IO_URING: &str = "whether io_uring reads what is short, if there is one";
const TIER_VALUE_MIN: &str = "bytes below which a value stays in memory";
const TIER_VALUE_MAX: &str = "bytes above which a value stays in memory";
const TIER_ALL_COLD: &str = "for tests: no value stays in memory behind a request";
const ALLOC_POLICY: &str = "which values lie in slow memory: by size or by share";
const SLOW_NODES: &str = "memory nodes that are slow; auto: as the kernel says";
const STATIC_THRESHOLD: &str = "policy threshold: bytes of a block that is slow";
const DRAM_PMEM_RATIO: &str = "policy ratio: ordinary bytes to slow bytes";
const FIRST_THRESHOLD: &str = "policy ratio: the threshold at first";
const THRESHOLD_MIN: &str = "policy ratio: smaller blocks are never slow";
const THRESHOLD_MAX: &str = "policy ratio: larger blocks always are";
const RATIO_PERIOD: &str = "milliseconds between two looks at slow memory";
const TABLE_PLACE: &str = "no: tables of keys and members lie in slow memory";
const SENTINEL_MASTER_NAME: &str = "the shard's name for clients that ask Sentinels";

const YES_NO_LOCAL: &[&str] = &["no", "yes", "local"];
const SHUTDOWN_FLAGS: &[&str] = &["default", "save", "nosave", "now", "force"];
const FACILITIES: &[&str] =
    &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"];
const ALLOC_POLICIES: &[&str] = &["only-dram", "only-pmem", "threshold", "ratio"];
const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

/// Every directive.
#[rustfmt::skip]
pub const DIRECTIVES: &[Directive] = &[
    // Network.
    special("bind", Kind::Addresses, "* -::*"),
    integer("port", "6379", 0, 65535),
    toggle("protected-mode", "yes"),
    integer("tcp-backlog", "511", 0, INT_MAX).immutable(),
    integer("tcp-keepalive", "300", 0, INT_MAX),
    integer("timeout", "0", 0, INT_MAX),
    text("unixsocket", "").immutable().or_unset(),
    octal("unixsocketperm", "0", 0o777).immutable(),
    text("bind-source-addr", "").or_unset(),
    integer("socket-mark-id", "0", 0, UINT_MAX).immutable().shown("sockets are not marked"),
    integer("metrics-port", "0", 0, 65535).immutable().own(METRICS_PORT),

    // Clients.
    integer("maxclients", "10000", 1, UINT_MAX),
    text("requirepass", "").or_unset().sensitive(),
    special("client-output-buffer-limit", Kind::BufferLimits, "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60"),
    size("client-query-buffer-limit", "1gb", MIB, LONG_MAX),
    size("proto-max-bulk-len", "512mb", MIB, LONG_MAX),
    special("maxmemory-clients", Kind::SizeOrPercent, "0"),
    integer("tracking-table-max-keys", "1000000", 0, LONG_MAX),

    // Process.
    special("dir", Kind::Directory, ".").protected().refused_while_loading(),
    toggle("daemonize", "no").immutable().shown(FOREGROUND),
    choice("supervised", "no", &["upstart", "systemd", "auto", "no"]).immutable(),
    text("pidfile", "").immutable().or_unset(),
    choice("loglevel", "notice", &["debug", "verbose", "notice", "warning"]),
    text("logfile", "").immutable(),
    toggle("syslog-enabled", "no").immutable().shown(FOREGROUND),
    text("syslog-ident", "redis").immutable().shown(FOREGROUND),
    choice("syslog-facility", "local0", FACILITIES).immutable().shown(FOREGROUND),
    toggle("always-show-logo", "no").immutable().shown("there is no logo"),
    toggle("set-proc-title", "yes").immutable().shown("the process keeps its title"),
    text("proc-title-template", "{title} {listen-addr} {server-mode}").check(check::title_template).shown("the process keeps its title"),
    flags("shutdown-on-sigint", "default", SHUTDOWN_FLAGS),
    flags("shutdown-on-sigterm", "default", SHUTDOWN_FLAGS),
    integer("shutdown-timeout", "10", 0, INT_MAX).shown(LOG_REPLICATES),
    toggle("crash-log-enabled", "yes").shown("a panic is always logged"),
    toggle("crash-memcheck-enabled", "yes").shown("a panic is always logged"),
    toggle("use-exit-on-panic", "no").hidden().shown(FOR_TESTS),
    integer("watchdog-period", "0", 0, INT_MAX).hidden().shown(FOR_TESTS),
    text("ignore-warnings", "").shown("warnings are about Kiln's own settings"),
    choice("oom-score-adj", "no", &["no", "yes", "relative", "absolute"]).shown("the score is left to the service manager"),
    special("oom-score-adj-values", Kind::OomScores, "0 200 800").shown("the score is left to the service manager"),
    toggle("disable-thp", "yes").immutable().shown("nothing forks, so huge pages do no harm"),
    integer("io-threads", "1", 1, 128).immutable().shown(OWN_LOOP),
    toggle("io-threads-do-reads", "no").immutable().shown(OWN_LOOP),
    integer("hz", "10", 0, INT_MAX),
    toggle("dynamic-hz", "yes").shown(OWN_LOOP),
    text("server_cpulist", "").immutable().or_unset().shown("pin the process with taskset"),
    text("bio_cpulist", "").immutable().or_unset().shown("pin the process with taskset"),
    text("aof_rewrite_cpulist", "").immutable().or_unset().shown(NEVER_FORKS),
    text("bgsave_cpulist", "").immutable().or_unset().shown(NEVER_FORKS),
    choice("enable-protected-configs", "no", YES_NO_LOCAL).immutable(),
    choice("enable-debug-command", "no", YES_NO_LOCAL).immutable(),
    choice("enable-module-command", "no", YES_NO_LOCAL).immutable(),

    // Durability.
    location("transaction-log", "log", &["jetstream://", "etcd://", "s3://", "file-object:"]).immutable().own(TRANSACTION_LOG),
    integer("transaction-log-lease", "2000", 100, LEASE_MILLIS_MAX).immutable().own(LEASE),
    integer("clock-ahead-max", "2592000", 0, INT_MAX).own(CLOCK_AHEAD_MAX),
    choice("shard-clock", "log", &["log", "wall"]).own(SHARD_CLOCK),
    location("snapshot-store", "snapshots", &["s3://", "gs://", "az://", "file-object:"]).immutable().own(SNAPSHOT_STORE),
    integer("snapshots-retained", "2", 2, 1000).immutable().own(SNAPSHOTS_RETAINED),
    integer("restore-window", "0", 0, INT_MAX).immutable().own(RESTORE_WINDOW),
    integer("restore-window-spacing", "86400", 0, INT_MAX).immutable().own(WINDOW_SPACING),
    integer("snapshot-format", "3", 1, 3).immutable().own(SNAPSHOT_FORMAT),
    text("encryption-key-file", "").or_unset().own(KEY_FILE),
    special("save", Kind::SavePoints, "3600 1 300 100 60 10000").shown(LOGGED),
    toggle("appendonly", "no").refused_while_loading().shown(LOGGED),
    choice("appendfsync", "everysec", &["everysec", "always", "no"]).shown(LOGGED),
    text("appendfilename", "appendonly.aof").immutable().check(check::append_file_name).shown(LOGGED),
    text("appenddirname", "appendonlydir").immutable().check(check::append_folder_name).shown(LOGGED),
    toggle("no-appendfsync-on-rewrite", "no").shown(LOGGED),
    integer("auto-aof-rewrite-percentage", "100", 0, INT_MAX).shown(LOGGED),
    size("auto-aof-rewrite-min-size", "64mb", 0, LONG_MAX).shown(LOGGED),
    toggle("aof-load-truncated", "yes").shown(LOGGED),
    toggle("aof-use-rdb-preamble", "yes").shown(LOGGED),
    toggle("aof-timestamp-enabled", "no").shown(LOGGED),
    toggle("aof-disable-auto-gc", "no").shown(LOGGED),
    toggle("aof-rewrite-incremental-fsync", "yes").shown(LOGGED),
    toggle("stop-writes-on-bgsave-error", "yes").shown(LOGGED),
    text("dbfilename", "dump.rdb").protected().check(check::snapshot_file_name).shown(ONE_FILE),
    toggle("rdbcompression", "yes").shown(NEVER_FORKS),
    toggle("rdbchecksum", "yes").immutable().shown("checksums are always written and verified"),
    toggle("rdb-save-incremental-fsync", "yes").shown(NEVER_FORKS),
    toggle("rdb-del-sync-files", "no").shown(LOG_REPLICATES),
    integer("rdb-key-save-delay", "0", INT_MIN, INT_MAX).hidden().shown(FOR_TESTS),
    integer("key-load-delay", "0", INT_MIN, INT_MAX).hidden().shown(FOR_TESTS),
    integer("loading-process-events-interval-bytes", "2097152", 1024, INT_MAX).hidden().shown(FOR_TESTS),
    choice("sanitize-dump-payload", "no", &["no", "yes", "clients"]).shown("foreign payloads are always checked"),
    choice("propagation-error-behavior", "ignore", &["ignore", "panic", "panic-on-replicas"]).shown(LOG_REPLICATES),

    // Keyspace and memory.
    integer("databases", "16", 1, INT_MAX).immutable(),
    size("maxmemory", "0", 0, ULONG_MAX),
    choice("maxmemory-policy", "noeviction", POLICIES),
    integer("maxmemory-samples", "5", 1, INT_MAX),
    text("tier", "").or_unset().check(check::tier).own(TIER),
    size("tier-max", "0", 0, LONG_MAX).own(TIER_MAX),
    integer("tier-read-threads", "16", 1, 64).own(TIER_READ_THREADS),
    toggle("tier-io-uring", "yes").own(TIER_IO_URING),
    size("tier-value-min", "64", 0, LONG_MAX).own(TIER_VALUE_MIN),
    size("tier-value-max", "7340032", 0, TIER_VALUE_BYTES_MAX as i128).own(TIER_VALUE_MAX),
    toggle("tier-all-cold", "no").hidden().own(TIER_ALL_COLD),
    choice("memory-alloc-policy", "only-dram", ALLOC_POLICIES).immutable().own(ALLOC_POLICY),
    text("slow-memory-nodes", "auto").immutable().check(check::nodes).own(SLOW_NODES),
    size("static-threshold", "64", 0, UINT_MAX).own(STATIC_THRESHOLD),
    special("dram-pmem-ratio", Kind::Ratio, "1 3").own(DRAM_PMEM_RATIO),
    size("initial-dynamic-threshold", "64", 0, UINT_MAX).immutable().own(FIRST_THRESHOLD),
    size("dynamic-threshold-min", "24", 0, UINT_MAX).own(THRESHOLD_MIN),
    size("dynamic-threshold-max", "10000", 0, UINT_MAX).own(THRESHOLD_MAX),
    integer("memory-ratio-check-period", "100", 1, INT_MAX).own(RATIO_PERIOD),
    toggle("hashtable-on-dram", "yes").immutable().own(TABLE_PLACE),
    integer("maxmemory-eviction-tenacity", "10", 0, 100).shown(OWN_LOOP),
    integer("lfu-log-factor", "10", 0, INT_MAX),
    integer("lfu-decay-time", "1", 0, INT_MAX),
    special("notify-keyspace-events", Kind::Events, ""),
    integer("active-expire-effort", "1", 1, 10).shown("keys are expired in the order of their times, not by sampling"),
    toggle("activerehashing", "yes").shown("the table grows by small splits"),
    toggle("lazyfree-lazy-eviction", "no").shown(FREED_ASIDE),
    toggle("lazyfree-lazy-expire", "no").shown(FREED_ASIDE),
    toggle("lazyfree-lazy-server-del", "no").shown(FREED_ASIDE),
    toggle("lazyfree-lazy-user-del", "no").shown(FREED_ASIDE),
    toggle("lazyfree-lazy-user-flush", "no").shown(FREED_ASIDE),
    toggle("jemalloc-bg-thread", "yes").shown("the allocator always purges in the background"),
    toggle("activedefrag", "no"),
    size("active-defrag-ignore-bytes", "100mb", 1, LONG_MAX),
    integer("active-defrag-threshold-lower", "10", 0, 1000),
    integer("active-defrag-threshold-upper", "100", 0, 1000),
    integer("active-defrag-cycle-min", "1", 1, 99),
    integer("active-defrag-cycle-max", "25", 1, 99),
    integer("active-defrag-max-scan-fields", "1000", 1, LONG_MAX),

    // Encodings.
    integer("hash-max-listpack-entries", "512", 0, LONG_MAX).alias("hash-max-ziplist-entries"),
    size("hash-max-listpack-value", "64", 0, LONG_MAX).alias("hash-max-ziplist-value"),
    integer("list-max-listpack-size", "-2", INT_MIN, INT_MAX).alias("list-max-ziplist-size"),
    integer("list-compress-depth", "0", 0, INT_MAX),
    integer("set-max-intset-entries", "512", 0, LONG_MAX),
    integer("zset-max-listpack-entries", "128", 0, LONG_MAX).alias("zset-max-ziplist-entries"),
    size("zset-max-listpack-value", "64", 0, LONG_MAX).alias("zset-max-ziplist-value"),
    size("hll-sparse-max-bytes", "3000", 0, LONG_MAX),
    integer("stream-node-max-entries", "100", 0, LONG_MAX),
    size("stream-node-max-bytes", "4096", 0, LONG_MAX),

    // Watching.
    integer("slowlog-log-slower-than", "10000", -1, LONG_MAX),
    integer("slowlog-max-len", "128", 0, LONG_MAX),
    integer("latency-monitor-threshold", "0", 0, LONG_MAX),
    toggle("latency-tracking", "yes"),
    special("latency-tracking-info-percentiles", Kind::Percentiles, "50 99 99.9"),

    // Scripts and users.
    integer("busy-reply-threshold", "5000", 0, LONG_MAX).alias("lua-time-limit"),
    toggle("lua-enable-deprecated-api", "no").immutable().hidden(),
    text("aclfile", "").immutable(),
    integer("acllog-max-len", "128", 0, LONG_MAX),
    choice("acl-pubsub-default", "resetchannels", &["allchannels", "resetchannels"]),

    // Replication.
    special("replicaof", Kind::Primary, "no one").alias("slaveof").immutable(),
    text("masteruser", "").or_unset().sensitive(),
    text("masterauth", "").or_unset().sensitive(),
    toggle("replica-serve-stale-data", "yes").alias("slave-serve-stale-data"),
    toggle("replica-read-only", "yes").alias("slave-read-only"),
    toggle("replica-lazy-flush", "no").alias("slave-lazy-flush").shown(FREED_ASIDE),
    toggle("replica-ignore-maxmemory", "yes").alias("slave-ignore-maxmemory"),
    toggle("replica-ignore-disk-write-errors", "no").shown(LOG_REPLICATES),
    toggle("replica-announced", "yes"),
    text("replica-announce-ip", "").alias("slave-announce-ip").or_unset().check(check::announced_address),
    integer("replica-announce-port", "0", 0, 65535).alias("slave-announce-port"),
    integer("replica-priority", "100", 0, INT_MAX).alias("slave-priority"),
    toggle("repl-disable-tcp-nodelay", "no").shown(LOG_REPLICATES),
    toggle("repl-diskless-sync", "yes").shown(LOG_REPLICATES),
    integer("repl-diskless-sync-delay", "5", 0, INT_MAX).shown(LOG_REPLICATES),
    integer("repl-diskless-sync-max-replicas", "0", 0, INT_MAX).shown(LOG_REPLICATES),
    choice("repl-diskless-load", "disabled", &["disabled", "on-empty-db", "swapdb"]).refused_while_loading().shown(LOADS_AS_IT_COMES),
    integer("repl-ping-replica-period", "10", 1, INT_MAX).alias("repl-ping-slave-period"),
    integer("repl-timeout", "60", 1, INT_MAX),
    size("repl-backlog-size", "1mb", 1, LONG_MAX),
    integer("repl-backlog-ttl", "3600", 0, LONG_MAX),
    integer("min-replicas-to-write", "0", 0, INT_MAX).alias("min-slaves-to-write"),
    integer("min-replicas-max-lag", "10", 0, INT_MAX).alias("min-slaves-max-lag"),

    // Cluster.
    toggle("cluster-enabled", "no").immutable(),
    text("cluster-config-file", "nodes.conf").immutable().shown(ONE_SHARD),
    integer("cluster-node-timeout", "15000", 0, LONG_MAX).shown(ONE_SHARD),
    integer("cluster-port", "0", 0, 65535).immutable().shown(ONE_SHARD),
    text("cluster-announce-ip", "").or_unset().check(check::announced_address),
    text("cluster-announce-hostname", "").or_unset().check(check::host_name),
    integer("cluster-announce-port", "0", 0, 65535),
    integer("cluster-announce-tls-port", "0", 0, 65535).shown(ONE_SHARD),
    integer("cluster-announce-bus-port", "0", 0, 65535).shown(ONE_SHARD),
    choice("cluster-preferred-endpoint-type", "ip", &["ip", "hostname", "unknown-endpoint"]),
    integer("cluster-replica-validity-factor", "10", 0, INT_MAX).alias("cluster-slave-validity-factor").shown(ONE_SHARD),
    toggle("cluster-replica-no-failover", "no").alias("cluster-slave-no-failover").shown(ONE_SHARD),
    toggle("cluster-allow-replica-migration", "yes").shown(ONE_SHARD),
    integer("cluster-migration-barrier", "1", 0, INT_MAX).shown(ONE_SHARD),
    toggle("cluster-require-full-coverage", "yes").shown(ONE_SHARD),
    toggle("cluster-allow-reads-when-down", "no").shown(ONE_SHARD),
    toggle("cluster-allow-pubsubshard-when-down", "yes").shown(ONE_SHARD),
    size("cluster-link-sendbuf-limit", "0", 0, ULONG_MAX).shown(ONE_SHARD),
    text("sentinel-master-name", "mymaster").immutable().own(SENTINEL_MASTER_NAME).check(check::master_name),

    // Encryption of connections.
    integer("tls-port", "0", 0, 65535),
    toggle("tls-replication", "no"),
    toggle("tls-cluster", "no"),
    choice("tls-auth-clients", "yes", &["no", "yes", "optional"]),
    choice("tls-auth-clients-user", "off", &["CN", "off"]).own(TLS_AUTH_CLIENTS_USER),
    text("tls-cert-file", "").or_unset(),
    text("tls-key-file", "").or_unset(),
    text("tls-key-file-pass", "").or_unset().sensitive(),
    text("tls-client-cert-file", "").or_unset(),
    text("tls-client-key-file", "").or_unset(),
    text("tls-client-key-file-pass", "").or_unset().sensitive(),
    text("tls-dh-params-file", "").or_unset().shown("keys are agreed on by elliptic curves alone"),
    text("tls-ca-cert-file", "").or_unset(),
    text("tls-ca-cert-dir", "").or_unset(),
    text("tls-protocols", "").or_unset(),
    text("tls-ciphers", "").or_unset(),
    text("tls-ciphersuites", "").or_unset(),
    toggle("tls-prefer-server-ciphers", "no"),
    toggle("tls-session-caching", "yes"),
    integer("tls-session-cache-size", "20480", 0, INT_MAX),
    integer("tls-session-cache-timeout", "300", 0, INT_MAX).shown("a session stays until others need its place"),
];

/// Directives of older releases that files still name; one value each, and no effect.
pub const RETIRED: &[&str] =
    &["list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];

/// The row of a directive, known when compiling: `const { row("port") }`.
///
/// # Panics
/// When no row has this name, which fails the build.
pub const fn row(name: &str) -> usize {
    let mut at = 0;
    while at < DIRECTIVES.len() {
        if same(DIRECTIVES[at].name.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no directive has this name");
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The row of a directive by its name or its older name, any case, and the one of the two that it
/// was.
pub fn find(name: &[u8]) -> Option<(usize, &'static str)> {
    DIRECTIVES.iter().enumerate().find_map(|(row, directive)| {
        let names = [directive.name, directive.alias];
        let known =
            names.into_iter().find(|n| !n.is_empty() && name.eq_ignore_ascii_case(n.as_bytes()));
        known.map(|known| (row, known))
    })
}

/// The row whose value is clamped rather than refused.
pub const HZ: usize = row("hz");
