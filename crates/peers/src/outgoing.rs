//! One connection that this server asks for: dialed, listened to, given up, and dialed again
//! after a pause.
//!
//! ```text
//! apart ── dial ──▶ dialing ── connected ──▶ open ── handed over ──▶ a session's
//!   ▲                  │ unreachable           │ ended, late, or no longer wanted
//!   └── retry later ───┴───────────────────────┘
//! ```
//! It moves bytes and knows since when the other side is waited for. What the bytes mean is the
//! dialogue's. How long to wait, how long to rest between two attempts and how much to receive at
//! a time is for its owner to say, and so is when to close: what [`Outgoing::hang_up`] returns.

use base::driver::{Endpoint, Received, Sent};
use base::{ConnectionId, Driver, Event, MonotonicNanos};

/// How long to rest between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// After the first failure, in nanoseconds. It doubles with each failure in a row.
    pub first_nanos: u64,
    /// The longest rest, in nanoseconds.
    pub nanos_max: u64,
}

impl Retry {
    /// The rest after one more failure, where there were so many in a row before it.
    fn rest_nanos(&self, failures: u32) -> u64 {
        self.first_nanos.saturating_mul(1 << failures.min(16)).min(self.nanos_max)
    }
}

/// What happened on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happened {
    /// It stands: say who is there.
    Connected,
    /// So many bytes arrived, and lie in [`Outgoing::input`].
    Received(usize),
    /// It takes bytes again, and took what was left in [`Outgoing::output`] as far as there was
    /// room.
    Sent,
    /// Nothing more comes of it.
    Ended(End),
}

/// The end of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It could not be had, and why.
    Unreachable(String),
    /// The other side closed it.
    Closed,
    /// It broke.
    Broken,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Apart,
    Dialing(ConnectionId),
    Open(ConnectionId),
}

/// One connection at a time, its bytes and its times.
#[derive(Default, Debug)]
pub struct Outgoing {
    state: State,
    /// What arrived, for the dialogue to take.
    pub input: Vec<u8>,
    /// What is still to be sent.
    pub output: Vec<u8>,
    /// The kernel took less than it was offered.
    kernel_is_full: bool,
    waiting_since: MonotonicNanos,
    retry_at: MonotonicNanos,
}

impl Outgoing {
    /// Goes on with a connection that stands.
    pub fn over(connection: ConnectionId, now: MonotonicNanos) -> Self {
        Self { state: State::Open(connection), waiting_since: now, ..Self::default() }
    }

    /// Asks for a connection, and waits for it from now on.
    ///
    /// # Panics
    /// If there is one.
    pub fn dial(&mut self, driver: &mut dyn Driver, endpoint: &Endpoint, now: MonotonicNanos) {
        assert!(self.is_apart(), "one connection at a time");
        let state = State::Dialing(driver.connect(endpoint));
        *self = Self { state, waiting_since: now, ..Self::default() };
    }

    /// Whether there is no connection, and none was asked for.
    pub fn is_apart(&self) -> bool {
        self.state == State::Apart
    }

    /// Whether one was asked for and does not stand yet.
    pub fn is_dialing(&self) -> bool {
        matches!(self.state, State::Dialing(_))
    }

    /// The connection that stands or was asked for.
    pub fn connection(&self) -> Option<ConnectionId> {
        match self.state {
            State::Apart => None,
            State::Dialing(connection) | State::Open(connection) => Some(connection),
        }
    }

    /// Takes an event, if it is about this connection: receives and sends what there is. A
    /// connection that has ended is still to be hung up.
    pub fn take(
        &mut self,
        driver: &mut dyn Driver,
        event: &Event,
        receive_bytes_max: usize,
    ) -> Option<Happened> {
        let connection = self.connection()?;
        if event.connection() != Some(connection) {
            return None;
        }
        Some(match event {
            // The end of the stream is received behind its last bytes.
            Event::Accepted { .. } | Event::Ended(_) | Event::Shutdown => return None,
            Event::Connected { .. } => {
                self.state = State::Open(connection);
                Happened::Connected
            }
            Event::Unreachable { why, .. } => {
                // The driver has closed it.
                self.state = State::Apart;
                Happened::Ended(End::Unreachable(why.clone()))
            }
            Event::Readable(_) => {
                match driver.receive(connection, &mut self.input, receive_bytes_max) {
                    Received::Bytes { count, .. } => Happened::Received(count),
                    Received::WouldBlock => Happened::Received(0),
                    Received::Closed => Happened::Ended(End::Closed),
                }
            }
            Event::Writable(_) => {
                self.kernel_is_full = false;
                self.flush(driver).map_or_else(Happened::Ended, |()| Happened::Sent)
            }
            Event::Broken(_) => Happened::Ended(End::Broken),
        })
    }

