//! The log in the archive: copied there before it is trimmed, and read where it was trimmed.
//!
//! ```text
//! log ─ records ─▶ Archiver: chain, stretches ─▶ archive        before the log is trimmed
//! log, archive ─▶ ArchivedLog: as if nothing had been trimmed ─▶ whoever goes back to a moment
//! ```
//! A primary archives the log through the newest snapshot before it removes older ones and trims;
//! a worker has done most of that already, before it published. Then the archive is asked all the
//! same how far it goes ([`archive::SnapshotStore::prune`]).

mod archiver;
mod reading;
mod records;
mod stretch;

pub use archiver::{Archiver, Need, archive};
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
