//! Writing a stream in RDB form, in pieces, whatever its size.
//!
//! ```text
//! blocks: count | ID, listpack …
//! length | last ID | first ID | greatest deleted ID | entries added
//! groups: count | name, last ID, entries read
//!                 pending: count | ID, time, deliveries …
//!                 consumers: count | name, seen, pending: count | ID … …
//! ```
//! Numbers have the format's length encoding, times are milliseconds (i64, little-endian), IDs of
//! blocks and pending entries are sixteen bytes, big-endian. Source: type 19 as Redis 7.0.15 writes
//! it.

use super::{Group, Stream};
use crate::rdb::length::{put_length, put_string};
use crate::stream_id::StreamId;
use std::ops::Bound;

/// The progress of writing a stream: the item that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StreamCursor {
    stage: Stage,
    /// The indices of the group, and of the consumer in it.
    group: usize,
    consumer: usize,
    /// The last block or pending entry that was written in this stage.
    behind: Option<StreamId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Stage {
    #[default]
    Blocks,
    Head,
    Group,
    Pending,
    Consumer,
    ConsumersPending,
}

impl Stream {
    /// Writes from `cursor` on until about `bytes_max` more bytes are written: a block is written
    /// whole. Returns whether the stream is complete.
    pub(super) fn put_from(
        &self,
        out: &mut Vec<u8>,
        cursor: &mut StreamCursor,
        bytes_max: usize,
    ) -> bool {
        let bytes_until = out.len().saturating_add(bytes_max);
        loop {
            let is_done = self.put_stage(out, cursor, bytes_until);
            if is_done || out.len() >= bytes_until {
                return is_done;
            }
        }
    }

    /// Writes within one stage, until the stage or the piece ends; returns whether the stream is
    /// complete.
    fn put_stage(&self, out: &mut Vec<u8>, cursor: &mut StreamCursor, bytes_until: usize) -> bool {
        if cursor.stage == Stage::Blocks {
            if self.put_blocks(out, cursor, bytes_until) {
                *cursor = StreamCursor { stage: Stage::Head, ..StreamCursor::default() };
            }
            return false;
        }
        if cursor.stage == Stage::Head {
            self.put_head(out);
            cursor.stage = Stage::Group;
            return self.groups.is_empty();
        }
        let Some((name, group)) = self.groups.iter().nth(cursor.group) else { return true };
        match cursor.stage {
            Stage::Group => {
                put_string(out, name);
                put_id(out, group.last_id());
                put_length(out, group.read() as u64);
                put_length(out, group.pending_len() as u64);
                cursor.stage = Stage::Pending;
            }
            Stage::Pending => {
                if put_pending(out, group, cursor, bytes_until) {
                    put_length(out, group.consumers_len() as u64);
                    *cursor =
                        StreamCursor { stage: Stage::Consumer, group: cursor.group, ..*cursor };
                    cursor.behind = None;
                }
            }
            _ => {
                if put_consumer(out, group, cursor, bytes_until) {
                    *cursor = StreamCursor { group: cursor.group + 1, ..StreamCursor::default() };
                    cursor.stage = Stage::Group;
                    return cursor.group == self.groups.len();
                }
            }
        }
        false
    }

    fn put_blocks(&self, out: &mut Vec<u8>, cursor: &mut StreamCursor, bytes_until: usize) -> bool {
        let from = cursor.behind.map_or(Bound::Unbounded, Bound::Excluded);
        for (base, block) in self.blocks.range((from, Bound::Unbounded)) {
            if out.len() >= bytes_until {
                return false;
            }
            put_raw(out, &base.to_bytes());
            put_raw(out, block.bytes());
            cursor.behind = Some(*base);
        }
        true
    }

    fn put_head(&self, out: &mut Vec<u8>) {
        put_length(out, self.len);
        put_id(out, self.last_id);
        put_id(out, self.first_id());
        put_id(out, self.max_deleted);
        put_length(out, self.added);
        put_length(out, self.groups.len() as u64);
    }
}

fn put_pending(
    out: &mut Vec<u8>,
    group: &Group,
    cursor: &mut StreamCursor,
    bytes_until: usize,
) -> bool {
    for (id, pending) in group.pending_behind(cursor.behind) {
        if out.len() >= bytes_until {
            return false;
        }
        out.extend_from_slice(&id.to_bytes());
        out.extend_from_slice(&pending.time.to_le_bytes());
        put_length(out, pending.count);
        cursor.behind = Some(id);
    }
    true
}

/// Writes a consumer, or the rest of one; returns whether it was the last of its group.
fn put_consumer(
    out: &mut Vec<u8>,
    group: &Group,
    cursor: &mut StreamCursor,
    bytes_until: usize,
) -> bool {
    let Some(consumer) = group.consumers().nth(cursor.consumer) else { return true };
    if cursor.stage == Stage::Consumer {
        put_string(out, consumer.name());
        out.extend_from_slice(&consumer.seen().to_le_bytes());
        put_length(out, consumer.pending_len() as u64);
        cursor.stage = Stage::ConsumersPending;
    }
    for id in consumer.pending_behind(cursor.behind) {
        if out.len() >= bytes_until {
            return false;
        }
        out.extend_from_slice(&id.to_bytes());
        cursor.behind = Some(id);
    }
    cursor.stage = Stage::Consumer;
    cursor.consumer += 1;
    cursor.behind = None;
    cursor.consumer == group.consumers_len()
}

fn put_id(out: &mut Vec<u8>, id: StreamId) {
    put_length(out, id.millis);
    put_length(out, id.sequence);
}

/// Writes a string that must not be encoded as an integer.
fn put_raw(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
