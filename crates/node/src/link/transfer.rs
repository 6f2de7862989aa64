//! The data set of a master, as its bytes arrive: imported in slices, and counted whole only when
//! its end was seen ([`peers::data_set`]).
//!
//! The file is not kept anywhere: what is read from it goes to the log at once, and what the log
//! cannot take yet is not received.

use super::{Fault, Link, Phase};
use crate::core::Core;
use base::{DatabaseId, Driver};
use engine::eviction::Room;
use engine::import::{Importer, Step};
use engine::unit::{Context, Overdue};
use peers::data_set::{DataSet, SHORT};
use peers::handshake::MasterOffset;
use txlog::Gate;

/// A transfer under way.
pub struct Transfer {
    /// Where the stream behind the data set begins.
    place: MasterOffset,
    pub data_set: DataSet,
    importer: Importer,
    stream_database: DatabaseId,
    /// The old data set is gone.
    is_flushed: bool,
    /// The importer can go on with what has arrived.
    is_fed: bool,
    is_reading: bool,
    /// Values that came must leave memory before others come.
    pub lacks_room: bool,
    keys: u64,
}

impl Transfer {
    pub fn new(place: MasterOffset) -> Self {
        Self {
            place,
            data_set: DataSet::default(),
            importer: Importer::default(),
            stream_database: DatabaseId(0),
            is_flushed: false,
            is_fed: false,
            is_reading: true,
            lacks_room: false,
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

    /// Takes what arrived: feeds the importer with what is the file's.
    ///
    /// # Errors
    /// It is no data set.
    fn take(&mut self, input: &mut Vec<u8>) -> Result<(), String> {
        let count = self.data_set.take(input)?;
        self.importer.feed(&input[..count]);
        self.is_fed |= count > 0;
        input.drain(..count);
        Ok(())
    }

    /// The file has ended: what follows it, unless that is still to arrive.
    ///
    /// # Errors
    /// The file is not as long as was announced.
    fn end(&mut self, input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, String> {
        if !self.data_set.has_ended() {
            self.keys = self.importer.keys;
            self.stream_database = self.importer.stream_database;
            self.data_set.end(std::mem::take(&mut self.importer).into_rest())?;
        }
        self.data_set.behind(input)
    }
}

impl Link {
    /// Takes what arrived into the transfer, and stops receiving while enough waits.
    pub(super) fn feed_transfer(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        let Phase::Transfer(transfer) = &mut self.phase else { return };
        if let Err(why) = transfer.take(&mut self.line.input) {
            self.fail(core, &why, Fault::Connection);
            return;
        }
        // What follows the file waits as well while the log takes nothing.
        let behind = self.line.input.len() + transfer.data_set.waiting();
        let waiting_max = core.process.options.limits.link_waiting_bytes_max;
        let is_full = transfer.importer.waiting() + behind > waiting_max;
        // A line in the making waits for nothing but its end.
        if is_full
            && transfer.data_set.is_announced()
            && transfer.is_reading
            && let Some(connection) = self.line.connection()
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
                self.line.wait_from(core.turn.monotonic);
                return;
            }
        }
        let Phase::Transfer(mut transfer) = std::mem::take(&mut self.phase) else { return };
        let room = if transfer.is_flushed { core.spill() } else { None };
        transfer.lacks_room = room == Some(Room::Behind);
        if room.is_some() {
            self.line.wait_from(core.turn.monotonic);
            self.phase = Phase::Transfer(transfer);
            return;
        }
        if transfer.data_set.is_announced() && !transfer.is_flushed {
            tracing::info!(bytes = transfer.data_set.total_bytes, "loading the master's data set");
            transfer.is_flushed = true;
            core.shard.unit.clear();
            self.make_way(core);
            core.end_own_unit();
        }
        let outcome = if transfer.data_set.has_ended() {
            Ok(Step::Finished)
        } else {
            self.import_slice(core, &mut transfer)
        };
        let ended = match outcome {
            Ok(Step::Finished) => transfer.end(&mut self.line.input),
            Ok(Step::Starved) if transfer.data_set.has_arrived() => Err(SHORT.to_owned()),
            Ok(_) => Ok(None),
            Err(why) => Err(why),
        };
        let behind = self.line.input.len() + transfer.data_set.waiting();
        let waiting_max = core.process.options.limits.link_waiting_bytes_max;
        if transfer.importer.waiting() + behind <= waiting_max / 2
            && !transfer.is_reading
            && let Some(connection) = self.line.connection()
        {
            transfer.is_reading = true;
            self.line.wait_from(core.turn.monotonic);
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
        let limits = core.process.options.limits;
        for _ in 0..limits.link_turn_steps_max {
            let shard = &mut core.shard;
            let mut tx = shard.engine.tx(context, &mut shard.unit, &mut core.interest);
            outcome = transfer.importer.step(&mut tx);
            let is_enough = core.shard.unit.effects.len() - before >= limits.link_turn_effect_bytes;
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
