//! The log in etcd: a key for each record, and one that names the newest.
//!
//! Whatever is decided is decided by one transaction of etcd's: a record is put, and the head moved
//! to it, if the head was its predecessor and the log is still the one that was opened. So there
//! are no holes and no stragglers: a deposed writer's put, however late, names a head that was
//! passed. To compare an epoch as well would add nothing, since a new epoch begins by moving the
//! head. The next record must name the success of the one before it, so one is under way at a time;
//! chained transactions sent ahead would mostly fail.
//!
//! Every read is linearizable: a quorum was asked. What replicas wait for is the head, by a watch,
//! which only says when to read.
//!
//! | file | holds |
//! |---|---|
//! | `address` | the URL: members, prefix, TLS, user |
//! | `members` | which member is spoken to, and when it is left |
//! | `keys` | the keys and their values |
//! | `connect` | a log in the cluster, found or begun |
//! | `read` | records, the end, the beginning |
//! | `trim` | forgetting, then compaction |
//! | `health` | why no writes should be taken although none has failed |

mod address;
mod connect;
mod health;
mod keys;
mod members;
mod read;
mod trim;

use crate::opening::Opening;
use crate::service::{Facts, Later, NO_LOG, Service, ServiceStore, Trouble};
use address::Address;
use base::{Incarnation, Sequence};
use bytes::Bytes;
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp, TxnResponse};
use health::Space;
use keys::{Keys, Numbers};
use members::{Members, Unanswered};
use read::Tailing;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use txlog::Refusal;
use txlog::remote::store::{Operation, Outcome, StoreLimits};

/// The largest record. etcd refuses requests above 1.5 MiB (`--max-request-bytes`), and names and
/// lengths take some of it.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// A record's cost to a start, as `StoreLimits` has it: tens of thousands of small ones come in a
/// second, where a snapshot is loaded at some 100 MB/s. A guess.
const RECORD_COST_BYTES: u64 = 4 << 10;

/// The largest answer that is taken: the least number of records that is asked for, each of the
/// largest, and as much again.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// How long a put may take before it is in doubt and another member is asked. An election in etcd
/// takes 1 to 2 s; a put that waits for one ends before this.
const PUT_WAIT: Duration = Duration::from_secs(3);

/// How long a question may take.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// How long trimming may take: it goes on at the next call where it was cut off.
const TRIM_WAIT: Duration = Duration::from_secs(60);

/// How long reading may take: two questions, and the wait between them.
const READ_WAIT: Duration = Duration::from_secs(15);

/// Opens the log at `url`. Blocks for up to 30 s until a cluster answers.
///
/// # Errors
/// The URL is none of this kind; the cluster cannot be reached, or refuses; what stands there is no
/// log.
pub fn open(url: &str, opening: Opening) -> io::Result<ServiceStore> {
    let Opening { waker, new, .. } = opening;
    let address = Address::parse(url)?;
    let trouble = Trouble::default();
    let told = trouble.clone();
    ServiceStore::start("log-etcd", waker, trouble, async move {
        let etcd = Arc::new(Etcd::connect(address, new, told).await?);
        tokio::spawn(health::watch(Arc::clone(&etcd)));
        let limits = StoreLimits {
            record_bytes_max: RECORD_BYTES_MAX,
            puts_max: 1,
            record_cost_bytes: RECORD_COST_BYTES,
        };
        let facts = Facts { incarnation: etcd.incarnation, limits };
        Ok((etcd, facts))
    })
}

/// A client of one log in etcd.
pub struct Etcd {
    address: Address,
    members: Members,
    keys: Keys,
    incarnation: Incarnation,
    space: Space,
    tailing: Tailing,
    trouble: Trouble,
}

/// Why a question has no answer.
enum Failure {
    /// The log is not the one that was opened.
    Lost(String),
    Unanswered(Unanswered),
}

impl From<Unanswered> for Failure {
    fn from(error: Unanswered) -> Self {
        Self::Unanswered(error)
    }
}

impl Failure {
    fn into_outcome(self) -> Outcome {
        match self {
            Self::Lost(why) => Outcome::Lost(why),
            Self::Unanswered(error) => Outcome::Failed(error.to_string()),
        }
    }
}

