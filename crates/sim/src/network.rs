//! The simulated network: clients, the bytes between them and the nodes, and what goes wrong.
//!
//! Bytes of one direction of a connection arrive in order, late, and cut into pieces at any point.
//! A connection may be reset at any delivery. Within that, everything is drawn from the seed.

use crate::random::Random;
use crate::timeline::{Happening, Timeline};
use base::driver::ConnectionId;
use base::time::MonotonicNanos;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How bad the network is.
#[derive(Clone, Debug)]
pub struct NetworkFaults {
    /// How long a piece is under way.
    pub delay_nanos: Range<u64>,
    /// How often, of 100 times, bytes are cut into pieces that arrive apart.
    pub split_percent: u64,
    /// How often, of 100 times, a node's receive brings less than has arrived, as where bytes come
    /// in records.
    pub short_receive_percent: u64,
    /// How often, of 100 times, a node's send takes less than there is room for.
    pub short_send_percent: u64,
    /// How often, of a million deliveries, the connection is reset instead.
    pub resets_per_million: u64,
    /// Bytes that a node may send before the client has read them.
    pub window_bytes: usize,
}

impl NetworkFaults {
    /// Bytes are delayed and cut, but no connection fails.
    pub fn benign() -> Self {
        Self {
            delay_nanos: 10_000..200_000,
            split_percent: 30,
            short_receive_percent: 10,
            short_send_percent: 10,
            resets_per_million: 0,
            window_bytes: 64 << 10,
        }
    }

    /// Bytes are delayed, and arrive and leave as they were sent.
    pub fn whole() -> Self {
        Self { split_percent: 0, short_receive_percent: 0, short_send_percent: 0, ..Self::benign() }
    }

    /// Everything goes wrong often.
    pub fn harsh() -> Self {
        Self {
            delay_nanos: 1_000..20_000_000,
            split_percent: 60,
            short_receive_percent: 40,
            short_send_percent: 40,
            resets_per_million: 2_000,
            window_bytes: 2_000,
        }
    }
}

/// What a client knows of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientState {
    Connecting,
    /// Nobody listened.
    Refused,
    Open,
    /// The node closed; every byte it had sent was received.
    Closed,
    /// The connection failed, or the client reset it.
    Reset,
}

/// One connection, as both sides and the wire see it.
pub(crate) struct Link {
    pub(crate) server: String,
    pub(crate) state: ClientState,
    /// The client sends nothing more.
    client_has_ended: bool,
    /// Nobody asks for the client's state any more.
    client_is_gone: bool,
    client_is_reading: bool,
    /// At the client, read by it.
    received: Vec<u8>,
    /// At the client, not read.
    unread: Vec<u8>,
    /// On the wire to the client.
    in_flight_bytes: usize,
    /// When the newest piece of each direction arrives: no later one may overtake it.
    to_client_until: MonotonicNanos,
    to_server_until: MonotonicNanos,
    /// At the node, not received by it.
    pub(crate) arrived: VecDeque<u8>,
    /// The end of the client's stream has arrived at the node.
    pub(crate) has_ended: bool,
    pub(crate) is_end_reported: bool,
    pub(crate) is_broken: bool,
    pub(crate) is_broken_reported: bool,
    pub(crate) is_reading: bool,
    pub(crate) is_send_short: bool,
    /// The node took the connection in, and has not closed it.
    pub(crate) is_accepted: bool,
    pub(crate) is_closed: bool,
}

impl Link {
    /// Whether the node has something to learn of this connection.
    fn is_news(&self, has_room: bool) -> bool {
        let is_breaking = self.is_broken && !self.is_broken_reported;
        let is_readable = self.is_reading && (self.has_ended || !self.arrived.is_empty());
        let is_ending = self.has_ended && !self.is_end_reported;
        let is_known = self.is_accepted && !self.is_closed;
        is_known
            && (is_breaking
                || !self.is_broken && (is_readable || is_ending || has_room && self.is_send_short))
    }
}

/// A listening node.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) backlog: VecDeque<ConnectionId>,
    pub(crate) is_accepting: bool,
    pub(crate) is_asked_to_stop: bool,
}

pub(crate) struct State {
    pub(crate) random: Random,
    pub(crate) faults: NetworkFaults,
    pub(crate) servers: BTreeMap<String, Server>,
    pub(crate) links: BTreeMap<ConnectionId, Link>,
    connected: u64,
}

impl State {
    /// Room that a node's send to this client has.
    pub(crate) fn window_left(&self, link: &Link) -> usize {
        self.faults.window_bytes.saturating_sub(link.in_flight_bytes + link.unread.len())
    }

