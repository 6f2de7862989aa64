//! Why no writes should be taken although none has failed: no leader, no answer, or little space.
//!
//! When etcd's quota is used up the whole cluster refuses to write, for whatever user, until
//! somebody repairs it by hand. So writes end before. What counts against the quota is the size of
//! the database's file, which never shrinks by itself: what compaction frees in it is used again
//! before it grows. So it is watched twice, what is in use and the file.

use super::Etcd;
use etcd_client::{Client, StatusResponse};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use txlog::Refusal;

/// Between looks at the cluster's state.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a member may take to say how it is.
const WAIT: Duration = Duration::from_secs(2);

/// Looks in a row that must find no leader before the cluster counts as away: an election takes 1
/// to 2 s, and who waits for it need not be told.
const MISSES_MAX: u32 = 3;

/// Tenths of the quota that may be in use: 80 %. The rest is for leases, for what is under way, and
/// for what trimming itself writes.
const USED_TENTHS_MAX: i64 = 8;

/// Tenths of the quota that the file may have.
const FILE_TENTHS_MAX: i64 = 9;

/// What a record takes beside its bytes at most: two keys, revisions, and a page of the database,
/// since a large value begins and ends with a page of its own. Of small ones many share a page: the
/// next look gives back what was counted too much.
const OVERHEAD_BYTES: i64 = 512 + 4096;

/// Bytes that may be put until the next look.
pub struct Space(AtomicI64);

impl Default for Space {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }
}

impl Space {
    /// Counts a record. False if the space is used up.
    pub fn take(&self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_add(OVERHEAD_BYTES);
        self.0.fetch_sub(bytes, Ordering::Relaxed) > bytes
    }
}

/// Looks for as long as the client's thread lives.
pub async fn watch(etcd: Arc<Etcd>) {
    let mut misses = 0;
    loop {
        tokio::time::sleep(PAUSE).await;
        let found = look(&etcd).await;
        misses = if found.is_away { misses + 1 } else { 0 };
        if misses == 0 || misses >= MISSES_MAX {
            tell(&etcd, found);
        }
    }
}

/// Says what a look found to who writes, and once to the operator.
pub fn tell(etcd: &Etcd, found: Found) {
    let before = etcd.trouble.get();
    let now = found.trouble.map(Refusal::Unavailable);
    match (&before, &now) {
        // Of a log that is lost nothing else matters.
        (Some(Refusal::LogLost), _) => return,
        (None, Some(why)) => tracing::warn!(log = %etcd.address, %why, "the log takes no writes"),
        (Some(_), None) => tracing::info!(log = %etcd.address, "the log takes writes again"),
        _ => {}
    }
    etcd.trouble.set(now);
}

/// What a look found.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct Found {
    trouble: Option<String>,
    /// Nobody answered who knows a leader.
    is_away: bool,
}

/// Asks every member how it is, and counts the space anew.
pub async fn look(etcd: &Etcd) -> Found {
    let ask = |index| {
        let status = |client: Client| async move { client.maintenance_client().status().await };
        etcd.members.ask_one(index, WAIT, status)
    };
    let answers = join_all((0..etcd.members.count()).map(ask)).await;
    // One that does not answer says nothing of its space; whether enough do, the leader shows.
    let members: Vec<_> = answers.into_iter().flatten().map(Member::from).collect();
    let (found, room) = assess(&members);
    etcd.space.0.store(room, Ordering::Relaxed);
    found
}

/// What a member says of itself.
#[derive(Clone, Debug)]
struct Member {
    /// Bytes of its database in use, of the file, and that the file may have.
    used: i64,
    file: i64,
    quota: i64,
    has_leader: bool,
    errors: Vec<String>,
}

impl From<StatusResponse> for Member {
    fn from(status: StatusResponse) -> Self {
        Self {
            used: status.raft_used_db_size(),
            file: status.db_size(),
            quota: status.db_size_quota(),
            has_leader: status.leader() != 0,
            errors: status.errors().to_vec(),
        }
    }
}

/// What is wrong, if anything, and how many bytes may still be put.
fn assess(members: &[Member]) -> (Found, i64) {
    if !members.iter().any(|member| member.has_leader) {
        let what = if members.is_empty() { "no member answers" } else { "etcd has no leader" };
        return (Found { trouble: Some(what.to_owned()), is_away: true }, i64::MAX);
    }
    let mut room = i64::MAX;
    let mut trouble = None;
    // One without a quota was told to take everything.
    for member in members.iter().filter(|member| member.quota > 0) {
        let Member { used, file, quota, .. } = *member;
        let tenth = quota / 10;
        room = room.min(tenth * USED_TENTHS_MAX - used);
        if used >= tenth * USED_TENTHS_MAX {
            trouble = Some(format!(
                "etcd uses {used} of the {quota} bytes of its quota: take a snapshot, or raise it"
            ));
        } else if file >= tenth * FILE_TENTHS_MAX {
            trouble = Some(format!(
                "the file of etcd's database has {file} of the {quota} bytes of its quota, of \
                 which {used} are in use: run etcdctl defrag"
            ));
        }
    }
    let mut alarms = members.iter().flat_map(|member| &member.errors);
    // A member that knows no leader says so here too, and is then behind the others.
    if let Some(alarm) = alarms.find(|error| error.contains("alarm")) {
        trouble = Some(format!("etcd reports: {alarm}"));
    }
    (Found { trouble, is_away: false }, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(used: i64, file: i64) -> Member {
        Member { used, file, quota: 1000, has_leader: true, errors: Vec::new() }
    }

    fn trouble(members: &[Member]) -> String {
        assess(members).0.trouble.unwrap_or_default()
    }

    #[test]
    fn writes_end_before_the_quota_does() {
        assert_eq!(assess(&[member(799, 899), member(0, 0)]), (Found::default(), 1));
        assert!(trouble(&[member(0, 0), member(800, 800)]).contains("uses 800 of the 1000 bytes"));
        assert!(trouble(&[member(100, 900)]).contains("etcdctl defrag"));
        let unlimited = Member { quota: -1, ..member(5000, 5000) };
        assert_eq!(assess(&[unlimited]), (Found::default(), i64::MAX));
    }

    #[test]
    fn an_alarm_and_a_missing_leader_are_told() {
        let alarmed = Member { errors: vec!["memberID:7 alarm:NOSPACE ".into()], ..member(0, 0) };
        assert!(trouble(&[member(0, 0), alarmed]).contains("NOSPACE"));
        let no_leader = "etcdserver: no leader".to_owned();
        let alone = Member { has_leader: false, errors: vec![no_leader], ..member(0, 0) };
        assert!(assess(std::slice::from_ref(&alone)).0.is_away);
        assert_eq!(assess(&[alone, member(0, 0)]).0, Found::default());
        assert!(assess(&[]).0.is_away);
    }

    #[test]
    fn what_is_put_between_looks_is_counted() {
        let space = Space(AtomicI64::new(2 * (100 + OVERHEAD_BYTES) + 1));
        assert_eq!([space.take(100), space.take(100), space.take(100)], [true, true, false]);
    }
}
