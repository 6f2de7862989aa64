//! A planned failover, done: what [`peers::failover`] asks for.

use super::Members;
use crate::core::{Core, Stop};
use peers::failover::{Failover, Next};
use shard::role::member::MemberId;
use txlog::Gate;

impl Members {
    pub(crate) fn begin_failover(&mut self, core: &mut Core, failover: Failover) {
        tracing::info!(target = ?failover.target, "failover requested");
        core.pause.is_failing_over = true;
        self.failover = Some(failover);
    }

    /// Ends a failover that has not handed over yet; whether there was one.
    pub(crate) fn abort_failover(&mut self, core: &mut Core, why: &str) -> bool {
        let is_waiting = self.failover.as_ref().is_some_and(Failover::is_waiting);
        if is_waiting {
            tracing::warn!("failover aborted: {why}");
            self.failover = None;
            core.pause.is_failing_over = false;
        }
        is_waiting
    }

    /// Does what a failover needs next.
    pub(crate) fn advance_failover(&mut self, core: &mut Core) {
        let Some(failover) = &mut self.failover else { return };
        let now = core.turn.monotonic;
        match failover.next(&self.reports, &core.shard.newest_id(), now) {
            Next::HandOver(successor) if is_quiet(core) => {
                tracing::info!(%successor, "hands leadership over");
                hand_over(core, Some(successor));
                failover.note_yielded(now);
            }
            Next::Wait | Next::HandOver(_) => {}
            Next::Abort(why) => {
                self.abort_failover(core, why);
            }
            Next::End { is_late } => {
                if is_late || !core.shard.is_in_flight() {
                    let why = "leadership was handed over".to_owned();
                    core.stopping.get_or_insert(Stop::Demoted(why));
                }
            }
        }
    }
}

/// Whether everything executed is durable and sent, and the log takes a record.
fn is_quiet(core: &Core) -> bool {
    let is_written = !core.shard.has_gathered() && !core.shard.is_in_flight();
    let is_sent = core.clients.flushing.is_empty() && core.clients.held.is_empty();
    is_written && is_sent && core.leadership.roles.leads() && core.shard.gate() == Gate::Open
}

/// Serves no more, then says so in the log.
pub(crate) fn hand_over(core: &mut Core, successor: Option<MemberId>) {
    let Core { leadership, shard, .. } = core;
    leadership.hand_over(shard, successor);
}
