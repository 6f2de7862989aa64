//! The log of a shard that has not been loaded: nothing can be read of it, and nothing is appended.

use base::Position;
use bytes::Bytes;
use txlog::{Chain, Gate, Limits, LogEvent, Ticket, TransactionLog};

/// A log that is not open yet.
pub(crate) struct NoLog;

/// Names no question: none is answered.
const NO_TICKET: Ticket = Ticket(0);

impl TransactionLog for NoLog {
    fn limits(&self) -> Limits {
        Limits {
            record_bytes_max: 1 << 20,
            in_flight_records_max: 0,
            in_flight_bytes_max: 0,
            record_cost_bytes: 0,
        }
    }

    /// Whoever would write is told that the shard loads, which says more than what a log can say.
    fn gate(&self) -> Gate {
        Gate::Open
    }

    fn append(&mut self, _after: Position, _record: Bytes) -> Ticket {
        unreachable!("a shard that loads stamps no records");
    }

    fn poll(&mut self, _events: &mut Vec<LogEvent>) {}

    fn is_busy(&self) -> bool {
        false
    }

    fn read_from(&mut self, _from: Position) {}

    fn stop_reading(&mut self) {}

    fn tail(&mut self) -> Ticket {
        NO_TICKET
    }

    fn compare(&mut self, _position: Position, _chain: Chain) -> Ticket {
        NO_TICKET
    }

    fn trim(&mut self, _through: Position) {}

    fn first(&mut self) -> Ticket {
        NO_TICKET
    }
}
