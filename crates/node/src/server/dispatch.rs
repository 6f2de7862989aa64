//! A request's way through gate and execution to a held reply.

use crate::core::Core;
use crate::core::asker::Asker;
use crate::core::tier_waits::Cause;
use crate::core::verdict::{Dispatched, Verdict};
use crate::cross_protocol::is_http;
use crate::server::Server;
use crate::server::functions::Function;
use crate::server::gate::Pass;
use crate::session::{Blocked, OwnedRequest, Why};
use base::{ConnectionId, MonotonicNanos, Sequence};
use catalog::{CommandId, Demand, Registered};
use engine::command::{Args, DataFn, Flags, Outcome};
use engine::refusal::Refusal;
use engine::unit::Context;
use shard::Shard;

impl Server {
    /// Takes one request through the gate and executes it.
    pub(crate) fn dispatch(
        &mut self,
        client: ConnectionId,
        command: Option<CommandId>,
        args: Args<'_>,
    ) -> Dispatched {
        self.dispatch_next(client, command, args, &mut None)
    }

    /// As [`Self::dispatch`], for one of a batch of a client's requests: `pass` is what was found
    /// of the one before it, and becomes what holds for the next one.
    pub(crate) fn dispatch_next(
        &mut self,
        client: ConnectionId,
        command: Option<CommandId>,
        args: Args<'_>,
        pass: &mut Option<Pass>,
    ) -> Dispatched {
        let dispatched = self.execute(client, command, args, pass);
        if dispatched != Dispatched::Later {
            self.spill_all();
            self.core.end_caching(client, command);
        }
        dispatched
    }

    fn execute(
        &mut self,
        client: ConnectionId,
        command: Option<CommandId>,
        args: Args<'_>,
        pass: &mut Option<Pass>,
    ) -> Dispatched {
        let catalog = self.core.process.catalog;
        let known = command.map(|id| catalog.command(id));
        if let (Some(command), Some(pass)) = (known, &*pass)
            && self.passes_again(pass, client, command, args)
        {
            let context = pass.context;
            debug_assert!(self.would_run(client, command, args), "a pass that holds no more");
            let written = self.core.clients.at(client).output.end();
            return self.run_unit(client, written, command.id, args, context);
        }
        *pass = None;
        if self.core.turn.asleep_until > self.core.turn.monotonic {
            return Dispatched::Later;
        }
        if known.is_none() && !self.core.clients.at(client).is_master() && is_http(args.at(0)) {
            self.end_cross_protocol(client);
            return Dispatched::Stop;
        }
        let asker = self.core.asker(client);
        if self.suspended.is_some() && asker.is_master() {
            // A master's requests are never refused, so they wait for the end of the script.
            return Dispatched::Later;
        }
        self.core.clients.at_mut(client).last_command = command;
        let demand = known.map(|command| self.demand(client, command, args)).unwrap_or_default();
        let verdict = self.judge(&asker, known, demand, args);
        // Behind what the gate may have told this client of: keys that were evicted for it.
        let written = self.core.clients.at(client).output.end();
        let queues = known.is_some_and(|command| {
            asker.is_in_transaction && !command.flags.contains(Flags::RUNS_INSIDE_MULTI)
        });
        match verdict {
            Verdict::Run => {}
            Verdict::Later => return self.put_off(),
            Verdict::Refuse(refusal) => {
                self.refuse_request(client, written, known, refusal);
                return Dispatched::Done;
            }
        }
        let (Some(id), Some(command)) = (command, known) else { return Dispatched::Done };
        if let Some(why) = self.what_to_wait_for(&asker, command, demand, args, queues) {
            let is_too_much = why == Why::Values && self.core.needs_too_much(client, command, args);
            if !is_too_much {
                self.wait(client, why, OwnedRequest::new(id, args));
                return Dispatched::Stop;
            }
            // MIGRATE reads what has not come, a little in each turn.
            if !command.flags.contains(Flags::AWAITS_SERVER) {
                self.refuse_request(client, written, known, Refusal::OUT_OF_MEMORY);
                return Dispatched::Done;
            }
        }
        if queues {
            return self.queue(client, written, OwnedRequest::new(id, args), demand);
        }
        let context = self.core.context(&asker);
        *pass = self.pass(&asker, command, context);
        self.run_unit(client, written, id, args, context)
    }

