//! The log in the archive: copied there before it is trimmed, and read where it was trimmed.
//!
//! ```text
//! log ─ records ─▶ Archiver: chain, stretches ─▶ archive        before a snapshot is published
//! log, archive ─▶ ArchivedLog: as if nothing had been trimmed ─▶ whoever goes back to a moment
//! ```
//! Who publishes a snapshot first archives the log through its record. So whoever sees the snapshot
//! may trim the log through it, as far as its archive is concerned, and asks the archive all the
//! same ([`archive::SnapshotStore::prune`]).

mod archiver;
mod reading;
mod records;
mod stretch;

pub use archiver::{Archiver, archive};
pub use reading::ArchivedLog;
pub(crate) use records::ArchivedRecords;
pub use records::verify;

use archive::ChainPoint;
use base::{Incarnation, Position, Sequence};
use txlog::Chain;
use txlog::record::ChainValue;

fn chain_of(point: ChainPoint) -> Chain {
    Chain { value: ChainValue(point.chain), epoch: point.epoch }
}

fn point_of(chain: Chain) -> ChainPoint {
    ChainPoint { chain: chain.value.0, epoch: chain.epoch }
}

fn at(incarnation: Incarnation, sequence: Sequence) -> Position {
    Position { incarnation, sequence }
}