    /// How many bytes a receive brings that could bring `count`: at least one of some.
    pub(crate) fn receive_count(&mut self, count: usize) -> usize {
        let percent = self.faults.short_receive_percent;
        if count > 0 && self.random.chance(percent) {
            return self.random.within(1..count as u64 + 1) as usize;
        }
        count
    }
}

/// A handle on a world's network. Clones share it.
#[derive(Clone)]
pub struct SimNetwork {
    pub(crate) timeline: Timeline,
    state: Arc<Mutex<State>>,
}

impl SimNetwork {
    pub fn new(timeline: &Timeline, seed: u64, faults: NetworkFaults) -> Self {
        let state = State {
            random: Random::stream(seed, "network"),
            faults,
            servers: BTreeMap::new(),
            links: BTreeMap::new(),
            connected: 0,
        };
        Self { timeline: timeline.clone(), state: Arc::new(Mutex::new(state)) }
    }

    /// Changes how bad the network is, from the next byte on.
    pub fn set_faults(&self, faults: NetworkFaults) {
        self.state().faults = faults;
    }

    /// Starts to connect to the node that listens as `server`.
    pub fn connect(&self, server: &str) -> SimClient {
        let mut state = self.state();
        state.connected += 1;
        let id = ConnectionId(state.connected);
        let now = self.timeline.now();
        let link = Link {
            server: server.to_owned(),
            state: ClientState::Connecting,
            client_has_ended: false,
            client_is_gone: false,
            client_is_reading: true,
            received: Vec::new(),
            unread: Vec::new(),
            in_flight_bytes: 0,
            to_client_until: now,
            to_server_until: now,
            arrived: VecDeque::new(),
            has_ended: false,
            is_end_reported: false,
            is_broken: false,
            is_broken_reported: false,
            is_reading: true,
            is_send_short: false,
            is_accepted: false,
            is_closed: false,
        };
        state.links.insert(id, link);
        self.to_server(&mut state, id, move |state, link| {
            match state.servers.get_mut(&link.server) {
                Some(server) => {
                    server.backlog.push_back(id);
                    link.state = ClientState::Open;
                }
                None => {
                    link.state = ClientState::Refused;
                    link.is_closed = true;
                }
            }
        });
        SimClient { network: self.clone(), id }
    }

    /// Whether a node that accepts connections would be told anything now.
    pub(crate) fn has_news(&self, name: &str) -> bool {
        let state = self.state();
        let Some(server) = state.servers.get(name) else { return false };
        let calls = server.is_accepting && !server.backlog.is_empty();
        let mut links = state.links.values().filter(|link| link.server == name);
        calls
            || server.is_asked_to_stop
            || links.any(|link| link.is_news(state.window_left(link) > 0))
    }

