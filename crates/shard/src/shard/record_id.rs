//! How the processes of a shard name a record of the log to each other: replicas say by it how far
//! they are, and a primary how far they have to be (`members`).

use base::Epoch;
use txlog::Chain;
use txlog::record::ChainValue;

/// Names a record that counts, and with it everything before it: by whom it was written and as
/// which of that writer's records, not by its number. The number of a record under way may still
/// change ([`super::Shard::shifted`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId {
    pub chain: Chain,
    /// The record's counter; 0 if it is not known, because a snapshot ended there.
    pub counter: u64,
}

impl RecordId {
    /// Whether who has applied everything through here has applied everything through `other`.
    /// `false` if that cannot be told.
    pub fn covers(&self, other: &Self) -> bool {
        let (mine, its) = (self.chain.epoch, other.chain.epoch);
        mine > its
            || mine == its
                && (self.chain.value == other.chain.value
                    || self.counter >= other.counter && self.counter > 0)
    }

    /// As three words.
    pub fn words(&self) -> [String; 3] {
        let Chain { value, epoch } = self.chain;
        [epoch.0.to_string(), self.counter.to_string(), format!("{:016x}", value.0)]
    }

    /// What [`Self::words`] wrote.
    pub fn parse(words: [&[u8]; 3]) -> Option<Self> {
        let [epoch, counter, value] = words.map(|word| std::str::from_utf8(word).ok());
        let value = ChainValue(u64::from_str_radix(value?, 16).ok()?);
        let epoch = Epoch(epoch?.parse().ok()?);
        Some(Self { chain: Chain { value, epoch }, counter: counter?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(epoch: u64, counter: u64, value: u64) -> RecordId {
        RecordId { chain: Chain { value: ChainValue(value), epoch: Epoch(epoch) }, counter }
    }

    #[test]
    fn a_record_covers_what_came_before_it() {
        assert!(id(2, 5, 1).covers(&id(2, 5, 1)));
        assert!(id(2, 6, 2).covers(&id(2, 5, 1)));
        assert!(!id(2, 4, 2).covers(&id(2, 5, 1)));
        assert!(id(3, 1, 2).covers(&id(2, 5, 1)), "its leader had applied epoch 2");
        assert!(!id(1, 9, 2).covers(&id(2, 5, 1)));
    }

    #[test]
    fn where_a_snapshot_ended_is_told_by_the_chain_alone() {
        assert!(id(2, 0, 7).covers(&id(2, 5, 7)));
        assert!(!id(2, 0, 7).covers(&id(2, 5, 8)));
        assert!(!id(2, 0, 7).covers(&id(2, 0, 8)));
    }

    #[test]
    fn what_is_written_is_read() {
        let id = id(u64::MAX, 7, 0xdead_beef);
        let words = id.words();
        let [epoch, counter, value] = words.each_ref().map(|word| word.as_bytes());
        assert_eq!(RecordId::parse([epoch, counter, value]), Some(id));
        for bad in [&b""[..], b"-1", b"x y", b"\xff", b"99999999999999999999999"] {
            assert_eq!(RecordId::parse([bad, counter, value]), None);
            assert_eq!(RecordId::parse([epoch, bad, value]), None);
            assert_eq!(RecordId::parse([epoch, counter, bad]), None);
        }
    }
}