    /// Notes that a request is to be judged again later.
    fn put_off(&mut self) -> Dispatched {
        self.core.put_off += 1;
        if self.core.is_snapshot_behind() {
            self.core.process.tier_waits.put_off(Cause::Snapshot);
        }
        Dispatched::Later
    }

    /// Runs a request that nothing keeps from it.
    fn run_unit(
        &mut self,
        client: ConnectionId,
        written: u64,
        id: CommandId,
        args: Args<'_>,
        context: Context,
    ) -> Dispatched {
        self.core.shard.unit.clear();
        self.core.begun = Some(context);
        self.call(client, id, args, context);
        if self.is_suspending() {
            self.suspend(client, written);
            return Dispatched::Stop;
        }
        self.finish_unit(client, written, Some(&(id, args)))
    }

    /// The demand of a request; of an EXEC with its queue's, of a script with what it declares.
    fn demand(&mut self, client: ConnectionId, command: &Registered, args: Args<'_>) -> Demand {
        if !command.flags.contains(Flags::RUNS_SCRIPT) {
            return self.core.demand(client, command);
        }
        let calls_function = args.at(0).first().is_some_and(|it| it.eq_ignore_ascii_case(&b'f'));
        let declared = args.get(1).and_then(|text| match calls_function {
            // What is not compiled yet makes the request wait at the gate.
            true => self.libraries.function(text).map(|(_, function)| function.declared),
            false => self.scripts.declared(text),
        });
        declared.map_or(command.demand, |declared| declared.demand(command.flags))
    }

    /// Answers a request that the gate refused. It breaks the transaction that it was for.
    fn refuse_request(
        &mut self,
        client: ConnectionId,
        written: u64,
        command: Option<&Registered>,
        refusal: Refusal,
    ) {
        if let Some(transaction) = &mut self.core.clients.at_mut(client).transaction {
            transaction.is_broken = true;
        }
        if let Some(command) = command {
            self.core.process.statistics.command(command.id).rejected += 1;
        }
        let refusal = match command {
            Some(command) if command.flags.contains(Flags::EXECUTES_QUEUE) => {
                self.core.discard_transaction(client);
                exec_abort(&refusal)
            }
            _ => refusal,
        };
        self.core.refuse(client, written, &refusal);
        self.core.finish_reply(client, written, Sequence::ZERO);
    }

    /// What a request must wait for before it can run, if anything. One that is queued waits with
    /// its transaction. As with [`Self::judge`], what a command about keys may change stands in
    /// `gate/pass` as well.
    pub(in crate::server) fn what_to_wait_for(
        &self,
        asker: &Asker,
        command: &Registered,
        demand: Demand,
        args: Args<'_>,
        is_queued: bool,
    ) -> Option<Why> {
        if self.core.must_pause(asker, demand) {
            Some(Why::Pause)
        } else if is_queued {
            None
        } else if self.migrations.must_wait(&self.core, asker.client, command, args) {
            Some(Why::Migration)
        } else if self.members.must_learn_newest(&self.core, asker, command) {
            Some(Why::Newest)
        } else if self.core.needs_cold(asker.client, command, args) {
            Some(Why::Values)
        } else {
            None
        }
    }

    /// Parks a request, and says to whoever ends the wait that it does.
    fn wait(&mut self, client: ConnectionId, why: Why, request: OwnedRequest) {
        let deadline = match why {
            Why::Pause => self.core.wait_for_pause(client),
            Why::Migration => self.migrations.add_waiting(client),
            Why::Newest => self.members.reads.add(client, self.core.turn.monotonic),
            Why::Values => {
                self.fetch_for(client, &request);
                None
            }
        };
        self.core.park(client, why, request, deadline);
    }

