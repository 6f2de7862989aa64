//! The client that a log's URL asks for, if this build has it.

#[allow(dead_code, reason = "a build with every client leaves none out")]
mod left_out;

use crate::opening::{Broken, Opening};
use base::driver::Waker;
use base::{Clock, Incarnation};
use std::io;
use std::sync::Arc;
use txlog::remote::store::RecordStore;

/// How the URLs of logs that services keep begin.
pub const SCHEMES: [&str; 4] = ["jetstream://", "etcd://", "s3://", "file-object:"];

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

/// 0 stands for no log.
fn identity(entropy: u64) -> Option<Incarnation> {
    Some(Incarnation(entropy.max(1)))
}

fn choose(url: &str, opening: Opening) -> io::Result<Box<dyn RecordStore>> {
    match url.split(':').next().unwrap_or_default() {
        "jetstream" => in_jetstream(url, opening),
        "etcd" => in_etcd(url, opening),
        "s3" | "file-object" => in_objects(url, opening),
        // Of the URL no more is shown: it may hold a password.
        _ => {
            let what = "the log's URL must begin with jetstream://, etcd://, s3:// or file-object:";
            Err(io::Error::new(io::ErrorKind::InvalidInput, what))
        }
    }
}

#[cfg(feature = "jetstream")]
fn in_jetstream(url: &str, opening: Opening) -> io::Result<Box<dyn RecordStore>> {
    Ok(Box::new(crate::jetstream::open(url, opening)?))
}

#[cfg(not(feature = "jetstream"))]
fn in_jetstream(_: &str, _: Opening) -> io::Result<Box<dyn RecordStore>> {
    Err(left_out::JETSTREAM.refusal())
}

#[cfg(feature = "objects")]
fn in_objects(url: &str, opening: Opening) -> io::Result<Box<dyn RecordStore>> {
    Ok(Box::new(crate::objects::open(url, opening)?))
}

#[cfg(not(feature = "objects"))]
fn in_objects(_: &str, _: Opening) -> io::Result<Box<dyn RecordStore>> {
    Err(left_out::OBJECTS.refusal())
}

#[cfg(feature = "etcd")]
fn in_etcd(url: &str, opening: Opening) -> io::Result<Box<dyn RecordStore>> {
    Ok(Box::new(crate::etcd::open(url, opening)?))
}

#[cfg(not(feature = "etcd"))]
fn in_etcd(_: &str, _: Opening) -> io::Result<Box<dyn RecordStore>> {
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
