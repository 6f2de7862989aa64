//! Sending; and who is answered amid it: whose value has come from the disk since requests were
//! executed. A turn spends more time in calls of the system than in commands, and reads of the disk
//! end meanwhile. Without this, who waits for one would be answered behind whatever the next turn
//! receives.

use super::share::Share;
use crate::server::Server;
use crate::session::Blocked;
use base::{ConnectionId, Driver};
use engine::command::Flags;

impl Server {
    /// Sends what may leave.
    pub(super) fn flush(&mut self, driver: &mut dyn Driver) {
        let limits = self.core.process.options.limits.turn;
        let mut share = Share::amid_sending(&limits);
        for (nth, client) in std::mem::take(&mut self.core.clients.flushing).into_iter().enumerate()
        {
            if nth % limits.sends_between == limits.sends_between - 1 {
                self.answer_arrived(driver, &mut share);
            }
            self.core.flush_client(driver, client);
        }
    }

    /// Executes and answers requests whose values have come, as far as `share` allows. Only those
    /// that read: others may need what a turn does behind executing, and a record of the log.
    fn answer_arrived(&mut self, driver: &mut dyn Driver, share: &mut Share) {
        if self.fetches.is_empty() || self.suspended.is_some() || share.is_used_up() {
            return;
        }
        // Of what goes on amid sending, this alone counts.
        share.lap = self.core.lap_time();
        let count = self.take_arrived();
        if count == 0 {
            return;
        }
        let resuming = &mut self.core.clients.resuming;
        let arrived = resuming.split_off(resuming.len() - count);
        let (reads, others): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|client| self.only_reads(*client));
        self.core.clients.resuming.extend(others);
        self.core.clients.resuming.extend(&reads);
        let sent_later = self.core.clients.flushing.len();
        let mut left = *share;
        self.execute_resuming(reads.len(), share, &mut left);
        // It was judged before they were executed.
        self.core.leadership.judge_lease();
        if self.core.leadership.is_lapsed {
            return;
        }
        for client in self.core.clients.flushing.split_off(sent_later) {
            self.core.flush_client(driver, client);
        }
    }

    /// Whether a client's parked request changes nothing, whoever else it calls.
    fn only_reads(&self, client: ConnectionId) -> bool {
        let session = self.core.clients.sessions.get(client);
        let blocked = session.and_then(|session| session.blocked.as_ref());
        let Some(Blocked::Parked { request, .. }) = blocked else { return false };
        let flags = self.core.process.catalog.command(request.command).flags;
        flags.contains(Flags::READONLY) && !flags.contains(Flags::RUNS_SCRIPT)
    }
}
