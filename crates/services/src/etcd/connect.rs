//! A log in the cluster: found, or begun.

use super::address::Address;
use super::health::{self, Space};
use super::keys::{self, Keys, gets};
use super::members::Members;
use super::{ANSWER_WAIT, Etcd, Failure, NO_LOG, Tailing, Trouble};
use base::{Incarnation, Sequence};
use etcd_client::{Compare, CompareOp, Txn, TxnOp, TxnResponse};
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// How long opening waits for a cluster that is starting or electing.
const OPEN_WAIT: Duration = Duration::from_secs(30);

/// Between attempts to open. Each asks the next member.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The oldest release that says how much space it may use.
const VERSION_MIN: (u64, u64) = (3, 6);

impl Etcd {
    /// Connects, and finds the log or begins it as `new`, however long the cluster takes to get
    /// ready.
    pub(super) async fn connect(
        address: Address,
        new: Option<Incarnation>,
        trouble: Trouble,
    ) -> io::Result<Self> {
        let mut etcd = Self {
            members: Members::new(&address)?,
            keys: Keys::new(&address.prefix),
            address,
            incarnation: Incarnation::default(),
            space: Space::default(),
            tailing: Tailing::default(),
            trouble,
        };
        let deadline = Instant::now() + OPEN_WAIT;
        loop {
            let failure = match etcd.open(new).await {
                Ok(()) => return Ok(etcd),
                Err(failure) => failure,
            };
            let error = match failure {
                Failure::Lost(why) => return Err(io::Error::other(format!("the log: {why}"))),
                Failure::Unanswered(error) => error,
            };
            let is_late = Instant::now() >= deadline;
            if is_late || error.is_final() {
                let members = etcd.address.members.join(", ");
                let what = format!("cannot get the log from any of {members}: {error}");
                return Err(io::Error::new(error.kind(), what));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn open(&mut self, new: Option<Incarnation>) -> Result<(), Failure> {
        let status = self
            .members
            .ask(ANSWER_WAIT, |client| async move { client.maintenance_client().status().await })
            .await?;
        if !is_new_enough(status.version()) {
            let (major, minor) = VERSION_MIN;
            let found = status.version();
            let what = format!("etcd has version {found}, and {major}.{minor} is needed");
            return Err(Failure::Lost(what));
        }
        self.incarnation = match new {
            Some(new) => self.find_or_begin(new).await?,
            None => self.find().await?,
        };
        self.numbers().await?;
        health::tell(self, health::look(self).await);
        Ok(())
    }

    async fn find(&self) -> Result<Incarnation, Failure> {
        let key = self.keys.incarnation();
        let transaction = Txn::new().and_then([TxnOp::get(key, None)]);
        let answer = self.transact(ANSWER_WAIT, transaction).await?;
        let found = self.found(&answer)?;
        found.ok_or_else(|| Failure::Lost(NO_LOG.to_owned()))
    }

    /// The identity that an answer holds, if it holds one.
    fn found(&self, answer: &TxnResponse) -> Result<Option<Incarnation>, Failure> {
        let found = gets(answer);
        let Some(pair) = found.first().and_then(|get| get.kvs().first()) else { return Ok(None) };
        let key = self.keys.incarnation();
        match keys::incarnation_of(pair.value()) {
            Some(incarnation) => Ok(Some(incarnation)),
            None => Err(Failure::Lost(format!("the key {key} is no log's of this release"))),
        }
    }

    /// Begins the log if nothing stands there, neither a log nor what remains of one. An attempt
    /// whose answer was lost is found by the next one.
    async fn find_or_begin(&self, wanted: Incarnation) -> Result<Incarnation, Failure> {
        let absent = |key| Compare::create_revision(key, CompareOp::Equal, 0);
        let no_records = absent(self.keys.record(Sequence(0))).with_range(self.keys.records_end());
        let begin = [
            TxnOp::put(self.keys.incarnation(), keys::life(wanted), None),
            TxnOp::put(self.keys.head(), keys::number(Sequence::ZERO), None),
            TxnOp::put(self.keys.first(), keys::number(Sequence(1)), None),
        ];
        let transaction = Txn::new()
            .when([absent(self.keys.incarnation()), no_records])
            .and_then(begin)
            .or_else([TxnOp::get(self.keys.incarnation(), None)]);
        let answer = self.transact(ANSWER_WAIT, transaction).await?;
        if answer.succeeded() {
            return Ok(wanted);
        }
        self.found(&answer)?.ok_or_else(|| {
            let key = self.keys.incarnation();
            let what = "is gone, but records are there: delete all of them to begin anew";
            Failure::Lost(format!("the key {key} {what}"))
        })
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    let found = (parts.next().flatten(), parts.next().flatten());
    matches!(found, (Some(major), Some(minor)) if (major, minor) >= VERSION_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_do_not_name_their_quota_are_too_old() {
        let versions = ["3.6.0", "3.10.1", "4.0", "3.5.21", "2.3", "3", "", "three.six"];
        let expected = [true, true, true, false, false, false, false, false];
        assert_eq!(versions.map(is_new_enough), expected);
    }
}
