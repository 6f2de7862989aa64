//! When the holder of a lease appends a record that says nothing but that it goes on, and what that
//! record says. Three ask: the loop between commands (`leadership.rs`), the appender amid a long
//! command (`shard/appender.rs`), and whoever serves clients, where only the clock in the record is
//! wanted (`node/core/expiry.rs`).

use super::member::Member;
use txlog::Gate;

/// A holder that is idle, or amid a long command, renews after this part of its lease: three more
/// attempts fit into the rest.
const INTERVAL_PART: u64 = 4;

/// Time from one record of a holder to the next, in nanoseconds.
pub const fn interval_nanos(lease_nanos: u64) -> u64 {
    lease_nanos / INTERVAL_PART
}

/// What a renewal is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// That the lease goes on.
    Lease,
    /// That the time of a key has come, where no deletion may say so.
    Clock,
}

/// Whether the log is to be given a renewal now. A log that takes no writes may take one that the
/// lease needs; one that answers nothing has a record to answer for already. The clock can wait for
/// both.
pub fn may_append(purpose: Purpose, gate: &Gate, is_in_flight: bool) -> bool {
    match (purpose, gate) {
        (_, Gate::Wait) | (Purpose::Clock, Gate::Refuse(_)) => false,
        (Purpose::Lease, Gate::Open) => true,
        (Purpose::Lease, Gate::Refuse(_)) | (Purpose::Clock, Gate::Open) => !is_in_flight,
    }
}

/// A lease to be renewed: what a `Renew` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renewal {
    pub lease_millis: u64,
    /// Who holds it, encoded.
    pub member: Vec<u8>,
}

impl Renewal {
    pub fn new(lease_millis: u64, member: &Member) -> Self {
        Self { lease_millis, member: member.encode() }
    }

    /// Whether the lease is to be renewed so long after the newest record was sent. A record under
    /// way renews it already.
    pub fn is_due(&self, since_sent_nanos: u64, is_in_flight: bool) -> bool {
        !is_in_flight && is_due(self.lease_millis * 1_000_000, since_sent_nanos)
    }
}

/// Whether a quarter of a lease has gone since the newest record was sent.
pub const fn is_due(lease_nanos: u64, since_sent_nanos: u64) -> bool {
    since_sent_nanos >= interval_nanos(lease_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use txlog::Refusal;

    #[test]
    fn what_may_be_appended_depends_on_the_log_and_on_what_it_is_for() {
        let full = Gate::Refuse(Refusal::DiskFull);
        for (gate, is_in_flight, lease, clock) in [
            (&Gate::Open, false, true, true),
            (&Gate::Open, true, true, false),
            (&Gate::Wait, false, false, false),
            (&Gate::Wait, true, false, false),
            (&full, false, true, false),
            (&full, true, false, false),
        ] {
            assert_eq!(may_append(Purpose::Lease, gate, is_in_flight), lease, "{gate:?}");
            assert_eq!(may_append(Purpose::Clock, gate, is_in_flight), clock, "{gate:?}");
        }
    }

    #[test]
    fn a_quarter_of_the_lease_goes_by_without_a_renewal() {
        let renewal = Renewal::new(1000, &Member::default());
        assert!(!renewal.is_due(249_999_999, false));
        assert!(renewal.is_due(250_000_000, false));
        assert!(!renewal.is_due(250_000_000, true), "one is under way");
    }
}
