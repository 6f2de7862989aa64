//! Requests that waited before they ran, and need not wait any more: values that have come, a pause
//! that is over, a newest record that is known, room. They are judged again first in a turn, and
//! some of them amid it.

use super::share::Share;
use crate::core::{Clients, Core};
use crate::server::Server;

impl Server {
    /// True if every client that waits was put off, in this turn or in those just before it.
    pub(super) fn are_all_put_off(&self) -> bool {
        let Clients { ready, resuming, .. } = &self.core.clients;
        self.core.put_off > 0 && ready.len() + resuming.len() <= self.core.put_off
    }

    /// If all were put off, they are judged again. Of more than a turn has time for, the next are:
    /// how many were put off in turns just before.
    pub(super) fn begin_round(&mut self) -> usize {
        if self.are_all_put_off() {
            self.core.put_off = 0;
        }
        self.core.put_off
    }

    /// Where some were executed, those that were put off `before` this turn may not be all others.
    pub(super) fn end_round(&mut self, before: usize, has_executed: bool) {
        if has_executed {
            self.core.put_off = self.core.put_off.saturating_sub(before);
        }
    }

    /// Executes the parked requests of the last `count` of those who need not wait any more, in the
    /// order in which that came about, as far as `left` allows, which is a part of the turn's
    /// share; how many of them. Those before them stay as they are.
    pub(super) fn execute_resuming(
        &mut self,
        count: usize,
        share: &mut Share,
        left: &mut Share,
    ) -> usize {
        let resuming = &mut self.core.clients.resuming;
        if count == 0 || resuming.is_empty() {
            return 0;
        }
        let last = resuming.split_off(resuming.len().saturating_sub(count));
        let mut judged = std::mem::replace(resuming, last);
        self.core.begin_lap();
        share.take_time(self.core.turn.lap);
        *left = Share { lap: share.lap, ..left.within(*share) };
        let before = *left;
        self.resume_each(left);
        let executed = before.requests - left.requests;
        share.requests -= executed;
        share.reply_bytes -= before.reply_bytes - left.reply_bytes;
        // The last one may have taken longer than there was: others have theirs all the same.
        share.nanos -= before.nanos - left.nanos;
        share.lap = left.lap;
        judged.append(&mut self.core.clients.resuming);
        self.core.clients.resuming = judged;
        executed
    }

    fn resume_each(&mut self, share: &mut Share) {
        for _ in 0..self.core.clients.resuming.len() {
            let is_over = share.is_used_up() || self.has_lost_value() || self.suspended.is_some();
            if is_over || self.is_stalled() || !self.core.may_execute() {
                break;
            }
            let Some(client) = self.core.clients.resuming.pop_front() else { break };
            let pending = |core: &Core| {
                core.clients.sessions.get(client).map_or(0, |it| it.output.pending_bytes())
            };
            let before = pending(&self.core);
            if self.resume(client) {
                share.take(pending(&self.core).saturating_sub(before));
            } else {
                // Judging takes time as well.
                self.core.begin_lap();
            }
            share.take_time(self.core.turn.lap);
        }
    }

    /// True if the tier has lost a value in this turn: this life ends in the next one. Who would be
    /// told so until then is closed instead, and may ask again.
    pub(super) fn has_lost_value(&self) -> bool {
        self.core.shard.engine.keyspace.has_lost_value()
    }
}
