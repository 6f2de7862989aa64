//! Connections that are kept for the next migration to the same target: many keys are often moved
//! one by one. Each is kept for one login, so that nobody acts with the rights of another.

use crate::restore::Target;
use base::{ConnectionId, MonotonicNanos};

/// Connections kept at a time. As Redis.
const IDLE_MAX: usize = 64;

/// How long one is kept unused, in nanoseconds. As Redis.
const IDLE_NANOS_MAX: u64 = 10_000_000_000;

/// A connection on which the target knows who is there, and waits for requests.
pub struct Idle {
    pub connection: ConnectionId,
    pub target: Target,
    /// The database that the target has selected.
    pub selected: Option<i64>,
    pub since: MonotonicNanos,
}

/// All of them, the one kept for longest first.
#[derive(Default)]
pub struct IdleConnections(Vec<Idle>);

impl IdleConnections {
    /// Those that are kept, the oldest first.
    pub fn connections(&self) -> impl ExactSizeIterator<Item = ConnectionId> + '_ {
        self.0.iter().map(|idle| idle.connection)
    }

    /// Keeps a connection; one that must go for it.
    pub fn keep(&mut self, idle: Idle) -> Option<ConnectionId> {
        self.0.push(idle);
        (self.0.len() > IDLE_MAX).then(|| self.0.remove(0).connection)
    }

    /// The connection to a target that was used last.
    pub fn take(&mut self, target: &Target) -> Option<Idle> {
        let at = self.0.iter().rposition(|idle| idle.target == *target)?;
        Some(self.0.remove(at))
    }

    /// Forgets a connection on which something happened, which can only be its end; whether it was
    /// kept here.
    pub fn forget(&mut self, connection: ConnectionId) -> bool {
        let before = self.0.len();
        self.0.retain(|idle| idle.connection != connection);
        self.0.len() < before
    }

    /// Takes out those whose time is up.
    pub fn take_old(&mut self, now: MonotonicNanos) -> impl Iterator<Item = ConnectionId> + '_ {
        let is_old = move |idle: &mut Idle| now.since(idle.since) > IDLE_NANOS_MAX;
        self.0.extract_if(.., is_old).map(|idle| idle.connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restore::Login;

    fn idle(number: u64, password: Option<&[u8]>) -> Idle {
        let login = password.map(|password| Login { user: None, password: password.to_vec() });
        let target = Target { host: "there".to_owned(), port: Some(1), login };
        let since = MonotonicNanos(number);
        Idle { connection: ConnectionId(number), target, selected: None, since }
    }

    #[test]
    fn a_connection_serves_who_has_the_same_login() {
        let mut kept = IdleConnections::default();
        kept.keep(idle(1, Some(b"secret")));
        assert!(kept.take(&idle(0, None).target).is_none());
        assert!(kept.take(&idle(0, Some(b"guess")).target).is_none());
        assert!(kept.take(&idle(0, Some(b"secret")).target).is_some());
        assert_eq!(kept.connections().len(), 0);
    }

    #[test]
    fn neither_many_connections_are_kept_nor_for_long() {
        let mut kept = IdleConnections::default();
        for number in 0..IDLE_MAX as u64 {
            assert_eq!(kept.keep(idle(number, None)), None);
        }
        assert_eq!(kept.keep(idle(99, None)), Some(ConnectionId(0)));
        let old = kept.take_old(MonotonicNanos(IDLE_NANOS_MAX + 2)).collect::<Vec<_>>();
        assert_eq!(old, [ConnectionId(1)]);
        assert!(kept.forget(ConnectionId(2)) && !kept.forget(ConnectionId(2)));
        assert_eq!(kept.connections().len(), IDLE_MAX - 2);
    }
}
