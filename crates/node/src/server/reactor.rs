//! The loop. Each turn is a batch:
//!
//! ```text
//! wait → receive → poll the log, release → parse ready pipelines → prefetch → execute
//!      → expire, time out → one append, or none yet → send what may leave; amid it, execute reads
//!      whose values came from the disk
//! ```
//! No step blocks but the wait (and, for a lone client, one inline sync where that is quicker than
//! two thread switches). What "execute" does stands in `reactor/batch`, when something is appended
//! in `gathering`, and the last step in `reactor/sending`.

mod batch;
mod resuming;
mod sending;
mod share;

use super::lone::LoneClient;
use crate::core::cold::ROOM_NANOS;
use crate::core::tier_waits::Cause;
use crate::core::{Clients, Core, Stop};
use crate::server::Server;
use crate::session::Blocked;
use base::{ConnectionId, Driver, Event};
pub use batch::Scratch;
use engine::eviction::Room;
use shard::tiering::{RoomFor, Tiering};
use txlog::Gate;

/// Longest wait when nothing happens: the cron's period. Redis's default `hz` of 10.
const TICK_NANOS: u64 = 100_000_000;

/// How long a clean stop waits for the transaction log, in nanoseconds. Longer than the election of
/// a service's leader takes, shorter than service managers wait.
const STOP_NANOS_MAX: u64 = 30_000_000_000;

/// A turn with an inline sync that took longer than this, in nanoseconds, ends the inline syncs for
/// a while: the disk is slow, and a second client would have to wait for it. 0.5 ms is several
/// times what a local disk takes.
const INLINE_SYNC_NANOS_MAX: u64 = 500_000;

impl Server {
    /// Turns the loop until the server is told to stop; why it stopped.
    pub fn run(&mut self, driver: &mut dyn Driver) -> Stop {
        let mut scratch = Scratch::default();
        loop {
            self.turn(driver, &mut scratch);
            let nanos = driver.clock().monotonic().since(self.core.turn.monotonic);
            let turns = &mut self.core.process.statistics.turns;
            turns.note(nanos);
            if let Some(cpu_began) = self.core.turn.cpu_began {
                turns.note_cpu(driver.clock().thread_nanos().saturating_sub(cpu_began));
            }
            if let Some(stop) = self.ended() {
                return stop;
            }
        }
    }

    /// Why the loop is over, if it is: asked after each turn.
    pub fn ended(&mut self) -> Option<Stop> {
        let stop = self.core.stopping.clone()?;
        let is_over = stop != Stop::Clean
            || self.is_drained() && self.has_handed_over()
            || self.has_waited_enough();
        is_over.then_some(stop)
    }

    /// Whether everything executed is durable and sent as far as clients take it.
    fn is_drained(&mut self) -> bool {
        let is_written = !self.core.shard.has_gathered() && !self.core.shard.is_in_flight();
        !self.waits_for_script()
            && is_written
            && (self.core.clients.flushing.is_empty() || self.core.leadership.is_lapsed)
    }

    /// Whether a log that does not answer has kept a clean stop waiting for too long. What is
    /// under way then was acknowledged to nobody.
    fn has_waited_enough(&mut self) -> bool {
        let since = *self.core.stopping_since.get_or_insert(self.core.turn.monotonic);
        let has_passed = self.core.turn.monotonic.since(since) > STOP_NANOS_MAX;
        if has_passed && self.waits_for_script() {
            self.give_script_up();
        }
        if has_passed && self.core.shard.is_in_flight() {
            tracing::warn!("the transaction log does not answer: ends without it");
            return true;
        }
        false
    }

