//! The loop. Each turn is a batch:
//!
//! ```text
//! wait → receive → poll the log, release → parse ready pipelines → prefetch → execute
//!      → expire, time out → one append → send what may leave
//! ```
//! No step blocks but the wait (and, for a lone client, one inline sync where that is quicker than
//! two thread switches).

use crate::dispatch::Dispatched;
use crate::registry::CommandId;
use crate::server::{Server, Stop};
use crate::session::{Blocked, Session};
use crate::shard::Progress;
use base::driver::Received;
use base::{ConnectionId, DatabaseId, Driver, Event};
use engine::command::Args;
use engine::eviction::Room;
use resp::{ArgumentRanges, Decoded, hint};
use std::ops::Range;

/// Requests parsed ahead and prefetched together. In a prototype, 16 overlapped misses took a
/// random GET over 5 M keys from 301 to 109 ns; more gained nothing.
const BATCH_REQUESTS_MAX: usize = 16;

/// Requests executed in one turn before outputs are sent and events looked at again: bounds what a
/// deep pipeline adds to the latency of others. A guess, about 2 ms of small commands.
const TURN_REQUESTS_MAX: usize = 4096;

/// Bytes of requests executed in one turn, about: the last session may overshoot. So what is
/// published in a turn stays far below the limit at which subscribers are disconnected (32 MiB by
/// default), and they are sent something before more is published. A guess.
const TURN_BYTES_MAX: usize = 1 << 20;

/// Bytes of replies written in one turn, about: the last reply may overshoot. Small requests can
/// ask for much. About 1 ms of copying; a guess.
const TURN_REPLY_BYTES_MAX: usize = 4 << 20;

/// Replies withheld per process before requests are no longer executed. The last reply may
/// overshoot. 64 MiB is about 0.5 s of replies at 128 MiB/s. A guess.
const HELD_BYTES_MAX: usize = 64 << 20;

/// Keys deleted per turn because their time has come.
const EXPIRED_KEYS_MAX: usize = 256;

/// Longest wait when nothing happens: the cron's period. Redis's default `hz` of 10.
const TICK_NANOS: u64 = 100_000_000;

/// Turns in a row with one and the same client before the loop syncs the log itself.
const LONE_TURNS_MIN: u32 = 32;

/// A turn with an inline sync that took longer than this, in nanoseconds, ends the inline syncs for
/// a while: the disk is slow, and a second client would have to wait for it. 0.5 ms is several
/// times what a local disk takes.
const INLINE_SYNC_NANOS_MAX: u64 = 500_000;

/// Whether only one client has been active lately.
#[derive(Default)]
pub(crate) struct LoneClient {
    last: Option<ConnectionId>,
    turns: u32,
}

impl LoneClient {
    fn saw(&mut self, connection: ConnectionId) {
        if self.last == Some(connection) {
            self.turns = self.turns.saturating_add(1);
        } else {
            *self = Self { last: Some(connection), turns: 0 };
        }
    }

    fn is_alone(&self) -> bool {
        self.turns >= LONE_TURNS_MIN
    }
}

/// What the rest of a turn may still execute.
struct Share {
    requests: usize,
    reply_bytes: usize,
}

impl Share {
    /// A request was executed, with a reply of so many bytes.
    fn take(&mut self, reply_bytes: usize) {
        self.requests = self.requests.saturating_sub(1);
        self.reply_bytes = self.reply_bytes.saturating_sub(reply_bytes);
    }

    fn is_used_up(&self) -> bool {
        self.requests == 0 || self.reply_bytes == 0
    }
}

/// A parsed request of a batch.
struct Parsed {
    command: Option<CommandId>,
    /// Where its arguments stand in the batch's ranges.
    ranges: Range<usize>,
    /// Where the request stands in the session's input; its ranges count from there.
    input: Range<usize>,
    /// Where its words stand, if it is an inline request; its ranges count from there.
    words: Option<Range<usize>>,
    hash: u64,
}

/// Buffers reused between turns.
#[derive(Default)]
pub struct Scratch {
    events: Vec<Event>,
    parsed: Vec<Parsed>,
    ranges: Vec<(u32, u32)>,
    /// The unquoted words of inline requests.
    words: Vec<u8>,
    one: ArgumentRanges,
}

