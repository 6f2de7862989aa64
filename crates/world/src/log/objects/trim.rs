//! Forgetting: first the floor says it, then the objects go.
//!
//! The order is what tells a ghost from a record ([`super::hands`]). Deletions that a crash left
//! undone are found by the next call: it lists from the beginning, and deletes whatever lies at or
//! below the floor.

use super::Objects;
use super::look::{FLOORS_KEPT, Failure};
use super::names::sequence_of;
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
        self.delete_records(floor).await?;
        self.delete_floors().await?;
        Ok(floor)
    }

    async fn delete_records(&self, floor: Sequence) -> Result<(), Failure> {
        let is_sorted = self.directory.is_none();
        // Looked for behind the floor: whoever puts a record there from now on is told by it.
        let kept = self.all_kept(floor).await?;
        let is_forgotten = move |path: &Path| {
            sequence_of(path).is_some_and(|at| at <= floor && !kept.contains(&at))
        };
        let listed = self.store.list(Some(&self.names.records(self.life)));
        // Stores list by name, directories in no order. A name that is no record's ends nothing.
        let until = move |meta: &object_store::ObjectMeta| {
            !is_sorted || sequence_of(&meta.location).is_none_or(|at| at <= floor)
        };
        let forgotten = listed
            .try_take_while(move |meta| future::ok(until(meta)))
            .map_ok(|meta| meta.location)
            .try_filter(move |path| future::ready(is_forgotten(path)))
            .take(DELETIONS_MAX);
        self.delete_all(forgotten.boxed()).await
    }

    /// The places through the floor whose records stay.
    async fn all_kept(&self, floor: Sequence) -> Result<BTreeSet<Sequence>, Failure> {
        let listed = self.store.list(Some(&self.names.all_kept(self.life)));
        let numbers = listed.try_filter_map(async |meta| Ok(sequence_of(&meta.location)));
        let through_floor = numbers.try_filter(|at| future::ready(*at <= floor));
        Ok(through_floor.try_collect().await?)
    }

    /// Deletes floors in ascending order, one by one: [`Objects::look`] relies on it.
    async fn delete_floors(&self) -> Result<(), Failure> {
        let floors = self.floors().await?;
        let outdated = floors.len().saturating_sub(FLOORS_KEPT);
        for floor in &floors[..outdated] {
            match self.store.delete(&self.names.floor(self.life, *floor)).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn delete_all(
        &self,
        paths: BoxStream<'static, Result<Path, Error>>,
    ) -> Result<(), Failure> {
        let mut deleted = self.store.delete_stream(paths);
        while let Some(answer) = deleted.next().await {
            match answer {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
