//! The data set of a master, as its bytes arrive: framed, imported in slices, and counted whole
//! only when its end was seen.
//!
//! ```text
//! "\n"* "$" length "\r\n" file            or            "\n"* "$EOF:" mark "\r\n" file mark
//! ```
//! The file is not kept anywhere: what is read from it goes to the log at once, and what the log
//! cannot take yet is not received.

use super::{Fault, Link, Phase, Place};
use crate::core::Core;
use base::{DatabaseId, Driver};
use engine::import::{Importer, Step};
use engine::unit::{Context, Overdue};
use resp::client::{request, take_line, text};
use txlog::Gate;

/// Steps of one turn: elements of collections, or whole small keys. About a millisecond.
const STEPS_MAX: usize = 2048;

/// Bytes of effects that one turn leaves, about.
const TURN_EFFECT_BYTES: usize = 256 << 10;

/// Bytes that have arrived and wait to be imported, beyond which nothing is received.
const WAITING_BYTES_MAX: usize = 1 << 20;

const MARK_BYTES: usize = 40;

/// How the end of the file is known.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Frame {
    /// Its line has not arrived.
    Unknown,
    /// This many bytes are still to arrive.
    Length(u64),
    /// These bytes stand behind it.
    Mark(Vec<u8>),
}

/// A transfer under way.
pub struct Transfer {
    /// Where the stream behind the data set begins.
    place: Place,
    frame: Frame,
    importer: Importer,
    /// What arrived behind the file, once its end was seen.
    rest: Option<Vec<u8>>,
    stream_database: DatabaseId,
    /// The old data set is gone.
    is_flushed: bool,
    /// The importer can go on with what has arrived.
    is_fed: bool,
    is_reading: bool,
    /// Bytes of the file in all, where that is known, and received.
    pub total_bytes: Option<u64>,
    pub received_bytes: u64,
    keys: u64,
}

impl Transfer {
    pub fn new(place: Place) -> Self {
        Self {
            place,
            frame: Frame::Unknown,
            importer: Importer::default(),
            rest: None,
            stream_database: DatabaseId(0),
            is_flushed: false,
            is_fed: false,
            is_reading: true,
            total_bytes: None,
            received_bytes: 0,
            keys: 0,
        }
    }

    /// Whether the data set is being replaced.
    pub fn has_begun(&self) -> bool {
        self.is_flushed
    }

    /// Whether something can be imported now, if the log takes it.
    pub fn has_work(&self) -> bool {
        self.is_fed
    }

    /// Takes bytes off what arrived.
    ///
    /// # Errors
    /// It is no data set.
    fn take(&mut self, input: &mut Vec<u8>) -> Result<(), String> {
        while self.frame == Frame::Unknown {
            let Some(line) = take_line(input)? else { return Ok(()) };
            if line.is_empty() {
                continue;
            }
            self.frame = frame_of(&line)?;
            if let Frame::Length(length) = self.frame {
                self.total_bytes = Some(length);
            }
        }
        if let Some(rest) = &mut self.rest {
            rest.append(input);
            return Ok(());
        }
        let count = match &mut self.frame {
            Frame::Length(left) => {
                let count = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                count
            }
            _ => input.len(),
        };
        self.importer.feed(&input[..count]);
        self.received_bytes += count as u64;
        self.is_fed |= count > 0;
        input.drain(..count);
        Ok(())
    }

    /// The file has ended: what follows it, unless that is still to arrive.
    ///
    /// # Errors
    /// The file is not as long as was announced.
    fn end(&mut self, input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, String> {
        if self.rest.is_none() {
            self.keys = self.importer.keys;
            self.stream_database = self.importer.stream_database;
            self.rest = Some(std::mem::take(&mut self.importer).into_rest());
        }
        let Some(rest) = &mut self.rest else { return Ok(None) };
        rest.append(input);
        match &self.frame {
            Frame::Mark(mark) => {
                let known = rest.len().min(mark.len());
                if rest[..known] != mark[..known] {
                    return Err("the data set does not end with its mark".to_owned());
                }
                if rest.len() < mark.len() {
                    return Ok(None);
                }
                Ok(Some(rest.split_off(mark.len())))
            }
            Frame::Length(0) if self.received_bytes == self.total_bytes.unwrap_or(0) => {
                Ok(Some(std::mem::take(rest)))
            }
            _ => Err("the data set is shorter than announced".to_owned()),
        }
    }
}

fn frame_of(line: &[u8]) -> Result<Frame, String> {
    if let Some(mark) = line.strip_prefix(b"$EOF:")
        && mark.len() == MARK_BYTES
    {
        return Ok(Frame::Mark(mark.to_vec()));
    }
    let length = line.strip_prefix(b"$").and_then(|digits| std::str::from_utf8(digits).ok());
    match length.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(length) if i64::try_from(length).is_ok() => Ok(Frame::Length(length)),
        _ => Err(format!("the master sends no data set: {}", text(line))),
    }
}

/// How far a replica is, as its master wants to hear it.
pub(super) fn acknowledgement(offset: u64) -> Vec<u8> {
    request(&[b"REPLCONF", b"ACK", offset.to_string().as_bytes()])
}

impl Link {
    /// Takes what arrived into the transfer, and stops receiving while enough waits.
    pub(super) fn feed_transfer(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        let Phase::Transfer(transfer) = &mut self.phase else { return };
        if let Err(why) = transfer.take(&mut self.input) {
            self.fail(core, &why, Fault::Connection);
            return;
        }
        // What follows the file waits as well while the log takes nothing.
        let behind = self.input.len() + transfer.rest.as_ref().map_or(0, Vec::len);
        let is_full = transfer.importer.waiting() + behind > WAITING_BYTES_MAX;
        if is_full
            && transfer.is_reading
            && let Some(connection) = self.connection
        {
            transfer.is_reading = false;
            driver.set_reading(connection, false);
        }
    }

