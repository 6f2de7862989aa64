//! One record: put where its predecessor stands, if nothing stands there itself.

use super::Objects;
use super::look::Failure;
use crate::bucket::{found, is_full};
use crate::opening::Broken;
use base::{MonotonicNanos, Sequence};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutPayload};
use std::time::Duration;
use txlog::remote::store::Outcome;

/// Times that a store may say "conflict" about a place where nothing stands. S3 does (409) when
/// two requests for one name meet, or one meets a deletion.
const CONFLICTS_MAX: u32 = 6;

/// Before the first repetition after a conflict; twice as long before each further one.
const CONFLICT_PAUSE: Duration = Duration::from_millis(10);

impl Objects {
    pub(super) async fn put_record(&self, sequence: Sequence, record: Bytes) -> Outcome {
        match self.may_follow(sequence).await {
            Ok(true) => {}
            Ok(false) => return self.misplaced().await,
            Err(error) => return Outcome::InDoubt(format!("record {sequence}: {error}")),
        }
        if let Err(outcome) = self.keep_if_hands_change(sequence).await {
            return outcome;
        }
        self.known().hands.tries(sequence, record.clone());
        let path = self.names.record(self.life, sequence);
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICTS_MAX {
            let asked = self.now();
            let payload = PutPayload::from_bytes(record.clone());
            match self.store.put_opts(&path, payload, PutMode::Create.into()).await {
                Ok(_) => return self.placed(sequence, asked).await,
                Err(Error::AlreadyExists { .. }) => match self.stands(sequence).await {
                    Ok(true) => return self.misplaced().await,
                    Ok(false) => {}
                    Err(error) => return Outcome::InDoubt(error.to_string()),
                },
                // No record needs another object to exist: it is the bucket that is gone.
                Err(error @ Error::NotFound { .. }) => return self.doubted(error).await,
                Err(error) if is_full(&error) => return self.full(sequence, &error).await,
                Err(error) => {
                    self.break_if_file();
                    return Outcome::InDoubt(error.to_string());
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        conflicts(&path)
    }

    /// Where the log changes hands, its trimmers are told before anything is put.
    async fn keep_if_hands_change(&self, sequence: Sequence) -> Result<(), Outcome> {
        let goes_on = {
            let known = self.known();
            known.hands.go_on_at(sequence) || known.trusts_all()
        };
        if goes_on {
            return Ok(());
        }
        let path = self.names.kept(self.life, sequence);
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICTS_MAX {
            match self.store.put_opts(&path, PutPayload::new(), PutMode::Create.into()).await {
                Ok(_) => return Ok(()),
                Err(Error::AlreadyExists { .. }) => match found(self.store.head(&path).await) {
                    Ok(Some(_)) => return Ok(()),
                    Ok(None) => {}
                    Err(error) => return Err(Outcome::InDoubt(error.to_string())),
                },
                Err(error @ Error::NotFound { .. }) => return Err(self.doubted(error).await),
                Err(error) if is_full(&error) => return Err(self.full(sequence, &error).await),
                Err(error) => {
                    self.break_if_file();
                    return Err(Outcome::InDoubt(error.to_string()));
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(conflicts(&path))
    }

    /// Whether the place before this one was ever taken. Without that a record could stand behind
    /// a hole, where no reader ever comes.
    async fn may_follow(&self, sequence: Sequence) -> Result<bool, Error> {
        let Some(before) = sequence.0.checked_sub(1).map(Sequence) else { return Ok(false) };
        let (taken, floor) = {
            let known = self.known();
            (known.taken(), known.floor())
        };
        if sequence <= floor {
            return Ok(false);
        }
        if before <= taken {
            return Ok(true);
        }
        let stands = self.stands(before).await?;
        if stands {
            self.known().saw_taken(before, self.now());
        }
        Ok(stands)
    }

    /// The store has taken the record. It counts unless the place had been trimmed before.
    pub(super) async fn placed(&self, sequence: Sequence, asked: MonotonicNanos) -> Outcome {
        let is_sure = self.known().is_put_sure(sequence, self.now());
        if !is_sure {
            match self.look().await {
                Ok(floor) if floor < sequence => {}
                Ok(_) if self.known().broken == Some(Broken::DeletesLate) => {
                    let _ = self.store.delete(&self.names.record(self.life, sequence)).await;
                    return Outcome::Misplaced;
                }
                // The record stays, though the floor is not below it: it may be one that counted
                // and was trimmed since, and that keeps a sleeper's put from its place for ever.
                Ok(_) => return Outcome::Misplaced,
                Err(failure) => return failure.into_doubt(),
            }
        }
        let mut known = self.known();
        known.saw_taken(sequence, self.now());
        known.saw_free(sequence, asked);
        known.hands.stored(sequence);
        Outcome::Stored
    }

    /// Nothing was written; unless the log is another one, that is all there is to say.
    async fn misplaced(&self) -> Outcome {
        if let Err(error) = self.settle().await {
            return Failure::from(error).into_doubt();
        }
        match self.look().await {
            Ok(_) => Outcome::Misplaced,
            Err(failure) => failure.into_doubt(),
        }
    }

    /// Out of space, so nothing was written; but a directory whose sync failed has the record.
    async fn full(&self, sequence: Sequence, error: &Error) -> Outcome {
        match self.stands(sequence).await {
            Ok(false) => Outcome::Full(error.to_string()),
            Ok(true) | Err(_) => {
                self.break_if_file();
                Outcome::InDoubt(error.to_string())
            }
        }
    }

    async fn doubted(&self, error: Error) -> Outcome {
        match self.look().await {
            Err(Failure::Lost(why)) => Outcome::Lost(why),
            Ok(_) | Err(Failure::Unanswered(_)) => Outcome::InDoubt(error.to_string()),
        }
    }
}

fn conflicts(path: &Path) -> Outcome {
    Outcome::InDoubt(format!("{path}: the store goes on to report a conflict"))
}
