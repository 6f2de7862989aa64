//! A request's way through gate and execution to a held reply.

use crate::core::Core;
use crate::core::pause::Paused;
use crate::cross_protocol::is_http;
use crate::functions::Function;
use crate::gate::Verdict;
use crate::server::Server;
use crate::session::{Blocked, OwnedRequest, ReplyMode, Why};
use base::{ConnectionId, Sequence};
use catalog::{CommandId, Demand, Registered};
use engine::command::{Args, DataFn, Flags};
use engine::refusal::Refusal;
use engine::unit::Context;
use shard::Shard;

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
    /// Whether a request must wait for the end of the pause.
    fn must_pause(&self, client: ConnectionId, command: &Registered) -> bool {
        let session = self.clients.at(client);
        match self.pause.paused() {
            None => false,
            // Who waits for them to catch up waits during a pause.
            _ if session.is_replica() => false,
            // Its requests wait in its input, where the place in the stream is known.
            _ if session.is_master() => false,
            Some(Paused::All) => true,
            Some(Paused::Writes) => self.demand(client, command).has(Demand::REPLICATION),
        }
    }

    /// Replaces whatever the command wrote by its refusal.
    pub(crate) fn refuse(&mut self, client: ConnectionId, written: u64, refusal: &Refusal) {
        self.process.statistics.error(refusal.code());
        if self.clients.at(client).is_master() {
            self.master_refused.get_or_insert_with(|| refusal.0.to_string());
        }
        self.clients.at_mut(client).output.truncate(written);
        self.clients.reply(client).error(refusal.0.as_bytes());
    }

    /// The record that the unit's reply waits for; dirties the watchers of what it changed.
    pub(crate) fn settle_unit(&mut self) -> Sequence {
        let observed = self.shard.settle_unit(self.turn.now);
        self.stream.gather(&self.shard.unit);
        if !self.clients.told_monitors.is_empty() {
            self.hold_monitors();
        }
        let garbage = std::mem::take(&mut self.shard.unit.garbage);
        self.discard(garbage);
        if !self.clients.ended.is_empty() {
            self.hold_ended(observed.max(self.shard.newest_executed()));
        }
        observed
    }

    /// Delivers a unit's messages and dirties the sessions that watch what it changed.
    /// `sender` is the client whose request the unit was.
    pub(crate) fn spread(&mut self, observed: Sequence, sender: Option<ConnectionId>) {
        if self.interest.dirtied.is_empty() && self.interest.messages.is_empty() {
            return;
        }
        for watcher in std::mem::take(&mut self.interest.dirtied) {
            if self.guards.note_changed(watcher) {
                continue;
            }
            if let Some(session) = self.clients.sessions.get_mut(ConnectionId(watcher.0)) {
                session.is_dirty = true;
            }
        }
        let messages = std::mem::take(&mut self.interest.messages);
        if !messages.is_empty() {
            self.cut_overdrawn();
            self.publish(&messages, observed, sender);
        }
    }

    /// Holds what was written behind the stream offset `written` until `observed` is durable, as
    /// CLIENT REPLY says.
    pub(crate) fn finish_reply(&mut self, client: ConnectionId, written: u64, observed: Sequence) {
        if self.clients.at(client).is_replica() && self.clients.at(client).output.end() > written {
            // It would stand between the commands that the replica is told.
            tracing::warn!(
                client = self.clients.at(client).id,
                "a replica sent a request: disconnected"
            );
            self.clients.at_mut(client).output.truncate(written);
            self.close_session(client);
        }
        if self.clients.at_mut(client).output.take_over() {
            // Replies that were set aside in EXEC, and headers.
            self.clients.at_mut(client).output.truncate(written);
            if !matches!(self.clients.at(client).reply_mode, ReplyMode::Off | ReplyMode::Skip) {
                self.cut_off(client);
            }
        }
        match self.clients.at(client).reply_mode {
            ReplyMode::On => {}
            ReplyMode::Off => self.clients.at_mut(client).output.truncate(written),
            ReplyMode::Skip => {
                self.clients.at_mut(client).output.truncate(written);
                self.clients.at_mut(client).reply_mode = ReplyMode::On;
            }
            ReplyMode::SkipNext => self.clients.at_mut(client).reply_mode = ReplyMode::Skip,
        }
        if !self.clients.at(client).pushes.is_empty() {
            let pushes = std::mem::take(&mut self.clients.at_mut(client).pushes);
            self.clients.reply(client).raw(&pushes);
        }
        self.hold(client, observed);
    }
}

