//! What a record of the log says of who leads: every record that counts is a heartbeat of whoever
//! wrote it. Replicas and starts read them, for the state machine of leadership ([`super::state`]).

use super::member::{Leader, Member, MemberId};
use base::time::MILLISECOND;
use txlog::{Consumed, Kind, Record};

/// A record that counts, as far as leadership is concerned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heartbeat {
    /// `Lead` and `Renew`: who holds the lease, and how long it is. The member may be unknown.
    Lease { leader: Leader, lease_nanos: u64 },
    /// `None`: to whoever is first.
    Yield { successor: Option<MemberId> },
    /// Any other record: its writer is alive.
    Alive,
}

impl Heartbeat {
    /// What a record meant; `None` if it is void.
    pub fn of(consumed: &Consumed) -> Option<Self> {
        match consumed {
            Consumed::Void => None,
            Consumed::Buffered => Some(Self::Alive),
            Consumed::Record(record) => Some(Self::of_record(record)),
        }
    }

    fn of_record(record: &Record) -> Self {
        match record.header.kind {
            Kind::Lead | Kind::Renew => {
                let member = record.payload.get(8..).and_then(Member::decode).unwrap_or_default();
                let leader = Leader { epoch: record.header.epoch, member };
                let lease_nanos = record.lease_millis().unwrap_or(0).saturating_mul(MILLISECOND);
                Self::Lease { leader, lease_nanos }
            }
            Kind::Yield => {
                let id: Option<[u8; 20]> = record.payload[..].try_into().ok();
                Self::Yield { successor: id.map(MemberId) }
            }
            _ => Self::Alive,
        }
    }
}

/// The heartbeats of many records, as far as they still matter.
#[derive(Clone, Default, Debug)]
pub struct Heartbeats {
    lease: Option<Heartbeat>,
    /// The last one, if it came behind `lease`.
    last: Option<Heartbeat>,
}

impl Heartbeats {
    pub fn note(&mut self, consumed: &Consumed) {
        match Heartbeat::of(consumed) {
            Some(lease @ Heartbeat::Lease { .. }) => {
                *self = Self { lease: Some(lease), last: None }
            }
            Some(other) => self.last = Some(other),
            None => {}
        }
    }

    /// In the order of their records.
    pub fn into_order(self) -> impl Iterator<Item = Heartbeat> {
        self.lease.into_iter().chain(self.last)
    }
}