impl Etcd {
    async fn transact(&self, limit: Duration, transaction: Txn) -> Result<TxnResponse, Unanswered> {
        let question = |client: Client| async move {
            let mut kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
            kv.txn(transaction).await
        };
        self.members.ask(limit, question).await
    }

    /// Holds if the log is still the one that was opened.
    fn is_same(&self) -> Compare {
        let life = keys::life(self.incarnation);
        Compare::value(self.keys.incarnation(), CompareOp::Equal, life)
    }

    async fn put_record(&self, sequence: Sequence, record: Bytes) -> Outcome {
        let Some(before) = sequence.0.checked_sub(1).map(Sequence) else {
            return Outcome::Misplaced;
        };
        self.tailing.end();
        let follows = Compare::value(self.keys.head(), CompareOp::Equal, keys::number(before));
        let length = record.len();
        let puts = [
            TxnOp::put(self.keys.record(sequence), record, None),
            TxnOp::put(self.keys.head(), keys::number(sequence), None),
        ];
        let transaction =
            Txn::new().when([self.is_same(), follows]).and_then(puts).or_else(self.keys.numbers());
        match self.transact(PUT_WAIT, transaction).await {
            Ok(answer) if answer.succeeded() => {
                self.count(length);
                Outcome::Stored
            }
            Ok(answer) => match Numbers::read(self.incarnation, &answer) {
                Ok(_) => Outcome::Misplaced,
                Err(Failure::Lost(why)) => Outcome::Lost(why),
                Err(Failure::Unanswered(error)) => Outcome::InDoubt(error.to_string()),
            },
            Err(error) if error.is_full() => Outcome::Full(error.to_string()),
            Err(error) => Outcome::InDoubt(error.to_string()),
        }
    }

    /// Closes the gate before the next look at etcd's space if this record took the last of it.
    fn count(&self, length: usize) {
        if !self.space.take(length) && self.trouble.get().is_none() {
            let why = "etcd's quota is nearly used up".to_owned();
            self.trouble.set(Some(Refusal::Unavailable(why)));
        }
    }

    async fn respond(&self, question: Operation) -> Result<Outcome, Failure> {
        match question {
            Operation::Put { .. } => Ok(Outcome::Failed("a put is not a question".to_owned())),
            Operation::Get { from, bytes_max, waits } => self.records(from, bytes_max, waits).await,
            Operation::Tail => {
                let sequence = self.numbers().await?.head;
                Ok(Outcome::Tail { sequence, is_confirmed: true })
            }
            Operation::First => Ok(Outcome::First { sequence: self.numbers().await?.first }),
            Operation::Trim { through } => self.trim_through(through).await,
        }
    }

    /// Hands an outcome on, having drawn from it what it says about the log.
    fn noted(&self, outcome: Outcome) -> Outcome {
        match &outcome {
            Outcome::Lost(_) => self.trouble.set(Some(Refusal::LogLost)),
            Outcome::InDoubt(why) | Outcome::Failed(why) => {
                tracing::debug!(log = %self.address, why, "etcd left a question open");
            }
            _ => {}
        }
        outcome
    }
}

impl Service for Etcd {
    fn put(self: Arc<Self>, sequence: Sequence, record: Bytes) -> Later<Later<Outcome>> {
        // Only one put is ever under way, so nothing needs to happen in order.
        let ends: Later<Outcome> =
            Box::pin(async move { self.noted(self.put_record(sequence, record).await) });
        Box::pin(std::future::ready(ends))
    }

    fn answer(self: Arc<Self>, question: Operation) -> Later<Outcome> {
        Box::pin(async move {
            let limit = match question {
                Operation::Trim { .. } => TRIM_WAIT,
                _ => READ_WAIT,
            };
            let answer = tokio::time::timeout(limit, self.respond(question)).await;
            let late = |_| Ok(Outcome::Failed("etcd did not answer in time".to_owned()));
            self.noted(answer.unwrap_or_else(late).unwrap_or_else(Failure::into_outcome))
        })
    }
}
