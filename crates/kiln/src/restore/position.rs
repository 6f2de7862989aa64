//! A moment that is named by a position of the change stream: whether the log holds it, and whether
//! a restore can end there.

use super::Place;
use crate::changes::Changes;
use crate::logs;
use crate::sleep::Sleep;
use base::Incarnation;
use encryption::Keys;
use shard::archived::ArchivedLog;
use shard::loading::{KnownLog, OpenLog};
use std::error::Error;
use txlog::reader::{Goal, Next, Reader};
use txlog::resume::Resume;
use txlog::{TransactionLog, UnitPosition};

/// Checks `--to-position`, if it is one and no number. A restore ends with whole records.
///
/// # Errors
/// The log is another one, or another history, than the one that the position was read in; or its
/// record holds more behind the position.
pub fn check(from: &Place, text: Option<&str>) -> Result<(), Box<dyn Error>> {
    let Some(position) = text.and_then(|text| text.parse::<UnitPosition>().ok()) else {
        return Ok(());
    };
    let (sleep, waker) = Sleep::new();
    let log = logs::open_to_follow(&from.settings.transaction_log, &KnownLog::default(), waker)?;
    let store = from.store_to_read()?;
    let OpenLog { mut handle, incarnation, .. } = ArchivedLog::over(log, store.log());
    check_in(&mut *handle, incarnation, store.keys(), position, &sleep)
}

fn check_in(
    log: &mut dyn TransactionLog,
    incarnation: Incarnation,
    keys: &Keys,
    position: UnitPosition,
    sleep: &Sleep,
) -> Result<(), Box<dyn Error>> {
    let mut resume = Resume::new(log, incarnation, position)?;
    let resumed = loop {
        if let Some(resumed) = resume.next(log)? {
            break resumed;
        }
        sleep.wait(log.wait_nanos());
    };
    if resumed.passes_over.is_none() {
        // Its unit was split and ends there: nothing else stands in its record.
        return Ok(());
    }
    let sequence = position.record.sequence;
    let mut changes = Changes::behind(resumed.passes_over);
    let mut reader =
        Reader::new(log, resumed.start, Goal::Through(sequence)).with_keys(keys.clone());
    let mut is_whole = true;
    loop {
        match reader.next(log)? {
            Next::Record(read) => changes.show(&read, |_| {
                is_whole = false;
                Ok(())
            })?,
            Next::Done if is_whole && position.effect.is_none() => return Ok(()),
            Next::Done => {
                return Err(format!(
                    "a restore ends with a whole record, and record {sequence} holds more behind \
                     the position: name record {} or {sequence}",
                    sequence.0.saturating_sub(1)
                )
                .into());
            }
            Next::Wait => sleep.wait(log.wait_nanos()),
        }
    }
}

#[cfg(test)]
mod tests;
