//! The figures of a tier, for whoever watches it.

/// What a tier holds, and what it has done since it was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Figures {
    pub live_records: u64,
    /// Bytes of the live records, with their headers.
    pub live_bytes: u64,
    /// The same, with what they leave unused around them:
    /// [`crate::Limits::fill_percent_max`] bounds it.
    pub occupied_bytes: u64,
    pub capacity_bytes: u64,
    /// Where the last segment that was used ends in the file.
    pub file_bytes: u64,
    /// Bytes of segments that are empty and, because of a hold, not free.
    pub held_bytes: u64,
    /// Segments whose cleaning met damage, and that have not come free since.
    pub given_up_segments: u64,
    /// Memory of pieces that are open or not yet written.
    pub buffered_bytes: u64,
    /// Records of values that were moved out of memory, drafts included, and their bytes.
    pub put_records: u64,
    pub put_bytes: u64,
    /// Records that cleaning moved, drafts included.
    pub survivor_records: u64,
}
