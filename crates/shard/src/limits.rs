//! The sizes at which a shard divides its work.
//!
//! A shard is told them, so that the simulator can draw small ones from its seed.

/// How much a shard gathers, and how finely it tells keys apart. What serves is the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Effects gathered in one record, in bytes, after which the turn commits at once: a larger
    /// record only adds latency. The last unit may overshoot.
    pub record_bytes_target: usize,
    /// Slots of the tracker, a power of two: 128 KiB, so that it stays in a core's second-level
    /// cache beside everything else. With 1,600 keys dirty at a time (100 clients, 16 requests
    /// each) 1 read in 10 of clean keys meets a dirty slot, and the tag spares all but 1 in 65,000
    /// of those.
    pub tracker_slots: usize,
    /// Bytes of records with data after which the primary appends a `Checksum`. A reader of 16 MiB
    /// finds what went wrong within a tenth of a second of reading.
    pub checksum_bytes: u64,
    /// Time after which it does so whatever it has appended since the last one, in nanoseconds: the
    /// proof of a snapshot waits for the next one. A record in ten seconds of writes is no cost,
    /// even where each record is an object of its own.
    pub checksum_nanos: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes_target: 512 << 10,
            tracker_slots: 1 << 14,
            checksum_bytes: 16 << 20,
            checksum_nanos: 10_000_000_000,
        }
    }
}
