//! `base::Driver` in the simulated world: a node's end of the simulated network.
//!
//! A wait lets simulated time go on to the next instant at which something happens anywhere in the
//! world, and then returns, with or without events for this node: so whoever steps the world gets
//! to look after every instant. Dropping the driver is the death of the node's process: its
//! connections end, and the name is free to listen on again.

use crate::clock::SimClock;
use crate::network::{ClientState, Link, Server, SimClient, SimNetwork};
use crate::random::Random;
use base::driver::{ConnectionId, Driver, Endpoint, Event, Peer, Received, Sent, Waker};
use base::time::{Clock, MonotonicNanos};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulated time that a turn of the loop takes. Not 0, or a loop that polls would never see the
/// completion that it polls for.
const TURN_NANOS: u64 = 1_000;

/// The driver of one simulated node.
pub struct SimDriver {
    name: String,
    network: SimNetwork,
    clock: SimClock,
    random: Random,
    is_woken: Arc<AtomicBool>,
    /// Simulated time that each send takes, in nanoseconds: what is due happens meanwhile. 0 unless
    /// a test has one node alone and steps no world.
    pub send_nanos: u64,
    /// Connections that the node asked for.
    dialed: BTreeMap<ConnectionId, Dialed>,
}

/// The node's end of a connection that it asked for: it is the client there.
struct Dialed {
    client: SimClient,
    server: String,
    /// Taken from the network, not yet received by the node.
    arrived: Vec<u8>,
    is_reading: bool,
    /// The node was told that the connection stands, that it broke, that its stream has ended.
    is_connected: bool,
    is_broken: bool,
    is_end_reported: bool,
}

impl Dialed {
    /// What is new, and whether the connection is over before it began.
    fn news(&mut self, id: ConnectionId) -> Vec<Event> {
        let mut news = Vec::new();
        self.arrived.extend(self.client.received());
        let state = self.client.state();
        if !self.is_connected && matches!(state, ClientState::Open | ClientState::Closed) {
            self.is_connected = true;
            let local = format!("127.0.0.1:{}", 10_000 + id.0);
            let address = self.server.clone();
            let peer = Peer { address, local, is_local: true, common_name: None };
            news.push(Event::Connected { connection: id, peer });
        }
        if state == ClientState::Reset && self.is_connected {
            if !std::mem::replace(&mut self.is_broken, true) {
                news.push(Event::Broken(id));
            }
            return news;
        }
        let has_ended = state == ClientState::Closed;
        if self.is_connected && self.is_reading && (has_ended || !self.arrived.is_empty()) {
            news.push(Event::Readable(id));
        }
        if self.is_connected && has_ended && !std::mem::replace(&mut self.is_end_reported, true) {
            news.push(Event::Ended(id));
        }
        news
    }

    /// Whether [`Self::news`] or [`Self::failure`] would say something.
    fn has_news(&self) -> bool {
        let state = self.client.state();
        let has_bytes = !self.arrived.is_empty() || self.client.has_received();
        match state {
            ClientState::Connecting => false,
            ClientState::Refused => true,
            ClientState::Reset => !self.is_broken,
            ClientState::Open => !self.is_connected || self.is_reading && has_bytes,
            ClientState::Closed => !self.is_connected || self.is_reading || !self.is_end_reported,
        }
    }

    /// Why the connection was never had, if it was not.
    fn failure(&self) -> Option<&'static str> {
        match self.client.state() {
            ClientState::Refused => Some("connection refused"),
            ClientState::Reset if !self.is_connected => Some("connection reset"),
            _ => None,
        }
    }
}

impl SimDriver {
    /// Listens as `name`.
    ///
    /// # Panics
    /// Another driver listens under that name.
    pub fn listen(network: &SimNetwork, name: &str, clock: SimClock, seed: u64) -> Self {
        let server = Server { is_accepting: true, ..Server::default() };
        let replaced = network.state().servers.insert(name.to_owned(), server);
        assert!(replaced.is_none(), "two nodes listen as {name}");
        Self {
            name: name.to_owned(),
            network: network.clone(),
            clock,
            random: Random::stream(seed, name),
            is_woken: Arc::default(),
            send_nanos: 0,
            dialed: BTreeMap::new(),
        }
    }

