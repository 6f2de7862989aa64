//! The sessions of a loop, by connection.
//!
//! A request asks for its session half a dozen times. So it stands in the slot that the id of its
//! connection names, where it is found without hashing.

use crate::core::client_memory::ClientMemory;
use crate::session::Session;
use base::ConnectionId;

#[derive(Default)]
pub(crate) struct Sessions {
    slots: Vec<Option<Box<Session>>>,
    /// What all of them occupy.
    pub memory: ClientMemory,
}

impl Sessions {
    pub fn get(&self, connection: ConnectionId) -> Option<&Session> {
        let session = self.slots.get(connection.slot())?.as_deref()?;
        (session.connection == connection).then_some(session)
    }

    pub fn get_mut(&mut self, connection: ConnectionId) -> Option<&mut Session> {
        let session = self.slots.get_mut(connection.slot())?.as_deref_mut()?;
        (session.connection == connection).then_some(session)
    }

    /// Takes a session out: its connection is closed.
    pub fn remove(&mut self, connection: ConnectionId) -> Option<Box<Session>> {
        let slot = self.slots.get_mut(connection.slot())?;
        slot.take_if(|session| session.connection == connection)
    }

    /// Puts a session in.
    pub fn insert(&mut self, connection: ConnectionId, session: Box<Session>) {
        let slot = connection.slot();
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        let before = self.slots[slot].replace(session);
        assert!(before.is_none(), "a connection is closed after its session is forgotten");
    }

    /// All of them, in no particular order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut().flatten().map(|session| &mut **session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::MonotonicNanos;

    fn session(connection: ConnectionId) -> Box<Session> {
        Box::new(Session::new(connection, 1, MonotonicNanos(0)))
    }

    #[test]
    fn a_late_mention_of_a_connection_does_not_find_who_has_its_slot_now() {
        let late = ConnectionId(1 << ConnectionId::SLOT_BITS | 7);
        let now = ConnectionId(2 << ConnectionId::SLOT_BITS | 7);
        let mut sessions = Sessions::default();
        sessions.insert(late, session(late));
        assert!(sessions.remove(late).is_some());
        sessions.insert(now, session(now));
        assert!(sessions.get(late).is_none() && sessions.get_mut(late).is_none());
        assert!(sessions.remove(late).is_none());
        assert!(sessions.get(ConnectionId(8)).is_none(), "a slot that never was");
        assert_eq!(sessions.get(now).map(|session| session.connection), Some(now));
        assert_eq!(sessions.values_mut().count(), 1);
    }
}
