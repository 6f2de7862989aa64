//! What a turn executes: requests of ready sessions, parsed and prefetched by the batch, as many as
//! the turn's share allows. The rest stays queued, in the order of its sessions.

use super::share::Share;
use crate::core::Core;
use crate::core::cold::Ahead;
use crate::core::verdict::Dispatched;
use crate::limits::BATCH_REQUESTS_MAX;
use crate::server::Server;
use crate::session::ClientKind;
use crate::session::input::MOVED_PER_RECEIVED;
use base::{ConnectionId, DatabaseId, Event};
use catalog::{Catalog, CommandId};
use engine::command::Args;
use engine::ids::KeyHash;
use resp::{ArgumentRanges, Decoded, Decoder, hint};
use shard::tiering::Tiering;
use std::ops::Range;

/// A parsed request of a batch.
struct Parsed {
    command: Option<CommandId>,
    /// Where its arguments stand in the batch's ranges.
    ranges: Range<usize>,
    /// Where the request stands in the session's input; its ranges count from there.
    input: Range<usize>,
    /// Where its words stand, if it is an inline request; its ranges count from there.
    words: Option<Range<usize>>,
    /// The argument that is most likely its first key, and the hash of that, if prefetching has
    /// asked for it. Right whatever the argument is.
    key: Option<(usize, KeyHash)>,
}

/// Buffers reused between turns.
#[derive(Default)]
pub struct Scratch {
    pub(super) events: Vec<Event>,
    parsed: Vec<Parsed>,
    ranges: Vec<(u32, u32)>,
    /// The unquoted words of inline requests.
    words: Vec<u8>,
    one: ArgumentRanges,
}

/// Arguments of a batch for which room is kept: 64 KiB.
const KEPT_ARGUMENTS_MAX: usize = 8192;

/// Bytes of a batch's words for which room is kept.
const KEPT_WORDS_BYTES_MAX: usize = 64 << 10;

impl Scratch {
    /// Forgets the batch. Neither a giant request nor giant words keep their memory.
    fn clear(&mut self) {
        self.parsed.clear();
        self.ranges.clear();
        self.ranges.shrink_to(KEPT_ARGUMENTS_MAX);
        self.words.clear();
        self.words.shrink_to(KEPT_WORDS_BYTES_MAX);
    }

    // As with every `inline` on this path, callgrind showed it: 2 % of a GET's instructions went
    // into calls of such functions.
    #[inline(always)]
    fn args<'a>(&'a self, parsed: &Parsed, bytes: &'a [u8]) -> Args<'a> {
        let source = match &parsed.words {
            Some(words) => &self.words[words.clone()],
            None => &bytes[parsed.input.clone()],
        };
        let args = Args::new(source, &self.ranges[parsed.ranges.clone()]);
        match parsed.key {
            Some((at, hash)) => args.with_hash(at, hash),
            None => args,
        }
    }

    /// Adds the request that was decoded last, which stands at `input` of a session's bytes, to the
    /// batch. `last` is the command before it; returns its own.
    fn add(
        &mut self,
        catalog: &Catalog,
        last: Option<CommandId>,
        bytes: &[u8],
        input: Range<usize>,
    ) -> Option<CommandId> {
        let request = &bytes[input.clone()];
        let source = self.one.source(request);
        let args = Args::new(source, self.one.ranges());
        let command = catalog.find_again(last, args.at(0), args.get(1)).map(|found| found.id);
        let words = (!std::ptr::eq(source, request)).then(|| {
            let start = self.words.len();
            self.words.extend_from_slice(source);
            start..self.words.len()
        });
        let first_range = self.ranges.len();
        self.ranges.extend_from_slice(self.one.ranges());
        let ranges = first_range..self.ranges.len();
        self.parsed.push(Parsed { command, ranges, input, words, key: None });
        command
    }
}