    /// What the node may know now. Whether there was anything.
    fn report(&mut self, events: &mut Vec<Event>) -> bool {
        let mut found = self.report_dialed();
        let mut state = self.network.state();
        if let Some(server) = state.servers.get_mut(&self.name) {
            if std::mem::take(&mut server.is_asked_to_stop) {
                found.push(Event::Shutdown);
            }
            let accepted = if server.is_accepting { server.backlog.len() } else { 0 };
            for id in server.backlog.drain(..accepted).collect::<Vec<_>>() {
                if let Some(link) = state.links.get_mut(&id) {
                    link.is_accepted = true;
                    found.push(accepted_event(id));
                }
            }
        }
        let firsts = found.len();
        let ours: Vec<ConnectionId> = state
            .links
            .iter()
            .filter(|(_, link)| link.is_accepted && !link.is_closed && link.server == self.name)
            .map(|(id, _)| *id)
            .collect();
        for id in ours {
            let Some(link) = state.links.get(&id) else { continue };
            let has_room = state.window_left(link) > 0;
            if let Some(link) = state.links.get_mut(&id) {
                found.extend(news_of(id, link, has_room));
            }
        }
        // A kernel reports in any order; only the acceptance of a connection comes first.
        for index in (firsts + 1..found.len()).rev() {
            found.swap(index, self.random.within(firsts as u64..index as u64 + 1) as usize);
        }
        for event in &found {
            self.network.timeline.record(&self.name, format!("{event:?}").as_bytes());
        }
        let has_news = !found.is_empty();
        events.append(&mut found);
        has_news
    }

    /// What has come for the node, and forgets that it was woken. Time stands still: for whoever
    /// decides himself when a node has its turn.
    pub fn collect(&mut self, events: &mut Vec<Event>) {
        self.report(events);
        self.is_woken.store(false, Ordering::Release);
    }

    /// Whether there is something to collect, or something has woken the node.
    pub fn has_news(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
            || self.network.has_news(&self.name)
            || self.dialed.values().any(Dialed::has_news)
    }

    /// What is new on connections that the node asked for.
    fn report_dialed(&mut self) -> Vec<Event> {
        let mut found = Vec::new();
        self.dialed.retain(|id, dialed| {
            let failure = dialed.failure();
            match failure {
                Some(why) => {
                    found.push(Event::Unreachable { connection: *id, why: why.to_owned() });
                }
                None => found.append(&mut dialed.news(*id)),
            }
            failure.is_none()
        });
        found
    }

    fn record(&self, what: &str, connection: ConnectionId, bytes: &[u8]) {
        self.network.timeline.record(what, &connection.0.to_le_bytes());
        self.network.timeline.record(what, bytes);
    }
}

/// Gives the node what was received: in a buffer of the driver's own wherever it may.
fn hand_over(received: Vec<u8>, into: &mut Vec<u8>) {
    if into.is_empty() { *into = received } else { into.extend(received) }
}

fn accepted_event(id: ConnectionId) -> Event {
    let peer = Peer {
        address: format!("127.0.0.1:{}", 10_000 + id.0),
        local: "127.0.0.1:6379".to_owned(),
        is_local: true,
        common_name: None,
    };
    Event::Accepted { connection: id, peer }
}

fn news_of(id: ConnectionId, link: &mut Link, has_room: bool) -> Vec<Event> {
    if link.is_broken {
        let is_news = !std::mem::replace(&mut link.is_broken_reported, true);
        return if is_news { vec![Event::Broken(id)] } else { Vec::new() };
    }
    let mut news = Vec::new();
    if link.is_reading && (link.has_ended || !link.arrived.is_empty()) {
        news.push(Event::Readable(id));
    }
    if link.has_ended && !std::mem::replace(&mut link.is_end_reported, true) {
        news.push(Event::Ended(id));
    }
    if has_room && std::mem::take(&mut link.is_send_short) {
        news.push(Event::Writable(id));
    }
    news
}

impl Driver for SimDriver {
    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn wait(&mut self, timeout_nanos: Option<u64>, events: &mut Vec<Event>) {
        let timeline = self.network.timeline.clone();
        timeline.pass(TURN_NANOS);
        if self.report(events) || self.is_woken.swap(false, Ordering::AcqRel) {
            return;
        }
        let timeout =
            timeout_nanos.map(|nanos| MonotonicNanos(timeline.now().0.saturating_add(nanos)));
        let until = match (timeout, timeline.next_due()) {
            (Some(timeout), Some(due)) => timeout.min(due),
            (Some(instant), None) | (None, Some(instant)) => instant,
            // Nothing will ever happen by itself: whoever steps the world must do something.
            (None, None) => return,
        };
        while timeline.step(until) {}
        self.report(events);
        self.is_woken.store(false, Ordering::Release);
    }

