//! One client connection: its input, its output, and what it has said about itself.

pub mod input;
pub mod tracking;

use crate::output::Output;
use base::{ConnectionId, DatabaseId, MonotonicNanos, Sequence};
use catalog::acl::UserId;
use catalog::{CommandId, Demand};
use engine::command::Args;
use engine::unit::Wait;
use input::Input;
use resp::{Decoder, ProtocolError, Reply};
use std::collections::BTreeSet;
use tracking::Tracking;

/// A request that outlives the input it came in: queued in MULTI, or blocked.
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    pub command: CommandId,
    bytes: Vec<u8>,
    ranges: Vec<(u32, u32)>,
}

impl OwnedRequest {
    pub fn new(command: CommandId, args: Args<'_>) -> Self {
        let mut bytes = Vec::with_capacity(args.iter().map(<[u8]>::len).sum());
        let mut ranges = Vec::with_capacity(args.len());
        for argument in args.iter() {
            ranges.push((bytes.len() as u32, argument.len() as u32));
            bytes.extend_from_slice(argument);
        }
        Self { command, bytes, ranges }
    }

    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.ranges)
    }

    /// Memory that the request occupies.
    pub fn allocated_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.ranges.capacity() * 8
    }
}

/// A transaction between MULTI and EXEC.
#[derive(Default, Debug)]
pub struct Transaction {
    queued: Vec<OwnedRequest>,
    queued_bytes: usize,
    /// What all of them need together.
    demand: Demand,
    /// A command was refused while queueing: EXEC answers EXECABORT.
    pub is_broken: bool,
}

impl Transaction {
    pub fn queue(&mut self, request: OwnedRequest, demand: Demand) {
        self.demand = self.demand.union(demand);
        self.queued_bytes += request.allocated_bytes();
        self.queued.push(request);
    }

    pub fn queued(&self) -> &[OwnedRequest] {
        &self.queued
    }

    /// What all queued requests need together.
    pub fn demand(&self) -> Demand {
        self.demand
    }

    /// Memory that the queued requests occupy.
    pub fn allocated_bytes(&self) -> usize {
        self.queued_bytes
    }
}

/// The keys that a session watches, each once.
#[derive(Default, Debug)]
pub struct Watched {
    keys: Vec<(DatabaseId, Vec<u8>)>,
    /// What they occupy.
    bytes: usize,
}

impl Watched {
    pub fn add(&mut self, database: DatabaseId, key: &[u8]) {
        self.bytes += key.len() + NAME_BYTES;
        self.keys.push((database, key.to_vec()));
    }

    pub fn iter(&self) -> impl Iterator<Item = &(DatabaseId, Vec<u8>)> {
        self.keys.iter()
    }
}

/// What a subscription or a watched key costs beside its name, about. In bytes.
pub const NAME_BYTES: usize = 64;

/// Memory for one key that a client waits for, beside its name, in bytes: 300 with the name were
/// measured, with millions of keys.
const WAITING_KEY_BYTES: usize = 256;

/// What a client waits for in a blocking command.
#[derive(Debug)]
pub enum Blocked {
    /// A key (BLPOP and its kin): the request runs again when one is ready.
    Keys { request: OwnedRequest, wait: Wait, deadline: Option<MonotonicNanos> },
    /// Something that its request needs before it can run: it is judged again from the gate then.
    /// `turn` is the turn of the loop in which it began to wait.
    Parked { why: Why, request: OwnedRequest, deadline: Option<MonotonicNanos>, turn: u64 },
    /// The publication of a snapshot (SAVE).
    Snapshot,
    /// What another server makes of its keys (MIGRATE): the number of the migration.
    Migration(u64),
    /// Its own script, which is suspended, to end.
    Script,
    /// Replicas to have its last write (WAIT, WAITAOF). No deadline: without limit.
    Replicas { written: Written, wanted: i64, deadline: Option<MonotonicNanos> },
}