    /// One turn of the loop.
    pub fn turn(&mut self, driver: &mut dyn Driver, scratch: &mut Scratch) {
        let timeout = self.wait_nanos();
        scratch.events.clear();
        if let Some(tiering) = &mut self.core.shard.tiering {
            tiering.begin_reads();
        }
        driver.wait(timeout, &mut scratch.events);
        self.begin_turn(driver.clock().moment());
        self.gathering.writers = 0;
        for event in std::mem::take(&mut self.deferred) {
            self.take_event(driver, event);
        }
        for event in scratch.events.drain(..) {
            self.take_event(driver, event);
        }
        self.receive_ready(driver);
        if self.suspended.is_some() {
            return self.turn_amid_script(driver, scratch);
        }
        // Before the requests of this turn, which may take long.
        self.append_overdue();
        self.poll_log();
        self.poll_tier();
        if self.core.turn.asleep_until > self.core.turn.monotonic {
            return;
        }
        self.advance_role();
        self.link.adopt_configured_master(&mut self.core);
        self.core.resume_after_pause();
        self.members.resume_reads(&mut self.core);
        // Clients whose keys became ready while the server slept are served before all others.
        self.wake_ready();
        // What it takes is the turn's, and less is left for executing, down to half.
        self.core.compact();
        self.execute_ready(scratch);
        // Before anything lets this turn end early.
        self.core.note_appended();
        if self.core.turn.asleep_until > self.core.turn.monotonic {
            return;
        }
        if self.suspended.is_some() {
            return self.end_turn(driver);
        }
        self.time_out();
        self.core.expire();
        self.wake_ready();
        self.evict();
        self.has_more_to_untrack = self.core.limit_tracked();
        self.tick();
        self.link.advance(&mut self.core, driver);
        self.members.advance(&self.core, driver);
        if !self.core.leadership.is_lapsed {
            self.migrations.advance(&mut self.core, driver);
            self.wake_ready();
        }
        self.advance_snapshots();
        self.read_for_snapshot();
        self.feed.advance(&mut self.core);
        self.feed.deliver(&mut self.core);
        self.core.evict_clients();
        self.end_turn(driver);
        // While the log makes durable what was appended.
        self.load_libraries();
    }

    /// Ends a turn: appends the gathered effects, sends what may leave.
    fn end_turn(&mut self, driver: &mut dyn Driver) {
        self.commit(driver);
        // A replica applies no records while a script runs.
        let is_whole = self.suspended.is_none();
        if is_whole || !self.core.is_following() {
            // Polling starts the log's work now, rather than after the next event.
            self.poll_log();
        }
        if is_whole {
            self.members.advance_failover(&mut self.core);
        }
        self.core.leadership.judge_lease();
        if !self.core.leadership.is_lapsed {
            self.flush(driver);
        }
        self.shed_unserved();
        self.close_sessions(driver);
        // A record needs many values, and it is looked for often whether they have come.
        let nobody_waits = self.fetches.is_empty() && self.members.reads.is_empty();
        let is_patient = self.core.shard.has_unapplied() && nobody_waits;
        if let Some(tiering) = &mut self.core.shard.tiering {
            tiering.be_patient(is_patient);
        }
    }

    /// A turn while a script's unit is suspended: nothing else touches the keyspace.
    fn turn_amid_script(&mut self, driver: &mut dyn Driver, scratch: &mut Scratch) {
        if !self.core.is_following() {
            self.poll_log();
            self.advance_role();
        }
        self.execute_ready(scratch);
        self.core.note_appended();
        if matches!(self.core.stopping, None | Some(Stop::Clean)) {
            self.go_on_with_script();
        }
        self.tick();
        self.core.evict_clients();
        self.end_turn(driver);
    }

