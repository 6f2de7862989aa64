//! Records in order; at the end, a watch on the head says when there are more.

use super::keys::{Numbers, gets};
use super::members::Unanswered;
use super::{ANSWER_WAIT, Etcd, Failure};
use base::Sequence;
use bytes::Bytes;
use etcd_client::{Client, Event, Txn, WatchOptions, WatchStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use txlog::remote::store::Outcome;

/// Records asked for at a time: so many of the largest fit into an answer; as many as are worth a
/// round trip when they are small. What the largest would be all of it is for etcd to hold, not for
/// us, and bounds the second number.
const RECORDS_MIN: i64 = 16;
const RECORDS_MAX: i64 = 256;

/// How long reading waits at the end before it answers that there is nothing.
const TAIL_WAIT: Duration = Duration::from_secs(2);

/// What reading keeps from one piece to the next.
#[derive(Default)]
pub struct Tailing {
    /// Tells of every change of the head.
    watch: Mutex<Option<Watch>>,
    /// Records to ask for, above the least.
    more: AtomicI64,
}

struct Watch {
    stream: WatchStream,
    /// Of the member that is watched.
    turn: usize,
}

impl Tailing {
    /// Who writes does not read: nobody would take the watch's messages.
    pub fn end(&self) {
        if let Ok(mut watch) = self.watch.try_lock() {
            *watch = None;
        }
    }

    fn count(&self) -> i64 {
        RECORDS_MIN + self.more.load(Ordering::Relaxed)
    }

    /// Asks for more at a time while answers are small, and for few when one is not.
    fn adapt(&self, found: &[Bytes], bytes_max: usize) {
        let bytes: usize = found.iter().map(Bytes::len).sum();
        if bytes > bytes_max {
            self.more.store(0, Ordering::Relaxed);
        } else if found.len() as i64 == self.count() && bytes < bytes_max / 4 {
            let more = (self.count() * 2).min(RECORDS_MAX) - RECORDS_MIN;
            self.more.store(more, Ordering::Relaxed);
        }
    }
}

impl Etcd {
    /// Asks a quorum where the log begins and ends.
    pub(super) async fn numbers(&self) -> Result<Numbers, Failure> {
        let question = Txn::new().and_then(self.keys.numbers());
        Numbers::read(self.incarnation, &self.transact(ANSWER_WAIT, question).await?)
    }

    pub(super) async fn records(
        &self,
        from: Sequence,
        bytes_max: usize,
        waits: bool,
    ) -> Result<Outcome, Failure> {
        let from = from.max(Sequence(1));
        let (mut numbers, mut records) = self.read(from, bytes_max).await?;
        if waits && records.is_empty() && numbers.head.next() == from {
            // Whether it changed, or the wait was over: the next look says what there is.
            let changes = self.changes(numbers.revision);
            if let Ok(broken) = tokio::time::timeout(TAIL_WAIT, changes).await {
                broken?;
            }
            (numbers, records) = self.read(from, bytes_max).await?;
        }
        if from < numbers.first {
            return Ok(Outcome::Trimmed { first: numbers.first });
        }
        Ok(Outcome::Records { records: fitting(records, bytes_max), tail: numbers.head })
    }

    /// Numbers and records, all as of one revision, which a quorum confirms to be the newest.
    async fn read(
        &self,
        from: Sequence,
        bytes_max: usize,
    ) -> Result<(Numbers, Vec<Bytes>), Failure> {
        let mut questions = self.keys.numbers();
        questions.push(self.keys.records(from, self.tailing.count()));
        let answer = self.transact(ANSWER_WAIT, Txn::new().and_then(questions)).await;
        let answer = answer.inspect_err(|error| {
            if error.is_too_long() {
                self.tailing.more.store(0, Ordering::Relaxed);
            }
        })?;
        let numbers = Numbers::read(self.incarnation, &answer)?;
        let found = gets(&answer).pop();
        let pairs = found.as_ref().map(|get| get.kvs()).unwrap_or_default();
        let mut records = Vec::with_capacity(pairs.len());
        for (place, pair) in (from.0..).map(Sequence).zip(pairs) {
            if pair.key() != self.keys.record(place).as_bytes() || place > numbers.head {
                break;
            }
            records.push(Bytes::copy_from_slice(pair.value()));
        }
        if records.is_empty() && (numbers.first..=numbers.head).contains(&from) {
            return Err(Failure::Lost(format!("the key {} is gone", self.keys.record(from))));
        }
        self.tailing.adapt(&records, bytes_max);
        Ok((numbers, records))
    }

    /// Waits for the head to change after a revision.
    async fn changes(&self, revision: i64) -> Result<(), Failure> {
        let mut kept = self.tailing.watch.lock().await;
        let turn = self.members.turn();
        let watch = match kept.take().filter(|watch| watch.turn == turn) {
            Some(watch) => kept.insert(watch),
            None => kept.insert(self.watch(turn, revision + 1).await?),
        };
        let is_new = |event: &Event| event.kv().is_some_and(|kv| kv.mod_revision() > revision);
        let why = loop {
            match watch.stream.message().await {
                Ok(Some(message)) if message.canceled() => {
                    break message.cancel_reason().to_owned();
                }
                Ok(Some(message)) if message.events().iter().any(is_new) => return Ok(()),
                Ok(Some(_)) => {}
                Ok(None) => break "its member closed it".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        // History was compacted, the token is too old, the member is without a leader or gone.
        *kept = None;
        self.members.leave(turn);
        Err(Unanswered::Ended(why).into())
    }

    async fn watch(&self, turn: usize, from_revision: i64) -> Result<Watch, Failure> {
        let head = self.keys.head();
        let options = WatchOptions::new().with_start_revision(from_revision);
        let question =
            |client: Client| async move { client.watch_client().watch(head, Some(options)).await };
        let stream = self.members.ask_one(turn, ANSWER_WAIT, question).await?;
        Ok(Watch { stream, turn })
    }
}

/// As many as `bytes_max` holds, but at least one if there is one.
fn fitting(mut records: Vec<Bytes>, bytes_max: usize) -> Vec<Bytes> {
    let mut bytes = 0;
    let fits = |record: &&Bytes| {
        bytes += record.len();
        bytes <= bytes_max
    };
    let fit = records.iter().take_while(fits).count();
    records.truncate(fit.max(1));
    records
}
