//! Suspended scripts: the unit of a script that runs for longer than it may at once is laid aside,
//! and the loop turns on.
//!
//! Its effects are in memory and not in the log, and its unit is not over. So nothing else may
//! touch the keyspace meanwhile: no request but the few with the flag ALLOW_BUSY, no expiry, no
//! eviction, no snapshot, no migration. All of that waits for the script's end, as in Redis. What
//! goes on: the log is polled, the lease is renewed, replies leave, connections are accepted. When
//! the script has run for `busy-reply-threshold`, other clients are told BUSY.
//!
//! ```text
//! turn: events → log, lease → BUSY, SCRIPT KILL → a slice of the script → append, send
//! ```
//! The time does not advance for it, nor in the records that renew the lease: with a later time in
//! a record, a replica would expire keys that the script still sees.
//!
//! A replica of the log applies no records while a script reads from it, and does not stand for
//! leadership, as within any long command. So there a script ends after a minute, and with it the
//! rest of its transaction.
//!
//! Whatever ends this life of the process ends the script: its effects are lost with the memory,
//! and nobody was told of them.

use super::{Script, Server};
use crate::core::clients::Monitored;
use crate::server::dispatch::Call;
use crate::server::queue::Queue;
use crate::session::{Blocked, OwnedRequest};
use base::{ConnectionId, Event, MonotonicNanos};
use engine::interest::Notices;
use engine::unit::{Context, Unit};
use txlog::record;

/// A suspended unit with its script.
pub(crate) struct Suspended {
    pub script: Script,
    /// The calls that have not ended: the script's command, and the EXEC around it.
    pub(super) calls: Vec<(Call, OwnedRequest)>,
    /// The rest of the transaction.
    queue: Option<Queue>,
    /// The unit's state; `None` until the unit is laid aside.
    pub(super) aside: Option<Box<Aside>>,
    /// The replies of the transaction before the script; and whether they exceeded their limit.
    answered: (Vec<u8>, bool),
    /// Events of connections that the server dialed, which wait for the script's end.
    events: Vec<Event>,
    /// The error with which it is killed, if it is.
    pub(super) killed: Option<&'static str>,
    /// The process stops without waiting for it.
    pub(super) is_given_up: bool,
    /// Tracking clients are told to drop everything when it has ended.
    drops_caches: bool,
}

/// The state of the core that belongs to one unit.
pub(super) struct Aside {
    unit: Unit,
    notices: Notices,
    ended: Vec<(ConnectionId, u64)>,
    monitored: Monitored,
    begun: Option<Context>,
}

impl Suspended {
    /// When the unit began: the script, or the EXEC around it.
    pub(super) fn began(&self) -> MonotonicNanos {
        self.queue.as_ref().map_or(self.script.started, |queue| queue.began)
    }
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
    /// Begins to suspend a script that took as long as it may at once. The unit is laid aside when
    /// the functions that called it have returned.
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

    /// Tells every tracking client to drop its whole cache: now, or after the running script, which
    /// may have read keys that its client is yet to be told about.
    pub(crate) fn drop_caches(&mut self) {
        match &mut self.suspended {
            Some(suspended) => suspended.drops_caches = true,
            None => self.core.drop_caches(),
        }
    }

    /// Whether a script's unit is suspended: then the keyspace holds changes that the log does not
    /// have.
    pub fn is_amid_script(&self) -> bool {
        self.suspended.is_some()
    }

    /// Whether the running unit will be laid aside when its calls have returned.
    pub(crate) fn is_suspending(&self) -> bool {
        self.suspended.as_ref().is_some_and(|suspended| suspended.aside.is_none())
    }

    /// Keeps a call that goes on when the script does.
    pub(crate) fn leave_call(&mut self, call: Call, request: OwnedRequest) {
        if let Some(suspended) = &mut self.suspended {
            suspended.calls.push((call, request));
        }
    }

    /// Keeps the rest of a transaction for the time when the script has ended.
    pub(crate) fn leave_queue(&mut self, queue: Queue) {
        if let Some(suspended) = &mut self.suspended {
            suspended.queue = Some(queue);
        }
    }

    /// Lays the running unit aside. The replies of its client so far are behind the offset
    /// `written` of the output.
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

    /// Exchanges the state of the script's unit with that of the unit in its place.
    fn exchange(&mut self, suspended: &mut Suspended) {
        let Some(aside) = &mut suspended.aside else { return };
        let core = &mut self.core;
        std::mem::swap(&mut core.shard.unit, &mut aside.unit);
        let notices = core.interest.take_notices();
        core.interest.put_notices(std::mem::replace(&mut aside.notices, notices));
        std::mem::swap(&mut core.clients.ended, &mut aside.ended);
        std::mem::swap(&mut core.clients.monitored, &mut aside.monitored);
        std::mem::swap(&mut core.begun, &mut aside.begun);
        // Replicas of Redis may have come or gone meanwhile.
        let is_followed = aside.unit.feed.is_on();
        if core.shard.unit.feed.is_on() != is_followed {
            core.shard.unit.feed.switch(is_followed);
        }
    }

    /// Runs the script for as long as it may at once.
    pub(crate) fn go_on_with_script(&mut self) {
        if self.suspended.as_ref().is_none_or(|it| it.is_given_up) {
            return;
        }
        let Some(mut suspended) = self.suspended.take() else { return };
        self.exchange(&mut suspended);
        self.end_on_replica(&mut suspended);
        if let Some(why) = suspended.killed {
            self.interpreter(suspended.script.kind).kill(why);
        }
        self.core.begin_lap();
        let began = self.core.turn.lap;
        match self.drive(&mut suspended.script, began) {
            Some(ending) => self.end_suspended(*suspended, ending),
            None => {
                self.exchange(&mut suspended);
                self.judge_busy(&mut suspended.script);
                self.suspended = Some(suspended);
            }
        }
    }

    /// Ends the script: returns to its callers, and ends the unit.
    fn end_suspended(&mut self, suspended: Suspended, ending: lua::Ending) {
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
            let outcome = self.answer_script(&script, ending);
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

    /// Gives up the running script: the process stops without it. Its effects are lost, and nobody
    /// was told of them.
    pub(crate) fn give_script_up(&mut self) {
        if let Some(suspended) = &mut self.suspended {
            tracing::warn!(
                name = &*suspended.script.name,
                "stops amid a script, which did nothing"
            );
            suspended.is_given_up = true;
        }
    }

    /// Keeps an event of a dialed connection until the script has ended: a feature may touch keys
    /// when it handles it.
    pub(crate) fn defer(&mut self, event: Event) {
        if let Some(suspended) = &mut self.suspended
            && !suspended.events.contains(&event)
        {
            suspended.events.push(event);
        }
    }

    /// Whether a connection may be closed while a script is suspended.
    pub(crate) fn is_free_of_script(&self, connection: ConnectionId) -> bool {
        let is_client = self.core.clients.has(connection);
        self.suspended.is_some() && is_client && !self.is_needed_by_script(connection)
    }

    /// Whether a connection's session is needed until the script has ended.
    pub(crate) fn is_needed_by_script(&self, connection: ConnectionId) -> bool {
        self.suspended.as_ref().is_some_and(|suspended| {
            let is_master = |session: &crate::session::Session| session.is_master();
            suspended.script.client() == connection
                || self.core.clients.sessions.get(connection).is_some_and(is_master)
        })
    }
}
