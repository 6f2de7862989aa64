//! The client that the URL of a log or of an archive asks for, if this build has it.

use crate::opening::{Broken, Opening, OpeningArchive};
use archive::Archive;
use base::driver::Waker;
use base::{Clock, Incarnation};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use txlog::remote::store::RecordStore;

/// Opens the log that a URL names.
type Open = fn(&str, Opening) -> io::Result<Box<dyn RecordStore>>;

/// Opens the archive that a URL names.
type OpenArchive = fn(&str, OpeningArchive) -> io::Result<Arc<dyn Archive>>;

/// A service that keeps logs, or archives, or both, and the client for it.
struct Client<O> {
    /// How the URLs of what it keeps begin.
    schemes: &'static [&'static str],
    /// What keeps it.
    service: &'static str,
    /// The feature that builds the client.
    feature: &'static str,
    /// What the machine that builds it must have beside Rust.
    needs: &'static str,
    /// Opens it; `None` in a build without the client.
    open: Option<O>,
}

/// What opens a log: `open` of a client's folder, if its feature is built.
macro_rules! opens {
    ($folder:ident, $feature:tt) => {{
        #[cfg(feature = $feature)]
        let open: Option<Open> =
            Some(|url, opening| Ok(Box::new(crate::$folder::open(url, opening)?)));
        #[cfg(not(feature = $feature))]
        let open = None;
        open
    }};
}

const CLIENTS: [Client<Open>; 3] = [
    Client {
        schemes: &["jetstream://"],
        service: "NATS JetStream",
        feature: "jetstream",
        needs: "",
        open: opens!(jetstream, "jetstream"),
    },
    Client {
        schemes: &["etcd://"],
        service: "etcd",
        feature: "etcd",
        needs: ", on a machine that has protoc",
        open: opens!(etcd, "etcd"),
    },
    Client {
        schemes: &["s3://", "file-object:"],
        service: "an object store",
        feature: "objects",
        needs: "",
        open: opens!(objects, "objects"),
    },
];

#[cfg(feature = "objects")]
const OPEN_ARCHIVE: Option<OpenArchive> = Some(crate::object_archive::open);
#[cfg(not(feature = "objects"))]
const OPEN_ARCHIVE: Option<OpenArchive> = None;

/// What keeps archives.
const ARCHIVE: Client<OpenArchive> = Client {
    schemes: &["s3://", "gs://", "az://", "file-object:"],
    service: "an object store",
    feature: "objects",
    needs: "",
    open: OPEN_ARCHIVE,
};

/// How the URLs of logs that services keep begin, whether or not this build has their clients.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|client| client.schemes).copied()
}

/// Opens the log at `url`, or begins one there. `entropy` must be unpredictable: it becomes a new
/// log's incarnation. `clock` must go on counting while the machine is suspended. `waker` is called
/// when something has come. Blocks until the service answers, for up to 30 s.
///
/// # Errors
/// A wrong URL; a service that this build has no client of (`Unsupported`); no service, no access,
/// or a service that does not keep what a log needs; something else than a log stands there.
pub fn open(
    url: &str,
    clock: Arc<dyn Clock>,
    waker: Waker,
    entropy: u64,
) -> io::Result<Box<dyn RecordStore>> {
    choose(url, Opening { clock, waker, new: identity(entropy), broken: None })
}

/// Opens the log at `url` to read it: as [`open`], but begins none.
///
/// # Errors
/// As [`open`], and that there is no log.
pub fn open_to_read(
    url: &str,
    clock: Arc<dyn Clock>,
    waker: Waker,
) -> io::Result<Box<dyn RecordStore>> {
    choose(url, Opening { clock, waker, new: None, broken: None })
}

/// As [`open`], with a rule broken.
///
/// # Errors
/// As [`open`].
#[doc(hidden)]
pub fn open_broken(
    url: &str,
    clock: Arc<dyn Clock>,
    waker: Waker,
    entropy: u64,
    broken: Broken,
) -> io::Result<Box<dyn RecordStore>> {
    choose(url, Opening { clock, waker, new: identity(entropy), broken: Some(broken) })
}

/// How the URLs of archives that services keep begin, whether or not this build has the client.
pub fn archive_schemes() -> impl Iterator<Item = &'static str> {
    ARCHIVE.schemes.iter().copied()
}

/// Opens the archive at `url`, and tries whether the store keeps its word. `entropy` must be
/// unpredictable: writers are named by it. `clock` must go on counting while the machine is
/// suspended. Blocks until the store answers, for up to 30 s.
///
/// # Errors
/// A wrong URL; a build without the client (`Unsupported`); no store, no access, or a store that
/// does not keep create-only puts apart.
pub fn open_archive(
    url: &str,
    clock: Arc<dyn Clock>,
    entropy: u64,
) -> io::Result<Arc<dyn Archive>> {
    choose_archive(url, OpeningArchive { clock, entropy: Some(entropy), renewal: None })
}

