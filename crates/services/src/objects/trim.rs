//! Forgetting: first the floor says it, then the objects go.
//!
//! The order is what tells a ghost from a record ([`super::hands`]). What stays for ever is passed
//! over by looking at a part of the log only: from behind the lowest floor object through the
//! highest.
//!
//! ```text
//! floors      F1        F2 … F8                 F9
//!       …──────┬─────────┬────┬──────────────────┬──────▶ records
//!   kept ones  │ kept ones, and what crashes left │ the log
//!   and ghosts │ of earlier trimmings             │
//!              └─────── listed, deleted ──────────┘
//! ```
//!
//! That is enough, because a floor object is deleted only when everything through the next one has
//! been deleted that may go. A trimming that was cut off leaves its floors, so the next one begins
//! where the cut-off one did. And it is safe wherever it begins: kept places are looked for in the
//! very part of the log in which records are deleted.

use super::Objects;
use super::look::{FLOORS_KEPT, Failure};
use super::names::sequence_of;
use crate::opening::Broken;
use base::Sequence;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, future};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutPayload};
use std::collections::BTreeSet;
use txlog::remote::store::Outcome;

/// Records that one call deletes at most: 100 requests to S3, which takes 1000 names in each. More
/// than a minute of records, and a snapshot comes about once a minute.
const DELETIONS_MAX: usize = 100_000;

impl Objects {
    pub(super) async fn trim_through(&self, through: Sequence) -> Outcome {
        match self.forget(through).await {
            Ok(floor) => Outcome::First { sequence: floor.next() },
            Err(failure) => failure.into_outcome(),
        }
    }

    async fn forget(&self, through: Sequence) -> Result<Sequence, Failure> {
        let mut floor = self.look().await?;
        let wanted = through.min(self.known().trimmable(self.now()));
        if wanted > floor {
            let path = self.names.floor(self.life, wanted);
            match self.store.put_opts(&path, PutPayload::new(), PutMode::Create.into()).await {
                Ok(_) | Err(Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // Whatever is deleted is deleted because a floor stands: so it is read back.
            floor = self.look().await?;
        }
        let lowest = self.floors().await?.first().copied().unwrap_or_default();
        if self.delete_records(lowest, floor).await? {
            self.delete_floors(floor).await?;
        }
        Ok(floor)
    }

    /// Deletes the records from behind `lowest` through `floor`, but for the kept ones. Whether
    /// none is left.
    async fn delete_records(&self, lowest: Sequence, floor: Sequence) -> Result<bool, Failure> {
        // Looked for behind the floor: whoever puts a record there from now on is told by it.
        let kept = self.kept(lowest, floor).await?;
        let records = self.names.records(self.life);
        let listed = self.numbered(&records, &self.names.record(self.life, lowest), floor);
        let forgotten = listed
            .try_filter_map(move |(at, path)| future::ok((!kept.contains(&at)).then_some(path)))
            .take(DELETIONS_MAX);
        let deleted = self.delete_all(forgotten.boxed()).await?;
        Ok(deleted < DELETIONS_MAX)
    }

    /// The places from behind `lowest` through `floor` whose records stay.
    async fn kept(&self, lowest: Sequence, floor: Sequence) -> Result<BTreeSet<Sequence>, Failure> {
        if self.known().broken == Some(Broken::TrimsKept) {
            return Ok(BTreeSet::new());
        }
        let all = self.names.all_kept(self.life);
        let listed = self.numbered(&all, &self.names.kept(self.life, lowest), floor);
        Ok(listed.map_ok(|(at, _)| at).try_collect().await?)
    }

    /// The objects below `directory` with numbers through `floor`, from behind the one called
    /// `from` on.
    fn numbered(
        &self,
        directory: &Path,
        from: &Path,
        floor: Sequence,
    ) -> BoxStream<'static, Result<(Sequence, Path), Error>> {
        let is_sorted = self.directory.is_none();
        let listed = self.store.list_with_offset(Some(directory), from);
        // Stores list by name, directories in no order. A name without a number ends nothing.
        let until = move |at: Option<Sequence>| !is_sorted || at.is_none_or(|at| at <= floor);
        let numbers = listed.map_ok(|meta| (sequence_of(&meta.location), meta.location));
        let through_floor = numbers.try_take_while(move |(at, _)| future::ok(until(*at)));
        let numbered = move |(at, path): (Option<Sequence>, Path)| {
            at.filter(|at| *at <= floor).map(|at| (at, path))
        };
        through_floor.try_filter_map(move |it| future::ok(numbered(it))).boxed()
    }

    /// Deletes floors that are outdated, once everything through `swept` is deleted that may go. In
    /// ascending order, one by one: [`Objects::look`] relies on it. The lowest that stays is not
    /// above `swept`, because the next trimming begins there.
    async fn delete_floors(&self, swept: Sequence) -> Result<(), Failure> {
        let floors = self.floors().await?;
        let outdated = floors.len().saturating_sub(FLOORS_KEPT);
        for pair in floors.windows(2).take(outdated).take_while(|pair| pair[1] <= swept) {
            match self.store.delete(&self.names.floor(self.life, pair[0])).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// How many were deleted, those included that somebody else had deleted before.
    async fn delete_all(
        &self,
        paths: BoxStream<'static, Result<Path, Error>>,
    ) -> Result<usize, Failure> {
        let mut deleted = self.store.delete_stream(paths);
        let mut count = 0;
        while let Some(answer) = deleted.next().await {
            match answer {
                Ok(_) | Err(Error::NotFound { .. }) => count += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(count)
    }
}