impl Scratch {
    fn args<'a>(&'a self, parsed: &Parsed, bytes: &'a [u8]) -> Args<'a> {
        let source = match &parsed.words {
            Some(words) => &self.words[words.clone()],
            None => &bytes[parsed.input.clone()],
        };
        Args::new(source, &self.ranges[parsed.ranges.clone()])
    }
}

impl Server {
    /// Turns the loop until the server is told to stop; why it stopped.
    pub fn run(&mut self, driver: &mut dyn Driver) -> Stop {
        let mut scratch = Scratch::default();
        loop {
            self.turn(driver, &mut scratch);
            if let Some(stop) = self.stopping.clone()
                && (stop != Stop::Clean || self.is_drained())
            {
                return stop;
            }
        }
    }

    /// Whether everything executed is durable and sent as far as clients take it.
    fn is_drained(&self) -> bool {
        !self.shard.has_gathered() && !self.shard.is_in_flight() && self.flushing.is_empty()
    }

    /// One turn of the loop.
    pub fn turn(&mut self, driver: &mut dyn Driver, scratch: &mut Scratch) {
        let timeout = self.wait_nanos();
        scratch.events.clear();
        driver.wait(timeout, &mut scratch.events);
        self.now = driver.clock().unix_millis();
        self.monotonic = driver.clock().monotonic();
        for event in scratch.events.drain(..) {
            self.take_event(driver, event);
        }
        self.poll_log();
        if self.asleep_until > self.monotonic {
            return;
        }
        self.resume_after_pause();
        self.execute_ready(scratch);
        if self.asleep_until > self.monotonic {
            return;
        }
        self.time_out();
        self.expire();
        self.evict();
        self.tick();
        self.advance_link(driver);
        self.advance_snapshot();
        self.advance_feed();
        self.deliver_feed();
        self.commit(driver);
        // The log begins its work when it is polled: not only after the next event.
        self.poll_log();
        self.flush(driver);
        self.close_sessions(driver);
    }

    fn wait_nanos(&self) -> Option<u64> {
        let asleep = self.asleep_until.since(self.monotonic);
        if asleep > 0 {
            return Some(asleep);
        }
        let has_work = self.is_snapshot_ready() || self.is_feed_ready();
        if has_work || self.persistence.is_loading || !self.flushing.is_empty() {
            return Some(0);
        }
        let has_more = self.has_more_to_evict || !self.ready.is_empty() && !self.is_stalled();
        if self.pause.is_just_over() || has_more {
            return Some(0);
        }
        let blocked = self.deadlines.first().map(|(deadline, _)| *deadline);
        let deadline = blocked.into_iter().chain(self.pause.deadline()).min();
        let until = deadline.map(|at| (at.0 - self.now.0).max(0) as u64 * 1_000_000);
        let link = self.link.wait_nanos(self.monotonic).filter(|_| !self.is_stalled());
        Some(until.into_iter().chain(link).fold(TICK_NANOS, u64::min))
    }

    /// Whether too much is withheld to execute more.
    fn is_stalled(&self) -> bool {
        self.shard.is_in_flight() && self.held_bytes > HELD_BYTES_MAX
            || matches!(self.shard.gate(), txlog::Gate::Wait)
            || self.is_snapshot_behind()
    }

    fn take_event(&mut self, driver: &mut dyn Driver, event: Event) {
        match event {
            Event::Accepted { connection, peer, local, is_local } => {
                if let Err(line) = self.welcome(connection, peer, local, is_local) {
                    // The connection closes at once: whether the line arrives does not matter.
                    let _ = driver.send(connection, line.as_bytes());
                    driver.close(connection);
                }
            }
            Event::Readable(connection) => {
                if !self.link_readable(driver, connection) {
                    self.receive(driver, connection);
                }
            }
            Event::Writable(connection) => {
                if self.link_writable(driver, connection) {
                    return;
                }
                if let Some(session) = self.sessions.get_mut(&connection) {
                    session.is_clogged = false;
                    if !session.is_flushing {
                        session.is_flushing = true;
                        self.flushing.push(connection);
                    }
                }
            }
            Event::Broken(connection) => {
                if !self.link_broken(connection) {
                    self.close(connection);
                }
            }
            Event::Connected { connection, .. } => self.link_connected(driver, connection),
            Event::Unreachable { connection, why } => self.link_unreachable(connection, &why),
            Event::Shutdown => {
                self.stopping.get_or_insert(Stop::Clean);
            }
        }
    }