/// As [`open_archive`], for tests that cannot wait for the renewals of signs.
///
/// # Errors
/// As [`open_archive`].
#[doc(hidden)]
pub fn open_archive_renewing(
    url: &str,
    clock: Arc<dyn Clock>,
    entropy: u64,
    renewal: Duration,
) -> io::Result<Arc<dyn Archive>> {
    let renewal = Some(renewal);
    choose_archive(url, OpeningArchive { clock, entropy: Some(entropy), renewal })
}

/// Opens the archive at `url` to read it: nothing is put there, and what would put or delete
/// something fails. The store is not asked yet.
///
/// # Errors
/// A wrong URL; a build without the client (`Unsupported`).
pub fn open_archive_to_read(url: &str, clock: Arc<dyn Clock>) -> io::Result<Arc<dyn Archive>> {
    choose_archive(url, OpeningArchive { clock, entropy: None, renewal: None })
}

fn choose_archive(url: &str, opening: OpeningArchive) -> io::Result<Arc<dyn Archive>> {
    if !archive_schemes().any(|scheme| url.starts_with(scheme)) {
        return Err(no_scheme("the snapshot store", archive_schemes()));
    }
    match ARCHIVE.open {
        Some(open) => open(url, opening),
        None => Err(ARCHIVE.refusal("snapshots")),
    }
}

/// Of the URL nothing is shown: it may hold a password.
fn no_scheme(owner: &str, known: impl Iterator<Item = &'static str>) -> io::Error {
    let known: Vec<_> = known.collect();
    let what = format!("{owner}'s URL must begin with one of {}", known.join(", "));
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// 0 stands for no log.
fn identity(entropy: u64) -> Option<Incarnation> {
    Some(Incarnation(entropy.max(1)))
}

fn choose(url: &str, opening: Opening) -> io::Result<Box<dyn RecordStore>> {
    let asked =
        |client: &&Client<Open>| client.schemes.iter().any(|scheme| url.starts_with(scheme));
    let Some(client) = CLIENTS.iter().find(asked) else {
        return Err(no_scheme("the log", schemes()));
    };
    match client.open {
        Some(open) => open(url, opening),
        None => Err(client.refusal("a log")),
    }
}

impl<O> Client<O> {
    /// Says that this build lacks the client, and how to build one that has it.
    fn refusal(&self, content: &str) -> io::Error {
        let Self { service, feature, needs, .. } = self;
        let what = format!(
            "this build of Kiln has no client for {content} in {service}: build it with `cargo build \
             --release -p kiln --features {feature}`{needs}"
        );
        io::Error::new(io::ErrorKind::Unsupported, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::MonotonicNanos;

    struct NoClock;

    impl Clock for NoClock {
        fn unix_micros(&self) -> i64 {
            0
        }
        fn monotonic(&self) -> MonotonicNanos {
            MonotonicNanos(0)
        }
    }

    fn refusal(url: &str) -> io::Error {
        let waker = Waker(Arc::new(|| {}));
        open(url, Arc::new(NoClock), waker, 1).err().expect("no such log can be opened")
    }

    /// Each URL is wrong, so that a client that is there refuses it before it asks anybody.
    #[test]
    fn a_url_is_refused_by_its_client_or_for_the_want_of_one() {
        for client in CLIENTS {
            for url in client.schemes {
                let error = refusal(url);
                let is_left_out = error.kind() == io::ErrorKind::Unsupported;
                assert_eq!(is_left_out, client.open.is_none(), "{url}: {error}");
            }
        }
    }

    #[test]
    fn a_client_that_was_left_out_says_how_to_get_it() {
        for client in CLIENTS {
            let error = client.refusal("a log");
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            let text = error.to_string();
            let command = format!("--features {}`{}", client.feature, client.needs);
            assert!(text.contains(client.service) && text.ends_with(&command), "{text}");
        }
    }

    /// Likewise.
    #[test]
    fn the_url_of_an_archive_is_refused_by_its_client_or_for_the_want_of_one() {
        let clock: Arc<dyn Clock> = Arc::new(NoClock);
        for scheme in archive_schemes() {
            let opened = open_archive(scheme, Arc::clone(&clock), 1);
            let read = open_archive_to_read(scheme, Arc::clone(&clock));
            for error in [opened.err(), read.err()].map(|it| it.expect("it names nothing")) {
                let is_left_out = error.kind() == io::ErrorKind::Unsupported;
                assert_eq!(is_left_out, ARCHIVE.open.is_none(), "{scheme}: {error}");
            }
        }
        let text = ARCHIVE.refusal("snapshots").to_string();
        assert!(text.contains("for snapshots in an object store: build it with"), "{text}");
        let error = open_archive("https://me:secret@host/x", clock, 1).err().expect("no scheme");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn a_url_of_no_service_is_refused_without_showing_it() {
        let error = refusal("https://me:secret@host/log");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
