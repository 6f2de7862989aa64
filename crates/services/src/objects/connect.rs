//! A store that keeps its word, and a log in it: found, or begun.

use super::directory::Directory;
use super::known::Known;
use super::location::{LOG, Location};
use super::look::Failure;
use super::names::{Life, Names};
use super::{NO_LOG, Objects, Trouble};
use crate::bucket::location::Store;
use crate::bucket::probe::{create, probe};
use crate::bucket::{self, Service, found};
use base::{Clock, Incarnation, Sequence};
use futures_util::{StreamExt, TryStreamExt, future};
use object_store::{Error, ObjectStore, ObjectStoreExt};
use std::io;
use std::sync::{Arc, Mutex};

/// Objects below the prefix that are looked at for records of a log whose identity is gone.
const LEFTOVERS_MAX: usize = 1000;

/// Times that other processes may begin the log, and somebody delete it, at the same moment.
const BEGINNINGS_MAX: usize = 3;

impl Objects {
    pub(super) async fn connect(
        location: &Location,
        clock: Arc<dyn Clock>,
        new: Option<Incarnation>,
        trouble: Trouble,
    ) -> io::Result<Self> {
        let store = location.store(new.is_some())?;
        let trim_age_ms = location.trim_age_ms;
        let new = new.map(|incarnation| Life { incarnation, trim_age_ms });
        Self::over(store, new, clock, trouble).await
    }

    /// A log that is not there is begun as `new`, if that is given; else nothing is put.
    pub(super) async fn over(
        store: Store,
        new: Option<Life>,
        clock: Arc<dyn Clock>,
        trouble: Trouble,
    ) -> io::Result<Self> {
        let Store { objects: store, prefix, directory, service } = store;
        let names = Names::new(prefix);
        let life = match new {
            Some(new) => {
                probe(&*store, &names.probe(new.incarnation.0), service, &LOG).await?;
                find_or_begin(&*store, &names, new).await?
            }
            None => find(&*store, &names)
                .await?
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, NO_LOG))?,
        };
        let known = Known::new(life.trim_age_ms, clock.monotonic());
        let known = Mutex::new(known);
        let directory = directory.map(|root| Directory::new(&root, &names, life));
        let objects = Self { clock, store, names, life, directory, known, trouble };
        match objects.look().await {
            Ok(_) => Ok(objects),
            Err(Failure::Lost(why)) => {
                Err(io::Error::other(format!("the transaction log is lost: {why}")))
            }
            Err(Failure::Unanswered(error)) => Err(explained(error)),
        }
    }
}

async fn find(store: &dyn ObjectStore, names: &Names) -> io::Result<Option<Life>> {
    let object = found(store.get(&names.incarnation()).await).map_err(explained)?;
    let Some(object) = object else { return Ok(None) };
    let bytes = object.bytes().await.map_err(explained)?;
    Life::decode(&bytes).map(Some).map_err(|what| {
        let what = format!("the object {}: {what}", names.incarnation());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

async fn find_or_begin(store: &dyn ObjectStore, names: &Names, wanted: Life) -> io::Result<Life> {
    for _ in 0..BEGINNINGS_MAX {
        if let Some(life) = find(store, names).await? {
            return Ok(life);
        }
        if let Err(leftovers) = refuse_leftovers(store, names).await {
            // Whoever began the log a moment ago may have written to it already.
            return find(store, names).await?.ok_or(leftovers);
        }
        // The floor comes first: a log never is without one.
        let floor = names.floor(wanted, Sequence::ZERO);
        match create(store, &floor, Vec::new()).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(explained(error)),
        }
        match create(store, &names.incarnation(), wanted.encode()).await {
            Ok(_) => return Ok(wanted),
            // Somebody else was faster, or this was, and the answer was lost.
            Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(explained(error)),
        }
    }
    Err(io::Error::other(format!("the object {} comes and goes", names.incarnation())))
}

/// Records without an identity are what remains of a log that somebody is deleting, or has deleted
/// in part: a new one must not begin beside them unnoticed.
async fn refuse_leftovers(store: &dyn ObjectStore, names: &Names) -> io::Result<()> {
    let listed = store.list(Some(names.prefix())).take(LEFTOVERS_MAX);
    let mut records = listed.try_filter(|meta| future::ready(Names::is_record(&meta.location)));
    match records.next().await {
        None => Ok(()),
        Some(Ok(record)) => {
            let what = format!(
                "the object {} is gone, but records are there, such as {}: delete all of them to \
                 begin a new log",
                names.incarnation(),
                record.location
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        }
        Some(Err(error)) => Err(explained(error)),
    }
}

fn explained(error: Error) -> io::Error {
    bucket::explained(error, Service::S3)
}

/// So that tests can begin a log as another process does.
#[cfg(test)]
pub(super) fn in_memory(memory: &std::sync::Arc<dyn ObjectStore>) -> Store {
    Store {
        objects: std::sync::Arc::clone(memory),
        prefix: object_store::path::Path::from("some/shard"),
        service: Service::S3,
        directory: None,
    }
}
