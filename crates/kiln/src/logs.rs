//! Opens the transaction log that `transaction-log` names.

use crate::Broken;
use base::driver::Waker;
use node::config::settings::{LogPlace, NodeSettings};
use node::loading::{FileLogOpener, Known, OpenLog};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use txlog::file::{FileOptions, Queues};
use txlog::remote::RemoteLog;
use txlog::remote::store::RecordStore;
use world::clock::RealClock;
use world::disk::RealDisk;
use world::disk_queue::{ThreadDiskQueue, Urgency};
#[cfg(feature = "etcd")]
use world::log::etcd::open as open_etcd;
use world::log::{jetstream, objects};

/// Opens it, or begins it. Blocks. With `takes_free_log` one that nobody writes is taken at once,
/// where that can be told.
///
/// # Errors
/// What the operator must correct, or wait for.
pub fn open(
    settings: &NodeSettings,
    known: &Known,
    waker: Waker,
    entropy: u64,
    takes_free_log: bool,
    broken: Option<Broken>,
) -> Result<OpenLog, Box<dyn Error>> {
    match &settings.transaction_log {
        LogPlace::Folder(folder) => open_folder(folder, takes_free_log, known, waker, entropy),
        LogPlace::Url(url) => open_service(url, waker, entropy, broken),
    }
}

fn open_folder(
    folder: &Path,
    may_write: bool,
    known: &Known,
    waker: Waker,
    entropy: u64,
) -> Result<OpenLog, Box<dyn Error>> {
    let queues = Queues {
        commits: Box::new(ThreadDiskQueue::start("log", Urgency::Prompt, waker.clone())?),
        background: Box::new(ThreadDiskQueue::start("log-background", Urgency::Prompt, waker)?),
    };
    let opener = FileLogOpener {
        disk: Arc::new(RealDisk),
        clock: Arc::new(RealClock),
        queues,
        directory: folder.to_owned(),
        options: FileOptions { may_write, ..FileOptions::new(entropy) },
    };
    opener.open(known)
}

/// A log that other machines keep. It never says that its writer is dead: the lease decides. One
/// that is not the log of the snapshots is refused by the loading.
fn open_service(
    url: &str,
    waker: Waker,
    entropy: u64,
    broken: Option<Broken>,
) -> Result<OpenLog, Box<dyn Error>> {
    let scheme = url.split(':').next().unwrap_or_default();
    let store = match (scheme, broken) {
        ("jetstream", Some(Broken::Tail)) => {
            jetstream::open_broken(url, waker, entropy, jetstream::Broken::TrustsTheTail)?
        }
        ("jetstream", _) => jetstream::open(url, waker, entropy)?,
        ("etcd", _) => open_etcd(url, waker, entropy)?,
        (_, Some(Broken::Floor)) => {
            objects::open_broken(url, waker, entropy, objects::Broken::TrustsAll)?
        }
        _ => objects::open(url, waker, entropy)?,
    };
    let incarnation = store.incarnation();
    let log = RemoteLog::new(Box::new(store), Arc::new(RealClock));
    Ok(OpenLog { handle: Box::new(log), incarnation, is_free: false })
}

#[cfg(not(feature = "etcd"))]
fn open_etcd(_: &str, _: Waker, _: u64) -> std::io::Result<world::log::service::ServiceStore> {
    let what = "this build of Kiln lacks etcd: build it with protoc installed, by \
                `cargo build --release -p kiln --features etcd`";
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, what))
}

#[cfg(all(test, not(feature = "etcd")))]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_etcd_says_so_and_how_to_get_it() {
        let error = open_etcd("etcd://a/x", Waker(Arc::new(|| {})), 1).err().expect("it lacks it");
        let text = error.to_string();
        assert!(text.contains("lacks etcd") && text.contains("--features etcd"), "{text}");
    }
}