impl Server {
    /// Takes one request through the gate and executes it.
    pub(crate) fn dispatch(
        &mut self,
        client: ConnectionId,
        command: Option<CommandId>,
        args: Args<'_>,
    ) -> Dispatched {
        let written = self.core.clients.at(client).output.end();
        let catalog = self.core.process.catalog;
        let known = command.map(|id| catalog.command(id));
        if self.core.turn.asleep_until > self.core.turn.monotonic {
            return Dispatched::Later;
        }
        if known.is_none() && !self.core.clients.at(client).is_master() && is_http(args.at(0)) {
            self.end_cross_protocol(client);
            return Dispatched::Stop;
        }
        self.core.clients.at_mut(client).last_command = command;
        let verdict = self.judge(client, known, args);
        let queues = known.is_some_and(|command| {
            self.core.clients.at(client).transaction.is_some()
                && !command.flags.contains(Flags::RUNS_INSIDE_MULTI)
        });
        match verdict {
            Verdict::Later => return Dispatched::Later,
            Verdict::Refuse(refusal) => {
                if let Some(transaction) = &mut self.core.clients.at_mut(client).transaction {
                    transaction.is_broken = true;
                }
                if let Some(id) = command {
                    self.core.process.statistics.command(id).rejected += 1;
                }
                let refusal = match known {
                    Some(command) if command.flags.contains(Flags::EXECUTES_QUEUE) => {
                        self.core.discard_transaction(client);
                        exec_abort(&refusal)
                    }
                    _ => refusal,
                };
                self.core.refuse(client, written, &refusal);
                self.core.finish_reply(client, written, Sequence::ZERO);
                return Dispatched::Done;
            }
            Verdict::Run => {}
        }
        let Some(id) = command else { return Dispatched::Done };
        if known.is_some_and(|command| self.core.must_pause(client, command)) {
            self.core.pause.add(client);
            let request = OwnedRequest::new(id, args);
            self.core.park(client, Why::Pause, request, None);
            return Dispatched::Stop;
        }
        if !queues
            && known.is_some_and(|command| self.must_wait_for_migration(client, command, args))
        {
            self.wait_for_migration(client, OwnedRequest::new(id, args));
            return Dispatched::Stop;
        }
        if !queues && known.is_some_and(|command| self.must_learn_newest(client, command)) {
            self.wait_for_newest(client, OwnedRequest::new(id, args));
            return Dispatched::Stop;
        }
        if queues {
            return self.queue(client, written, OwnedRequest::new(id, args));
        }
        self.core.shard.unit.clear();
        let context = self.core.context(client);
        self.call(client, id, args, context);
        self.finish_unit(client, written, || OwnedRequest::new(id, args))
    }

    /// Judges the parked requests again of those who need not wait any more, in the order in which
    /// that came about.
    pub(crate) fn execute_resuming(&mut self) {
        for client in std::mem::take(&mut self.core.clients.resuming) {
            let session = self.core.clients.sessions.get(client);
            let blocked = session.and_then(|session| session.blocked.as_ref());
            if !matches!(blocked, Some(Blocked::Parked { .. })) {
                continue;
            }
            let Some(Blocked::Parked { why, request, deadline }) = self.core.unblock(client) else {
                continue;
            };
            self.core.clients.at_mut(client).newest.is_confirmed = why == Why::Newest;
            let dispatched = self.dispatch(client, Some(request.command), request.args());
            self.core.clients.at_mut(client).newest.is_confirmed = false;
            if dispatched == Dispatched::Later {
                self.core.park(client, why, request, deadline);
                self.core.clients.resuming.push_back(client);
            } else {
                self.core.enqueue(client);
            }
        }
    }

    /// Keeps a request of a transaction until EXEC. A client that has more kept than the limit
    /// allows is disconnected.
    fn queue(&mut self, client: ConnectionId, written: u64, request: OwnedRequest) -> Dispatched {
        let demand = self.core.process.catalog.command(request.command).demand;
        if let Some(transaction) = &mut self.core.clients.at_mut(client).transaction {
            transaction.queue(request, demand);
        }
        if self.core.check_input(client) {
            return Dispatched::Stop;
        }
        self.core.clients.reply(client).simple("QUEUED");
        self.core.finish_reply(client, written, Sequence::ZERO);
        Dispatched::Done
    }