/// A client's last write, and what is asked of its copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The position of the write in the stream of commands, and in the log.
    pub offset: u64,
    pub record: Sequence,
    /// Whether a copy must be on stable storage (WAITAOF), not only executed.
    pub is_durable: bool,
}

/// What a parked request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The end of CLIENT PAUSE.
    Pause,
    /// The end of the migration of a key.
    Migration,
    /// That what it reads is the newest, on a replica of the log.
    Newest,
    /// Values that are not in memory.
    Values,
}

impl Why {
    /// What a request is told whose time was up before it could run.
    pub fn timeout_error(self) -> &'static str {
        match self {
            Self::Newest => {
                "MASTERDOWN The primary does not say in time how far this replica would have to be."
            }
            // These wait without limit.
            Self::Pause | Self::Migration | Self::Values => "ERR the request waited for too long",
        }
    }
}

impl Blocked {
    /// Whether a time, or CLIENT UNBLOCK, may end the wait with a reply of its own.
    pub fn ends_by_time(&self) -> bool {
        match self {
            Self::Keys { .. } | Self::Replicas { .. } => true,
            Self::Parked { deadline, .. } => deadline.is_some(),
            Self::Snapshot | Self::Script | Self::Migration(_) => false,
        }
    }

    /// Whether the wait ends when the client closes its side. The wait for the end of a pause does
    /// too: a pause may be long, and those who gave up would take the places of others.
    pub fn ends_with_peer(&self) -> bool {
        match self {
            Self::Keys { .. } | Self::Replicas { .. } => true,
            Self::Parked { why, .. } => *why == Why::Pause,
            Self::Snapshot | Self::Migration(_) | Self::Script => false,
        }
    }

    /// Memory that the request which waits occupies, and what says for which keys.
    fn allocated_bytes(&self) -> usize {
        match self {
            // The keys lie in the request, in the wait, and where a key's waiters are found.
            Self::Keys { request, wait, .. } => {
                3 * request.allocated_bytes() + wait.keys.len() * WAITING_KEY_BYTES
            }
            Self::Parked { request, .. } => request.allocated_bytes(),
            Self::Snapshot | Self::Script | Self::Migration(_) | Self::Replicas { .. } => 0,
        }
    }

    /// When the wait ends with the reply of a time that is up; `None`: not by time.
    pub fn deadline(&self) -> Option<MonotonicNanos> {
        match self {
            Self::Keys { deadline, .. }
            | Self::Replicas { deadline, .. }
            | Self::Parked { deadline, .. } => *deadline,
            Self::Snapshot | Self::Script | Self::Migration(_) => None,
        }
    }
}

/// What a client is to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientKind {
    /// One that asks.
    Client,
    /// What it says is the stream of the master.
    Master,
    /// It is told what happens, as commands: a replica of Redis.
    Replica,
    /// It reports how far it is: a replica of the log.
    Member,
}

/// CLIENT REPLY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyMode {
    On,
    Off,
    /// The reply to the next command is dropped, then to none.
    SkipNext,
    /// The reply to this command is dropped.
    Skip,
}

/// CLIENT READS: whether a replica of the log shows a client what it has, or the newest there is.
#[derive(Clone, Copy, Default, Debug)]
pub struct NewestReads {
    pub are_wanted: bool,
    /// The request that runs has waited for it.
    pub is_confirmed: bool,
    /// What arrived until this turn of the loop may read what is here.
    pub confirmed_turn: u64,
    /// In this turn something arrived last.
    pub received_turn: u64,
}

/// Who a client is, as it said or as its connection shows.
pub struct Identity {
    /// CLIENT ID: counted from 1, never reused.
    pub id: u64,
    pub peer: String,
    pub local: String,
    /// The peer is on the loopback interface or a Unix socket.
    pub is_local: bool,
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO: the client library's name and version.
    pub library: (String, String),
    /// Whose rights it has; they count once it is authenticated.
    pub user: UserId,
    pub is_authenticated: bool,
    pub created: MonotonicNanos,
}

