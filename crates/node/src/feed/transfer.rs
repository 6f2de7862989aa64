//! A snapshot's file on its way to a replica: read aside, a chunk at a time, as fast as the replica
//! takes it.

use super::sync::pin_of;
use super::{Feed, Replica, Stage};
use crate::core::Core;
use crate::session::Session;
use base::{ConnectionId, DiskQueue, Sequence};
use shard::snapshots::SnapshotFile;
use std::io;

/// A snapshot that is being sent as one file.
pub struct Transfer {
    /// At home, unless a job reads in it.
    file: Option<Box<SnapshotFile>>,
    /// Bytes not yet read.
    left: u64,
}

/// What a job returns.
struct Chunk {
    connection: ConnectionId,
    file: Box<SnapshotFile>,
    bytes: io::Result<Vec<u8>>,
}

impl Transfer {
    pub fn new(file: &SnapshotFile) -> Self {
        let left = file.length() - file.offset();
        Self { file: Some(Box::new(file.clone())), left }
    }

    /// One of which a job reads.
    #[cfg(test)]
    pub fn being_read() -> Self {
        Self { file: None, left: 1 }
    }

    fn is_at_end(&self) -> bool {
        self.left == 0
    }
}

impl Feed {
    /// Whether the next turn has something to read.
    pub(crate) fn is_ready(&self, core: &Core) -> bool {
        let ahead_max = core.process.options.limits.feed_ahead_bytes_max;
        self.replicas.iter().any(|(client, replica)| {
            let session = core.clients.sessions.get(*client);
            session.is_some_and(|session| replica.wants_chunk(session, ahead_max))
        })
    }

    /// Asks the disk for what fits.
    pub(super) fn read_chunks(&mut self, core: &Core) {
        let limits = core.process.options.limits;
        let Some(queue) = &mut self.queue else { return };
        for (client, replica) in &mut self.replicas {
            let Some(session) = core.clients.sessions.get(*client) else { continue };
            if replica.wants_chunk(session, limits.feed_ahead_bytes_max)
                && let Stage::Sending(transfer) = &mut replica.stage
                && let Some(file) = transfer.file.take()
            {
                submit(&mut **queue, *client, file, limits.feed_chunk_bytes);
            }
        }
    }

    /// Takes what the disk has read.
    pub(super) fn collect_chunks(&mut self, core: &mut Core) {
        let Some(queue) = &mut self.queue else { return };
        let mut done = std::mem::take(&mut self.done);
        queue.poll(&mut done);
        for (_, outcome) in done.drain(..) {
            let Ok(chunk) = outcome.downcast::<Chunk>() else { continue };
            self.take_chunk(core, *chunk);
        }
        self.done = done;
    }

    fn take_chunk(&mut self, core: &mut Core, chunk: Chunk) {
        let Chunk { connection: client, file, bytes } = chunk;
        let Some(replica) = self.replicas.get_mut(&client) else { return };
        let Stage::Sending(transfer) = &mut replica.stage else { return };
        transfer.left = file.length() - file.offset();
        transfer.file = Some(file);
        match bytes {
            Ok(bytes) => {
                let is_at_end = transfer.is_at_end();
                core.clients.reply(client).raw(&bytes);
                core.hold(client, Sequence::ZERO);
                if is_at_end {
                    replica.go_online(core, client);
                }
            }
            Err(why) => {
                tracing::error!("a snapshot's file cannot be sent to a replica: {why}");
                core.close_session(client);
            }
        }
    }
}

impl Replica {
    /// The file is sent: what happened since it began follows, and from now on everything as it
    /// becomes durable.
    fn go_online(&mut self, core: &mut Core, client: ConnectionId) {
        let pin = pin_of(core, client);
        core.shard.unpin(&pin);
        let session = core.clients.at_mut(client);
        if self.wants_only_file {
            session.flow.is_closing = true;
            core.flush_later(client);
            return;
        }
        self.stage = Stage::Online;
        self.acknowledged_at = core.turn.monotonic;
        let kept = self.take_kept();
        tracing::info!(client = session.who.id, kept_bytes = kept.len(), "a replica is online");
        session.flow.apart_bytes = 0;
        session.reply().raw(&kept);
        core.hold(client, core.shard.newest());
    }

    fn wants_chunk(&self, session: &Session, ahead_bytes_max: usize) -> bool {
        let Stage::Sending(transfer) = &self.stage else { return false };
        let has_room = session.output.pending_bytes() < ahead_bytes_max;
        has_room && transfer.file.is_some() && !transfer.is_at_end() && !session.flow.is_cut
    }
}

fn submit(
    queue: &mut dyn DiskQueue,
    connection: ConnectionId,
    mut file: Box<SnapshotFile>,
    bytes_max: usize,
) {
    queue.submit(Box::new(move || {
        let bytes = file.next(bytes_max);
        Box::new(Chunk { connection, file, bytes })
    }));
}