    fn receive(&mut self, driver: &mut dyn Driver, connection: ConnectionId) {
        let Some(session) = self.sessions.get(&connection) else { return };
        let unexecuted_max = self.unexecuted_bytes_max(session);
        let Some(session) = self.sessions.get_mut(&connection) else { return };
        let mut received = 0;
        loop {
            let room = session.input.room(unexecuted_max);
            if room == 0 {
                session.is_paused = true;
                driver.set_reading(connection, false);
                break;
            }
            self.statistics.reads += 1;
            match driver.receive(connection, &mut session.input.bytes, room) {
                Received::Bytes(count) => {
                    self.statistics.input_bytes += count as u64;
                    received += count;
                    if count < room {
                        break;
                    }
                }
                Received::WouldBlock => break,
                Received::Closed => {
                    session.is_gone = true;
                    break;
                }
            }
        }
        session.last_interaction = self.now;
        if session.is_link {
            self.link_received(received);
        }
        if self.sessions.get(&connection).is_some_and(|session| self.exceeds_input_limit(session)) {
            self.close(connection);
            return;
        }
        let Some(session) = self.sessions.get_mut(&connection) else { return };
        let waits =
            matches!(session.blocked, Some(Blocked::Keys { .. } | Blocked::Replicas { .. }));
        if session.is_gone && (session.input.is_empty() || waits) {
            self.hang_up(connection);
        } else if !session.is_queued {
            session.is_queued = true;
            self.ready.push_back(connection);
        }
    }

    /// The peer has said its last word and waits for nothing more, unless replies are still held
    /// or on their way: a client may close its side alone.
    fn hang_up(&mut self, connection: ConnectionId) {
        let Some(mut session) = self.sessions.remove(&connection) else { return };
        session.is_closing = true;
        self.unblock(&mut session);
        if session.output.pending_bytes() == 0 {
            self.close_session(&mut session);
        }
        self.sessions.insert(connection, session);
    }

    fn poll_log(&mut self) {
        match self.shard.poll() {
            Progress::Durable => self.release(),
            Progress::Nothing => {}
            Progress::Fatal(why) => self.stopping = Some(Stop::LogFailed(why)),
        }
    }

    /// Executes what clients sent, up to the turn's limit; the rest stays queued.
    fn execute_ready(&mut self, scratch: &mut Scratch) {
        let mut share = Share { requests: TURN_REQUESTS_MAX, reply_bytes: TURN_REPLY_BYTES_MAX };
        let mut bytes_left = TURN_BYTES_MAX;
        for turn in 0..self.ready.len() {
            if turn % BATCH_REQUESTS_MAX == 0 {
                self.look_ahead();
            }
            let is_over = share.is_used_up() || bytes_left == 0;
            if is_over || self.is_stalled() || self.stopping.is_some() {
                break;
            }
            let Some(connection) = self.ready.pop_front() else { break };
            let Some(mut session) = self.sessions.remove(&connection) else { continue };
            session.is_queued = false;
            if session.is_link && self.pause.paused().is_some() {
                // The data set stands still; the end of the pause goes on.
                self.sessions.insert(connection, session);
                continue;
            }
            let received = session.input.waiting_bytes();
            self.execute_session(&mut session, &mut share, scratch);
            bytes_left = bytes_left.saturating_sub(received - session.input.waiting_bytes());
            self.sessions.insert(connection, session);
            self.lone.saw(connection);
        }
    }

    /// Asks the processor for what the next sessions' first requests will touch, so that the misses
    /// of many clients without a pipeline overlap as those of one pipeline do.
    fn look_ahead(&self) {
        if self.ready.len() < 2 {
            return;
        }
        let keyspace = &self.shard.engine.keyspace;
        let mut hints = [(DatabaseId(0), 0); BATCH_REQUESTS_MAX];
        let mut found = 0;
        for connection in self.ready.iter().take(BATCH_REQUESTS_MAX) {
            let Some(session) = self.sessions.get(connection) else { continue };
            let waiting = session.input.bytes.get(session.input.consumed..).unwrap_or_default();
            let Some(key) = hint::second_argument(waiting) else { continue };
            let hash = keyspace.hash(key);
            keyspace.prefetch_bucket(session.database, hash);
            hints[found] = (session.database, hash);
            found += 1;
        }
        for (database, hash) in &hints[..found] {
            keyspace.prefetch_entry(*database, *hash);
        }
    }