    /// Runs one command within the current unit and writes its reply or refusal.
    pub(crate) fn call(
        &mut self,
        client: ConnectionId,
        id: CommandId,
        args: Args<'_>,
        mut context: Context,
    ) {
        let written = self.core.clients.at(client).output.end();
        let command = self.core.process.catalog.command(id);
        context.reads_every_key = self.core.reads_every_key(client, command, args);
        if command.flags.contains(Flags::WHOLE_KEYSPACE) {
            self.core.shard.unit.whole = true;
        }
        let began = self.core.turn.lap;
        self.core.bound_reply(client);
        // EXEC is shown behind what it runs, as in Redis.
        let is_shown = !context.retry && !command.flags.intersects(NOT_MONITORED);
        let is_monitored = !self.core.clients.monitors.is_empty() && is_shown;
        let is_exec = is_monitored && command.flags.contains(Flags::EXECUTES_QUEUE);
        if is_monitored && !is_exec {
            self.core.tell_monitors(client, args);
        }
        let outcome = match self.functions.of(id) {
            Some(Function::Data(function)) => self.run_data(client, &function, args, context),
            Some(Function::Session(function)) => function(self, client, args),
            None => Ok(()),
        };
        let is_failed = outcome.is_err();
        if let Err(refusal) = outcome {
            self.core.refuse(client, written, &refusal);
        }
        self.core.clients.at_mut(client).output.unbound();
        if is_exec {
            self.core.tell_monitors(client, args);
        }
        // A call that waits is counted when it ends.
        if self.core.shard.unit.wait.is_none() {
            self.core.count_call(client, command, args, began, is_failed);
        }
    }

    fn run_data(
        &mut self,
        client: ConnectionId,
        function: &DataFn,
        args: Args<'_>,
        context: Context,
    ) -> Result<(), Refusal> {
        let Core { shard: Shard { engine, unit, .. }, interest, clients, .. } = &mut self.core;
        let reply = clients.reply(client);
        engine.run(function, context, args, reply, unit, interest)
    }

    /// Ends the unit: notes what it wrote, holds its reply, delivers its messages, wakes whom it
    /// may serve. `request` is what to run again if the command waits.
    pub(crate) fn finish_unit(
        &mut self,
        client: ConnectionId,
        written: u64,
        request: impl FnOnce() -> OwnedRequest,
    ) -> Dispatched {
        let observed = self.core.settle_unit();
        if self.core.shard.unit.changes > 0 {
            self.core.clients.at_mut(client).fed_offset = self.core.stream.offset;
            self.core.clients.at_mut(client).wrote = observed;
        }
        if let Some(wait) = self.core.shard.unit.wait.take() {
            let deadline =
                wait.wait_millis.map(|millis| self.core.turn.monotonic.after_millis(millis));
            self.core.block(client, Blocked::Keys { request: request(), wait, deadline });
        } else if self.core.clients.at(client).blocked.is_none() {
            // Else its reply is still to come.
            self.core.finish_reply(client, written, observed);
        }
        self.core.spread(observed, Some(client));
        self.wake_ready();
        if self.core.clients.at(client).is_closing || self.core.clients.at(client).blocked.is_some()
        {
            return Dispatched::Stop;
        }
        Dispatched::Done
    }

    /// Tells those who listen of what this process applied as a replica: it is durable. Only
    /// requests that read can wait for a key here.
    pub(crate) fn spread_applied(&mut self) {
        if self.core.interest.has_notices() {
            self.core.spread(Sequence::ZERO, None);
            self.wake_ready();
        }
    }
}

/// Commands that MONITOR does not show.
const NOT_MONITORED: Flags = Flags::SKIP_MONITOR.union(Flags::ADMIN);

/// What EXEC says when it is refused itself: the transaction is over, whatever the reason.
fn exec_abort(refusal: &Refusal) -> Refusal {
    let reason = refusal.0.strip_prefix("ERR ").unwrap_or(&refusal.0);
    Refusal::new(format!("EXECABORT Transaction discarded because of: {reason}"))
}
