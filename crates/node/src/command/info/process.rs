//! INFO server, memory, persistence, cpu.

use super::{Text, human, ratio};
use crate::core::hex_id;
use crate::server::Server;
use base::machine::{KeyHolder, Usage};
use base::slow_memory::{MemoryDivision, SlowMemoryKeeper};
use base::{ConnectionId, UnixMillis};
use shard::compaction::Compaction;
use shard::loading::Progress;
use shard::snapshots::Snapshots;

pub(super) fn server(server: &Server, _: ConnectionId, text: &mut Text) {
    let micros = server.core.process.options.clock.unix_micros();
    let uptime = server.core.turn.monotonic.seconds_since(server.core.process.started);
    let identity = &server.core.process.identity;
    text.line("redis_version", crate::REDIS_VERSION);
    text.line("redis_git_sha1", "00000000");
    text.line("redis_git_dirty", 0);
    text.line("redis_build_id", "0");
    text.line("redis_mode", server.mode());
    text.line("kiln_version", env!("CARGO_PKG_VERSION"));
    text.line("os", &identity.operating_system);
    text.line("arch_bits", usize::BITS);
    text.line("monotonic_clock", "POSIX clock_gettime");
    text.line("multiplexing_api", "epoll");
    text.line("atomicvar_api", "none");
    text.line("gcc_version", "0.0.0");
    text.line("process_id", identity.process_id);
    text.line("process_supervised", server.core.process.settings.supervised);
    text.line("run_id", hex_id(server.core.process.options.entropy));
    text.line("tcp_port", server.core.process.options.port);
    text.line("server_time_usec", micros);
    text.line("uptime_in_seconds", uptime);
    text.line("uptime_in_days", uptime / 86_400);
    text.line("hz", server.core.process.settings.hz);
    text.line("configured_hz", server.core.process.settings.hz);
    text.line("lru_clock", (micros / 1_000_000) & 0xff_ffff);
    text.line("executable", &identity.executable);
    let file = server.core.process.config.file.as_ref().map(|path| path.display().to_string());
    text.line("config_file", file.unwrap_or_default());
    text.line("io_threads_active", 0);
}

/// Sizes of the keyspace, in bytes.
pub(crate) struct Memory {
    /// Entries, values and tables, and what sessions occupy. `maxmemory` limits all but what
    /// replicas occupy.
    pub used: u64,
    /// The part of `used` that is not entries and values.
    pub overhead: u64,
    /// What clients occupy that are no replicas.
    pub clients: u64,
    /// What replicas occupy.
    pub replicas: u64,
    pub peak: u64,
}

impl Memory {
    pub fn of(server: &Server) -> Self {
        let keyspace = &server.core.shard.engine.keyspace;
        let overhead = keyspace.databases().map(|(_, database)| {
            (database.table().allocated_bytes() + database.expiry_bytes()) as u64
        });
        let (mut clients, mut replicas) = (0, 0);
        for session in server.core.sessions() {
            let sum = if session.is_any_replica() { &mut replicas } else { &mut clients };
            *sum += session.memory_bytes() as u64;
        }
        let used = keyspace.used_bytes() as u64 + clients + replicas;
        Self {
            used,
            overhead: overhead.sum::<u64>() + clients + replicas,
            clients,
            replicas,
            peak: server
                .core
                .process
                .statistics
                .memory_peak_bytes
                .max(keyspace.most_bytes.get())
                .max(used),
        }
    }

    /// Entries and values.
    pub fn dataset(&self) -> u64 {
        self.used.saturating_sub(self.overhead)
    }
}

/// The threshold where all values are ordinary, as memKeyDB shows it.
const NO_THRESHOLD: usize = u32::MAX as usize;