    /// Executes requests of one session, as many as its share of the turn allows, and takes them
    /// off it.
    fn execute_session(&mut self, session: &mut Session, share: &mut Share, scratch: &mut Scratch) {
        let mut goes_on = true;
        let mut bytes = std::mem::take(&mut session.input.bytes);
        let waiting = bytes.len() - session.input.consumed;
        session.input.executing = (waiting, bytes.capacity() - bytes.len());
        session.input.peak = session.input.peak.max(bytes.len());
        while goes_on && !share.is_used_up() && session.blocked.is_none() && !session.is_closing {
            if self.chokes(session) {
                break;
            }
            let limit = BATCH_REQUESTS_MAX.min(share.requests);
            goes_on = self.parse(session, &bytes, limit, scratch);
            self.prefetch(session, scratch);
            self.lap = self.options.clock.monotonic();
            let dispatched = self.execute_batch(session, &bytes, share, scratch);
            if dispatched != Dispatched::Done {
                session.rewind();
                if dispatched == Dispatched::Later {
                    self.enqueue(session);
                }
                break;
            }
        }
        if share.is_used_up() && session.blocked.is_none() {
            self.enqueue(session);
        }
        // Nothing was received into the taken buffer meanwhile: receiving is another step.
        session.input.compact(&mut bytes);
        session.input.bytes = bytes;
        session.input.executing = (0, 0);
        if session.is_paused {
            // Executing may have made room, or shown that the request in the making is larger.
            self.flush_later(session);
        }
        if session.is_gone && !goes_on && !session.is_queued {
            // A request that was cut off by the hangup never comes to an end.
            session.is_closing = true;
            if session.output.pending_bytes() == 0 {
                self.close_session(session);
            }
        }
    }

    /// Parses up to `limit` requests into the batch; whether more may follow.
    fn parse(
        &mut self,
        session: &mut Session,
        bytes: &[u8],
        limit: usize,
        scratch: &mut Scratch,
    ) -> bool {
        scratch.parsed.clear();
        scratch.ranges.clear();
        scratch.words.clear();
        let limits = &mut session.input.decoder.limits;
        limits.authenticated = session.is_authenticated || !self.acl.requires_authentication();
        limits.bulk_bytes_max = self.shard.engine.keyspace.settings.proto_max_bulk_len as usize;
        while scratch.parsed.len() < limit {
            let input = &mut session.input;
            let rest = &bytes[input.parsed..];
            match input.decoder.next(rest, &mut scratch.one) {
                Decoded::Request { consumed } => {
                    let start = input.parsed;
                    input.parsed += consumed;
                    input.wanted = 0;
                    let range = start..input.parsed;
                    self.add_parsed(bytes, range, scratch);
                }
                Decoded::Empty { consumed } => {
                    input.parsed += consumed;
                    if scratch.parsed.is_empty() {
                        input.consumed = input.parsed;
                    }
                }
                Decoded::Incomplete { needed } => {
                    input.wanted = needed;
                    return false;
                }
                Decoded::Error(error) => {
                    session.protocol_error = Some(error);
                    return false;
                }
            }
        }
        true
    }

    fn add_parsed(&self, bytes: &[u8], input: Range<usize>, scratch: &mut Scratch) {
        let request = &bytes[input.clone()];
        let source = scratch.one.source(request);
        let words = (!std::ptr::eq(source, request)).then(|| {
            let start = scratch.words.len();
            scratch.words.extend_from_slice(source);
            start..scratch.words.len()
        });
        let first_range = scratch.ranges.len();
        scratch.ranges.extend_from_slice(scratch.one.ranges());
        let ranges = first_range..scratch.ranges.len();
        let mut parsed = Parsed { command: None, ranges, input, words, hash: 0 };
        let args = scratch.args(&parsed, bytes);
        if let Some(command) = self.registry.find(args.at(0), args.get(1)) {
            parsed.command = Some(command.id);
            if let Some(key) = args.get(command.first_key).filter(|_| command.first_key > 0) {
                parsed.hash = self.shard.engine.keyspace.hash(key);
            }
        }
        scratch.parsed.push(parsed);
    }

