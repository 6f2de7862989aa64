//! What a start would have to read behind the last snapshot: it says when the next one is due.

use txlog::Limits;

/// How far the log has grown, by whatever records: what a start reads behind a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Growth {
    pub records: u64,
    pub bytes: u64,
}

impl Growth {
    /// Counts a record of so many bytes.
    pub fn add(&mut self, bytes: usize) {
        self.records += 1;
        self.bytes += bytes as u64;
    }

    /// The bytes of a snapshot that could be loaded while this is read.
    pub fn cost_bytes(self, limits: &Limits) -> u64 {
        self.bytes.saturating_add(self.records.saturating_mul(limits.record_cost_bytes))
    }
}

impl std::ops::AddAssign for Growth {
    fn add_assign(&mut self, more: Self) {
        self.records += more.records;
        self.bytes += more.bytes;
    }
}

/// What two snapshots cover both is taken once.
impl std::ops::SubAssign for Growth {
    fn sub_assign(&mut self, covered: Self) {
        self.records = self.records.saturating_sub(covered.records);
        self.bytes = self.bytes.saturating_sub(covered.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Incarnation;
    use txlog::TransactionLog;
    use txlog::memory::MemoryLog;

    #[test]
    fn records_cost_a_start_something_beyond_their_bytes() {
        let mut grown = Growth::default();
        grown.add(100);
        grown.add(50);
        let mut limits = MemoryLog::new(Incarnation(1)).handle(0).limits();
        assert_eq!(grown.cost_bytes(&limits), 150);
        limits.record_cost_bytes = 1000;
        assert_eq!(grown.cost_bytes(&limits), 2150);
        let covered = grown;
        grown.add(7);
        grown -= covered;
        assert_eq!(grown, Growth { records: 1, bytes: 7 });
    }
}
