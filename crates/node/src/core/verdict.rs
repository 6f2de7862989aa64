//! What is decided of a request before it executes, and what the log says to one that writes.

use super::Core;
use catalog::{Kind, Registered};
use engine::command::Flags;
use engine::refusal::Refusal;
use txlog::Gate;

/// What a replica says that may not be written to (Redis 7.0).
pub(crate) const READ_ONLY: Refusal =
    Refusal::of("READONLY You can't write against a read only replica.");

/// What to do with a request.
pub enum Verdict {
    Run,
    Refuse(Refusal),
    /// Not now: the session's input stays where it is and is looked at again next turn.
    Later,
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dispatched {
    /// It was answered, queued or refused: go on with the next one.
    Done,
    /// The session waits, pauses or closes: leave the rest of its input.
    Stop,
    /// Not executed; look at it again next turn.
    Later,
}

impl Core {
    /// Whether the log takes a write now.
    pub(crate) fn judge_log(&self, writes: bool) -> Verdict {
        if !writes {
            return Verdict::Run;
        }
        match self.shard.gate() {
            Gate::Open if self.is_snapshot_behind() => Verdict::Later,
            Gate::Open => Verdict::Run,
            Gate::Wait => Verdict::Later,
            Gate::Refuse(why) => Verdict::Refuse(refused_by_log(&why)),
        }
    }

    /// Whether the log takes a request for data while replies wait for it. A log that refuses
    /// records may keep them waiting for long: when much is withheld, data are refused, so that
    /// what needs none is still answered. (A log that is merely busy stalls the loop instead.)
    pub(crate) fn judge_held(&self) -> Verdict {
        if !self.is_much_held() || !self.shard.is_in_flight() {
            return Verdict::Run;
        }
        match self.shard.gate() {
            Gate::Open | Gate::Wait => Verdict::Run,
            Gate::Refuse(why) => Verdict::Refuse(refused_by_log(&why)),
        }
    }

    /// Whether what was executed waits for a log that refuses records.
    pub(crate) fn waits_for_refusing_log(&self) -> bool {
        self.shard.is_in_flight() && matches!(self.shard.gate(), Gate::Refuse(_))
    }

    /// Whether nothing is to be executed, because too much is withheld.
    pub(crate) fn is_stalled_by_held(&self) -> bool {
        self.is_much_held() && self.shard.is_in_flight() && !self.waits_for_refusing_log()
    }
}

/// The refusal of a request that the log keeps from being executed.
pub(crate) fn refused_by_log(why: &txlog::Refusal) -> Refusal {
    Refusal::new(format!("MISCONF Errors writing to the transaction log: {why}"))
}

/// Whether a request of a command may touch keys.
pub(crate) fn needs_data(command: &Registered) -> bool {
    matches!(command.kind(), Kind::Read | Kind::Write)
        || command.flags.intersects(Flags::EXECUTES_QUEUE.union(Flags::RUNS_SCRIPT))
}
