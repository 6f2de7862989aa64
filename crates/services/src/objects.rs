//! The log in an object store: S3 and what speaks like it, or a directory that is used like one.
//!
//! A record is an object whose name is its number ([`names`]), put by a request that succeeds only
//! if there is no such object. So two writers can never both have place `k`, and that is all the
//! agreement there is. What the store does not know, its clients keep:
//!
//! - *No holes.* A record is put at `k` only by who has seen that `k - 1` was taken, and objects go
//!   by trimming alone. So wherever a put may still land, however late, its predecessor stands, and
//!   a reader that finds a place free has found the end. What a dead writer left on the way either
//!   lands in the first free place or meets the next leader's record there.
//! - *Nothing from the dead.* A place that was trimmed looks free, and a put that was long on its
//!   way succeeds there. [`hands`] says how its writer finds out, and [`known`] how a slow reader.
//! - *Its own retry.* "Exists already" may mean one's own record, whose answer was lost. So it is
//!   told as [`Outcome::Misplaced`], and the log compares the bytes.
//! - *The same log.* An operator may delete a log and begin another one under its name. The names
//!   of records contain the incarnation, and its object is looked at whenever something is odd, and
//!   every few seconds.
//!
//! | file | holds |
//! |---|---|
//! | [`location`] | the URL: which store, which prefix, which options |
//! | [`names`] | the objects' names, and the one that says which log this is |
//! | [`connect`] | a store that keeps its word, and a log in it, found or made |
//! | [`hands`] | what one process has put, and when its success needs no second look |
//! | [`known`] | what one process has seen, and when it needs no second look |
//! | [`look`] | that second look: is the log still this one, and where is its floor |
//! | [`directory`] | what is different where objects are files |
//! | [`put`] | one record |
//! | [`read`] | records, the end, the beginning |
//! | [`trim`] | the floor, then deletions |

mod connect;
mod directory;
mod hands;
mod known;
mod location;
mod look;
mod names;
mod put;
mod read;
#[cfg(test)]
mod tests;
mod trim;

use crate::bucket::found;
use crate::opening::Opening;
use crate::service::{Facts, Later, NO_LOG, Service, ServiceStore, Trouble};
use base::{Clock, MonotonicNanos, Sequence};
use bytes::Bytes;
use directory::Directory;
use known::Known;
use location::Location;
use look::Failure;
use names::{Life, Names};
use object_store::{Error, ObjectStore, ObjectStoreExt};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use txlog::Refusal;
use txlog::remote::store::{Operation, Outcome, StoreLimits};

/// The largest record. A put costs some 20 to 50 ms however small it is, so records should be large
/// under load; but what is gathered while one is on its way must fit into the next.
const RECORD_BYTES_MAX: usize = 4 << 20;

/// Bytes of an object beyond which it is no record of any release, and is not loaded into memory.
const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// How long a put may take, its second look included, before it is in doubt. The client's own
/// attempts fit into it ([`location`]).
const PUT_WAIT: Duration = Duration::from_secs(12);

/// How long a question may take, one that waits for new records included.
const ANSWER_WAIT: Duration = Duration::from_secs(12);

/// How long trimming may take: it goes on at the next call where it was cut off.
const TRIM_WAIT: Duration = Duration::from_secs(60);

/// Between looks at a store that did not answer, until it does.
const RECOVERY_PAUSE: Duration = Duration::from_secs(1);

/// Opens the log at `url`.
///
/// # Errors
/// The URL is none of this kind; the store cannot be reached, refuses, or does not keep create-only
/// puts apart; what stands there is no log.
pub fn open(url: &str, opening: Opening) -> io::Result<ServiceStore> {
    let Opening { clock, waker, new, broken } = opening;
    let location = Location::parse(url)?;
    let trouble = Trouble::default();
    let told = trouble.clone();
    ServiceStore::start("log-objects", waker, trouble, async move {
        let objects = Objects::connect(&location, clock, new, told).await?;
        objects.known().broken = broken;
        let facts = objects.facts();
        Ok((Arc::new(objects), facts))
    })
}

