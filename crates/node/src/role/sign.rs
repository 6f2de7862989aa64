//! What records say of who leads a shard.

use super::member::{Leader, Member, MemberId};
use txlog::{Consumed, Kind, Record};

/// Nanoseconds in a millisecond.
const MILLI: u64 = 1_000_000;

/// What a record that counts says of who leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sign {
    /// `Lead` and `Renew`: who holds the lease, and how long it is. The member may be unknown.
    Holds { leader: Leader, lease_nanos: u64 },
    /// `None`: to whoever is first.
    Yields { successor: Option<MemberId> },
    /// Any other record: its writer is alive.
    Lives,
}

impl Sign {
    /// What a record meant; `None` if it is void.
    pub fn of(consumed: &Consumed) -> Option<Self> {
        match consumed {
            Consumed::Void => None,
            Consumed::Buffered => Some(Self::Lives),
            Consumed::Record(record) => Some(Self::of_record(record)),
        }
    }

    fn of_record(record: &Record) -> Self {
        match record.header.kind {
            Kind::Lead | Kind::Renew => {
                let member = record.payload.get(8..).and_then(Member::decode).unwrap_or_default();
                let leader = Leader { epoch: record.header.epoch, member };
                let lease_nanos = record.lease_millis().unwrap_or(0).saturating_mul(MILLI);
                Self::Holds { leader, lease_nanos }
            }
            Kind::Yield => {
                let id: Option<[u8; 20]> = record.payload[..].try_into().ok();
                Self::Yields { successor: id.map(MemberId) }
            }
            _ => Self::Lives,
        }
    }
}

/// The signs of many records, as far as they still matter.
#[derive(Clone, Default, Debug)]
pub struct Signs {
    holds: Option<Sign>,
    /// The last one, if it came behind `holds`.
    last: Option<Sign>,
}

impl Signs {
    pub fn note(&mut self, consumed: &Consumed) {
        match Sign::of(consumed) {
            Some(sign @ Sign::Holds { .. }) => *self = Self { holds: Some(sign), last: None },
            Some(sign) => self.last = Some(sign),
            None => {}
        }
    }

    /// In the order of their records.
    pub fn into_signs(self) -> impl Iterator<Item = Sign> {
        self.holds.into_iter().chain(self.last)
    }
}
