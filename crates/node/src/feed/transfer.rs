//! A snapshot's file on its way to a replica: read aside, a chunk at a time, as fast as the replica
//! takes it.

use super::{Server, Stage};
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

impl Server {
    /// Whether the next turn has something to read.
    pub(crate) fn is_feed_ready(&self) -> bool {
        let wants_more = |connection: &ConnectionId| {
            let session = self.core.clients.sessions.get(*connection);
            session.is_some_and(Session::wants_chunk)
        };
        self.feed.replicas.iter().any(wants_more)
    }

    /// Asks the disk for what fits.
    pub(crate) fn read_file_chunks(&mut self) {
        let Self { feed, core, .. } = self;
        let Some(queue) = &mut feed.queue else { return };
        for connection in &feed.replicas {
            let Some(session) = core.clients.sessions.get_mut(*connection) else { continue };
            if !session.wants_chunk() {
                continue;
            }
            if let Some(Stage::Sending(transfer)) = session.stage_mut() {
                transfer.is_reading = true;
                submit(&mut **queue, *connection, transfer);
            }
        }
    }

    /// Takes what the disk has read.
    pub(crate) fn collect_file_chunks(&mut self) {
        let Some(queue) = &mut self.feed.queue else { return };
        let mut done = std::mem::take(&mut self.feed.done);
        queue.poll(&mut done);
        for (_, outcome) in done.drain(..) {
            let Ok(chunk) = outcome.downcast::<Chunk>() else { continue };
            let connection = chunk.connection;
            if !self.core.clients.has(connection) {
                continue;
            }
            self.take_chunk(connection, chunk.bytes);
        }
        self.feed.done = done;
    }

    fn take_chunk(&mut self, client: ConnectionId, bytes: io::Result<Vec<u8>>) {
        let Some(Stage::Sending(transfer)) = self.core.clients.at_mut(client).stage_mut() else {
            return;
        };
        transfer.is_reading = false;
        match bytes {
            Ok(bytes) if !bytes.is_empty() => {
                transfer.offset += bytes.len() as u64;
                let is_at_end = transfer.is_at_end();
                self.core.clients.reply(client).raw(&bytes);
                self.core.hold(client, Sequence::ZERO);
                if is_at_end {
                    self.put_online(client);
                }
            }
            unreadable => {
                let why = unreadable.err().map_or("it is cut short".to_owned(), |e| e.to_string());
                tracing::error!("a snapshot's file cannot be sent to a replica: {why}");
                self.core.close_session(client);
            }
        }
    }

    /// The file is sent: what happened since it began follows, and from now on everything as it
    /// becomes durable.
    fn put_online(&mut self, client: ConnectionId) {
        let Some(replica) = &mut self.core.clients.at_mut(client).replica else { return };
        if replica.wants_only_file {
            self.core.clients.at_mut(client).is_closing = true;
            self.core.flush_later(client);
            return;
        }
        replica.stage = Stage::Online;
        replica.acknowledged_at = self.core.turn.monotonic;
        let kept = replica.take_kept();
        tracing::info!(
            client = self.core.clients.at(client).id,
            kept_bytes = kept.len(),
            "a replica is online"
        );
        self.core.clients.reply(client).raw(&kept);
        let newest = self.core.shard.newest();
        self.core.hold(client, newest);
    }
}

impl Session {
    fn stage_mut(&mut self) -> Option<&mut Stage> {
        self.replica.as_mut().map(|replica| &mut replica.stage)
    }

    fn wants_chunk(&self) -> bool {
        let Some(Stage::Sending(transfer)) = self.replica.as_ref().map(|replica| &replica.stage)
        else {
            return false;
        };
        let has_room = self.output.pending_bytes() < AHEAD_BYTES_MAX;
        has_room && !transfer.is_reading && !transfer.is_at_end() && !self.is_cut
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
