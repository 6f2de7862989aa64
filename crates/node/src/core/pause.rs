//! CLIENT PAUSE: requests wait, with their clients, until the pause ends (Redis documentation,
//! CLIENT PAUSE).
//!
//! While it lasts no key expires or is evicted either, so that the data set stands still.

use super::Core;
use base::{ConnectionId, MonotonicNanos};
use std::collections::VecDeque;

/// The length from which the list of waiting clients is cleared of those that have left, beside
/// twice the number of clients. A guess.
const LEFT_MAX: usize = 64;

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
    /// Whose request waits for the end.
    waiting: VecDeque<ConnectionId>,
    /// A planned failover is under way: writes wait as well.
    pub(crate) is_failing_over: bool,
    /// Whose requests wait in its input, where the place in the master's stream is known.
    waiting_inputs: Vec<ConnectionId>,
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
        self.paused().is_none() && (!self.waiting.is_empty() || !self.waiting_inputs.is_empty())
    }

    /// A client's input waits for the end, unparsed.
    pub fn add_input(&mut self, client: ConnectionId) {
        self.waiting_inputs.push(client);
    }

    /// A client's request waits for the end. Clients that leave meanwhile stay in the list, and
    /// there may be any number of them: they are cleared away when it is long beside `clients`.
    fn wait(
        &mut self,
        client: ConnectionId,
        clients: usize,
        is_there: impl Fn(ConnectionId) -> bool,
    ) {
        if self.waiting.len() > 2 * clients + LEFT_MAX {
            self.waiting.retain(|id| is_there(*id));
        }
        self.waiting.push_back(client);
    }

    fn expire(&mut self, now: MonotonicNanos) {
        self.until = self.until.filter(|(_, until)| *until > now);
    }
}

impl Core {
    /// A client's request waits for the end of the pause, without limit of time.
    pub(crate) fn wait_for_pause(&mut self, client: ConnectionId) -> Option<MonotonicNanos> {
        let (sessions, clients) = (&self.clients.sessions, self.clients.by_id.len());
        self.pause.wait(client, clients, |id| sessions.get(id).is_some());
        None
    }

    /// Whether clients that waited for the end of the pause go on in the next turn.
    pub(crate) fn resumes_after_pause(&self) -> bool {
        self.pause.is_just_over() && self.may_execute()
    }

    /// Nothing is executed behind the last record of a holder that hands over.
    pub(crate) fn may_execute(&self) -> bool {
        self.stopping.is_none() && !self.leadership.roles.has_yielded()
    }

    /// Lets the clients go on if the pause is over, in the order in which they came.
    pub(crate) fn resume_after_pause(&mut self) {
        self.pause.expire(self.turn.monotonic);
        if self.pause.paused().is_some() || !self.may_execute() {
            return;
        }
        self.clients.resuming.append(&mut self.pause.waiting);
        for client in std::mem::take(&mut self.pause.waiting_inputs) {
            let session = self.clients.sessions.get(client);
            if session.is_some_and(|session| !session.input.is_empty()) {
                self.enqueue(client);
            }
        }
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

    #[test]
    fn clients_that_left_are_not_kept_for_the_whole_pause() {
        let mut pause = Pause::default();
        let stays = |id: ConnectionId| id.0.is_multiple_of(100);
        for id in 1..=10_000 {
            // Of those that came so far, one in a hundred is there.
            pause.wait(ConnectionId(id), id as usize / 100, stays);
            let most = 2 * (id as usize / 100) + LEFT_MAX + 1;
            assert!(pause.waiting.len() <= most, "{} wait", pause.waiting.len());
        }
        let left = pause.waiting.iter().filter(|id| stays(**id));
        assert_eq!(left.count(), 100, "who is there is waited for");
    }
}