    /// In how many nanoseconds there is a turn to take, whatever comes.
    pub fn wait_nanos(&mut self) -> Option<u64> {
        let asleep = self.core.turn.asleep_until.since(self.core.turn.monotonic);
        if asleep > 0 {
            return Some(asleep);
        }
        if self.suspended.is_some() || !self.deferred.is_empty() {
            return Some(0);
        }
        let has_work = self.core.is_snapshot_ready() || self.feed.is_ready(&self.core);
        let is_behind = self.is_behind_libraries() && self.core.stopping.is_none();
        let is_flushed = !self.core.shard.engine.keyspace.has_flushed();
        let has_ended = self.core.shard.tiering.as_ref().is_some_and(Tiering::has_ended_reads);
        // A read amid sending may have found that a key's time is over. A busy log says when it
        // is not.
        let has_gathered =
            self.core.shard.has_gathered() && !matches!(self.core.shard.gate(), Gate::Wait);
        let has_work = has_work || has_ended || has_gathered || self.has_more_to_untrack;
        if has_work
            || is_behind
            || !is_flushed
            || self.has_more_to_load
            || !self.core.clients.receiving.is_empty()
            || !self.core.clients.flushing.is_empty() && !self.core.leadership.is_lapsed
        {
            return Some(0);
        }
        let Clients { ready, resuming, .. } = &self.core.clients;
        // Who was put off is judged again when something was written or read, which wakes the loop.
        let are_put_off = self.are_all_put_off();
        let has_ready = !ready.is_empty() || !resuming.is_empty() && self.core.may_execute();
        let has_ready = has_ready && !are_put_off;
        let has_more = self.has_more_to_evict || has_ready && !self.is_stalled();
        if self.core.resumes_after_pause() || has_more {
            return Some(0);
        }
        let blocked = self.core.clients.deadlines.first().map(|(deadline, _)| *deadline);
        let deadline = blocked.into_iter().chain(self.core.pause.deadline()).min();
        let until = deadline.map(|at| at.since(self.core.turn.monotonic));
        let is_linked =
            self.core.master().is_some() && self.core.stopping.is_none() && !self.is_stalled();
        let is_linked = is_linked && !self.core.is_snapshot_behind();
        let link = self.link.wait_nanos(self.core.turn.monotonic).filter(|_| is_linked);
        let migrations = self
            .migrations
            .wait_nanos(self.core.turn.monotonic)
            .filter(|_| !self.core.leadership.is_lapsed);
        let members = self.members.wait_nanos(&self.core);
        let role = self.role_wait_nanos();
        let compaction = self.core.compaction_wait_nanos(self.core.turn.monotonic);
        // Its writes wake the loop too, but not once the tier counts as full.
        let waits_for_room = self.core.shard.has_unapplied() || are_put_off;
        let unapplied = waits_for_room.then_some(ROOM_NANOS);
        let waits = until.into_iter().chain(link).chain(migrations).chain(members).chain(role);
        let waits = waits.chain(compaction).chain(unapplied);
        Some(waits.fold(TICK_NANOS, u64::min))
    }

    /// Whether too much is withheld to execute more. (A snapshot that is behind keeps only writes
    /// waiting, at the gate.)
    fn is_stalled(&self) -> bool {
        self.core.leadership.is_lapsed
            || self.core.leadership.roles.has_just_bid(self.core.turn.monotonic)
            || self.core.is_stalled_by_held()
            || matches!(self.core.shard.gate(), Gate::Wait)
    }

    fn take_event(&mut self, driver: &mut dyn Driver, event: Event) {
        match event {
            Event::Accepted { connection, peer } => {
                if let Err(line) = self.welcome(connection, peer) {
                    // The connection closes at once: whether the line arrives does not matter.
                    let _ = driver.send(connection, line.as_bytes());
                    driver.close(connection);
                }
            }
            // Nearly always it is a session's.
            Event::Readable(connection) if self.core.clients.has(connection) => {
                self.core.receive_later(connection);
            }
            Event::Writable(connection) if self.core.clients.has(connection) => {
                self.core.clients.at_mut(connection).flow.kernel_is_full = false;
                self.core.flush_later(connection);
            }
            Event::Ended(connection) if self.core.clients.has(connection) => {
                self.hear_end(connection);
            }
            Event::Shutdown => self.core.stop_when_durable("a signal"),
            Event::Broken(connection) if self.is_free_of_script(connection) => {
                self.core.close(connection);
            }
            event if self.suspended.is_some() => self.defer(event),
            event if self.is_taken(driver, &event) => {}
            Event::Broken(connection) => self.core.close(connection),
            // Who asked for it wants it no longer.
            Event::Connected { connection, .. } => driver.close(connection),
            Event::Unreachable { .. }
            | Event::Readable(_)
            | Event::Writable(_)
            | Event::Ended(_) => {}
        }
    }

    /// Whether an event is about a connection that this server asked for; then it is dealt with.
    fn is_taken(&mut self, driver: &mut dyn Driver, event: &Event) -> bool {
        self.link.hear(&mut self.core, driver, event)
            || self.members.hear(&self.core, driver, event)
            || self.migrations.hear(&mut self.core, driver, event)
    }