    /// Imports one slice, if the log takes it now.
    pub(super) fn import(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        match core.shard.gate() {
            Gate::Open if !core.is_snapshot_behind() => {}
            Gate::Refuse(why) => {
                self.fail(
                    core,
                    &format!("the transaction log takes no writes: {why}"),
                    Fault::Connection,
                );
                return;
            }
            _ => {
                // The silence is ours.
                self.heard = core.turn.monotonic;
                return;
            }
        }
        let Phase::Transfer(mut transfer) = std::mem::take(&mut self.phase) else { return };
        if transfer.frame != Frame::Unknown && !transfer.is_flushed {
            tracing::info!(bytes = transfer.total_bytes, "loading the master's data set");
            transfer.is_flushed = true;
            core.shard.unit.clear();
            self.make_way(core);
            core.end_own_unit();
        }
        let outcome = if transfer.rest.is_some() {
            Ok(Step::Finished)
        } else {
            self.import_slice(core, &mut transfer)
        };
        let ended = match outcome {
            Ok(Step::Finished) => transfer.end(&mut self.input),
            Ok(_) => Ok(None),
            Err(why) => Err(why),
        };
        if transfer.importer.waiting() <= WAITING_BYTES_MAX / 2
            && !transfer.is_reading
            && let Some(connection) = self.connection
        {
            transfer.is_reading = true;
            self.heard = core.turn.monotonic;
            driver.set_reading(connection, true);
        }
        match ended {
            Ok(Some(rest)) => {
                tracing::info!(keys = transfer.keys, "the master's data set is loaded");
                core.shard.unit.clear();
                self.call_whole(core);
                core.end_own_unit();
                let (place, database) = (transfer.place.clone(), transfer.stream_database);
                self.begin_stream(core, place, database, rest);
            }
            Ok(None) => self.phase = Phase::Transfer(transfer),
            Err(why) => {
                self.phase = Phase::Transfer(transfer);
                let why = format!("cannot load the master's data set: {why}");
                self.fail(core, &why, Fault::Data);
            }
        }
    }

    fn import_slice(&mut self, core: &mut Core, transfer: &mut Transfer) -> Result<Step, String> {
        core.shard.unit.clear();
        let before = core.shard.unit.effects.len();
        let context =
            Context { overdue: Overdue::Kept, ..Context::background(core.turn.now, DatabaseId(0)) };
        let mut outcome = Ok(Step::Done);
        for _ in 0..STEPS_MAX {
            let shard = &mut core.shard;
            let mut tx = shard.engine.tx(context, &mut shard.unit, &mut core.interest);
            outcome = transfer.importer.step(&mut tx);
            let is_enough = core.shard.unit.effects.len() - before >= TURN_EFFECT_BYTES;
            if !matches!(outcome, Ok(Step::Done)) || is_enough {
                break;
            }
        }
        // What was imported before a failure counts as done: effects were recorded.
        core.end_own_unit();
        transfer.is_fed = matches!(outcome, Ok(Step::Done | Step::Finished));
        outcome.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

    fn transfer() -> Transfer {
        Transfer::new(Place { id: "x".repeat(40), offset: 7 })
    }

    /// Gives a transfer all the bytes, and what its importer would have left of them.
    fn end_after(said: &[u8], rest: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let mut transfer = transfer();
        let mut input = said.to_vec();
        transfer.take(&mut input)?;
        transfer.rest = Some(rest.to_vec());
        transfer.end(&mut input)
    }

    #[test]
    fn a_file_of_known_length_ends_where_it_should() {
        assert_eq!(end_after(b"\n\n$3\r\nabcPING", b""), Ok(Some(b"PING".to_vec())));
        assert!(end_after(b"$5\r\nabc", b"").expect_err("is short").contains("shorter"));
        let mut transfer = transfer();
        let mut input = b"$5\r\nabc".to_vec();
        transfer.take(&mut input).expect("is a frame");
        assert_eq!((transfer.total_bytes, transfer.received_bytes), (Some(5), 3));
        input.extend_from_slice(b"deREST");
        transfer.take(&mut input).expect("goes on");
        assert_eq!((input.as_slice(), transfer.received_bytes), (&b"REST"[..], 5));
    }

    #[test]
    fn a_file_of_unknown_length_ends_with_its_mark() {
        let said = format!("$EOF:{MARK}\r\nfile");
        let mut transfer = transfer();
        let mut input = said.into_bytes();
        transfer.take(&mut input).expect("is a frame");
        transfer.rest = Some(MARK.as_bytes()[..30].to_vec());
        assert_eq!(transfer.end(&mut input), Ok(None), "the mark is still arriving");
        input.extend_from_slice(&MARK.as_bytes()[30..]);
        input.extend_from_slice(b"PING");
        transfer.take(&mut input).expect("goes on");
        assert_eq!(transfer.end(&mut input), Ok(Some(b"PING".to_vec())));
        let other = MARK.replace('m', "n");
        let said = format!("$EOF:{MARK}\r\nfile");
        assert!(end_after(said.as_bytes(), other.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_data_set_is_said_so() {
        for said in ["-ERR no\r\n", "$x\r\n", "$-1\r\n", "$EOF:short\r\n", "PING\r\n"] {
            let why = transfer().take(&mut said.as_bytes().to_vec()).expect_err("is refused");
            assert!(why.starts_with("the master sends no data set: "), "{why}");
        }
    }
}