    /// Connects to the node that listens under this name; ports mean nothing here.
    fn connect(&mut self, endpoint: &Endpoint) -> ConnectionId {
        let client = self.network.connect(&endpoint.host);
        let id = client.id();
        let dialed = Dialed {
            client,
            server: endpoint.host.clone(),
            arrived: Vec::new(),
            is_reading: true,
            is_connected: false,
            is_broken: false,
            is_end_reported: false,
        };
        self.dialed.insert(id, dialed);
        id
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Received {
        if let Some(dialed) = self.dialed.get_mut(&connection) {
            dialed.arrived.extend(dialed.client.received());
            let count = dialed.arrived.len().min(bytes_max);
            let count = self.network.state().receive_count(count);
            hand_over(dialed.arrived.drain(..count).collect(), into);
            return match dialed.client.state() {
                _ if count > 0 => Received::Bytes { count, more: !dialed.arrived.is_empty() },
                ClientState::Closed | ClientState::Reset => Received::Closed,
                _ => Received::WouldBlock,
            };
        }
        let mut state = self.network.state();
        let arrived = match state.links.get(&connection) {
            Some(link) if link.is_closed || link.is_broken => return Received::Closed,
            Some(link) if link.arrived.is_empty() && link.has_ended => return Received::Closed,
            Some(link) => link.arrived.len(),
            None => return Received::Closed,
        };
        let count = state.receive_count(arrived.min(bytes_max));
        let Some(link) = state.links.get_mut(&connection) else { return Received::Closed };
        hand_over(link.arrived.drain(..count).collect(), into);
        let more = !link.arrived.is_empty();
        drop(state);
        self.record("node receives", connection, &into[into.len() - count..]);
        if count == 0 { Received::WouldBlock } else { Received::Bytes { count, more } }
    }

    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> Sent {
        if self.send_nanos > 0 {
            self.network.timeline.pass(self.send_nanos);
        }
        if let Some(dialed) = self.dialed.get(&connection) {
            if dialed.client.state() != ClientState::Open {
                return Sent::Closed;
            }
            dialed.client.send(bytes);
            return Sent::Bytes(bytes.len());
        }
        let mut state = self.network.state();
        let room = match state.links.get(&connection) {
            Some(link) if !link.is_closed && !link.is_broken => state.window_left(link),
            _ => return Sent::Closed,
        };
        let mut count = bytes.len().min(room);
        let short_send_percent = state.faults.short_send_percent;
        if state.random.chance(short_send_percent) {
            count = state.random.within(0..count as u64 + 1) as usize;
        }
        self.network.send_to_client(&mut state, connection, &bytes[..count]);
        if let Some(link) = state.links.get_mut(&connection) {
            link.is_send_short |= count < bytes.len();
        }
        drop(state);
        self.record("node sends", connection, &bytes[..count]);
        Sent::Bytes(count)
    }

    /// Takes each buffer that it may take: whoever relied on it would be found out.
    fn send_buffer(
        &mut self,
        connection: ConnectionId,
        buffer: &mut Vec<u8>,
        range: Range<usize>,
    ) -> Sent {
        let sent = self.send(connection, &buffer[range.clone()]);
        if range.end == buffer.len() && sent == Sent::Bytes(range.len()) {
            *buffer = Vec::new();
        }
        sent
    }

    fn set_reading(&mut self, connection: ConnectionId, reading: bool) {
        if let Some(dialed) = self.dialed.get_mut(&connection) {
            dialed.is_reading = reading;
        }
        if let Some(link) = self.network.state().links.get_mut(&connection) {
            link.is_reading = reading;
        }
    }

    fn close(&mut self, connection: ConnectionId) {
        self.record("node closes", connection, &[]);
        if self.dialed.remove(&connection).is_some() {
            return;
        }
        self.network.close_from_server(&mut self.network.state(), connection);
    }

    fn set_accepting(&mut self, accepting: bool) {
        if let Some(server) = self.network.state().servers.get_mut(&self.name) {
            server.is_accepting = accepting;
        }
    }

    fn waker(&self) -> Waker {
        let is_woken = Arc::clone(&self.is_woken);
        Waker(Arc::new(move || is_woken.store(true, Ordering::Release)))
    }

    fn entropy(&mut self) -> u64 {
        self.random.draw()
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        let mut state = self.network.state();
        state.servers.remove(&self.name);
        let is_ours = |link: &Link| link.server == self.name && !link.is_closed;
        let ours: Vec<ConnectionId> =
            state.links.iter().filter(|(_, link)| is_ours(link)).map(|(id, _)| *id).collect();
        for id in ours {
            self.network.close_from_server(&mut state, id);
        }
    }
}

#[cfg(test)]
mod tests;
