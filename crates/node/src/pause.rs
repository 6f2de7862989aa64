//! CLIENT PAUSE: requests wait, with their clients, until the pause ends (Redis documentation,
//! CLIENT PAUSE).
//!
//! While it lasts no key expires or is evicted either, so that the data set stands still.

use crate::dispatch::Dispatched;
use crate::server::Server;
use crate::session::{Blocked, OwnedRequest};
use base::{ConnectionId, MonotonicNanos};
use catalog::{Kind, Registered};
use engine::command::{Args, Flags};
use std::collections::VecDeque;

/// What waits while a pause lasts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Paused {
    /// Commands that write.
    Writes,
    /// Every command.
    All,
}

/// The pause, if there is one, and who waits for its end.
#[derive(Default, Debug)]
pub struct Pause {
    /// What waits, and until when.
    until: Option<(Paused, MonotonicNanos)>,
    waiting: VecDeque<ConnectionId>,
    /// A planned failover is under way: writes wait as well.
    pub(crate) is_failing_over: bool,
    /// The link to the master has requests that wait, in its input.
    pub(crate) is_link_waiting: bool,
}

impl Pause {
    /// Begins or changes a pause. As in Redis, it never ends earlier for that and never gets
    /// milder.
    pub fn begin(&mut self, paused: Paused, until: MonotonicNanos) {
        let (before, end) = self.until.unwrap_or((paused, until));
        self.until = Some((before.max(paused), end.max(until)));
    }

    pub fn end(&mut self) {
        self.until = None;
    }

    /// What is paused.
    pub fn paused(&self) -> Option<Paused> {
        let asked = self.until.map(|(paused, _)| paused);
        asked.max(self.is_failing_over.then_some(Paused::Writes))
    }

    /// When it ends, for the loop's wait.
    pub fn deadline(&self) -> Option<MonotonicNanos> {
        self.until.map(|(_, until)| until)
    }

    /// Whether the pause is over and clients are still to be told.
    pub fn is_just_over(&self) -> bool {
        self.paused().is_none() && (!self.waiting.is_empty() || self.is_link_waiting)
    }

    fn expire(&mut self, now: MonotonicNanos) {
        self.until = self.until.filter(|(_, until)| *until > now);
    }
}

impl Server {
    /// Whether a request must wait for the end of the pause.
    pub(crate) fn must_pause(&self, client: ConnectionId, command: &Registered) -> bool {
        match self.pause.paused() {
            None => false,
            // Who waits for them to catch up waits during a pause.
            _ if self.core.clients.at(client).is_replica() => false,
            // Its requests wait in its input, where the place in the stream is known.
            _ if self.core.clients.at(client).is_link => false,
            Some(Paused::All) => true,
            Some(Paused::Writes) => {
                let replicates = |command: &Registered| {
                    command.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE))
                        || command.kind() == Kind::Write
                };
                let queued =
                    self.core.clients.at(client).transaction.iter().flat_map(|t| t.queued());
                replicates(command)
                    || command.name() == "exec"
                        && queued
                            .map(|request| self.core.process.catalog.command(request.command))
                            .any(replicates)
            }
        }
    }

    /// Leaves a session waiting for the end of the pause.
    pub(crate) fn wait_for_pause(&mut self, client: ConnectionId, request: OwnedRequest) {
        self.pause.waiting.push_back(client);
        self.block(client, Blocked::Pause { request });
    }

    /// Whether clients that waited for the end of the pause go on in the next turn.
    pub(crate) fn resumes_after_pause(&self) -> bool {
        self.pause.is_just_over() && self.may_execute()
    }

    /// Nothing is executed behind the last record of a holder that hands over.
    fn may_execute(&self) -> bool {
        self.core.stopping.is_none() && !self.core.roles.has_yielded()
    }

    /// Lets the clients go on if the pause is over, in the order in which they came.
    pub(crate) fn resume_after_pause(&mut self) {
        self.pause.expire(self.core.turn.monotonic);
        if self.pause.paused().is_some() || !self.may_execute() {
            return;
        }
        for connection in std::mem::take(&mut self.pause.waiting) {
            if self.resume(connection) == Some(Dispatched::Later) {
                self.pause.waiting.push_back(connection);
            }
        }
        if std::mem::take(&mut self.pause.is_link_waiting) {
            self.resume_link();
        }
    }

    /// Executes a request that has waited; what became of it, if it still waited. If that is for
    /// later, it goes on waiting.
    pub(crate) fn resume(&mut self, connection: ConnectionId) -> Option<Dispatched> {
        if !self.core.clients.has(connection) {
            return None;
        }
        let request = match self.core.clients.at(connection).blocked {
            Some(Blocked::Pause { .. }) => self.unblock(connection),
            _ => None,
        };
        let mut dispatched = None;
        if let Some(Blocked::Pause { request }) = request {
            let args: Args<'_> = request.args();
            dispatched = Some(self.dispatch(connection, Some(request.command), args));
            if dispatched == Some(Dispatched::Later) {
                self.block(connection, Blocked::Pause { request });
            } else {
                self.enqueue(connection);
            }
        }
        dispatched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_never_gets_shorter_or_milder() {
        let mut pause = Pause::default();
        pause.begin(Paused::All, MonotonicNanos(50));
        pause.begin(Paused::Writes, MonotonicNanos(20));
        assert_eq!(
            (pause.paused(), pause.deadline()),
            (Some(Paused::All), Some(MonotonicNanos(50)))
        );
        pause.begin(Paused::Writes, MonotonicNanos(90));
        assert_eq!(pause.deadline(), Some(MonotonicNanos(90)));
        pause.expire(MonotonicNanos(90));
        assert_eq!(pause.paused(), None);
    }
}