    /// Sends what is to be sent, as far as the kernel takes it.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn flush(&mut self, driver: &mut dyn Driver) -> Result<(), End> {
        let mut output = std::mem::take(&mut self.output);
        let sent = self.send(driver, &output);
        if let Ok(count) = sent {
            output.drain(..count);
        }
        self.output = output;
        sent.map(drop)
    }

    /// Offers bytes to the kernel; how many it took. None while there is no connection, or the
    /// kernel has no room.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, driver: &mut dyn Driver, bytes: &[u8]) -> Result<usize, End> {
        let State::Open(connection) = self.state else { return Ok(0) };
        if bytes.is_empty() || !self.takes_bytes() {
            return Ok(0);
        }
        match driver.send(connection, bytes) {
            Sent::Bytes(count) => {
                self.kernel_is_full = count < bytes.len();
                Ok(count)
            }
            Sent::Closed => Err(End::Broken),
        }
    }

    /// Whether the connection stands, and the kernel has room as far as is known.
    pub fn takes_bytes(&self) -> bool {
        matches!(self.state, State::Open(_)) && !self.kernel_is_full
    }

    /// Ends whatever is under way; the connection, for the caller to close. A new one may be
    /// asked for at once. Since when the other side is waited for stays as it was.
    #[must_use = "the connection is still to be closed"]
    pub fn hang_up(&mut self) -> Option<ConnectionId> {
        let connection = self.connection();
        *self = Self { waiting_since: self.waiting_since, ..Self::default() };
        connection
    }

    /// Leaves a connection that stands to a session, which hears of it from now on.
    pub fn hand_over(&mut self) -> Option<ConnectionId> {
        let State::Open(connection) = self.state else { return None };
        *self = Self { waiting_since: self.waiting_since, ..Self::default() };
        Some(connection)
    }

    /// The other side is waited for from now on: it was asked something, or gave a sign of life.
    pub fn wait_from(&mut self, now: MonotonicNanos) {
        self.waiting_since = now;
    }

    /// How long the other side has been waited for.
    pub fn waited_nanos(&self, now: MonotonicNanos) -> u64 {
        now.since(self.waiting_since)
    }

    /// Asks for no connection before some time has passed; longer, the more failures there were in
    /// a row before this one.
    pub fn retry_later(&mut self, retry: &Retry, failures: u32, now: MonotonicNanos) {
        self.retry_at = MonotonicNanos(now.0 + retry.rest_nanos(failures));
    }

    /// How long until the next attempt; 0 if it may be made.
    pub fn nanos_to_retry(&self, now: MonotonicNanos) -> u64 {
        self.retry_at.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Clock;
    use base::driver::{Peer, Waker};

    const NOW: MonotonicNanos = MonotonicNanos(1000);

    /// A driver of one connection, which takes and gives what a test says.
    #[derive(Default)]
    struct Fake {
        room: usize,
        sent: Vec<u8>,
        arrived: Vec<u8>,
        is_gone: bool,
    }

    const IT: ConnectionId = ConnectionId(7);

    impl Driver for Fake {
        fn clock(&self) -> &dyn Clock {
            panic!("it is told the time")
        }

        fn wait(&mut self, _: Option<u64>, _: &mut Vec<Event>) {}

        fn connect(&mut self, _: &Endpoint) -> ConnectionId {
            IT
        }

        fn receive(&mut self, _: ConnectionId, into: &mut Vec<u8>, bytes_max: usize) -> Received {
            if self.arrived.is_empty() {
                return if self.is_gone { Received::Closed } else { Received::WouldBlock };
            }
            let count = self.arrived.len().min(bytes_max);
            into.extend(self.arrived.drain(..count));
            Received::Bytes { count, more: !self.arrived.is_empty() }
        }

        fn send(&mut self, _: ConnectionId, bytes: &[u8]) -> Sent {
            if self.is_gone {
                return Sent::Closed;
            }
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.sent.extend_from_slice(&bytes[..count]);
            Sent::Bytes(count)
        }

        fn set_reading(&mut self, _: ConnectionId, _: bool) {}

        fn close(&mut self, _: ConnectionId) {}

        fn set_accepting(&mut self, _: bool) {}

        fn waker(&self) -> Waker {
            panic!("nobody wakes it")
        }

        fn entropy(&mut self) -> u64 {
            0
        }
    }

    fn connected() -> Event {
        Event::Connected { connection: IT, peer: Peer::default() }
    }

    /// One that stands, and took what it was told to say.
    fn open(driver: &mut Fake) -> Outgoing {
        let mut outgoing = Outgoing::default();
        outgoing.dial(driver, &Endpoint::tcp("there", 1), NOW);
        assert!(outgoing.is_dialing() && outgoing.connection() == Some(IT));
        assert_eq!(outgoing.take(driver, &connected(), 3), Some(Happened::Connected));
        assert!(!outgoing.is_dialing() && !outgoing.is_apart());
        outgoing
    }

    #[test]
    fn bytes_go_both_ways_as_there_is_room() {
        let mut driver = Fake { room: 4, arrived: b"+PONG".to_vec(), ..Fake::default() };
        let mut outgoing = open(&mut driver);
        outgoing.output.extend_from_slice(b"PING\r\n");
        assert_eq!(outgoing.flush(&mut driver), Ok(()));
        assert!(!outgoing.takes_bytes());
        driver.room = 100;
        assert_eq!(outgoing.send(&mut driver, b"x"), Ok(0), "behind what waits");
        let writable = outgoing.take(&mut driver, &Event::Writable(IT), 3);
        assert_eq!((writable, &driver.sent[..]), (Some(Happened::Sent), &b"PING\r\n"[..]));
        let mut readable = || outgoing.take(&mut driver, &Event::Readable(IT), 3);
        assert_eq!(readable(), Some(Happened::Received(3)));
        assert_eq!(readable(), Some(Happened::Received(2)));
        assert_eq!(readable(), Some(Happened::Received(0)));
        assert_eq!(outgoing.input, b"+PONG");
        let other = Event::Readable(ConnectionId(8));
        assert_eq!(outgoing.take(&mut driver, &other, 3), None, "another's");
    }

    #[test]
    fn it_ends_and_is_asked_for_again_after_a_rest() {
        let mut driver = Fake { is_gone: true, ..Fake::default() };
        let mut outgoing = open(&mut driver);
        outgoing.output.push(b'x');
        assert_eq!(outgoing.flush(&mut driver), Err(End::Broken));
        for (event, end) in [(Event::Readable(IT), End::Closed), (Event::Broken(IT), End::Broken)] {
            assert_eq!(outgoing.take(&mut driver, &event, 3), Some(Happened::Ended(end)));
        }
        assert_eq!(outgoing.hang_up(), Some(IT));
        assert!(outgoing.is_apart() && outgoing.output.is_empty());
        assert_eq!(outgoing.waited_nanos(NOW), 0, "it was not silent for ever");
        assert_eq!(outgoing.take(&mut driver, &connected(), 3), None, "it was given up");
        let retry = Retry { first_nanos: 10, nanos_max: 35 };
        for (failures, rest) in [(0, 10), (1, 20), (2, 35), (u32::MAX, 35)] {
            outgoing.retry_later(&retry, failures, NOW);
            assert_eq!(outgoing.nanos_to_retry(NOW), rest);
        }
        assert_eq!(outgoing.nanos_to_retry(MonotonicNanos(NOW.0 + 35)), 0);
        outgoing.dial(&mut driver, &Endpoint::tcp("there", 1), NOW);
        let why = "no route".to_owned();
        let event = Event::Unreachable { connection: IT, why: why.clone() };
        let happened = outgoing.take(&mut driver, &event, 3);
        assert_eq!(happened, Some(Happened::Ended(End::Unreachable(why))));
        assert_eq!(outgoing.hang_up(), None, "nothing is left to close");
    }

    #[test]
    fn a_session_takes_it_over_and_the_waiting_goes_on() {
        let mut driver = Fake::default();
        let mut outgoing = open(&mut driver);
        let later = MonotonicNanos(NOW.0 + 5);
        assert_eq!(outgoing.waited_nanos(later), 5);
        assert_eq!(outgoing.hand_over(), Some(IT));
        assert_eq!(outgoing.take(&mut driver, &Event::Readable(IT), 3), None, "the session's");
        assert_eq!((outgoing.waited_nanos(later), outgoing.hang_up()), (5, None));
        let mut outgoing = Outgoing::over(IT, later);
        assert_eq!((outgoing.waited_nanos(later), outgoing.hang_up()), (0, Some(IT)));
    }
}
