//! A script that runs for longer than a turn: its unit lies aside, and the loop turns on.
//!
//! What it did is in memory and not in the log, and its unit is not over. So nothing else may
//! touch the keyspace meanwhile: no request but the few that may while a script runs (ALLOW_BUSY),
//! no expiry, no eviction, no snapshot, no migration. All of that waits for the script's end, as it
//! does in Redis. What goes on is what others were promised: the log is polled, the lease is
//! renewed, replies leave, connections are accepted. Once the script has run for
//! `busy-reply-threshold`, those who ask are told BUSY.
//!
//! ```text
//! turn: events → log, lease → BUSY, SCRIPT KILL → a slice of the script → append, send
//! ```
//! Time stands still for it, and so does the clock in the records that renew the lease: a replica
//! that was told a later one would let keys go that the script still sees.
//!
//! A replica of the log applies nothing while a script reads from it, and stands for nothing: as
//! amid any long command.
//!
//! Whatever ends this life of the process ends the script with it: what it had done is gone with
//! the memory, and nobody was told of it.

use super::{Script, Server};
use crate::core::clients::Monitored;
use crate::server::dispatch::Call;
use crate::server::queue::Queue;
use crate::session::{Blocked, OwnedRequest};
use base::time::MILLISECOND;
use base::{ConnectionId, Event};
use engine::interest::Notices;
use engine::refusal::Refusal;
use engine::unit::{Context, Unit};
use lua::Kind;
use txlog::record;

/// A unit that lies aside, with the script amid it.
pub(crate) struct Suspended {
    pub script: Script,
    /// The calls that have not ended: of the script's command, and of the EXEC around it.
    calls: Vec<(Call, OwnedRequest)>,
    /// What is left to do of the transaction.
    queue: Option<Queue>,
    /// `None` until the unit was laid aside.
    aside: Option<Box<Aside>>,
    /// What its client was answered so far by the transaction; whether it was too much.
    answered: (Vec<u8>, bool),
    /// What happened to connections that the server asked for.
    events: Vec<Event>,
    /// Why it is to end, if it is.
    killed: Option<&'static str>,
    /// The process ends, and does not wait for it.
    is_given_up: bool,
    /// Caches are to drop everything when it has ended.
    drops_caches: bool,
}

/// What belongs to a unit until its end.
struct Aside {
    unit: Unit,
    notices: Notices,
    ended: Vec<(ConnectionId, u64)>,
    monitored: Monitored,
    begun: Option<Context>,
}

impl Aside {
    fn empty() -> Self {
        Self {
            unit: Unit::new(record::HEADER_BYTES),
            notices: Notices::default(),
            ended: Vec::new(),
            monitored: Monitored::default(),
            begun: None,
        }
    }
}

impl Server {
    /// A script took as long as a turn may take: its unit is laid aside when those who called it
    /// have returned.
    pub(super) fn begin_to_suspend(&mut self, script: Script) {
        self.suspended = Some(Box::new(Suspended {
            script,
            calls: Vec::new(),
            queue: None,
            aside: None,
            answered: (Vec::new(), false),
            events: Vec::new(),
            killed: None,
            is_given_up: false,
            drops_caches: false,
        }));
    }

    /// Everybody drops what they cached: at once, or behind what a script that runs has read, which
    /// its client has yet to hear.
    pub(crate) fn drop_caches(&mut self) {
        match &mut self.suspended {
            Some(suspended) => suspended.drops_caches = true,
            None => self.core.drop_caches(),
        }
    }

    /// Whether the unit of a script is not over: what the keyspace holds is not what the log says.
    pub fn is_amid_script(&self) -> bool {
        self.suspended.is_some()
    }

    /// Whether the running unit is about to be laid aside.
    pub(crate) fn is_suspending(&self) -> bool {
        self.suspended.as_ref().is_some_and(|suspended| suspended.aside.is_none())
    }

    /// Notes a call that goes on when the script does.
    pub(crate) fn leave_call(&mut self, call: Call, request: OwnedRequest) {
        if let Some(suspended) = &mut self.suspended {
            suspended.calls.push((call, request));
        }
    }

