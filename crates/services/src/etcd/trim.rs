//! Forgetting, in transactions that keep nobody else waiting for long; then compaction.
//!
//! What is deleted takes space in etcd until its history is compacted, so that is asked for here.
//! It concerns the whole cluster: other users lose the history before this moment, too, and so a
//! log's cluster should be its own.

use super::keys::{self, Numbers};
use super::{ANSWER_WAIT, Etcd, Failure};
use base::Sequence;
use etcd_client::{Client, Compare, CompareOp, DeleteOptions, Txn, TxnOp};
use txlog::remote::store::Outcome;

/// Records that one transaction deletes.
const DELETIONS_MAX: u64 = 500;

/// Transactions of one call: 100 000 records, more than come between two snapshots.
const TRANSACTIONS_MAX: usize = 200;

impl Etcd {
    pub(super) async fn trim_through(&self, through: Sequence) -> Result<Outcome, Failure> {
        let mut numbers = self.numbers().await?;
        let began = numbers.first;
        for _ in 0..TRANSACTIONS_MAX {
            // Never the newest record: it carries the epoch.
            let end = Sequence(through.0.saturating_add(1).min(numbers.head.0));
            let end = end.min(Sequence(numbers.first.0 + DELETIONS_MAX));
            if end <= numbers.first {
                break;
            }
            numbers = self.forget(numbers, end).await?;
        }
        if numbers.first > began {
            // Whoever compacts first is as good: the error says that it was done.
            let revision = numbers.revision;
            let question =
                |client: Client| async move { client.kv_client().compact(revision, None).await };
            if let Err(error) = self.members.ask(ANSWER_WAIT, question).await {
                tracing::debug!(%error, "etcd's history was not compacted");
            }
        }
        Ok(Outcome::First { sequence: numbers.first })
    }

    /// Forgets what lies before `end`, unless somebody else has just forgotten something.
    async fn forget(&self, numbers: Numbers, end: Sequence) -> Result<Numbers, Failure> {
        let first = keys::number(numbers.first);
        let is_first = Compare::value(self.keys.first(), CompareOp::Equal, first);
        let range = DeleteOptions::new().with_range(self.keys.record(end));
        let mut steps = vec![
            TxnOp::put(self.keys.first(), keys::number(end), None),
            TxnOp::delete(self.keys.record(numbers.first), Some(range)),
        ];
        steps.extend(self.keys.numbers());
        let transaction = Txn::new()
            .when([self.is_same(), is_first])
            .and_then(steps)
            .or_else(self.keys.numbers());
        let answer = self.transact(ANSWER_WAIT, transaction).await?;
        Numbers::read(self.incarnation, &answer)
    }
}