/// How bytes flow from and to a client, and what stops them.
#[derive(Default)]
pub struct Flow {
    /// In the server's list of sessions with bytes to receive.
    pub is_receiving: bool,
    /// In the server's list of sessions with input left to execute.
    pub is_queued: bool,
    /// In the server's list of sessions with bytes to send.
    pub is_flushing: bool,
    /// The kernel's buffer is full: nothing is offered until it drains.
    pub kernel_is_full: bool,
    /// Too much output is unread: nothing is executed until some of it is.
    pub output_is_unread: bool,
    /// The input is full: the driver reports no bytes until it has room again.
    pub reading_is_off: bool,
    /// The peer has ended its side, though not all that it sent may have been received.
    pub peer_is_ending: bool,
    /// All that the peer sent was received, and the driver reports nothing more: what it asked is
    /// still executed, then the connection closes.
    pub peer_has_closed: bool,
    /// The connection closes once its output is sent.
    pub is_closing: bool,
    /// Its output exceeded the limit: nothing is sent to it any more.
    pub is_cut: bool,
    /// When the output first exceeded its soft limit.
    pub soft_limit_since: Option<MonotonicNanos>,
    /// The newest record that the server knows this session to wait for.
    pub waits_for: Sequence,
    /// What it was counted to occupy, for `maxmemory-clients`.
    pub counted_bytes: usize,
    /// Bytes that others keep for it, to be sent behind its output.
    pub apart_bytes: usize,
    /// When something was last received or sent.
    pub last_interaction: MonotonicNanos,
}

/// What a client is subscribed to.
#[derive(Default)]
pub struct Subscriptions {
    pub channels: BTreeSet<Vec<u8>>,
    pub patterns: BTreeSet<Vec<u8>>,
    pub shard_channels: BTreeSet<Vec<u8>>,
    /// What the names of all of them occupy.
    pub bytes: usize,
}

/// A client connection.
pub struct Session {
    pub connection: ConnectionId,
    pub who: Identity,
    pub kind: ClientKind,
    pub input: Input,
    pub output: Output,
    pub flow: Flow,
    pub database: DatabaseId,
    pub transaction: Option<Transaction>,
    /// Keys under WATCH, and whether one of them changed.
    pub watched: Watched,
    pub is_dirty: bool,
    pub blocked: Option<Blocked>,
    pub subscriptions: Subscriptions,
    /// The state of CLIENT TRACKING, while it is on.
    pub tracking: Option<Box<Tracking>>,
    pub reply_mode: ReplyMode,
    /// Encoded pushes of the running command that CLIENT REPLY does not silence.
    pub pushes: Vec<u8>,
    /// A queued command of its transaction runs.
    pub is_in_exec: bool,
    /// Whether a command called by its script is running.
    pub is_in_script: bool,
    /// CLIENT NO-EVICT and NO-TOUCH.
    pub no_evict: bool,
    pub no_touch: bool,
    /// READONLY: it takes what a replica has applied.
    pub reads_replica: bool,
    pub newest: NewestReads,
    /// Where the stream for replicas stood behind the client's last write, and its record.
    pub fed_offset: u64,
    pub wrote: Sequence,
    pub last_command: Option<CommandId>,
    /// What the decoder found wrong, to be said after the requests before it.
    pub protocol_error: Option<ProtocolError>,
}

impl Session {
    pub fn new(connection: ConnectionId, id: u64, now: MonotonicNanos) -> Self {
        Self {
            connection,
            who: Identity {
                id,
                peer: String::new(),
                local: String::new(),
                is_local: false,
                name: Vec::new(),
                library: Default::default(),
                user: UserId::DEFAULT,
                is_authenticated: false,
                created: now,
            },
            kind: ClientKind::Client,
            input: Input::new(),
            output: Output::default(),
            flow: Flow { last_interaction: now, ..Flow::default() },
            database: DatabaseId(0),
            transaction: None,
            watched: Watched::default(),
            is_dirty: false,
            blocked: None,
            subscriptions: Subscriptions::default(),
            tracking: None,
            reply_mode: ReplyMode::On,
            pushes: Vec::new(),
            is_in_exec: false,
            is_in_script: false,
            no_evict: false,
            no_touch: false,
            reads_replica: false,
            newest: NewestReads::default(),
            fed_offset: 0,
            wrote: Sequence::ZERO,
            last_command: None,
            protocol_error: None,
        }
    }