    /// Asks the processor for what the batch will look at, so that the misses overlap.
    fn prefetch(&self, session: &Session, scratch: &Scratch) {
        if scratch.parsed.len() < 2 {
            return;
        }
        let keyspace = &self.shard.engine.keyspace;
        let hashes = || scratch.parsed.iter().map(|parsed| parsed.hash).filter(|hash| *hash != 0);
        for hash in hashes() {
            keyspace.prefetch_bucket(session.database, hash);
        }
        for hash in hashes() {
            keyspace.prefetch_entry(session.database, hash);
        }
    }

    /// Executes the batch in order, as far as the share of the turn allows; how it ended.
    fn execute_batch(
        &mut self,
        session: &mut Session,
        bytes: &[u8],
        share: &mut Share,
        scratch: &Scratch,
    ) -> Dispatched {
        for parsed in &scratch.parsed {
            if share.is_used_up() {
                return Dispatched::Later;
            }
            let args = scratch.args(parsed, bytes);
            let pending = session.output.pending_bytes();
            let dispatched = if session.is_link {
                self.dispatch_link(session, parsed.command, args)
            } else {
                self.dispatch(session, parsed.command, args)
            };
            if dispatched == Dispatched::Later {
                return dispatched;
            }
            share.take(session.output.pending_bytes().saturating_sub(pending));
            session.input.consumed = parsed.input.end;
            if session.is_link && dispatched == Dispatched::Done {
                self.link_applied(session, bytes.len() - session.input.consumed);
            }
            if dispatched == Dispatched::Stop {
                return dispatched;
            }
            if self.shard.is_record_full() {
                self.shard.commit(self.now);
            }
        }
        if let Some(error) = session.protocol_error.take() {
            let written = session.output.end();
            session.reply().error(error.line());
            self.statistics.error("ERR");
            self.finish_reply(session, written, base::Sequence::ZERO);
            session.is_closing = true;
            return Dispatched::Stop;
        }
        Dispatched::Done
    }

    /// Deletes keys whose time has come.
    fn expire(&mut self) {
        let is_paused = self.pause.paused().is_some();
        let is_open = matches!(self.shard.gate(), txlog::Gate::Open);
        let is_replica = self.is_replica();
        self.shard.engine.keeps_expired = is_paused || is_replica || !is_open;
        if !self.is_active_expiry_on || is_paused || is_replica || !is_open {
            return;
        }
        if !self.shard.engine.has_due(self.now) {
            return;
        }
        let began = self.options.clock.monotonic();
        self.shard.unit.clear();
        let unit = &mut self.shard.unit;
        self.shard.engine.expire_due(self.now, EXPIRED_KEYS_MAX, unit);
        if self.shard.unit.changes > 0 {
            let observed = self.settle_unit();
            self.spread(observed, None);
            self.wake_ready(None);
        }
        let nanos = self.options.clock.monotonic().since(began);
        self.statistics.expire_nanos += nanos;
        self.note_latency("expire-cycle", nanos / 1_000_000);
    }

    /// Evicts what exceeds `maxmemory` although no command asks: CONFIG SET may have lowered it.
    fn evict(&mut self) {
        self.has_more_to_evict = self.make_room(None) == Room::More;
    }

    /// Appends what the turn gathered. For a lone client the loop syncs the log itself: nobody else
    /// wants the processor meanwhile, and the client is spared two thread switches.
    fn commit(&mut self, driver: &dyn Driver) {
        let has_gathered = self.shard.has_gathered();
        self.shard.commit(self.now);
        if has_gathered && self.lone.is_alone() && self.shard.commit_inline() {
            let took = driver.clock().monotonic().since(self.monotonic);
            if took > INLINE_SYNC_NANOS_MAX {
                self.lone = LoneClient::default();
            }
        }
    }

    fn close_sessions(&mut self, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.closing) {
            self.forget(connection);
            driver.close(connection);
        }
    }
}