    /// Judges the parked request of a client again that need not wait any more. Whether one was
    /// executed; if it is for later, the client comes to stand behind the others.
    pub(crate) fn resume(&mut self, client: ConnectionId) -> bool {
        let Some(session) = self.core.clients.sessions.get_mut(client) else {
            self.forget_fetches(client);
            return false;
        };
        let confirmed_turn = session.newest.confirmed_turn;
        // What was learned for a request that ended meanwhile says nothing of a later one.
        let is_its_own = |blocked: &Blocked| match blocked {
            Blocked::Parked { why: Why::Newest, turn, .. } => confirmed_turn >= *turn,
            Blocked::Parked { .. } => true,
            _ => false,
        };
        if !session.blocked.as_ref().is_some_and(is_its_own) {
            if session.blocked.is_none() {
                // It hung up, or was unblocked.
                self.forget_fetches(client);
            }
            return false;
        }
        let Some(blocked) = self.core.unblock(client) else { return false };
        let Blocked::Parked { why, request, deadline, turn } = blocked else { return false };
        self.core.clients.at_mut(client).newest.is_confirmed = why == Why::Newest;
        let waited = self.fetches.take(client);
        self.core.set_own_pins(waited.as_ref().map_or(0, |waited| waited.pinned.len()));
        let dispatched = self.dispatch(client, Some(request.command), request.args());
        self.core.set_own_pins(0);
        self.core.clients.at_mut(client).newest.is_confirmed = false;
        let is_put_off = dispatched == Dispatched::Later;
        let waited = match is_put_off {
            true => waited.and_then(|waited| self.fetches.put_back(client, waited)),
            false => waited,
        };
        if let Some(waited) = waited {
            self.core.unpin(&waited.pinned);
        }
        // Who is put off asks for room anew: what it waits for now may take long.
        self.end_asking(client);
        if is_put_off {
            self.core.block(client, Blocked::Parked { why, request, deadline, turn });
            self.core.clients.resuming.push_back(client);
        } else {
            self.core.enqueue(client);
        }
        !is_put_off
    }

    /// Executes one request of a master's stream.
    pub(crate) fn dispatch_link(
        &mut self,
        client: ConnectionId,
        command: Option<CommandId>,
        args: Args<'_>,
    ) -> Dispatched {
        if let Some(judged) = self.link.judge(&mut self.core, client, args) {
            return judged;
        }
        let dispatched = self.dispatch(client, command, args);
        if dispatched != Dispatched::Later && self.link.has_diverged(&mut self.core, client, args) {
            return Dispatched::Stop;
        }
        dispatched
    }

    /// Ends the connection of a client that speaks HTTP. It is not answered.
    #[cold]
    fn end_cross_protocol(&mut self, client: ConnectionId) {
        let now = self.core.turn.monotonic;
        if self.core.process.cross_protocol.is_warning_due(now) {
            tracing::warn!(
                peer = self.core.clients.at(client).who.peer,
                "Possible SECURITY ATTACK detected: a client speaks HTTP (POST or Host:), as a web \
                 page does that tries to send commands through a browser; its connection is closed"
            );
        }
        self.core.close_session(client);
    }

