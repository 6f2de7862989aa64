//! Clients that take more than their share are disconnected: those that do not read what is sent
//! to them, those that send a request without end, those that are idle for long.
//!
//! The limits are `client-output-buffer-limit`, `client-query-buffer-limit` and `timeout`, as in
//! Redis. Bytes that wait for the log count as well: they occupy memory like any other.

use crate::core::{Core, Process, Turn};
use crate::session::input::Bounds;
use crate::session::{Blocked, Session};
use base::time::SECOND;
use base::{ConnectionId, Sequence};
use config::settings::NodeSettings;
use config::value::BufferLimit;

/// Classes of `client-output-buffer-limit`, by their index in it.
const NORMAL: usize = 0;
const REPLICA: usize = 1;
const SUBSCRIBER: usize = 2;

/// Output that a client may leave unread before it has authenticated. In bytes. As Redis, which
/// does not count its first 16 KiB.
const STRANGER_OUTPUT_BYTES_MAX: usize = (16 << 10) + 1024;

/// Output of one client that may be pending behind one command of its own, where
/// `client-output-buffer-limit` sets no hard limit, in bytes. The client is disconnected as by one.
///
/// Redis has none, and ends for want of memory. A reply may be any number of times as long as the
/// request and the data that it is about (`MGET k k k …`), so that who may read one key could end
/// the server. Twice the longest string that is allowed by default, and as much as
/// `client-query-buffer-limit` allows in the other direction.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;

/// Bytes of messages that one unit may leave for one subscriber. Who would be sent more is
/// disconnected, so more is not even gathered.
pub(crate) fn owed_bytes_max(settings: &NodeSettings) -> Option<usize> {
    Some(hard_bytes(settings.client_output_buffer_limits[SUBSCRIBER]))
}

/// The bytes of output at which a client is disconnected that a single command or unit may bring
/// there.
fn hard_bytes(limit: BufferLimit) -> usize {
    let hard = if limit.hard == 0 { OUTPUT_BYTES_MAX } else { limit.hard };
    usize::try_from(hard).unwrap_or(usize::MAX)
}

impl Core {
    /// Whether so many replies are withheld that nothing more should be executed.
    pub(crate) fn is_much_held(&self) -> bool {
        self.clients.held_bytes > self.process.options.limits.held_bytes_max
    }

    /// Disconnects a session whose output exceeds its limit, or has exceeded the soft one for too
    /// long. It is not told: what lies in its output is dropped, as by Redis.
    pub(crate) fn check_output(&mut self, client: ConnectionId) {
        let Self { clients, process, turn, .. } = self;
        if exceeds_output_limit(clients.at_mut(client), process, turn) {
            self.cut_off(client);
        }
    }

    /// Bytes that were written to a session without a request of its own wait for `observed`. If
    /// the session has no hard limit, the limit of a single command applies.
    pub(crate) fn hold_pushed(&mut self, client: ConnectionId, observed: Sequence) {
        let session = self.clients.at_mut(client);
        if session.output.pending_bytes()
            >= hard_bytes(output_limit(session, &self.process.settings))
        {
            self.cut_off(client);
        }
        self.hold(client, observed);
    }

    /// Disconnects a session whose output has reached its limit, or would have.
    pub(crate) fn cut_off(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        if std::mem::replace(&mut session.flow.is_cut, true) {
            return;
        }
        let bytes = session.output.pending_bytes();
        let (id, peer) = (session.who.id, &session.who.peer);
        tracing::warn!(client = id, peer, bytes, "disconnected: its output reached its limit");
        self.process.statistics.output_limit_disconnections += 1;
        self.close_session(client);
    }

    /// Bounds the reply of the command that begins: what would bring the session's output to its
    /// limit is not even made. Returns the stream offset at which the reply begins.
    pub(crate) fn begin_reply(&mut self, client: ConnectionId) -> u64 {
        let session = self.clients.at_mut(client);
        session.output.bound(hard_bytes(output_limit(session, &self.process.settings)));
        session.output.end()
    }

    /// The most bytes of a reply that is built outside of a session's output.
    pub(crate) fn reply_room(&self, client: ConnectionId) -> usize {
        let session = self.clients.at(client);
        hard_bytes(output_limit(session, &self.process.settings))
            .saturating_sub(session.output.pending_bytes())
    }