/// A client of one log in an object store.
pub struct Objects {
    clock: Arc<dyn Clock>,
    store: Arc<dyn ObjectStore>,
    names: Names,
    life: Life,
    /// Where objects are files.
    directory: Option<Directory>,
    known: Mutex<Known>,
    trouble: Trouble,
}

impl Objects {
    fn facts(&self) -> Facts {
        let limits = StoreLimits {
            record_bytes_max: RECORD_BYTES_MAX,
            puts_max: 1,
            record_cost_bytes: read::RECORD_COST_BYTES,
        };
        Facts { incarnation: self.life.incarnation, limits }
    }

    fn now(&self) -> MonotonicNanos {
        self.clock.monotonic()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a record stands there, or its ghost.
    async fn stands(&self, sequence: Sequence) -> Result<bool, Error> {
        found(self.store.head(&self.names.record(self.life, sequence)).await)
            .map(|meta| meta.is_some())
    }

    async fn fetch(&self, sequence: Sequence) -> Result<Option<Bytes>, Error> {
        let path = self.names.record(self.life, sequence);
        let Some(object) = found(self.store.get(&path).await)? else { return Ok(None) };
        if object.meta.size > OBJECT_BYTES_MAX {
            let what = format!("{path} has {} bytes and is no record", object.meta.size);
            return Err(Error::Generic { store: "log", source: what.into() });
        }
        object.bytes().await.map(Some)
    }

    /// Refuses writes until the store answers again.
    fn worry(self: &Arc<Self>, why: String) {
        let is_new = self.trouble.get().is_none();
        self.trouble.set(Some(Refusal::Unavailable(why)));
        if !is_new {
            return;
        }
        let objects = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(RECOVERY_PAUSE).await;
                match objects.look().await {
                    Ok(_) => break objects.trouble.set(None),
                    Err(Failure::Lost(_)) => break objects.trouble.set(Some(Refusal::LogLost)),
                    Err(Failure::Unanswered(_)) => {}
                }
            }
        });
    }

    /// Hands an outcome on, having drawn from it what it says about the store.
    fn noted(self: &Arc<Self>, outcome: Outcome) -> Outcome {
        match &outcome {
            Outcome::InDoubt(why) | Outcome::Failed(why) => self.worry(why.clone()),
            Outcome::Lost(_) => self.trouble.set(Some(Refusal::LogLost)),
            _ => {}
        }
        outcome
    }
}

impl Service for Objects {
    fn put(self: Arc<Self>, sequence: Sequence, record: Bytes) -> Later<Later<Outcome>> {
        // Only one put is ever under way, so nothing needs to happen in order.
        let ends: Later<Outcome> = Box::pin(async move {
            let outcome = in_time(PUT_WAIT, self.put_record(sequence, record)).await;
            let late = || Outcome::InDoubt(format!("record {sequence} was not answered for"));
            self.noted(outcome.unwrap_or_else(late))
        });
        Box::pin(std::future::ready(ends))
    }

    fn answer(self: Arc<Self>, question: Operation) -> Later<Outcome> {
        Box::pin(async move {
            let limit =
                if matches!(question, Operation::Trim { .. }) { TRIM_WAIT } else { ANSWER_WAIT };
            let answer = async {
                match question {
                    Operation::Put { .. } => unreachable!("puts are not questions"),
                    Operation::Get { from, bytes_max, waits } => {
                        self.records(from, bytes_max, waits).await
                    }
                    Operation::Tail => self.tail_outcome().await,
                    Operation::First => self.first_outcome().await,
                    Operation::Trim { through } => self.trim_through(through).await,
                }
            };
            let outcome = in_time(limit, answer).await;
            let late = || Outcome::Failed("the object store did not answer in time".to_owned());
            self.noted(outcome.unwrap_or_else(late))
        })
    }
}

async fn in_time<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}