impl Server {
    /// Executes what clients sent, up to the turn's limit; the rest stays queued.
    pub(super) fn execute_ready(&mut self, scratch: &mut Scratch) {
        if !self.core.clients.ready.is_empty() || !self.core.clients.resuming.is_empty() {
            self.core.begin_lap();
        }
        let limits = self.core.process.options.limits.turn;
        let (has_cold, turn) = (self.core.has_cold(), &self.core.turn);
        let sends = self.core.clients.flushing.len();
        let mut share = Share::of_turn(&limits, has_cold, sends, turn.monotonic, turn.lap);
        let mut bytes_left = limits.bytes_max;
        let before = self.begin_round();
        // However many have what they waited for, others have their turn.
        let mut half = share.half();
        let executed = self.execute_resuming(usize::MAX, &mut share, &mut half);
        if executed == 0 && half.nanos == 0 {
            // All were put off that there was time to judge. The next ones will be soon, not at
            // once.
            self.core.put_off = self.core.put_off.max(self.core.clients.resuming.len());
        }
        for place in 0..self.core.clients.ready.len() {
            if place % BATCH_REQUESTS_MAX == 0 {
                if place > 0 && self.core.has_cold() && self.suspended.is_none() {
                    let count = self.take_arrived();
                    self.execute_resuming(count, &mut share, &mut half);
                }
                self.look_ahead();
            }
            let is_over = share.is_used_up()
                || bytes_left == 0
                || self.has_lost_value() && self.suspended.is_none()
                || !self.takes_requests();
            if is_over || self.is_stalled() || self.core.stopping.is_some() {
                break;
            }
            let Some(connection) = self.core.clients.ready.pop_front() else { break };
            let Some(session) = self.core.clients.sessions.get_mut(connection) else { continue };
            session.flow.is_queued = false;
            let received = session.input.waiting_bytes();
            let (buffer, ranges) =
                (session.input.allocated_bytes(), session.input.decoder.allocated_bytes());
            if session.is_master() && self.core.pause.paused().is_some() {
                // The data set stands still; the end of the pause goes on.
                self.core.pause.add_input(connection);
                continue;
            }
            let changes = self.core.changes();
            self.execute_session(connection, &mut share, scratch);
            self.gathering.writers += usize::from(self.core.changes() != changes);
            self.core.count_memory(connection);
            let input = &self.core.clients.at(connection).input;
            // A growing buffer copies the part of a long request that is there, and a growing list
            // copies the ranges of its arguments: both take time.
            let has_grown = input.allocated_bytes() > buffer;
            let moved = if has_grown { input.waiting_bytes() } else { 0 }
                + input.decoder.allocated_bytes().saturating_sub(ranges);
            let cost = received - input.waiting_bytes() + moved / MOVED_PER_RECEIVED;
            bytes_left = bytes_left.saturating_sub(cost);
            self.core.leadership.has_served = true;
            self.lone.saw(connection);
        }
        self.end_round(before, share.requests < limits.requests_max);
        // Before what the turn does beside.
        if let Some(tiering) = &mut self.core.shard.tiering {
            tiering.begin_reads();
        }
    }

    /// Asks the processor for what the next sessions' first requests will touch, so that the misses
    /// of many clients without a pipeline overlap as those of one pipeline do.
    fn look_ahead(&self) {
        if self.core.clients.ready.len() < 2 {
            return;
        }
        let keyspace = &self.core.shard.engine.keyspace;
        let mut hints = [(DatabaseId(0), 0); BATCH_REQUESTS_MAX];
        let mut found = 0;
        for connection in self.core.clients.ready.iter().take(BATCH_REQUESTS_MAX) {
            let Some(session) = self.core.clients.sessions.get(*connection) else { continue };
            let waiting = session.input.bytes.get(session.input.consumed..).unwrap_or_default();
            let Some(key) = hint::second_argument(waiting) else { continue };
            hints[found] = (session.database, keyspace.hash(key));
            found += 1;
        }
        self.core.shard.prefetch(&mut hints[..found]);
    }

