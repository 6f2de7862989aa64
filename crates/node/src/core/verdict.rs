//! What is decided of a request before it executes, and what the log says to one that writes.

use super::Core;
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
        if self.is_snapshot_behind() {
            return Verdict::Later;
        }
        match self.shard.gate() {
            Gate::Open => Verdict::Run,
            Gate::Wait => Verdict::Later,
            Gate::Refuse(why) => Verdict::Refuse(Refusal::new(format!(
                "MISCONF Errors writing to the transaction log: {why}"
            ))),
        }
    }
}