    /// Notes what is left to do of a transaction when the script has ended.
    pub(crate) fn leave_queue(&mut self, queue: Queue) {
        if let Some(suspended) = &mut self.suspended {
            suspended.queue = Some(queue);
        }
    }

    /// Lays the running unit aside. What its client was answered stands behind the offset `written`
    /// of its output.
    pub(crate) fn suspend(&mut self, client: ConnectionId, written: u64) {
        let Some(mut suspended) = self.suspended.take() else { return };
        let output = &mut self.core.clients.at_mut(client).output;
        output.unbound();
        let is_over = output.take_over();
        suspended.answered = (output.take_back(written), is_over);
        suspended.aside = Some(Box::new(Aside::empty()));
        self.core.block(client, Blocked::Script);
        self.core.leadership.stand_still(true);
        self.exchange(&mut suspended);
        self.suspended = Some(suspended);
    }

    /// Exchanges what belongs to the script's unit with what lies in its place.
    fn exchange(&mut self, suspended: &mut Suspended) {
        let Some(aside) = &mut suspended.aside else { return };
        let core = &mut self.core;
        std::mem::swap(&mut core.shard.unit, &mut aside.unit);
        let notices = core.interest.take_notices();
        core.interest.put_notices(std::mem::replace(&mut aside.notices, notices));
        std::mem::swap(&mut core.clients.ended, &mut aside.ended);
        std::mem::swap(&mut core.clients.monitored, &mut aside.monitored);
        std::mem::swap(&mut core.begun, &mut aside.begun);
        // Those who follow may have gone meanwhile.
        let is_followed = aside.unit.feed.is_on();
        if core.shard.unit.feed.is_on() != is_followed {
            core.shard.unit.feed.switch(is_followed);
        }
    }

    /// Goes on with the script for as long as a turn may take.
    pub(crate) fn go_on_with_script(&mut self) {
        if self.suspended.as_ref().is_none_or(|it| it.is_given_up) {
            return;
        }
        let Some(mut suspended) = self.suspended.take() else { return };
        self.exchange(&mut suspended);
        if let Some(why) = suspended.killed {
            self.interpreter(suspended.script.kind).kill(why);
        }
        self.core.turn.lap = self.core.process.options.clock.monotonic();
        match self.drive(&mut suspended.script) {
            Some(outcome) => self.end_suspended(*suspended, outcome),
            None => {
                self.exchange(&mut suspended);
                self.judge_busy(&mut suspended.script);
                self.suspended = Some(suspended);
            }
        }
    }

    /// Whether a script has run for so long that others are told.
    fn judge_busy(&mut self, script: &mut Script) {
        let threshold_ms = self.core.process.settings.busy_reply_threshold_ms;
        let now = self.core.process.options.clock.monotonic();
        let ran_ms = now.since(script.started) / MILLISECOND;
        if script.is_busy || threshold_ms == 0 || ran_ms < threshold_ms {
            return;
        }
        script.is_busy = true;
        let (name, killed_by) = (&script.name, kill_command(script.kind));
        tracing::warn!(ran_ms, name, "Slow script detected: {killed_by} ends it");
    }

    /// The script has ended: goes on with those who called it, and ends the unit.
    fn end_suspended(&mut self, suspended: Suspended, outcome: lua::Outcome) {
        let Suspended { script, calls, queue, answered, events, drops_caches, .. } = suspended;
        let client = script.client();
        self.deferred.extend(events);
        self.core.leadership.stand_still(false);
        self.core.unblock(client);
        let (answered, is_over) = answered;
        let output = &mut self.core.clients.at_mut(client).output;
        let written = output.end();
        output.reply.raw(&answered);
        output.note_over(is_over);
        let mut calls = calls.into_iter();
        if let Some((mut call, request)) = calls.next() {
            call.written = self.core.begin_reply(client);
            let outcome = self.answer_script(&script, outcome);
            self.end_call(client, call, request.args(), outcome);
        }
        if let Some(queue) = queue {
            self.run_queue(client, queue);
        }
        if self.is_suspending() {
            calls.for_each(|(call, request)| self.leave_call(call, request));
            if drops_caches {
                self.drop_caches();
            }
            return self.suspend(client, written);
        }
        for (call, request) in calls {
            self.end_call(client, call, request.args(), Ok(()));
        }
        self.core.end_caching(client, None);
        self.finish_unit(client, written, None);
        if drops_caches {
            self.drop_caches();
        }
        self.core.enqueue(client);
    }