/// What lies in slow memory, and what does not.
fn divided(server: &Server, used: u64, text: &mut Text) {
    let memory = server.core.process.options.machine.slow_memory();
    let division = memory
        .map(SlowMemoryKeeper::division)
        .unwrap_or(MemoryDivision { threshold_bytes: NO_THRESHOLD, ..MemoryDivision::default() });
    // What is freed by another thread is used no more, and still lies there for a moment.
    let pmem = division.pmem_bytes.min(used);
    text.line("used_memory_dram", used - pmem);
    text.line("used_memory_pmem", pmem);
    text.line("pmem_threshold", division.threshold_bytes.min(NO_THRESHOLD));
    text.line("pmem_full", u8::from(division.is_pmem_full));
}

pub(super) fn memory(server: &Server, _: ConnectionId, text: &mut Text) {
    let memory = Memory::of(server);
    let usage = server.core.process.options.machine.usage();
    let percent = |part, whole| format!("{:.2}%", ratio(part, whole) * 100.0);
    text.line("used_memory", memory.used);
    text.line("used_memory_human", human(memory.used));
    text.line("used_memory_rss", usage.resident_bytes);
    text.line("used_memory_rss_human", human(usage.resident_bytes));
    text.line("used_memory_peak", memory.peak);
    text.line("used_memory_peak_human", human(memory.peak));
    text.line("used_memory_peak_perc", percent(memory.used, memory.peak));
    text.line("used_memory_overhead", memory.overhead);
    text.line("used_memory_startup", server.core.shard.engine.keyspace.base_bytes);
    text.line("used_memory_dataset", memory.dataset());
    text.line("used_memory_dataset_perc", percent(memory.dataset(), memory.used));
    divided(server, memory.used, text);
    text.line("allocator_allocated", usage.allocator.allocated);
    text.line("allocator_active", usage.allocator.active);
    text.line("allocator_resident", usage.allocator.resident);
    text.line("total_system_memory", usage.memory_bytes);
    text.line("total_system_memory_human", human(usage.memory_bytes));
    let machine = &server.core.process.options.machine;
    let interpreter = machine.interpreter_bytes(server.scripts.interpreter.used_bytes());
    for field in ["used_memory_lua", "used_memory_vm_eval"] {
        text.line(field, interpreter);
    }
    text.line("used_memory_lua_human", human(interpreter as u64));
    text.line("used_memory_scripts_eval", server.scripts.bytes());
    text.line("number_of_cached_scripts", server.scripts.len());
    text.line("number_of_functions", server.libraries.functions_len());
    text.line("number_of_libraries", server.core.shard.engine.keyspace.libraries().len());
    text.line("kiln_libraries_failed", server.libraries.failed_len());
    let for_functions = machine.interpreter_bytes(server.libraries.interpreter.used_bytes());
    text.line("used_memory_vm_functions", for_functions);
    text.line("used_memory_vm_total", interpreter + for_functions);
    text.line("used_memory_vm_total_human", human((interpreter + for_functions) as u64));
    text.line("used_memory_functions", server.libraries.bytes());
    let scripts = server.scripts.bytes() + server.libraries.bytes();
    text.line("used_memory_scripts", scripts);
    text.line("used_memory_scripts_human", human(scripts as u64));
    let settings = &server.core.shard.engine.keyspace.settings;
    text.line("maxmemory", settings.maxmemory);
    text.line("maxmemory_human", human(settings.maxmemory));
    text.line("maxmemory_policy", server.core.process.settings.maxmemory_policy);
    fragmentation(&memory, &usage, text);
    text.line("mem_not_counted_for_evict", memory.replicas);
    text.line("mem_replication_backlog", 0);
    text.line("mem_total_replication_buffers", memory.replicas);
    text.line("mem_clients_slaves", memory.replicas);
    text.line("mem_clients_normal", memory.clients);
    text.line("mem_cluster_links", 0);
    text.line("mem_aof_buffer", 0);
    text.line("mem_allocator", server.core.process.options.machine.allocator_name());
    let compaction = server.core.shard.compaction.as_ref();
    text.line("active_defrag_running", compaction.map_or(0, Compaction::running_percent));
    text.line("lazyfree_pending_objects", 0);
    text.line("lazyfreed_objects", server.core.shard.engine.keyspace.statistics.freed_apart.get());
    text.line("kiln_client_tracking_bytes", server.core.interest.caches.allocated_bytes());
}