    /// Keeps a request of a transaction until EXEC. A client that has more kept than the limit
    /// allows is disconnected.
    fn queue(
        &mut self,
        client: ConnectionId,
        written: u64,
        request: OwnedRequest,
        demand: Demand,
    ) -> Dispatched {
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
        let command = self.core.process.catalog.command(id);
        context.reads_every_key = self.core.reads_every_key(client, command, args);
        if command.flags.contains(Flags::WHOLE_KEYSPACE) {
            self.core.shard.unit.whole = true;
        }
        let began = self.core.turn.lap;
        let written = self.core.begin_reply(client);
        // EXEC is shown behind what it runs, as in Redis.
        let is_shown = !context.retry && !command.flags.intersects(NOT_MONITORED);
        let is_monitored = !self.core.clients.monitors.is_empty() && is_shown;
        let is_shown_last = is_monitored && command.flags.contains(Flags::EXECUTES_QUEUE);
        if is_monitored && !is_shown_last {
            self.core.tell_monitors(client, args);
        }
        let fetched = match self.core.has_cold() {
            true => self.core.fetch_now_for(client, command, args, context),
            false => Ok(()),
        };
        let outcome = match (fetched, self.functions.of(id)) {
            (Err(lost), _) => Err(lost),
            (_, Some(Function::Data(function))) => self.run_data(client, &function, args, context),
            (_, Some(Function::Node(function))) => function(self, client, args),
            (_, None) => Ok(()),
        };
        let call = Call { command: id, began, written, is_shown_last };
        if self.is_suspending() {
            return self.leave_call(call, OwnedRequest::new(id, args));
        }
        self.end_call(client, call, args, outcome);
    }

    /// Ends a call: writes the refusal if there is one, counts the call, shows it to MONITOR.
    pub(crate) fn end_call(
        &mut self,
        client: ConnectionId,
        call: Call,
        args: Args<'_>,
        outcome: Outcome,
    ) {
        // What met a lost value amid its work has found something else, or nothing.
        let outcome = match self.core.shard.engine.keyspace.has_lost_value() {
            true => Err(Refusal::LOST),
            false => outcome,
        };
        let command = self.core.process.catalog.command(call.command);
        let is_failed = outcome.is_err() || std::mem::take(&mut self.core.turn.has_failed);
        if let Err(refusal) = outcome {
            self.core.refuse(client, call.written, &refusal);
        }
        self.core.clients.at_mut(client).output.unbound();
        if call.is_shown_last {
            self.core.tell_monitors(client, args);
        }
        if !self.core.interest.caches.is_empty() {
            self.core.remember_read(client, command, args);
        }
        // A call that waits is counted when it ends.
        if self.core.shard.unit.wait.is_none() {
            self.core.count_call(client, command, args, call.began, is_failed);
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
    /// may serve. `request` is what to run again if the command waits, as scripts never do.
    pub(crate) fn finish_unit(
        &mut self,
        client: ConnectionId,
        written: u64,
        request: Option<&(CommandId, Args<'_>)>,
    ) -> Dispatched {
        let observed = self.core.settle_unit();
        self.core.note_wrote(client, observed);
        let wait = self.core.shard.unit.wait.take();
        if let (Some(wait), Some(&(id, args))) = (wait, request) {
            let deadline =
                wait.wait_millis.map(|millis| self.core.turn.monotonic.after_millis(millis));
            let request = OwnedRequest::new(id, args);
            self.core.block(client, Blocked::Keys { request, wait, deadline });
        } else if self.core.clients.at(client).blocked.is_none() {
            // Else its reply is still to come.
            self.core.finish_reply(client, written, observed);
        }
        let is_heard = self.core.interest.has_notices();
        self.core.spread(observed, Some(client));
        self.wake_ready();
        if is_heard {
            // What it took to tell others is not the time of the next command.
            self.core.begin_lap();
        }
        match self.core.clients.at(client).takes_requests() {
            true => Dispatched::Done,
            false => Dispatched::Stop,
        }
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

/// A running command.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    command: CommandId,
    /// The start of its execution.
    began: MonotonicNanos,
    /// The offset in the client's output at which its reply begins.
    pub written: u64,
    /// Whether MONITOR shows it when it ends rather than before.
    is_shown_last: bool,
}

/// Commands that MONITOR does not show.
const NOT_MONITORED: Flags = Flags::SKIP_MONITOR.union(Flags::ADMIN);

/// What EXEC says when it is refused itself: the transaction is over, whatever the reason.
fn exec_abort(refusal: &Refusal) -> Refusal {
    let reason = refusal.0.strip_prefix("ERR ").unwrap_or(&refusal.0);
    Refusal::new(format!("EXECABORT Transaction discarded because of: {reason}"))
}
