//! The server's driver, under the eyes of the witness: whatever the server does with the world
//! passes here, also while it loads. Before each wait the clients act.

use super::crowd::Crowd;
use super::witness::SharedWitness;
use crate::driver::SimDriver;
use crate::network::SimNetwork;
use base::driver::{ConnectionId, Driver, Endpoint, Event, Received, Sent, Waker};
use base::time::Clock;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// A driver that is watched.
pub struct WatchedDriver {
    pub driver: SimDriver,
    pub network: SimNetwork,
    pub witness: SharedWitness,
    pub crowd: Rc<RefCell<Crowd>>,
    /// What a turn takes beside: clients are to find the server loading.
    pub turn_nanos: u64,
}

impl WatchedDriver {
    fn watch_sending(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        send: impl FnOnce(&mut SimDriver) -> Sent,
    ) -> Sent {
        let mut witness = self.witness.borrow_mut();
        if witness.machine.disk.is_off() {
            // The machine has lost its power: its process only does not know it yet.
            return Sent::Closed;
        }
        witness.look_at_disk();
        let sent = send(&mut self.driver);
        if let Sent::Bytes(count) = sent {
            witness.released(connection, &bytes[..count]);
        }
        sent
    }
}

impl Driver for WatchedDriver {
    fn clock(&self) -> &dyn Clock {
        self.driver.clock()
    }

    fn wait(&mut self, timeout_nanos: Option<u64>, events: &mut Vec<Event>) {
        self.crowd.borrow_mut().act(&self.network, &self.witness);
        self.network.timeline.pass(self.turn_nanos);
        self.driver.wait(timeout_nanos, events);
        self.witness.borrow_mut().look_at_disk();
    }

    fn connect(&mut self, endpoint: &Endpoint) -> ConnectionId {
        self.driver.connect(endpoint)
    }

    fn receive(&mut self, id: ConnectionId, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        self.driver.receive(id, into, bytes_max)
    }

    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> Sent {
        self.watch_sending(connection, bytes, |driver| driver.send(connection, bytes))
    }

    fn send_buffer(
        &mut self,
        connection: ConnectionId,
        buffer: &mut Vec<u8>,
        range: Range<usize>,
    ) -> Sent {
        let bytes = buffer[range.clone()].to_vec();
        let send = |driver: &mut SimDriver| driver.send_buffer(connection, buffer, range);
        self.watch_sending(connection, &bytes, send)
    }

    fn set_reading(&mut self, connection: ConnectionId, reading: bool) {
        self.driver.set_reading(connection, reading);
    }

    fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
    }

    fn set_accepting(&mut self, accepting: bool) {
        self.driver.set_accepting(accepting);
    }

    fn waker(&self) -> Waker {
        self.driver.waker()
    }

    fn entropy(&mut self) -> u64 {
        self.driver.entropy()
    }
}