fn fragmentation(memory: &Memory, usage: &Usage, text: &mut Text) {
    let allocator = &usage.allocator;
    let two = |value: f64| format!("{value:.2}");
    let beyond = |larger: u64, smaller: u64| larger as i64 - smaller as i64;
    text.line("allocator_frag_ratio", two(ratio(allocator.active, allocator.allocated)));
    text.line("allocator_frag_bytes", beyond(allocator.active, allocator.allocated));
    text.line("allocator_rss_ratio", two(ratio(allocator.resident, allocator.active)));
    text.line("allocator_rss_bytes", beyond(allocator.resident, allocator.active));
    text.line("rss_overhead_ratio", two(ratio(usage.resident_bytes, allocator.resident)));
    text.line("rss_overhead_bytes", beyond(usage.resident_bytes, allocator.resident));
    text.line("mem_fragmentation_ratio", two(ratio(usage.resident_bytes, memory.used)));
    text.line("mem_fragmentation_bytes", beyond(usage.resident_bytes, memory.used));
}

/// What Redis shows only while it loads. Bytes are those of the snapshot, and then of the log.
fn loading(progress: &Progress, text: &mut Text) {
    text.line("loading_start_time", progress.began.0.div_euclid(1000));
    text.line("loading_total_bytes", progress.total_bytes);
    text.line("loading_rdb_used_mem", progress.used_memory);
    text.line("loading_loaded_bytes", progress.used_bytes);
    text.line("loading_loaded_perc", format!("{:.2}", progress.percent()));
    // Redis says 1 too while it cannot know.
    text.line("loading_eta_seconds", progress.remaining_seconds().unwrap_or(1));
}

/// The newest snapshot, the newest proven one, and who takes them.
fn snapshots(server: &Server, text: &mut Text) {
    let snapshots = server.core.snapshots.as_ref();
    let newest = snapshots.and_then(Snapshots::newest);
    text.line("kiln_snapshot_last_record", newest.map_or(0, |it| it.sequence.0));
    text.line("kiln_snapshot_last_began_time", newest.map_or(0, |it| it.began.0.div_euclid(1000)));
    let proven = snapshots.and_then(Snapshots::proven);
    text.line("kiln_snapshot_proven_record", proven.map_or(0, |it| it.snapshot.sequence.0));
    // By the machine's clock, as a worker's are; its machine's may be ahead of this one.
    let now = server.core.process.options.clock.unix_millis();
    let age = |of: UnixMillis| now.0.saturating_sub(of.0).max(0) / 1000;
    // -1: none is proven.
    let (snapshot_age, proof_age) =
        proven.map_or((-1, -1), |it| (age(it.snapshot.began), age(it.at)));
    text.line("kiln_snapshot_proven_age_seconds", snapshot_age);
    text.line("kiln_snapshot_proof_age_seconds", proof_age);
    let worker = snapshots.and_then(|it| it.worker(server.core.turn.monotonic));
    text.line("kiln_snapshot_worker", worker.as_deref().unwrap_or("none"));
}