    /// Receives for those who sent something, up to the turn's limit. Whoever is left comes first
    /// in the next turn.
    fn receive_ready(&mut self, driver: &mut dyn Driver) {
        let mut left = self.core.process.options.limits.turn.received_bytes_max;
        while left > 0
            && let Some(client) = self.core.clients.receiving.pop_front()
        {
            let Some(session) = self.core.clients.sessions.get_mut(client) else { continue };
            session.flow.is_receiving = false;
            left = left.saturating_sub(self.receive(driver, client));
        }
    }

    /// Receives for a session, up to its limit of a turn; returns the cost (`Receipt::cost`). The
    /// driver reports the session again if more is left.
    fn receive(&mut self, driver: &mut dyn Driver, client: ConnectionId) -> usize {
        let bounds = self.core.input_bounds(client);
        let Core { clients, process, turn, .. } = &mut self.core;
        let session = clients.at_mut(client);
        let receipt = session
            .input
            .receive(&bounds, |into, bytes_max| driver.receive(client, into, bytes_max));
        process.statistics.reads += receipt.reads;
        process.statistics.input_bytes += receipt.bytes as u64;
        session.flow.reading_is_off |= receipt.is_full;
        session.flow.peer_has_closed |= receipt.has_closed;
        if receipt.is_full || receipt.has_closed {
            // That it has closed its side is news once: what it has not read yet may take long.
            driver.set_reading(client, false);
        }
        session.flow.last_interaction = turn.monotonic;
        session.newest.received_turn = turn.number;
        if session.is_master() {
            self.link.note_received(&mut self.core, receipt.bytes);
        }
        self.core.count_memory(client);
        if self.core.check_input(client) {
            return receipt.cost();
        }
        let session = self.core.clients.at(client);
        let waits_in_vain = session.blocked.as_ref().is_some_and(Blocked::ends_with_peer);
        if session.flow.peer_has_closed && (waits_in_vain || !session.has_work()) {
            self.core.hang_up(client);
        } else {
            self.core.enqueue(client);
        }
        receipt.cost()
    }

    /// The peer sends nothing more. A client whose wait ends with its peer (for keys, replicas or
    /// the end of a pause) is closed once earlier replies are sent, and what it sent behind is
    /// dropped. What any other client sent is still received and answered.
    fn hear_end(&mut self, client: ConnectionId) {
        let session = self.core.clients.at_mut(client);
        session.flow.peer_is_ending = true;
        if session.blocked.as_ref().is_some_and(Blocked::ends_with_peer) {
            self.core.hang_up(client);
        }
    }

    /// Evicts what exceeds `maxmemory` although no command asks: CONFIG SET may have lowered it.
    fn evict(&mut self) {
        if self.core.stopping.is_some() {
            self.has_more_to_evict = false;
            return;
        }
        let room = self.core.make_room(None, RoomFor::Turn);
        // A long value on its way is finished though memory is not short any more, and each turn
        // goes on with it: until then it holds buffers that others need.
        // Who was put off amid the turn may find room now.
        let is_awaited = self.core.process.tier_waits.has_put_off(Cause::Room);
        self.has_more_to_evict = room == Room::More
            || room == Room::Enough && is_awaited
            || self.core.encodes_next_turn();
    }

    /// Appends what the turn gathered, or leaves it for what the next one will. For a lone client
    /// the loop syncs the log itself: nobody else wants the processor meanwhile, and the client is
    /// spared two thread switches.
    fn commit(&mut self, driver: &dyn Driver) {
        let has_gathered = self.core.shard.has_gathered();
        if self.gathers_on() {
            return;
        }
        self.core.shard.commit(self.core.turn.now);
        // What a script has done so far stands in no record.
        if self.suspended.is_none() {
            self.core.append_checksum();
        }
        self.core.tell_time();
        self.core.note_appended();
        if has_gathered && self.lone.is_alone() && self.core.shard.commit_inline() {
            let took = driver.clock().monotonic().since(self.core.turn.monotonic);
            if took > INLINE_SYNC_NANOS_MAX {
                self.lone = LoneClient::default();
            }
        }
    }

    fn close_sessions(&mut self, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.core.clients.closing) {
            if self.is_needed_by_script(connection) {
                self.core.clients.close_later(connection);
                continue;
            }
            self.forget(connection);
            driver.close(connection);
        }
    }
}
