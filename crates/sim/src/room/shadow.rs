//! A replica beside the server: applies every record that the server appends, as it is appended.
//!
//! So there is a digest for every record, also for those in the middle of a turn, and what replay
//! makes of the records can be compared with what the server holds while it runs.

use super::token::{self, Tokens};
use crate::tapped_log::Listener;
use base::Sequence;
use bytes::Bytes;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::interest::Interest;
use shard::recovery::Replayer;
use std::cell::RefCell;
use std::rc::Rc;
use txlog::record::HEADER_BYTES;
use txlog::{Kind, Part, record};

/// A size of records that small values do not reach. In bytes.
pub const LARGE_RECORD_BYTES: usize = 32 << 10;

/// What passed between a server and its log.
#[derive(Default)]
pub struct Tap {
    records: Vec<(Sequence, Bytes)>,
    /// Commits that the loop made itself.
    pub inline: u64,
}

/// Shared by a log and who listens.
pub type SharedTap = Rc<RefCell<Tap>>;

impl Listener for SharedTap {
    fn appends(&mut self, place: Sequence, record: &Bytes) {
        self.borrow_mut().records.push((place, record.clone()));
    }

    fn committed_inline(&mut self) {
        self.borrow_mut().inline += 1;
    }
}

/// What was appended, counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Appended {
    pub records: u64,
    /// Records of more than [`LARGE_RECORD_BYTES`].
    pub large: u64,
    /// Units that took several records.
    pub split: u64,
    /// Renewals between the parts of such a unit, which had no room on the disk.
    pub ahead: u64,
}

/// The replica.
pub struct Shadow {
    engine: Engine,
    replayer: Replayer,
    pub tap: SharedTap,
    /// The end of the last record, if its unit goes on in the next.
    unit_end: Vec<u8>,
    /// Whether the last record with data was a part of a unit that goes on.
    is_inside_unit: bool,
}

impl Shadow {
    /// Begins with what a start recovered.
    pub fn new(engine: Engine, replayer: Replayer) -> Self {
        Self {
            engine,
            replayer,
            tap: SharedTap::default(),
            unit_end: Vec::new(),
            is_inside_unit: false,
        }
    }

    /// Applies what was appended since the last call; the digest behind each record.
    ///
    /// # Errors
    /// A record does not fit.
    pub fn catch_up(
        &mut self,
        tokens: &mut Tokens,
        count: &mut Appended,
        mut note: impl FnMut(u64, Digest),
    ) -> Result<(), String> {
        let records = std::mem::take(&mut self.tap.borrow_mut().records);
        for (sequence, bytes) in records {
            let header = record::decode_header(&bytes, true).map_err(|error| format!("{error}"))?;
            count.records += 1;
            count.large += u64::from(bytes.len() > LARGE_RECORD_BYTES);
            count.split += u64::from(header.part == Part::First);
            if header.kind == Kind::Renew && self.is_inside_unit {
                count.ahead += 1;
            } else {
                self.is_inside_unit = matches!(header.part, Part::First | Part::Middle);
                self.note_tokens(tokens, header.part, &bytes[HEADER_BYTES..]);
            }
            let consumed =
                self.replayer.consume(&mut self.engine, sequence, &bytes, &mut Interest::default());
            consumed.map_err(|error| format!("the replica stops: {error}"))?;
            note(sequence.0, Digest::of_keyspace(&self.engine.keyspace));
        }
        Ok(())
    }

    /// A value that lies across two records is seen whole on no disk: it counts as durable, so
    /// that nothing is said about it.
    fn note_tokens(&mut self, tokens: &mut Tokens, part: Part, payload: &[u8]) {
        tokens.note_appended(payload);
        let near = payload.len().min(token::BYTES - 1);
        if matches!(part, Part::Middle | Part::Last) {
            let joint = [&self.unit_end, &payload[..near]].concat();
            tokens.note_durable(&joint);
        }
        self.unit_end = payload[payload.len() - near..].to_vec();
    }
}
