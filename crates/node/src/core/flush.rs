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
use crate::core::limits::PENDING_BYTES_MAX;
use base::driver::Sent;
use base::{ConnectionId, Driver};

/// Bytes sent to one client in one turn: one that reads as fast as is sent could hold the
/// loop for the whole of its backlog. A guess.
const TURN_SENT_BYTES_MAX: usize = 4 << 20;

impl Core {
    /// Sends what may leave.
    pub(crate) fn flush(&mut self, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.clients.flushing) {
            if !self.clients.has(connection) {
                continue;
            }
            self.clients.at_mut(connection).flow.is_flushing = false;
            if !self.clients.at(connection).flow.is_cut {
                self.flush_session(driver, connection);
            }
        }
    }

    fn flush_session(&mut self, driver: &mut dyn Driver, client: ConnectionId) {
        let mut left = TURN_SENT_BYTES_MAX;
        while !self.clients.at(client).flow.kernel_is_full {
            let sendable = self.clients.at(client).output.sendable();
            if sendable.is_empty() {
                break;
            }
            if left == 0 {
                self.flush_later(client);
                break;
            }
            // One long value is one piece; a client that reads meanwhile could have it all sent in
            // one call.
            let offered = sendable.len().min(left);
            self.process.statistics.writes += 1;
            match driver.send(client, &sendable[..offered]) {
                Sent::Bytes(count) => {
                    self.process.statistics.output_bytes += count as u64;
                    self.clients.at_mut(client).output.sent(count);
                    self.clients.at_mut(client).flow.last_interaction = self.turn.monotonic;
                    self.clients.at_mut(client).flow.kernel_is_full = count < offered;
                    left = left.saturating_sub(count);
                }
                Sent::Closed => {
                    self.close_session(client);
                    return;
                }
            }
        }
        let pending = self.clients.at(client).output.pending_bytes();
        if self.clients.at(client).flow.is_closing && pending == 0 {
            self.close_session(client);
            return;
        }
        if self.clients.at(client).flow.output_is_unread && pending <= PENDING_BYTES_MAX {
            self.clients.at_mut(client).flow.output_is_unread = false;
            self.enqueue(client);
        }
        // Whether or not it reads: it may have to write all its requests before it does.
        if self.clients.at(client).flow.reading_is_off
            && self.clients.at(client).input.room(self.unexecuted_bytes_max(client)) > 0
        {
            self.clients.at_mut(client).flow.reading_is_off = false;
            driver.set_reading(client, true);
        }
    }

    /// Whether so much output is unread that nothing more is executed until some of it is.
    pub(crate) fn chokes(&mut self, client: ConnectionId) -> bool {
        // What a replica says is how far it is, and is not answered.
        if self.clients.at(client).output.pending_bytes() <= PENDING_BYTES_MAX
            || self.clients.at(client).is_replica()
        {
            return false;
        }
        self.clients.at_mut(client).flow.output_is_unread = true;
        // More may be received now.
        self.flush_later(client);
        true
    }
}