    /// Whether its next request may be executed.
    pub fn takes_requests(&self) -> bool {
        self.blocked.is_none() && !self.flow.is_closing
    }

    /// Where commands write their reply.
    pub fn reply(&mut self) -> &mut Reply {
        &mut self.output.reply
    }

    /// Ends a reply that began at the stream offset `written`, as CLIENT REPLY says. Whether it
    /// exceeded its bound: then nothing is left of it, and the client is to be disconnected.
    #[inline]
    pub fn finish(&mut self, written: u64) -> bool {
        let is_plain = self.reply_mode == ReplyMode::On && self.pushes.is_empty();
        if is_plain && !self.output.is_over() {
            return false;
        }
        self.finish_otherwise(written)
    }

    fn finish_otherwise(&mut self, written: u64) -> bool {
        // Replies that were set aside in EXEC, and headers.
        let is_over = self.output.take_over();
        let is_silent = matches!(self.reply_mode, ReplyMode::Off | ReplyMode::Skip);
        if is_over || is_silent {
            self.output.truncate(written);
        }
        self.reply_mode = match self.reply_mode {
            ReplyMode::Skip => ReplyMode::On,
            ReplyMode::SkipNext => ReplyMode::Skip,
            other => other,
        };
        if !self.pushes.is_empty() {
            let pushes = std::mem::take(&mut self.pushes);
            self.output.reply.raw(&pushes);
        }
        is_over && !is_silent
    }

    /// Forgets what was parsed ahead of execution, an error included: it will be found again, after
    /// the requests before it.
    pub fn rewind(&mut self) {
        self.input.rewind();
        if self.protocol_error.take().is_some() {
            self.input.decoder = Decoder::new(self.input.decoder.limits);
        }
    }

    /// Bytes that the client's earlier requests made the server keep until later ones: what MULTI
    /// queued, and the names that WATCH, SUBSCRIBE and CLIENT TRACKING gave.
    pub fn kept_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, Transaction::allocated_bytes);
        let prefixes = self.tracking.as_ref().map_or(0, |tracking| tracking.prefix_bytes);
        queued + self.watched.bytes + self.subscriptions.bytes + prefixes
    }

    /// Memory that the session occupies, without walking anything: buffers, what is kept for it and
    /// the request that waits. The same while it executes a request as before and behind it, but
    /// for where the request's arguments lie.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.input.allocated_bytes()
            + self.input.decoder.allocated_bytes()
            + self.output.allocated_bytes()
            + self.flow.apart_bytes
            + self.kept_bytes()
            + self.blocked.as_ref().map_or(0, Blocked::allocated_bytes)
            + self.who.name.capacity()
            + self.who.library.0.capacity()
            + self.who.library.1.capacity()
    }

    /// Whether a request, or a part of one, is still to be executed or answered.
    pub fn has_work(&self) -> bool {
        self.blocked.is_some() || !self.input.is_empty()
    }

    /// Whether what it says is the stream of the master.
    pub fn is_master(&self) -> bool {
        self.kind == ClientKind::Master
    }

    /// Whether it is a replica of Redis, which is told what happens.
    pub fn is_replica(&self) -> bool {
        self.kind == ClientKind::Replica
    }

    /// Whether it is a replica of any kind.
    pub fn is_any_replica(&self) -> bool {
        matches!(self.kind, ClientKind::Replica | ClientKind::Member)
    }

    /// How many channels and patterns the client is subscribed to (shard channels apart).
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.channels.len() + self.subscriptions.patterns.len()
    }

    /// In RESP2, a subscriber may only subscribe, unsubscribe, ping, reset and quit.
    pub fn is_subscriber(&self) -> bool {
        self.subscriptions() + self.subscriptions.shard_channels.len() > 0
    }
}

#[cfg(test)]
mod tests;
