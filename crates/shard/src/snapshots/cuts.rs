//! Where a snapshot is cut into parts.

use archive::Limits;

/// Parts that have ended, and the bytes of the one behind them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cuts {
    parts: usize,
    part_bytes: u64,
}

impl Cuts {
    /// Whether the part is long enough, so many bytes of which were not taken yet.
    pub fn is_part_full(&self, limits: &Limits, untaken: usize) -> bool {
        let bytes = self.part_bytes + untaken as u64;
        bytes >= limits.part_bytes_behind(self.parts) && self.parts + 1 < limits.parts_max
    }

    /// So many bytes were taken; whether a part ends with them.
    pub fn took(&mut self, bytes: usize, ends_part: bool) {
        self.part_bytes = if ends_part { 0 } else { self.part_bytes + bytes as u64 };
        self.parts += usize::from(ends_part);
    }
}