    /// Executes requests of one session, as many as its share of the turn allows, and takes them
    /// off it.
    fn execute_session(&mut self, client: ConnectionId, share: &mut Share, scratch: &mut Scratch) {
        let mut goes_on = true;
        let batch_max = self.core.process.options.limits.batch_requests_max.min(BATCH_REQUESTS_MAX);
        let input = &mut self.core.clients.at_mut(client).input;
        let mut bytes = std::mem::take(&mut input.bytes);
        input.executing = (bytes.len() - input.consumed, bytes.capacity());
        input.peak = input.peak.max(bytes.len());
        while goes_on && !share.is_used_up() && self.core.clients.at(client).takes_requests() {
            if self.core.chokes(client) {
                break;
            }
            let limit = batch_max.min(share.requests);
            goes_on = self.parse(client, &bytes, limit, share, scratch);
            self.prefetch(client, &bytes, scratch);
            // Who is put off would have them come again and again.
            let may_fetch = self.core.has_cold() && !self.core.is_snapshot_behind();
            if may_fetch && scratch.parsed.len() > 1 {
                self.fetch_ahead(client, &bytes, scratch);
            }
            if scratch.parsed.len() > 1 {
                // Parsing and prefetching a batch is not the time of its first command. Of a lone
                // one it is little, and asking for the time would be more.
                self.core.begin_lap();
            }
            let dispatched = self.execute_batch(client, &bytes, share, scratch);
            if dispatched != Dispatched::Done {
                self.core.clients.at_mut(client).rewind();
                if dispatched == Dispatched::Later {
                    self.core.enqueue(client);
                }
                break;
            }
        }
        if share.is_used_up() && self.core.clients.at(client).blocked.is_none() {
            self.core.enqueue(client);
        }
        // Nothing was received into the taken buffer meanwhile: receiving is another step.
        let session = self.core.clients.at_mut(client);
        session.input.compact(&mut bytes);
        session.input.bytes = bytes;
        session.input.executing = (0, 0);
        // What a long request will take counts from its head on.
        session.input.make_room(0);
        // A request that was cut off by the hangup never comes to an end. One that is under way is
        // answered first, and what stands behind it.
        let goes_on = goes_on || session.flow.is_queued || session.blocked.is_some();
        let ends = session.flow.peer_has_closed && !goes_on;
        session.flow.is_closing |= ends;
        let is_drained = session.output.pending_bytes() == 0;
        if session.flow.reading_is_off {
            // Executing may have made room, or shown that the request in the making is larger.
            self.core.flush_later(client);
        }
        if ends && is_drained {
            self.core.close_session(client);
        }
    }

    /// Parses up to `limit` requests into the batch; whether more may follow. An empty one, such as
    /// a blank line, counts in the share.
    fn parse(
        &mut self,
        client: ConnectionId,
        bytes: &[u8],
        limit: usize,
        share: &mut Share,
        scratch: &mut Scratch,
    ) -> bool {
        scratch.clear();
        let Core { clients, process, shard, .. } = &mut self.core;
        let session = clients.at_mut(client);
        let limits = &mut session.input.decoder.limits;
        limits.authenticated =
            session.who.is_authenticated || !process.acl.requires_authentication();
        limits.bulk_bytes_max = shard.engine.keyspace.settings.proto_max_bulk_len as usize;
        // A master has executed what it sends.
        limits.arguments_max = match session.kind {
            ClientKind::Master => i32::MAX as usize,
            _ => resp::Limits::default().arguments_max,
        };
        let input = &mut session.input;
        let mut last = session.last_command;
        while scratch.parsed.len() < limit && !share.is_used_up() {
            match input.decoder.next(&bytes[input.parsed..], &mut scratch.one) {
                Decoded::Request { consumed } => {
                    let start = input.parsed;
                    input.parsed += consumed;
                    input.wanted = 0;
                    last = scratch.add(process.catalog, last, bytes, start..input.parsed);
                }
                Decoded::Empty { consumed } => {
                    input.parsed += consumed;
                    if !scratch.parsed.is_empty() {
                        return true;
                    }
                    input.consumed = input.parsed;
                    share.take(0);
                }
                Decoded::Incomplete { needed } => {
                    input.wanted = needed;
                    return false;
                }
                Decoded::Error(_) if !scratch.parsed.is_empty() => {
                    // What comes before it may lift the limit: an AUTH, a CONFIG SET.
                    input.decoder = Decoder::new(input.decoder.limits);
                    return true;
                }
                Decoded::Error(error) => {
                    session.protocol_error = Some(error);
                    return false;
                }
            }
        }
        true
    }

    /// Has values come that the batch will need and that are not in memory, so that its requests
    /// do not wait for one after another.
    fn fetch_ahead(&mut self, client: ConnectionId, bytes: &[u8], scratch: &Scratch) {
        let asker = self.core.asker(client);
        // A master's requests do not wait: what they need is read as they run.
        if asker.is_stranger || asker.is_master() {
            return;
        }
        let tiering = self.core.shard.tiering.as_ref();
        let is_behind = tiering.is_some_and(Tiering::puts_off);
        let mut ahead = Ahead::default();
        for parsed in &scratch.parsed {
            let Some(id) = parsed.command else { continue };
            let args = scratch.args(parsed, bytes);
            // The gate has not judged it yet, and what finds its keys asks for those that must be
            // there.
            let command = self.core.process.catalog.command(id);
            if is_behind && command.demand.may_grow() {
                // It may be put off, and what comes behind it would have values come each time.
                break;
            }
            if command.admits(args.len()) && self.core.allows(client, command, args) {
                self.core.fetch_ahead(client, id, args, &mut ahead);
            }
        }
    }

