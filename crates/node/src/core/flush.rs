//! Sends what may leave, and holds a client back that does not take it.
//!
//! ```text
//! pending output  0 ............ kernel full ............ 64 MiB
//! executes        | yes                                  | no: choked
//! is sent         | every turn  | when the kernel drains | when the kernel drains
//! ```
//! A choked client costs nobody anything: it leaves the queue of those with something to execute
//! until it has read enough.

use crate::core::Core;
use base::driver::Sent;
use base::{ConnectionId, Driver};

impl Core {
    /// Sends what may leave to one that stood in the list of [`Self::flush_later`].
    pub(crate) fn flush_client(&mut self, driver: &mut dyn Driver, client: ConnectionId) {
        let Self { clients, process, turn, .. } = self;
        let mut left = process.options.limits.turn.client_sent_bytes_max;
        let Some(session) = clients.sessions.get_mut(client) else { return };
        session.flow.is_flushing = false;
        if session.flow.is_cut {
            return;
        }
        while !session.flow.kernel_is_full {
            let sendable = session.output.sendable_bytes();
            if sendable == 0 {
                break;
            }
            if left == 0 {
                self.flush_later(client);
                break;
            }
            // One long value is one piece; a client that reads meanwhile could have it all sent in
            // one call.
            let offered = sendable.min(left);
            process.statistics.writes += 1;
            let sent = session
                .output
                .offer(offered, |buffer, range| driver.send_buffer(client, buffer, range));
            match sent {
                Sent::Bytes(count) => {
                    process.statistics.output_bytes += count as u64;
                    session.flow.last_interaction = turn.monotonic;
                    session.flow.kernel_is_full = count < offered;
                    left = left.saturating_sub(count);
                }
                Sent::Closed => {
                    self.close_session(client);
                    return;
                }
            }
        }
        self.after_flush(driver, client);
    }

    /// Goes on with a client that has taken what the kernel takes.
    fn after_flush(&mut self, driver: &mut dyn Driver, client: ConnectionId) {
        let pending_max = self.process.options.limits.pending_bytes_max;
        let session = self.clients.at_mut(client);
        let pending = session.output.pending_bytes();
        if session.newest.received_turn != self.turn.number && self.process.trims_outputs {
            // Pushes to one that asks nothing: their room is not kept for replies.
            session.output.trim();
        }
        self.count_memory(client);
        let session = self.clients.at_mut(client);
        if session.flow.is_closing && pending == 0 {
            self.close_session(client);
            return;
        }
        if session.flow.output_is_unread && pending <= pending_max {
            session.flow.output_is_unread = false;
            self.enqueue(client);
        }
        // Whether or not it reads: it may have to write all its requests before it does.
        let unexecuted_max = self.unexecuted_bytes_max(client);
        let session = self.clients.at_mut(client);
        let may_read = !session.flow.peer_has_closed && session.input.has_room(unexecuted_max);
        if session.flow.reading_is_off && may_read {
            session.flow.reading_is_off = false;
            driver.set_reading(client, true);
        }
    }

    /// Whether so much output is unread that nothing more is executed until some of it is.
    pub(crate) fn chokes(&mut self, client: ConnectionId) -> bool {
        let pending_max = self.process.options.limits.pending_bytes_max;
        // What a replica says is how far it is, and is not answered.
        let session = self.clients.at_mut(client);
        if session.output.pending_bytes() <= pending_max || session.is_replica() {
            return false;
        }
        session.flow.output_is_unread = true;
        // More may be received now.
        self.flush_later(client);
        true
    }
}
