//! A snapshot's file on its way to a replica: read aside, a chunk at a time, as fast as the replica
//! takes it.

use super::{Feed, Replica, Stage};
use crate::core::Core;
use crate::session::Session;
use base::{ConnectionId, DiskFile, DiskQueue, Sequence};
use std::io;
use std::sync::Arc;

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes that lie in a replica's output before no more of the file is read: two chunks keep both
/// the disk and the network busy.
const AHEAD_BYTES_MAX: usize = 2 << 20;

/// A file that is being sent. It stays readable when the snapshot is pruned: it is open.
pub struct Transfer {
    file: Arc<dyn DiskFile>,
    length: u64,
    /// Bytes read, and whether the next ones are.
    offset: u64,
    is_reading: bool,
}

/// What a job returns.
struct Chunk {
    connection: ConnectionId,
    bytes: io::Result<Vec<u8>>,
}

impl Transfer {
    pub fn new(file: &Arc<dyn DiskFile>, length: u64) -> Self {
        Self { file: Arc::clone(file), length, offset: 0, is_reading: false }
    }

    fn is_at_end(&self) -> bool {
        self.offset == self.length
    }
}

impl Feed {
    /// Whether the next turn has something to read.
    pub(crate) fn is_ready(&self, core: &Core) -> bool {
        self.replicas.iter().any(|(client, replica)| {
            let session = core.clients.sessions.get(*client);
            session.is_some_and(|session| replica.wants_chunk(session))
        })
    }

    /// Asks the disk for what fits.
    pub(super) fn read_chunks(&mut self, core: &Core) {
        let Some(queue) = &mut self.queue else { return };
        for (client, replica) in &mut self.replicas {
            let Some(session) = core.clients.sessions.get(*client) else { continue };
            if replica.wants_chunk(session)
                && let Stage::Sending(transfer) = &mut replica.stage
            {
                transfer.is_reading = true;
                submit(&mut **queue, *client, transfer);
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
            self.take_chunk(core, chunk.connection, chunk.bytes);
        }
        self.done = done;
    }

    fn take_chunk(&mut self, core: &mut Core, client: ConnectionId, bytes: io::Result<Vec<u8>>) {
        let Some(replica) = self.replicas.get_mut(&client) else { return };
        let Stage::Sending(transfer) = &mut replica.stage else { return };
        transfer.is_reading = false;
        match bytes {
            Ok(bytes) if !bytes.is_empty() => {
                transfer.offset += bytes.len() as u64;
                let is_at_end = transfer.is_at_end();
                core.clients.reply(client).raw(&bytes);
                core.hold(client, Sequence::ZERO);
                if is_at_end {
                    replica.go_online(core, client);
                }
            }
            unreadable => {
                let why = unreadable.err().map_or("it is cut short".to_owned(), |e| e.to_string());
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

    fn wants_chunk(&self, session: &Session) -> bool {
        let Stage::Sending(transfer) = &self.stage else { return false };
        let has_room = session.output.pending_bytes() < AHEAD_BYTES_MAX;
        has_room && !transfer.is_reading && !transfer.is_at_end() && !session.flow.is_cut
    }
}

fn submit(queue: &mut dyn DiskQueue, connection: ConnectionId, transfer: &Transfer) {
    let (file, offset) = (Arc::clone(&transfer.file), transfer.offset);
    let left = usize::try_from(transfer.length - offset).unwrap_or(usize::MAX);
    queue.submit(Box::new(move || {
        let mut bytes = vec![0; left.min(CHUNK_BYTES)];
        let read = file.read_at(offset, &mut bytes);
        let bytes = read.map(|count| {
            bytes.truncate(count);
            bytes
        });
        Box::new(Chunk { connection, bytes })
    }));
}