    /// Asks the processor for what the batch will look at, so that the misses overlap. Notes the
    /// hashes of keys, which executing needs as well.
    fn prefetch(&self, client: ConnectionId, bytes: &[u8], scratch: &mut Scratch) {
        if scratch.parsed.len() < 2 {
            return;
        }
        let keyspace = &self.core.shard.engine.keyspace;
        let database = self.core.clients.at(client).database;
        let (mut keys, mut differ) = ([(database, 0); BATCH_REQUESTS_MAX], 0);
        let (mut members, mut named) = ([(0, 0); BATCH_REQUESTS_MAX], 0);
        // Requests of one pipeline often go to one key.
        let mut last: Option<(&[u8], KeyHash)> = None;
        let mut batch = std::mem::take(&mut scratch.parsed);
        for parsed in &mut batch {
            let args = scratch.args(parsed, bytes);
            let Some(id) = parsed.command else { continue };
            let command = self.core.process.catalog.command(id);
            let Some(key) = args.get(command.likely_key).filter(|_| command.likely_key > 0) else {
                continue;
            };
            let hash = match last {
                Some((same, hash)) if same == key => hash,
                _ => {
                    let hash = keyspace.hash(key);
                    keys[differ].1 = hash;
                    differ += 1;
                    hash
                }
            };
            last = Some((key, hash));
            parsed.key = Some((command.likely_key, hash));
            if let Some(member) = command.declared.member.and_then(|at| args.get(at)) {
                members[named] = (hash, keyspace.hash(member));
                named += 1;
            }
        }
        scratch.parsed = batch;
        self.core.shard.prefetch(&mut keys[..differ]);
        let mut tables = [None; BATCH_REQUESTS_MAX];
        let mut found = (0, None);
        for (table, &(key, member)) in tables.iter_mut().zip(&members[..named]) {
            if found.0 != key {
                found = (key, keyspace.find_table(database, key));
            }
            *table = found.1.map(|value| (value, member));
        }
        for (value, member) in tables.iter().flatten() {
            value.prefetch_bucket(*member);
        }
        for (value, member) in tables.iter().flatten() {
            value.prefetch_member(*member);
        }
    }

    /// Executes the batch in order, as far as the share of the turn allows; how it ended.
    fn execute_batch(
        &mut self,
        client: ConnectionId,
        bytes: &[u8],
        share: &mut Share,
        scratch: &Scratch,
    ) -> Dispatched {
        let mut pass = None;
        for parsed in &scratch.parsed {
            if share.is_used_up() {
                return Dispatched::Later;
            }
            let args = scratch.args(parsed, bytes);
            let session = self.core.clients.at(client);
            let pending = session.output.pending_bytes();
            let dispatched = if session.is_master() {
                self.dispatch_link(client, parsed.command, args)
            } else {
                self.dispatch_next(client, parsed.command, args, &mut pass)
            };
            if dispatched == Dispatched::Later {
                // Judging takes time as well.
                self.core.begin_lap();
                share.take_time(self.core.turn.lap);
                return dispatched;
            }
            let session = self.core.clients.at_mut(client);
            session.input.consumed = parsed.input.end;
            share.take(session.output.pending_bytes().saturating_sub(pending));
            share.take_time(self.core.turn.lap);
            if session.is_master() && dispatched == Dispatched::Done {
                let waiting = bytes.len() - parsed.input.end;
                self.link.note_applied(&mut self.core, client, waiting);
            }
            if dispatched == Dispatched::Stop {
                return dispatched;
            }
            if self.core.shard.is_record_full() {
                self.core.shard.commit(self.core.turn.now);
            }
        }
        if let Some(error) = self.core.clients.at_mut(client).protocol_error.take() {
            let written = self.core.clients.at(client).output.end();
            self.core.clients.reply(client).error(error.line());
            self.core.process.statistics.error("ERR");
            self.core.finish_reply(client, written, base::Sequence::ZERO);
            self.core.clients.at_mut(client).flow.is_closing = true;
            return Dispatched::Stop;
        }
        Dispatched::Done
    }
}
