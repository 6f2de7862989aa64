//! Clients that take more than their share are disconnected: those that do not read what is sent
//! to them, those that send a request without end, those that are idle for long.
//!
//! The limits are `client-output-buffer-limit`, `client-query-buffer-limit` and `timeout`, as in
//! Redis. Bytes that wait for the log count as well: they occupy memory like any other.

use crate::server::Server;
use crate::session::Session;
use base::ConnectionId;
use config::settings::NodeSettings;
use config::value::BufferLimit;

/// Classes of `client-output-buffer-limit`, by their index in it.
const NORMAL: usize = 0;
const REPLICA: usize = 1;
const SUBSCRIBER: usize = 2;

/// Output of one client that may be pending before none of its requests is executed any more: a
/// client that asks and never reads costs this much memory, and one reply. In bytes. What others
/// publish to it counts, but is not delayed: that is what the output limits are for.
///
/// Redis knows no such bound. Clients rely on that: many write a whole pipeline before they read
/// the first reply, and would wait for the server for ever as it waits for them. Hence the bound
/// is generous, and while it is reached the requests are still received, up to
/// `CHOKED_INPUT_BYTES_MAX`: a client must have written that much beyond 64 MiB of replies, without
/// reading any, to be stuck. Both are guesses.
pub(crate) const PENDING_BYTES_MAX: usize = 64 << 20;

/// Input that may lie unexecuted while the output is beyond `PENDING_BYTES_MAX`. In bytes.
const CHOKED_INPUT_BYTES_MAX: usize = 64 << 20;

/// Input of one connection that may lie unexecuted otherwise, beyond one request in the making. In
/// bytes.
const UNEXECUTED_BYTES_MAX: usize = 1 << 20;

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

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

impl Server {
    /// Disconnects a session whose output exceeds its limit, or has exceeded the soft one for too
    /// long. It is not told: what lies in its output is dropped, as by Redis.
    pub(crate) fn check_output(&mut self, session: &mut Session) {
        if !session.is_cut && self.exceeds_output_limit(session) {
            self.cut_off(session);
        }
    }

    /// Disconnects a session whose output has reached its limit, or would have.
    pub(crate) fn cut_off(&mut self, session: &mut Session) {
        if session.is_cut {
            return;
        }
        let bytes = session.output.pending_bytes();
        let (client, peer) = (session.id, &session.peer);
        tracing::warn!(client, peer, bytes, "disconnected: its output reached its limit");
        self.core.process.statistics.output_limit_disconnections += 1;
        session.is_cut = true;
        self.close_session(session);
    }

    fn exceeds_output_limit(&self, session: &mut Session) -> bool {
        let is_stranger =
            !session.is_authenticated && self.core.process.acl.requires_authentication();
        if is_stranger && session.output.pending_bytes() > STRANGER_OUTPUT_BYTES_MAX {
            return true;
        }
        let limit = self.output_limit(session);
        let kept = session.replica.as_ref().map_or(0, |replica| replica.kept_bytes());
        let pending = (session.output.pending_bytes() + kept) as u64;
        if limit.hard > 0 && pending >= limit.hard {
            return true;
        }
        if limit.soft == 0 || pending < limit.soft {
            session.soft_limit_since = None;
            return false;
        }
        let since = *session.soft_limit_since.get_or_insert(self.core.turn.monotonic);
        self.core.turn.monotonic.since(since) > limit.soft_seconds * SECOND
    }

    fn output_limit(&self, session: &Session) -> BufferLimit {
        let class = match () {
            () if session.is_replica() => REPLICA,
            () if session.is_subscriber() => SUBSCRIBER,
            () => NORMAL,
        };
        self.core.process.settings.client_output_buffer_limits[class]
    }

    /// Bounds the reply of the command that begins: what would bring the session's output to its
    /// limit is not even made.
    pub(crate) fn bound_reply(&self, session: &mut Session) {
        session.output.bound(hard_bytes(self.output_limit(session)));
    }

    /// Input of a session that may lie unexecuted, in bytes. Half the limit at most: what waits
    /// because of us is no reason to disconnect.
    pub(crate) fn unexecuted_bytes_max(&self, session: &Session) -> usize {
        if !session.is_choked {
            return UNEXECUTED_BYTES_MAX;
        }
        let half_limit = (self.core.process.settings.client_query_buffer_limit / 2) as usize;
        CHOKED_INPUT_BYTES_MAX.min(half_limit).max(UNEXECUTED_BYTES_MAX)
    }

    /// Disconnects a session that has more waiting here than `client-query-buffer-limit`: input
    /// that was not executed, and what earlier requests made the server keep. Whether it does.
    ///
    /// What is kept is what MULTI queued, as in Redis 7.0, and the names that WATCH and SUBSCRIBE
    /// gave, which Redis keeps without limit.
    pub(crate) fn check_input(&mut self, session: &mut Session) -> bool {
        let bytes = session.input.waiting_bytes() + session.kept_bytes();
        if session.is_link || bytes as u64 <= self.core.process.settings.client_query_buffer_limit {
            return false;
        }
        // Its first bytes are not told, other than by Redis: they may be a password.
        tracing::warn!(
            client = session.id,
            peer = session.peer,
            bytes,
            "disconnected: it reached the client-query-buffer-limit"
        );
        self.core.process.statistics.input_limit_disconnections += 1;
        self.close_session(session);
        true
    }

    /// The periodic look at every session: soft limits without traffic, and idle clients.
    pub(crate) fn check_sessions(&mut self) {
        let ids: Vec<ConnectionId> = self.core.clients.by_id.values().copied().collect();
        for connection in ids {
            let Some(mut session) = self.core.clients.sessions.remove(&connection) else {
                continue;
            };
            self.check_output(&mut session);
            self.count_memory(&mut session);
            if self.is_idle_for_too_long(&session) {
                self.close_session(&mut session);
            }
            self.core.clients.sessions.insert(connection, session);
        }
    }

    /// Subscribers, monitors, replicas and blocked clients are silent by nature.
    fn is_idle_for_too_long(&self, session: &Session) -> bool {
        let seconds_max = u64::from(self.core.process.settings.timeout);
        let listens = session.is_subscriber() || session.is_monitor || session.is_replica();
        let is_exempt = session.is_link || listens || session.blocked.is_some();
        let idle_seconds = self.core.turn.monotonic.seconds_since(session.last_interaction);
        seconds_max > 0 && !is_exempt && idle_seconds > seconds_max
    }
}
