//! Sends what may leave, and holds a client back that does not take it.
//!
//! ```text
//! pending output  0 ............ kernel full ............ 64 MiB
//! executes        | yes                                  | no: choked
//! is sent         | every turn  | when the kernel drains | when the kernel drains
//! ```
//! A choked client costs nobody anything: it leaves the queue of those with something to execute
//! until it has read enough.

use crate::limits::PENDING_BYTES_MAX;
use crate::server::Server;
use crate::session::Session;
use base::Driver;
use base::driver::Sent;

/// Bytes sent to one client in one turn: one that reads as fast as is sent could hold the
/// loop for the whole of its backlog. A guess.
const TURN_SENT_BYTES_MAX: usize = 4 << 20;

impl Server {
    /// Sends what may leave.
    pub(crate) fn flush(&mut self, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.core.clients.flushing) {
            let Some(mut session) = self.core.clients.sessions.remove(&connection) else {
                continue;
            };
            session.is_flushing = false;
            if !session.is_cut {
                self.flush_session(driver, &mut session);
            }
            self.core.clients.sessions.insert(connection, session);
        }
    }

    fn flush_session(&mut self, driver: &mut dyn Driver, session: &mut Session) {
        let mut left = TURN_SENT_BYTES_MAX;
        while !session.is_clogged {
            let sendable = session.output.sendable();
            if sendable.is_empty() {
                break;
            }
            if left == 0 {
                self.flush_later(session);
                break;
            }
            // One long value is one piece; a client that reads meanwhile could have it all sent in
            // one call.
            let offered = sendable.len().min(left);
            self.core.process.statistics.writes += 1;
            match driver.send(session.connection, &sendable[..offered]) {
                Sent::Bytes(count) => {
                    self.core.process.statistics.output_bytes += count as u64;
                    session.output.sent(count);
                    session.last_interaction = self.core.turn.monotonic;
                    session.is_clogged = count < offered;
                    left = left.saturating_sub(count);
                }
                Sent::Closed => {
                    self.close_session(session);
                    return;
                }
            }
        }
        let pending = session.output.pending_bytes();
        if session.is_closing && pending == 0 {
            self.close_session(session);
            return;
        }
        if session.is_choked && pending <= PENDING_BYTES_MAX {
            session.is_choked = false;
            self.enqueue(session);
        }
        // Whether or not it reads: it may have to write all its requests before it does.
        if session.is_paused && session.input.room(self.unexecuted_bytes_max(session)) > 0 {
            session.is_paused = false;
            driver.set_reading(session.connection, true);
        }
    }

    /// Whether so much output is unread that nothing more is executed until some of it is.
    pub(crate) fn chokes(&mut self, session: &mut Session) -> bool {
        // What a replica says is how far it is, and is not answered.
        if session.output.pending_bytes() <= PENDING_BYTES_MAX || session.is_replica() {
            return false;
        }
        session.is_choked = true;
        // More may be received now.
        self.flush_later(session);
        true
    }
}
