//! The client that a log's URL asks for, if this build has it.

#[allow(dead_code, reason = "a build with every client leaves none out")]
mod left_out;

use base::Clock;
use base::driver::Waker;
use std::io;
use std::sync::Arc;
use txlog::remote::store::RecordStore;

/// A rule that a test breaks on real servers, to see that its checkers would notice.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// In an object store, what was put counts even where its place has been trimmed.
    Floor,
    /// In JetStream, the word of one server about the log's end counts as a quorum's.
    Tail,
}

/// How the URLs of logs that services keep begin.
pub const SCHEMES: [&str; 4] = ["jetstream://", "etcd://", "s3://", "file-object:"];

/// What the clients need beside the URL.
#[allow(dead_code, reason = "a build with fewer clients needs less")]
struct Needs {
    clock: Arc<dyn Clock>,
    waker: Waker,
    /// A new log's identity. `None`: the log is read, and none is begun.
    entropy: Option<u64>,
    broken: Option<Broken>,
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
    choose(url, Needs { clock, waker, entropy: Some(entropy), broken: None })
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
    choose(url, Needs { clock, waker, entropy: None, broken: None })
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
    choose(url, Needs { clock, waker, entropy: Some(entropy), broken: Some(broken) })
}

fn choose(url: &str, needs: Needs) -> io::Result<Box<dyn RecordStore>> {
    match url.split(':').next().unwrap_or_default() {
        "jetstream" => in_jetstream(url, needs),
        "etcd" => in_etcd(url, needs),
        "s3" | "file-object" => in_objects(url, needs),
        // Of the URL no more is shown: it may hold a password.
        _ => {
            let what = "the log's URL must begin with jetstream://, etcd://, s3:// or file-object:";
            Err(io::Error::new(io::ErrorKind::InvalidInput, what))
        }
    }
}

#[cfg(feature = "jetstream")]
fn in_jetstream(url: &str, needs: Needs) -> io::Result<Box<dyn RecordStore>> {
    use crate::jetstream::{Broken as Rule, open, open_broken, open_to_read};
    let Needs { waker, entropy, broken, .. } = needs;
    let store = match (entropy, broken) {
        (None, _) => open_to_read(url, waker)?,
        (Some(new), Some(Broken::Tail)) => open_broken(url, waker, new, Rule::TrustsTheTail)?,
        (Some(new), _) => open(url, waker, new)?,
    };
    Ok(Box::new(store))
}

#[cfg(not(feature = "jetstream"))]
fn in_jetstream(_: &str, _: Needs) -> io::Result<Box<dyn RecordStore>> {
    Err(left_out::JETSTREAM.refusal())
}

#[cfg(feature = "objects")]
fn in_objects(url: &str, needs: Needs) -> io::Result<Box<dyn RecordStore>> {
    use crate::objects::{Broken as Rule, open, open_broken, open_to_read};
    let Needs { clock, waker, entropy, broken } = needs;
    let store = match (entropy, broken) {
        (None, _) => open_to_read(url, clock, waker)?,
        (Some(new), Some(Broken::Floor)) => open_broken(url, clock, waker, new, Rule::TrustsAll)?,
        (Some(new), _) => open(url, clock, waker, new)?,
    };
    Ok(Box::new(store))
}

#[cfg(not(feature = "objects"))]
fn in_objects(_: &str, _: Needs) -> io::Result<Box<dyn RecordStore>> {
    Err(left_out::OBJECTS.refusal())
}

#[cfg(feature = "etcd")]
fn in_etcd(url: &str, needs: Needs) -> io::Result<Box<dyn RecordStore>> {
    use crate::etcd::{open, open_to_read};
    Ok(Box::new(match needs.entropy {
        Some(new) => open(url, needs.waker, new)?,
        None => open_to_read(url, needs.waker)?,
    }))
}

#[cfg(not(feature = "etcd"))]
fn in_etcd(_: &str, _: Needs) -> io::Result<Box<dyn RecordStore>> {
    Err(left_out::ETCD.refusal())
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
        let cases = [
            ("jetstream://", cfg!(feature = "jetstream")),
            ("s3://", cfg!(feature = "objects")),
            ("file-object:", cfg!(feature = "objects")),
            ("etcd://", cfg!(feature = "etcd")),
        ];
        for (url, is_there) in cases {
            let error = refusal(url);
            assert_eq!(error.kind() == io::ErrorKind::Unsupported, !is_there, "{url}: {error}");
        }
    }

    #[test]
    fn a_url_of_no_service_is_refused_without_showing_it() {
        let error = refusal("https://me:secret@host/log");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