pub(super) fn persistence(server: &Server, _: ConnectionId, text: &mut Text) {
    let (state, saving) = (&server.core.persistence, server.core.saving());
    let status = |is_ok| if is_ok { "ok" } else { "err" };
    text.line("loading", u8::from(state.is_loading || server.link.is_loading()));
    text.line("async_loading", 0);
    for field in ["current_cow_peak", "current_cow_size", "current_cow_size_age"] {
        text.line(field, 0);
    }
    text.line("current_fork_perc", "0.00");
    text.line("current_save_keys_processed", saving.keys_saved);
    text.line("current_save_keys_total", saving.keys_to_save);
    let dirty = server.core.shard.engine.keyspace.statistics.dirty.get();
    text.line("rdb_changes_since_last_save", dirty);
    text.line("rdb_bgsave_in_progress", u8::from(saving.is_saving));
    text.line("rdb_last_save_time", server.core.last_save().0.div_euclid(1000));
    text.line("rdb_last_bgsave_status", status(saving.is_last_ok));
    let seconds = saving.last_seconds.map_or(-1, |seconds| seconds as i64);
    text.line("rdb_last_bgsave_time_sec", seconds);
    let running = server.core.turn.monotonic.seconds_since(saving.began);
    text.line("rdb_current_bgsave_time_sec", if saving.is_saving { running as i64 } else { -1 });
    text.line("rdb_saves", saving.published);
    text.line("rdb_last_cow_size", 0);
    text.line("rdb_last_load_keys_expired", 0);
    text.line("rdb_last_load_keys_loaded", state.keys_loaded);
    text.line("aof_enabled", 0);
    // A snapshot is what shortens the log, whoever asked for it.
    text.line("aof_rewrite_in_progress", u8::from(saving.is_saving));
    text.line("aof_rewrite_scheduled", 0);
    text.line("aof_last_rewrite_time_sec", -1);
    text.line("aof_current_rewrite_time_sec", -1);
    text.line("aof_last_bgrewrite_status", "ok");
    text.line("aof_rewrites", 0);
    text.line("aof_rewrites_consecutive_failures", 0);
    let is_writable = !matches!(server.core.shard.gate(), txlog::Gate::Refuse(_));
    text.line("aof_last_write_status", status(is_writable));
    text.line("aof_last_cow_size", 0);
    text.line("module_fork_in_progress", 0);
    text.line("module_fork_last_cow_size", 0);
    if state.is_loading {
        loading(&state.progress, text);
    }
    text.line("kiln_log_records_appended", server.core.shard.records_appended);
    text.line("kiln_log_bytes_appended", server.core.shard.bytes_appended);
    text.line("kiln_log_records_since_snapshot", server.core.shard.grown.records);
    text.line("kiln_log_bytes_since_snapshot", server.core.shard.grown.bytes);
    snapshots(server, text);
    let archived = server.core.saving().archived;
    text.line("kiln_log_archived_record", archived.map_or(0, |it| it.0));
    let unseen = server.snapshots_unseen();
    text.line("kiln_snapshots_unseen_by", unseen.by.join(","));
    text.line("kiln_log_trim_waits", u8::from(unseen.trim_waits));
    text.line("kiln_log_trim_waits_seconds", unseen.trim_waits_seconds);
    let pins = server.core.shard.pins();
    let logs = pins.iter().map(|(name, at)| format!("{name}@{at}"));
    text.line("kiln_log_pinned_by", logs.collect::<Vec<_>>().join(","));
    let named = pins.snapshots().map(|(name, snapshot)| format!("{name}@{snapshot}"));
    text.line("kiln_snapshots_pinned_by", named.collect::<Vec<_>>().join(","));
    let keys = server.core.process.options.machine.keys();
    let key = keys.and_then(KeyHolder::current);
    text.line("kiln_encryption_key", key.as_deref().unwrap_or(""));
    text.line("kiln_log_last_record", server.core.shard.appended().sequence);
    text.line("kiln_log_durable_record", server.core.shard.durable().sequence);
    text.line("kiln_reply_bytes_held", server.core.clients.held_bytes);
}

pub(super) fn cpu(server: &Server, _: ConnectionId, text: &mut Text) {
    let usage = server.core.process.options.machine.usage();
    let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.line("used_cpu_sys", seconds(usage.system_micros));
    text.line("used_cpu_user", seconds(usage.user_micros));
    text.line("used_cpu_sys_children", seconds(0));
    text.line("used_cpu_user_children", seconds(0));
    text.line("used_cpu_sys_main_thread", seconds(usage.thread_system_micros));
    text.line("used_cpu_user_main_thread", seconds(usage.thread_user_micros));
}
