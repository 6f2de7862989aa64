//! Records as the model keeps them, and the rule by which they count, which is the real one.
//!
//! A record here is a few small numbers, so that states are small and many. What it says is put
//! into a real header and encoded, and `txlog::Chain` judges and follows it: what the model checks
//! is the rule that the server runs.

use crate::bounds::Broken;
use base::{Epoch, Incarnation, Sequence, UnixMillis};
use bytes::Bytes;
use std::fmt;
use txlog::record::ChainValue;
use txlog::{Chain, Header, Kind, Part, Record, WriterId};

/// What a record is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Content {
    Lead,
    /// Sets the one register that there is. No two writes of a run have the same value.
    Write(u8),
    Renew,
    /// Names the node that may lead at once.
    Yield(u8),
}

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub content: Content,
    pub epoch: u8,
    /// Names one life of one node.
    pub writer: u8,
    pub counter: u8,
    predecessor: u64,
    /// The chain's value once this record counts. It names its predecessor, so it has only one.
    after: u64,
}

/// Where a reader's chain stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Standing {
    value: u64,
    pub epoch: u8,
}

impl Standing {
    pub fn start() -> Self {
        Self { value: Chain::start(Incarnation(7)).value.0, epoch: 0 }
    }

    /// Whether a record counts here. The real rule, unless that is what is broken.
    pub fn admits(self, entry: &Entry, broken: Option<Broken>) -> bool {
        broken == Some(Broken::VoidRuleOff) || self.chain().admits(&entry.header())
    }

    /// Whether a record cannot stand behind this chain in one history.
    pub fn contradicts(self, entry: &Entry) -> bool {
        self.chain().contradicts(&entry.header())
    }

    /// The chain behind a record that counts.
    pub fn behind(entry: &Entry) -> Self {
        Self { value: entry.after, epoch: entry.epoch }
    }

    /// Stamps a record that follows this chain.
    pub fn stamp(self, writer: u8, counter: u8, content: Content) -> Entry {
        let epoch = self.epoch + u8::from(content == Content::Lead);
        let predecessor = self.value;
        let mut entry = Entry { content, epoch, writer, counter, predecessor, after: 0 };
        let header = entry.header();
        let bytes = Record { header, payload: entry.payload() }.encode();
        let mut chain = self.chain();
        chain.extend(&header, &bytes);
        entry.after = chain.value.0;
        entry
    }

    fn chain(self) -> Chain {
        Chain { value: ChainValue(self.value), epoch: Epoch(u64::from(self.epoch)) }
    }
}

impl Entry {
    pub fn is_lead(&self) -> bool {
        self.content == Content::Lead
    }

    pub fn write(&self) -> Option<u8> {
        match self.content {
            Content::Write(value) => Some(value),
            _ => None,
        }
    }

    fn header(&self) -> Header {
        let kind = match self.content {
            Content::Lead => Kind::Lead,
            Content::Write(_) => Kind::Data,
            Content::Renew => Kind::Renew,
            Content::Yield(_) => Kind::Yield,
        };
        Header {
            kind,
            part: Part::Whole,
            is_compressed: false,
            is_encrypted: false,
            sets_clock: false,
            reader_version_min: 1,
            epoch: Epoch(u64::from(self.epoch)),
            writer: WriterId(u64::from(self.writer)),
            counter: u64::from(self.counter),
            predecessor: ChainValue(self.predecessor),
            clock: UnixMillis(0),
            durable: Sequence::ZERO,
        }
    }

    /// Something that differs where the content does.
    fn payload(&self) -> Bytes {
        match self.content {
            Content::Write(value) => Bytes::copy_from_slice(&[value]),
            Content::Yield(to) => Bytes::copy_from_slice(&[to]),
            Content::Lead | Content::Renew => Bytes::from_static(&[0; 8]),
        }
    }
}

/// Traces are read by people, and the chain's values are noise there.
impl fmt::Debug for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content, epoch, writer, counter, .. } = self;
        write!(out, "{content:?} e{epoch} w{writer}#{counter}")
    }
}