    /// Input of a session that may lie unexecuted, in bytes. Half the limit at most: what waits
    /// because of us is no reason to disconnect.
    pub(crate) fn unexecuted_bytes_max(&self, client: ConnectionId) -> usize {
        let limits = &self.process.options.limits;
        let half_limit = (self.process.settings.client_query_buffer_limit / 2) as usize;
        let session = self.clients.at(client);
        // A client whose wait ends with its peer is received from as far as it may be, to see that
        // it has gone.
        let may_go = session.blocked.as_ref().is_some_and(Blocked::ends_with_peer);
        let bytes_max = match session.flow.output_is_unread || may_go {
            true => limits.choked_input_bytes_max.max(limits.unexecuted_bytes_max),
            false => limits.unexecuted_bytes_max,
        };
        bytes_max.min(half_limit)
    }

    /// How far a client's input receives now.
    pub(crate) fn input_bounds(&self, client: ConnectionId) -> Bounds {
        let session = self.clients.at(client);
        let query_max = match session.is_master() {
            true => usize::MAX,
            false => self.process.settings.client_query_buffer_limit as usize,
        };
        Bounds {
            unexecuted_max: self.unexecuted_bytes_max(client),
            turn_max: self.process.options.limits.turn.client_received_bytes_max,
            // Beyond it `check_input` disconnects the client.
            waiting_max: query_max.saturating_sub(session.kept_bytes()),
        }
    }

    /// Disconnects a session that has more waiting here than `client-query-buffer-limit`: input
    /// that was not executed, and what earlier requests made the server keep. Whether it does.
    ///
    /// What is kept is what MULTI queued, as in Redis 7.0, and the names that WATCH and SUBSCRIBE
    /// gave, which Redis keeps without limit.
    pub(crate) fn check_input(&mut self, client: ConnectionId) -> bool {
        let session = self.clients.at(client);
        let bytes = session.input.waiting_bytes() + session.kept_bytes();
        let bytes_max = self.process.settings.client_query_buffer_limit;
        if session.is_master() || bytes as u64 <= bytes_max {
            return false;
        }
        // Its first bytes are not told, other than by Redis: they may be a password.
        let (id, peer) = (session.who.id, &session.who.peer);
        tracing::warn!(
            client = id,
            peer,
            bytes,
            "disconnected: it reached the client-query-buffer-limit"
        );
        self.process.statistics.input_limit_disconnections += 1;
        self.close_session(client);
        true
    }

    /// The periodic look at every session: soft limits without traffic, and idle clients.
    pub(crate) fn check_sessions(&mut self) {
        let ids: Vec<ConnectionId> = self.clients.by_id.values().copied().collect();
        for connection in ids {
            if !self.clients.has(connection) {
                continue;
            }
            self.check_output(connection);
            self.count_memory(connection);
            if self.is_idle_for_too_long(connection) {
                self.close_session(connection);
            }
        }
    }

    /// Subscribers, monitors, replicas and blocked clients are silent by nature.
    fn is_idle_for_too_long(&self, client: ConnectionId) -> bool {
        let seconds_max = u64::from(self.process.settings.timeout);
        let session = self.clients.at(client);
        let listens = session.is_subscriber() || session.is_replica();
        let is_exempt = session.is_master()
            || listens
            || self.clients.monitors.contains(&client)
            || session.blocked.is_some();
        let idle_seconds = self.turn.monotonic.seconds_since(session.flow.last_interaction);
        seconds_max > 0 && !is_exempt && idle_seconds > seconds_max
    }
}

/// Whether a session's output exceeds its limit, or has exceeded the soft one for too long. That of
/// one that was cut off has been dealt with.
pub(super) fn exceeds_output_limit(session: &mut Session, process: &Process, turn: &Turn) -> bool {
    if session.flow.is_cut {
        return false;
    }
    let limit = output_limit(session, &process.settings);
    let pending = session.output.pending_bytes();
    if pending > STRANGER_OUTPUT_BYTES_MAX
        && !session.who.is_authenticated
        && process.acl.requires_authentication()
    {
        return true;
    }
    let pending = (pending + session.flow.apart_bytes) as u64;
    if limit.hard > 0 && pending >= limit.hard {
        return true;
    }
    if limit.soft == 0 || pending < limit.soft {
        session.flow.soft_limit_since = None;
        return false;
    }
    let since = *session.flow.soft_limit_since.get_or_insert(turn.monotonic);
    turn.monotonic.since(since) > limit.soft_seconds * SECOND
}

/// The limit of a session's class.
fn output_limit(session: &Session, settings: &NodeSettings) -> BufferLimit {
    let class = if session.is_replica() {
        REPLICA
    } else if session.is_subscriber() {
        SUBSCRIBER
    } else {
        NORMAL
    };
    settings.client_output_buffer_limits[class]
}
