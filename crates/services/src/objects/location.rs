//! The URL of a log in an object store: which store, which prefix, and how old a record must be.
//!
//! ```text
//! s3://BUCKET/PREFIX?endpoint=https://…&region=…&allow_http=true&trim_age_ms=60000
//! file-object:DIRECTORY?trim_age_ms=60000
//! ```

use crate::bucket::location::{self, Store, invalid};
use crate::bucket::{Purpose, Service};
use object_store::{BackoffConfig, RetryConfig};
use std::io;
use std::time::Duration;

/// How long a new log's records must have been known before they may be trimmed, if the URL does
/// not say it: see [`super::known`]. A quarter of it is far more than any put takes, and all of it
/// no more than passes between two snapshots anyway.
const TRIM_AGE_MS: u64 = 60_000;

/// A log asks for little at a time, and must know soon.
pub const LOG: Purpose = Purpose {
    owner: "the log",
    content: "a transaction log",
    services: &[Service::S3],
    options: &["trim_age_ms"],
    // A guess: an ordinary request takes a tenth of a second at most, a large record on a slow line
    // takes longer.
    request_wait: "5s",
    connect_wait: "2s",
    // What is transient is over by then, and whatever takes longer is told.
    retries: RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(20),
            max_backoff: Duration::from_millis(500),
            base: 2.0,
        },
        max_retries: 3,
        retry_timeout: Duration::from_secs(4),
    },
};

/// Where a log is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub place: location::Location,
    /// Fixed in a log when it is begun; no matter for one that exists.
    pub trim_age_ms: u64,
}

impl Location {
    /// # Errors
    /// Says what is wrong with the URL.
    pub fn parse(url: &str) -> io::Result<Self> {
        let (place, own) = location::Location::parse(url, &LOG)?;
        let mut trim_age_ms = TRIM_AGE_MS;
        for (_, value) in own {
            trim_age_ms = parse_age(&value)?;
        }
        Ok(Self { place, trim_age_ms })
    }

    /// Opens the store; asks it nothing yet, but makes a directory if it may begin a log.
    ///
    /// # Errors
    /// What an option or the environment says cannot be used, or the directory cannot.
    pub fn store(&self, may_begin: bool) -> io::Result<Store> {
        self.place.store(may_begin, &LOG)
    }
}

fn parse_age(text: &str) -> io::Result<u64> {
    text.parse().map_err(|_| invalid(format!("trim_age_ms={text}: is no number of milliseconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_bucket_prefix_and_options() {
        let url = "s3://logs/some/shard/?endpoint=http://127.0.0.1:21500&allow_http=true&\
                   trim_age_ms=5";
        let options = [("endpoint", "http://127.0.0.1:21500"), ("allow_http", "true")];
        let place = location::Location::Bucket {
            service: Service::S3,
            bucket: "logs".to_owned(),
            prefix: "some/shard".to_owned(),
            options: options.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
        };
        let parsed = Location::parse(url).expect("the URL is right");
        assert_eq!(parsed, Location { place, trim_age_ms: 5 });
        parsed.store(true).expect("every option is one that the client knows");
    }

    #[test]
    fn a_directory_may_be_relative() {
        let parsed = Location::parse("file-object:data/log").expect("the URL is right");
        let place = location::Location::Directory("data/log".into());
        assert_eq!(parsed, Location { place, trim_age_ms: TRIM_AGE_MS });
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        let cases = [
            ("s3://logs", "must name a bucket and a prefix"),
            ("s3://logs/", "must name a bucket and a prefix"),
            ("s3:///shard", "must name a bucket and a prefix"),
            ("s3://me:secret@logs/shard", "credentials do not belong"),
            ("s3://logs/shard?secret_access_key=x", "may not carry 'secret_access_key'"),
            ("s3://logs/shard?trim_age_ms=1s", "is no number of milliseconds"),
            ("gs://logs/shard", "is no URL of an object store"),
            ("file-object:", "must name a directory"),
            ("file-object:/tmp/x?region=y", "may not carry 'region'"),
            ("logs", "the log's URL"),
        ];
        for (url, complaint) in cases {
            let error = Location::parse(url).expect_err(url).to_string();
            assert!(error.contains(complaint), "{url}: {error}");
            assert!(!error.contains("secret@"), "{error}");
        }
    }
}