    /// What others are told while a script runs for long, if one does.
    pub(crate) fn busy_refusal(&self) -> Option<Refusal> {
        let suspended = self.suspended.as_ref().filter(|it| it.aside.is_some())?;
        Some(busy(suspended.script.kind))
    }

    /// Whether requests are executed: not while a script runs of which others are not yet told.
    pub(crate) fn takes_requests(&self) -> bool {
        self.suspended.as_ref().is_none_or(|it| it.script.is_busy)
    }

    /// Ends the script that runs for long, which SCRIPT KILL or FUNCTION KILL asks for.
    ///
    /// # Errors
    /// There is none, or it may not be ended; in Redis's words.
    pub(crate) fn kill_script(&mut self, kind: Kind) -> Result<(), Refusal> {
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

    /// The function that runs for long, if one does.
    ///
    /// # Errors
    /// It is a script.
    pub(crate) fn running_function(&self) -> Result<Option<RunningFunction>, Refusal> {
        let Some(suspended) = &self.suspended else { return Ok(None) };
        if suspended.script.kind == Kind::Scripts {
            return Err(busy(Kind::Scripts));
        }
        let request = suspended.calls.first().map(|(_, request)| request);
        let command = request
            .map_or_else(Vec::new, |request| request.args().iter().map(<[u8]>::to_vec).collect());
        let nanos = self.core.turn.monotonic.since(suspended.script.started);
        let (name, millis) = (suspended.script.name.clone(), (nanos / 1_000_000) as i64);
        Ok(Some(RunningFunction { name, command, millis }))
    }

    /// Whether a clean stop must wait for a script. One that has written nothing is ended.
    pub(crate) fn waits_for_script(&mut self) -> bool {
        let Some(suspended) = &mut self.suspended else { return false };
        if !suspended.script.has_written {
            suspended.killed.get_or_insert("ERR the server stops");
        }
        !suspended.is_given_up
    }

    /// The process ends without the script that runs: what it did is lost, and nobody was told of
    /// it.
    pub(crate) fn give_script_up(&mut self) {
        if let Some(suspended) = &mut self.suspended {
            tracing::warn!(name = suspended.script.name, "stops amid a script, which did nothing");
            suspended.is_given_up = true;
        }
    }

    /// Keeps an event for the end of the script, about a connection that the server asked for:
    /// what a feature does then may touch keys.
    pub(crate) fn defer(&mut self, event: Event) {
        if let Some(suspended) = &mut self.suspended
            && !suspended.events.contains(&event)
        {
            suspended.events.push(event);
        }
    }

    /// Whether a connection is a client's that may go amid a script.
    pub(crate) fn is_free_of_script(&self, connection: ConnectionId) -> bool {
        let is_client = self.core.clients.has(connection);
        self.suspended.is_some() && is_client && !self.is_needed_by_script(connection)
    }

    /// Whether a connection's session must be there until the script has ended.
    pub(crate) fn is_needed_by_script(&self, connection: ConnectionId) -> bool {
        self.suspended.as_ref().is_some_and(|suspended| {
            let is_master = |session: &crate::session::Session| session.is_master();
            suspended.script.client() == connection
                || self.core.clients.sessions.get(connection).is_some_and(is_master)
        })
    }
}

/// A function that runs for long.
pub(crate) struct RunningFunction {
    pub name: String,
    /// What its client asked for.
    pub command: Vec<Vec<u8>>,
    /// How long it has run, in milliseconds.
    pub millis: i64,
}

/// The command that ends a script or a function.
fn kill_command(kind: Kind) -> &'static str {
    match kind {
        Kind::Scripts => "SCRIPT KILL",
        Kind::Functions => "FUNCTION KILL",
    }
}

/// What others are told while a script or a function runs for long.
fn busy(kind: Kind) -> Refusal {
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
