//! Whether the log is the one that the snapshots were taken of.
//!
//! A snapshot names the record behind which it stands by number and by chain value. A log that was
//! restored from a backup, and then written to, may have another record of that number: then what
//! the snapshot holds and what the log holds are two histories, and each has writes that were
//! acknowledged. To start from one of them would drop the other's in silence. So the log is asked
//! what stands there, for the newest snapshot whose manifest is whole, whether or not it can be
//! loaded, and for the one that is loaded.

use super::Failure;
use archive::{Candidate, Snapshot};
use txlog::record::ChainValue;
use txlog::{Chain, History, LogEvent, Ticket, TransactionLog};

/// Where the log's chain stands behind a snapshot.
pub(super) fn chain_behind(snapshot: &Snapshot) -> Chain {
    let point = &snapshot.point;
    Chain { value: ChainValue(point.chain), epoch: point.epoch }
}

/// The snapshots that are being compared with the log.
#[derive(Default)]
pub(super) struct Comparing {
    asked: Vec<(Ticket, String)>,
    /// Compared, or being so.
    names: Vec<String>,
    /// Compares nothing: see [`super::Loading::join_histories`].
    pub(super) joins_histories: bool,
}

impl Comparing {
    pub(super) fn none() -> Self {
        Self { joins_histories: true, ..Self::default() }
    }

    /// Asks for the newest of these.
    pub(super) fn ask_newest(&mut self, log: &mut dyn TransactionLog, candidates: &[Candidate]) {
        let whole = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot),
            Candidate::Damaged { .. } => None,
        });
        if let Some(newest) = whole.max_by_key(|snapshot| snapshot.point.position.sequence) {
            self.ask(log, newest);
        }
    }

    pub(super) fn ask(&mut self, log: &mut dyn TransactionLog, snapshot: &Snapshot) {
        if self.joins_histories || self.names.contains(&snapshot.name) {
            return;
        }
        self.names.push(snapshot.name.clone());
        let ticket = log.compare(snapshot.point.position, chain_behind(snapshot));
        self.asked.push((ticket, snapshot.name.clone()));
    }

    pub(super) fn is_done(&self) -> bool {
        self.asked.is_empty()
    }

    /// Takes what the log says.
    ///
    /// # Errors
    /// It is another history, or cannot be read.
    pub(super) fn hear(&mut self, event: &LogEvent) -> Result<(), Failure> {
        let (LogEvent::Compared { ticket, .. } | LogEvent::Unanswered(ticket, _)) = event else {
            return Ok(());
        };
        let Some(index) = self.asked.iter().position(|(of, _)| of == ticket) else {
            return Ok(());
        };
        let (_, name) = self.asked.swap_remove(index);
        match event {
            LogEvent::Compared { history: History::Other, .. } => {
                Err(format!("snapshot {name}: {}", txlog::ANOTHER_HISTORY).into())
            }
            LogEvent::Compared { history: History::Lost, .. } => {
                let what = "the transaction log ends before it, or is another one: it was cut, \
                            deleted or created anew";
                Err(format!("snapshot {name}: {what}").into())
            }
            LogEvent::Unanswered(_, why) => {
                Err(format!("snapshot {name} cannot be compared with the log: {why}").into())
            }
            // A release that trimmed the log through the very record of the older snapshot may have
            // left it without; whatever else it holds must then name the chain to count.
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::{Facts, Manifest, SnapshotPoint};
    use base::{Incarnation, Sequence, UnixMillis};
    use txlog::memory::MemoryLog;
    use txlog::{Stamper, WriterId};

    /// What a start makes of a snapshot of record 2, beside a log that was cut back to `tail`.
    fn compare(tail: Sequence) -> Result<bool, String> {
        let log = MemoryLog::new(Incarnation(1));
        let mut handle = log.handle(4096);
        let mut stamper = Stamper::new(WriterId(1), Chain::start(Incarnation(1)), UnixMillis(0));
        let mut events = Vec::new();
        for _ in 0..2 {
            handle.append(log.tail(), stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO));
            handle.poll(&mut events);
        }
        let Chain { value, epoch } = stamper.chain();
        let (clock, began) = (UnixMillis(1), UnixMillis(1));
        let point = SnapshotPoint {
            position: log.tail(),
            chain: value.0,
            epoch,
            log_sum: None,
            clock,
            began,
        };
        let manifest = Box::new(Manifest::new(&Facts::unproven(point, 0, 10), Vec::new(), 1));
        let snapshot = Snapshot { name: "snapshot-2".to_owned(), point, manifest };
        log.cut(tail);
        let mut comparing = Comparing::default();
        comparing.ask_newest(&mut handle, &[Candidate::Whole(snapshot)]);
        events.clear();
        handle.poll(&mut events);
        events.iter().try_for_each(|event| comparing.hear(event)).map_err(|why| why.to_string())?;
        Ok(comparing.is_done())
    }

    #[test]
    fn a_log_that_ends_before_a_snapshot_is_refused_by_that_ones_name() {
        assert_eq!(compare(Sequence(2)), Ok(true));
        let why = compare(Sequence(1)).expect_err("the record is lost");
        assert!(why.contains("snapshot-2") && why.contains("ends before it"), "{why}");
    }
}
