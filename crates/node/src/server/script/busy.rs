//! Requests of others while a script is suspended: BUSY, SCRIPT KILL, FUNCTION STATS, and a clean
//! stop that waits for its end.

use super::suspended::Suspended;
use super::{Script, Server};
use base::MonotonicNanos;
use base::time::{MILLISECOND, SECOND};
use engine::refusal::Refusal;
use lua::CodeKind;
use std::rc::Rc;

/// How long a script or a transaction may run on a replica of the log, in nanoseconds: as long as a
/// primary renews its lease amid a command.
const REPLICA_UNIT_NANOS_MAX: u64 = 60 * SECOND;

/// The error of what has run for [`REPLICA_UNIT_NANOS_MAX`] on a replica of the log.
pub(crate) const TOO_LONG_ON_REPLICA: &str =
    "ERR the script or transaction kept a replica from following the log for 60 seconds";
const _: () = assert!(REPLICA_UNIT_NANOS_MAX == 60 * SECOND, "the text says so");

impl Server {
    /// Notes that the script has run for so long that others are told BUSY.
    pub(super) fn judge_busy(&mut self, script: &mut Script) {
        let threshold_ms = self.core.process.settings.busy_reply_threshold_ms;
        let now = self.core.process.options.clock.monotonic();
        let ran_ms = now.since(script.started) / MILLISECOND;
        if script.is_busy || threshold_ms == 0 || ran_ms < threshold_ms {
            return;
        }
        script.is_busy = true;
        let (name, killed_by) = (&*script.name, kill_command(script.kind));
        tracing::warn!(ran_ms, name, "Slow script detected: {killed_by} ends it");
    }

    /// Whether a unit that began at `began` has kept a replica of the log from applying records,
    /// and from standing for leadership, for a very long time. False on a primary.
    pub(crate) fn holds_replica_up(&self, began: MonotonicNanos) -> bool {
        self.core.is_following()
            && self.core.process.options.clock.monotonic().since(began) >= REPLICA_UNIT_NANOS_MAX
    }

    /// Ends a script whose unit has held a replica up.
    pub(super) fn end_on_replica(&self, suspended: &mut Suspended) {
        if suspended.killed.is_none() && self.holds_replica_up(suspended.began()) {
            tracing::warn!(name = &*suspended.script.name, "ends a script: it stops the replica");
            suspended.killed = Some(TOO_LONG_ON_REPLICA);
        }
    }

    /// The refusal for other clients while a script runs for long, if one does.
    pub(crate) fn busy_refusal(&self) -> Option<Refusal> {
        let suspended = self.suspended.as_ref().filter(|it| it.aside.is_some())?;
        Some(busy(suspended.script.kind))
    }

    /// Whether requests are executed: not while a script is suspended and others are not yet told
    /// BUSY.
    pub(crate) fn takes_requests(&self) -> bool {
        self.suspended.as_ref().is_none_or(|it| it.script.is_busy)
    }

    /// SCRIPT KILL, FUNCTION KILL: kills the running script or function.
    ///
    /// # Errors
    /// None is running, or it may not be killed; in Redis's words.
    pub(crate) fn kill_script(&mut self, kind: CodeKind) -> Result<(), Refusal> {
        let Some(suspended) = &mut self.suspended else {
            return Err(Refusal::of("NOTBUSY No scripts in execution right now."));
        };
        if suspended.script.is_master() {
            return Err(UNKILLABLE_OF_MASTER);
        }
        if suspended.script.has_written {
            return Err(UNKILLABLE);
        }
        if suspended.script.kind != kind {
            return Err(busy(suspended.script.kind));
        }
        suspended.killed = Some("ERR Script killed by user with SCRIPT KILL...");
        Ok(())
    }

    /// The suspended function, if there is one.
    ///
    /// # Errors
    /// A script is running, not a function.
    pub(crate) fn running_function(&self) -> Result<Option<RunningFunction>, Refusal> {
        let Some(suspended) = &self.suspended else { return Ok(None) };
        if suspended.script.kind == CodeKind::Scripts {
            return Err(busy(CodeKind::Scripts));
        }
        let request = suspended.calls.first().map(|(_, request)| request);
        let command = request
            .map_or_else(Vec::new, |request| request.args().iter().map(<[u8]>::to_vec).collect());
        let nanos = self.core.turn.monotonic.since(suspended.script.started);
        let (name, millis) = (Rc::clone(&suspended.script.name), (nanos / 1_000_000) as i64);
        Ok(Some(RunningFunction { name, command, millis }))
    }

    /// Whether a clean stop must wait for a script. A script that has written nothing is killed
    /// instead.
    pub(crate) fn waits_for_script(&mut self) -> bool {
        let Some(suspended) = &mut self.suspended else { return false };
        if !suspended.script.has_written {
            suspended.killed.get_or_insert("ERR the server stops");
        }
        !suspended.is_given_up
    }
}

/// A running function.
pub(crate) struct RunningFunction {
    pub name: Rc<str>,
    /// The request of its client.
    pub command: Vec<Vec<u8>>,
    /// How long it has run, in milliseconds.
    pub millis: i64,
}

/// The command that kills a script or a function.
fn kill_command(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Scripts => "SCRIPT KILL",
        CodeKind::Functions => "FUNCTION KILL",
    }
}

/// The refusal for other clients while a script or a function runs for long.
fn busy(kind: CodeKind) -> Refusal {
    Refusal::new(format!(
        "BUSY Redis is busy running a script. You can only call {} or SHUTDOWN NOSAVE.",
        kill_command(kind)
    ))
}

const UNKILLABLE: Refusal = Refusal::of(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
     either wait the script termination or kill the server in a hard way using the SHUTDOWN \
     NOSAVE command.",
);
const UNKILLABLE_OF_MASTER: Refusal = Refusal::of(
    "UNKILLABLE The busy script was sent by a master instance in the context of replication and \
     cannot be killed.",
);
