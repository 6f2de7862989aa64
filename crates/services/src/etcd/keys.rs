//! The keys of a log, and what their values are.
//!
//! ```text
//! PREFIX/incarnation          which life of the log stands here: 8 bytes, then the incarnation
//! PREFIX/head                 the newest record's sequence; 0 if there is none
//! PREFIX/first                the oldest record's sequence
//! PREFIX/log/{sequence:020}   one record, exactly its bytes
//! ```
//!
//! Integers are 64 bits, little-endian. `docs/formats/etcd.md` is the normative description.

use super::Failure;
use base::{Incarnation, Sequence};
use etcd_client::{GetOptions, GetResponse, TxnOp, TxnOpResponse, TxnResponse};
use txlog::remote::store::SEQUENCE_MAX;

/// Begins the value of `incarnation`; the last digit is the format's version.
const MAGIC: &[u8; 8] = b"kilnetc1";

/// The value of `incarnation`.
pub fn life(incarnation: Incarnation) -> Vec<u8> {
    [&MAGIC[..], &incarnation.0.to_le_bytes()].concat()
}

pub fn incarnation_of(value: &[u8]) -> Option<Incarnation> {
    let bytes = value.strip_prefix(MAGIC)?.try_into().ok()?;
    Some(Incarnation(u64::from_le_bytes(bytes)))
}

pub fn number(sequence: Sequence) -> Vec<u8> {
    sequence.0.to_le_bytes().to_vec()
}

fn number_of(value: &[u8]) -> Option<Sequence> {
    let number = value.try_into().ok().map(|bytes| Sequence(u64::from_le_bytes(bytes)));
    number.filter(|sequence| *sequence <= SEQUENCE_MAX)
}

/// Makes keys below one prefix.
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub fn incarnation(&self) -> String {
        format!("{}/incarnation", self.prefix)
    }

    pub fn head(&self) -> String {
        format!("{}/head", self.prefix)
    }

    pub fn first(&self) -> String {
        format!("{}/first", self.prefix)
    }

    pub fn record(&self, sequence: Sequence) -> String {
        format!("{}/log/{:020}", self.prefix, sequence.0)
    }

    /// Where the records end: no digit is behind `:`.
    pub fn records_end(&self) -> String {
        format!("{}/log/:", self.prefix)
    }

    /// Asks for everything but records.
    pub fn numbers(&self) -> Vec<TxnOp> {
        [self.incarnation(), self.head(), self.first()]
            .into_iter()
            .map(|key| TxnOp::get(key, None))
            .collect()
    }

    /// Asks for records from a place on.
    pub fn records(&self, from: Sequence, count_max: i64) -> TxnOp {
        let options = GetOptions::new().with_range(self.records_end()).with_limit(count_max);
        TxnOp::get(self.record(from), Some(options))
    }
}

/// Where a log begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    pub first: Sequence,
    pub head: Sequence,
    /// etcd's revision as of which this is so.
    pub revision: i64,
}

impl Numbers {
    /// From what [`Keys::numbers`] asked for, at the beginning of an answer.
    pub fn read(incarnation: Incarnation, answer: &TxnResponse) -> Result<Self, Failure> {
        let answers = gets(answer);
        let value = |index: usize| {
            let found = answers.get(index).and_then(|get| get.kvs().first());
            found.map(|pair| pair.value().to_vec())
        };
        let Some(found) = value(0) else {
            return Err(Failure::Lost("its keys were deleted".to_owned()));
        };
        if incarnation_of(&found) != Some(incarnation) {
            let why = "it was deleted, and another one was begun in its place";
            return Err(Failure::Lost(why.to_owned()));
        }
        let number = |index| value(index).and_then(|value| number_of(&value));
        let (Some(head), Some(first)) = (number(1), number(2)) else {
            return Err(Failure::Lost("a key of it was deleted or overwritten".to_owned()));
        };
        let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        Ok(Self { first, head, revision })
    }
}

/// The answers to the gets of a transaction, in order.
pub fn gets(answer: &TxnResponse) -> Vec<GetResponse> {
    let is_get = |answer| match answer {
        TxnOpResponse::Get(get) => Some(get),
        _ => None,
    };
    answer.op_responses().into_iter().filter_map(is_get).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let incarnation = Incarnation(0x0123_4567_89ab_cdef);
        let golden = b"kilnetc1\xef\xcd\xab\x89\x67\x45\x23\x01";
        assert_eq!(life(incarnation), golden);
        assert_eq!(incarnation_of(golden), Some(incarnation));
        for foreign in [&golden[..15], b"kilnetc2\0\0\0\0\0\0\0\0", b""] {
            assert_eq!(incarnation_of(foreign), None);
        }
        assert_eq!(number(Sequence(258)), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(number_of(&number(SEQUENCE_MAX)), Some(SEQUENCE_MAX));
        assert_eq!([number_of(b"258"), number_of(&[0xff; 8])], [None, None]);
    }

    #[test]
    fn records_sort_as_their_numbers_and_before_their_end() {
        let keys = Keys::new("/kiln/shard");
        assert_eq!(keys.record(Sequence(7)), "/kiln/shard/log/00000000000000000007");
        assert!(keys.record(Sequence(9)) < keys.record(Sequence(10)));
        assert!(keys.record(Sequence(u64::MAX)) < keys.records_end());
    }
}
