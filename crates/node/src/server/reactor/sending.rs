//! Sends what may leave. Amid that it executes and answers reads whose values have come from the
//! disk since requests were executed: sending takes most of a turn, and they would wait for the
//! whole of the next one otherwise.

use super::share::Share;
use crate::server::Server;
use crate::session::Blocked;
use base::{ConnectionId, Driver};
use catalog::Kind;

impl Server {
    /// Sends what may leave.
    pub(super) fn flush(&mut self, driver: &mut dyn Driver) {
        let limits = self.core.process.options.limits.turn;
        let mut share = Share::amid_sending(&limits);
        let mut flushing = std::mem::take(&mut self.core.clients.flushing).into_iter();
        let mut sent = 0;
        while let Some(client) = flushing.next() {
            self.core.flush_client(driver, client);
            sent += 1;
            if sent % limits.sends_per_look == 0 {
                self.answer_arrived(driver, &mut share);
                if self.core.leadership.is_lapsed {
                    // What ran meanwhile may stand behind the earlier answers of any of them.
                    self.core.clients.flushing.extend(flushing);
                    return;
                }
            }
        }
    }

    /// Executes and answers parked reads whose values have come, as far as `share` allows. Others
    /// have their place in the next turn: they need what a turn does behind executing, and a
    /// record of the log.
    fn answer_arrived(&mut self, driver: &mut dyn Driver, share: &mut Share) {
        if self.fetches.is_empty() || self.suspended.is_some() || share.is_used_up() {
            return;
        }
        // The time of sending is not the share's.
        share.lap = self.core.lap_time();
        let count = self.take_arrived();
        share.take_time(self.core.lap_time());
        if count == 0 {
            return;
        }
        let resuming = &mut self.core.clients.resuming;
        let arrived = resuming.split_off(resuming.len() - count);
        let (reads, others): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|client| self.only_reads(*client));
        self.core.clients.resuming.extend(others);
        self.core.clients.resuming.extend(&reads);
        let first_new = self.core.clients.flushing.len();
        // No part of it is kept for others.
        let mut left = *share;
        let executed = self.execute_resuming(reads.len(), share, &mut left);
        self.core.process.tier_waits.amid_sending += executed as u64;
        // A read that took long has renewed the lease from within.
        self.core.note_appended();
        self.core.leadership.judge_lease();
        if !self.core.leadership.is_lapsed {
            for client in self.core.clients.flushing.split_off(first_new) {
                self.core.flush_client(driver, client);
            }
        }
    }

    /// Whether a client's parked request is a read: its function is given a view of the keys, and
    /// no more. A script is none, even one that writes nothing, because it may be suspended.
    fn only_reads(&self, client: ConnectionId) -> bool {
        let session = self.core.clients.sessions.get(client);
        let blocked = session.and_then(|session| session.blocked.as_ref());
        let Some(Blocked::Parked { request, .. }) = blocked else { return false };
        self.core.process.catalog.command(request.command).kind() == Kind::Read
    }
}
