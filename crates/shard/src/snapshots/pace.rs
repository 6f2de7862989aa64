//! How fast snapshots are taken, and when they are due.

/// How much a turn does, and when the next snapshot is due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Keys and bytes written between two looks at the clock.
    pub step_keys: u64,
    pub step_bytes: usize,
    /// Steps of one turn, whatever the clock says: simulated clocks stand still within a turn.
    pub steps_max: u32,
    /// Bytes that go to the disk at once: they are checksummed and written while the processor's
    /// cache still holds them.
    pub chunk_bytes: usize,
    /// Bytes waiting for the disk above which the walk stops.
    pub backlog_bytes_max: usize,
    /// Bytes waiting for the disk above which writing commands wait: each may have to write what it
    /// is about to change.
    pub backlog_bytes_blocking: usize,
    /// Time that one turn spends on walking, or on writing what came from a tier, in nanoseconds.
    /// The last step may overshoot.
    pub walk_nanos_max: u64,
    /// The log grows by at least this much between two snapshots, and by as much as the data
    /// occupies, in [`Growth::cost_bytes`]. So a restart spends no more on the log than on the
    /// snapshot, and on a log in a directory snapshots write no more than the log does. 256 MiB of
    /// small records replay in about two seconds.
    pub log_growth_bytes_min: u64,
    /// Time from the beginning of one snapshot to that of the next, in nanoseconds, unless the log
    /// grows by `log_growth_bytes_hasty` meanwhile: small data under many writes would be written
    /// again every other second, which costs a fifth of what the writes do.
    pub rest_nanos: u64,
    /// What a restart may have to replay of such a log, in bytes of records: eight seconds of small
    /// ones.
    pub log_growth_bytes_hasty: u64,
    /// What a restart may have to replay, in bytes of records, while a worker lives that takes the
    /// snapshots: one that says that it lives and publishes nothing must not let the log grow for
    /// ever.
    pub log_growth_bytes_alone: u64,
    /// Time from the beginning of a primary to the first record that it trims, in nanoseconds,
    /// while others may read the log: replicas must have had time to report. They do so as soon as
    /// they read who leads; this is as long as they wait for an answer.
    pub report_nanos: u64,
    /// Time between two looks at the snapshots of others while everybody sees them, in nanoseconds.
    /// In a bucket a look is a listing and a read, which cost money.
    pub look_nanos: u64,
    /// Builds on purpose snapshots that know more than the log, so that a test can prove that it
    /// would notice.
    #[doc(hidden)]
    pub publishes_before_durable: bool,
    /// Trims on purpose what the older retained snapshot needs, likewise.
    #[doc(hidden)]
    pub trims_through_newest: bool,
    /// Trims on purpose through snapshots that others do not see, likewise.
    #[doc(hidden)]
    pub trims_unconfirmed: bool,
    /// Trims on purpose through what no snapshot holds, likewise.
    #[doc(hidden)]
    pub trims_unheld: bool,
}

impl Pace {
    /// The allocation of a chunk: a step may overshoot, and a growing buffer would be copied.
    pub(super) fn chunk_capacity(&self) -> usize {
        self.chunk_bytes + self.step_bytes + (16 << 10)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            step_keys: 64,
            step_bytes: 64 << 10,
            steps_max: 64,
            chunk_bytes: 256 << 10,
            backlog_bytes_max: 8 << 20,
            backlog_bytes_blocking: 64 << 20,
            walk_nanos_max: 200_000,
            log_growth_bytes_min: 256 << 20,
            rest_nanos: 60_000_000_000,
            log_growth_bytes_hasty: 1 << 30,
            log_growth_bytes_alone: 16 << 30,
            report_nanos: 5_000_000_000,
            look_nanos: 5_000_000_000,
            publishes_before_durable: false,
            trims_through_newest: false,
            trims_unconfirmed: false,
            trims_unheld: false,
        }
    }
}
