//! The two ends of a command that makes a new log of a moment: what is read, and what is made.

use super::{Absent, BUSY, Options, Place, position, reader};
use crate::sleep::Sleep;
use crate::{configuration, work};
use archive::SnapshotStore;
use base::driver::Waker;
use std::error::Error;
use txlog::reader::Goal;
use worker::{Claimed, Worker};

pub struct Ends {
    pub goal: Goal,
    pub from: Place,
    pub into: Place,
}

/// Who reads at one end, and writes at the other.
pub struct Makers {
    pub reading: Worker,
    pub making: Worker,
    pub waker: Waker,
}

/// What makes the new log, and what is known of it then.
type Make<T> = fn(&Ends, Makers, &mut Claimed) -> Result<T, Box<dyn Error>>;

impl Ends {
    pub fn of(options: &Options, arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let goal = options.goal()?;
        let from = Place::of(arguments, options.from.as_deref(), options.archive.as_deref())?;
        position::check(&from, options.to_position.as_deref())?;
        let into = Place::to_make(options, arguments)?;
        if into.settings.snapshot_store == from.settings.snapshot_store {
            return Err("the new log's snapshots cannot lie with those that are read".into());
        }
        Ok(Self { goal, from, into })
    }

    /// Makes the log, with the claim of the place where it is going. `open` opens the archive that
    /// is read.
    ///
    /// # Errors
    /// The new log cannot be made. Of its place nothing is left that was not there, if it is empty.
    pub fn make<T>(
        &self,
        open: fn(&Place) -> Result<SnapshotStore, Box<dyn Error>>,
        make: Make<T>,
    ) -> Result<T, Box<dyn Error>> {
        let Self { from, into, .. } = self;
        configuration::set_up_log(&into.settings)?;
        let (_, waker) = Sleep::new();
        let reading = reader(from, open(from)?, &waker)?;
        let absent = Absent::of(&into.settings.snapshot_store);
        let mut making = work::worker(&into.config, &into.settings, into.store()?, &waker)?;
        let mut claimed = making.claim()?.ok_or(BUSY)?;
        let made = make(self, Makers { reading, making, waker }, &mut claimed);
        claimed.release();
        made.inspect_err(|_| absent.remove_empty())
    }
}