    /// Asks the process of a node to stop, as SIGTERM does.
    pub fn ask_to_stop(&self, server: &str) {
        if let Some(server) = self.state().servers.get_mut(server) {
            server.is_asked_to_stop = true;
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test has left whatever it left; the run is over anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a node's bytes on the wire. They fit the window.
    pub(crate) fn send_to_client(&self, state: &mut State, id: ConnectionId, bytes: &[u8]) {
        for piece in pieces(state, bytes) {
            let Some(link) = state.links.get_mut(&id) else { return };
            link.in_flight_bytes += piece.len();
            self.to_client(state, id, move |timeline, link| {
                timeline.record("client gets bytes", &piece);
                link.in_flight_bytes -= piece.len();
                let into =
                    if link.client_is_reading { &mut link.received } else { &mut link.unread };
                into.extend_from_slice(&piece);
            });
        }
    }

    /// Ends a connection from the node's side; also a process that dies does that.
    pub(crate) fn close_from_server(&self, state: &mut State, id: ConnectionId) {
        let Some(link) = state.links.get_mut(&id) else { return };
        link.is_closed = true;
        if link.client_is_gone {
            state.links.remove(&id);
            return;
        }
        // As TCP does it: bytes that came and were not read turn the close into a reset.
        let ending = if link.arrived.is_empty() { ClientState::Closed } else { ClientState::Reset };
        link.arrived.clear();
        self.to_client(state, id, move |timeline, link| {
            if link.state == ClientState::Open {
                timeline.record("client sees the end", &id.0.to_le_bytes());
                link.state = ending;
            }
        });
    }

    fn to_client(
        &self,
        state: &mut State,
        id: ConnectionId,
        arrival: impl FnOnce(&Timeline, &mut Link) + Send + 'static,
    ) {
        let Some(arrives) = self.arrival_time(state, id, |link| &mut link.to_client_until) else {
            return;
        };
        let network = self.clone();
        self.schedule(arrives, move || {
            let mut state = network.state();
            if let Some(link) = state.links.get_mut(&id) {
                arrival(&network.timeline, link);
            }
        });
    }

    fn to_server(
        &self,
        state: &mut State,
        id: ConnectionId,
        arrival: impl FnOnce(&mut State, &mut Link) + Send + 'static,
    ) {
        let Some(arrives) = self.arrival_time(state, id, |link| &mut link.to_server_until) else {
            return;
        };
        let network = self.clone();
        self.schedule(arrives, move || {
            let mut state = network.state();
            let Some(mut link) = state.links.remove(&id) else { return };
            arrival(&mut state, &mut link);
            state.links.insert(id, link);
        });
    }

    /// When a piece that leaves now arrives: not before the one sent before it.
    fn arrival_time(
        &self,
        state: &mut State,
        id: ConnectionId,
        until: impl FnOnce(&mut Link) -> &mut MonotonicNanos,
    ) -> Option<MonotonicNanos> {
        let delay = state.random.within(state.faults.delay_nanos.clone());
        let until = until(state.links.get_mut(&id)?);
        *until = (*until).max(MonotonicNanos(self.timeline.now().0 + delay));
        Some(*until)
    }

    fn schedule(&self, at: MonotonicNanos, happening: impl FnOnce() + Send + 'static) {
        let happening: Happening = Box::new(happening);
        self.timeline.schedule(at.since(self.timeline.now()), happening);
    }
}

/// A client's end of a connection. Dropping it closes the connection.
pub struct SimClient {
    network: SimNetwork,
    id: ConnectionId,
}

impl SimClient {
    /// The name that the node's driver gives to this connection.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Sends bytes. They arrive later, in pieces; or never, if the connection fails.
    pub fn send(&self, bytes: &[u8]) {
        let mut state = self.network.state();
        match state.links.get(&self.id) {
            Some(link) if !link.client_has_ended => {}
            _ => return,
        }
        for piece in pieces(&mut state, bytes) {
            let id = self.id;
            let is_reset = state.random.within(0..1_000_000) < state.faults.resets_per_million;
            self.network.to_server(&mut state, id, move |_, link| {
                if is_reset || link.is_closed {
                    reset(link);
                } else if !link.is_broken {
                    link.arrived.extend(&piece);
                }
            });
        }
    }

    /// Takes the bytes received since the last call.
    pub fn received(&self) -> Vec<u8> {
        let mut state = self.network.state();
        state
            .links
            .get_mut(&self.id)
            .map(|link| std::mem::take(&mut link.received))
            .unwrap_or_default()
    }

    /// Whether bytes have come since then.
    pub fn has_received(&self) -> bool {
        let state = self.network.state();
        state.links.get(&self.id).is_some_and(|link| !link.received.is_empty())
    }

    pub fn state(&self) -> ClientState {
        self.network.state().links.get(&self.id).map_or(ClientState::Reset, |link| link.state)
    }

    /// Stops or resumes reading; a node's sends come back short once the window is full.
    pub fn set_reading(&self, reading: bool) {
        let mut state = self.network.state();
        if let Some(link) = state.links.get_mut(&self.id) {
            link.client_is_reading = reading;
            if reading {
                link.received.append(&mut link.unread);
            }
        }
    }

    /// Ends the client's stream, after the bytes sent before. Replies still come.
    pub fn close(&self) {
        let mut state = self.network.state();
        let Some(link) = state.links.get_mut(&self.id) else { return };
        if !link.client_has_ended {
            link.client_has_ended = true;
            self.network.to_server(&mut state, self.id, |_, link| link.has_ended = true);
        }
    }

    /// Breaks the connection off.
    pub fn reset(&self) {
        let mut state = self.network.state();
        let Some(link) = state.links.get_mut(&self.id) else { return };
        link.client_has_ended = true;
        link.state = ClientState::Reset;
        self.network.to_server(&mut state, self.id, |_, link| reset(link));
    }
}

impl Drop for SimClient {
    fn drop(&mut self) {
        self.close();
        let mut state = self.network.state();
        let Some(link) = state.links.get_mut(&self.id) else { return };
        link.client_is_gone = true;
        if link.is_closed {
            state.links.remove(&self.id);
        }
    }
}

fn reset(link: &mut Link) {
    link.is_broken = true;
    link.arrived.clear();
    if link.state == ClientState::Open {
        link.state = ClientState::Reset;
    }
}

/// Cuts bytes as the faults say.
fn pieces(state: &mut State, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let is_cut = state.random.chance(state.faults.split_percent);
        let length = if is_cut {
            state.random.within(1..rest.len() as u64 + 1) as usize
        } else {
            rest.len()
        };
        let (piece, left) = rest.split_at(length);
        pieces.push(piece.to_vec());
        rest = left;
    }
    pieces
}
