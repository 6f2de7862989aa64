//! The URL of a log in an object store: which store, which prefix, which options.
//!
//! ```text
//! s3://BUCKET/PREFIX?endpoint=https://…&region=…&allow_http=true&trim_age_ms=60000
//! file-object:DIRECTORY?trim_age_ms=60000
//! ```
//!
//! Credentials come from the environment (`AWS_ACCESS_KEY_ID` and the rest of `AWS_*`), from a web
//! identity, from the container's or the machine's metadata, as S3's clients find them; never from
//! the URL, which `ps` and INFO show.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Options of S3 that a URL may carry. None of them is secret.
const S3_OPTIONS: [&str; 4] = ["endpoint", "region", "allow_http", "virtual_hosted_style_request"];

/// How long a new log's records must have been known before they may be trimmed, if the URL does
/// not say it: see [`super::known`]. A quarter of it is far more than any put takes, and all of it
/// no more than passes between two snapshots anyway.
const TRIM_AGE_MS: u64 = 60_000;

/// One attempt at a request. A guess: an ordinary one takes a tenth of a second at most, a large
/// record on a slow line takes longer.
const REQUEST_WAIT: &str = "5s";
const CONNECT_WAIT: &str = "2s";

/// After the first attempt: what is transient is over by then, and whatever takes longer is told.
const RETRIES: RetryConfig = RetryConfig {
    backoff: BackoffConfig {
        init_backoff: Duration::from_millis(20),
        max_backoff: Duration::from_millis(500),
        base: 2.0,
    },
    max_retries: 3,
    retry_timeout: Duration::from_secs(4),
};

/// Where a log is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub kind: Kind,
    /// Fixed in a log when it is begun; no matter for one that exists.
    pub trim_age_ms: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    S3 { bucket: String, prefix: String, options: Vec<(String, String)> },
    Directory(PathBuf),
}

/// An opened place for objects.
pub struct Store {
    pub objects: Arc<dyn ObjectStore>,
    pub prefix: Path,
    /// Where the objects are files.
    pub directory: Option<PathBuf>,
}

impl Location {
    /// # Errors
    /// Says what is wrong with the URL.
    pub fn parse(url: &str) -> io::Result<Self> {
        if let Some(path) = url.strip_prefix("file-object:") {
            return Self::parse_directory(path);
        }
        let parsed = Url::parse(url).map_err(|error| invalid(format!("the log's URL: {error}")))?;
        if parsed.scheme() != "s3" {
            return Err(invalid(format!("{}: is no URL of an object store", parsed.scheme())));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let what = "credentials do not belong into the log's URL: set AWS_ACCESS_KEY_ID and \
                        AWS_SECRET_ACCESS_KEY";
            return Err(invalid(what));
        }
        let bucket = parsed.host_str().unwrap_or_default().to_owned();
        let prefix = parsed.path().trim_matches('/').to_owned();
        if bucket.is_empty() || prefix.is_empty() {
            return Err(invalid(
                "the log's URL must name a bucket and a prefix: s3://BUCKET/PREFIX",
            ));
        }
        let mut options = Vec::new();
        let mut trim_age_ms = TRIM_AGE_MS;
        for (key, value) in parsed.query_pairs() {
            match key.as_ref() {
                "trim_age_ms" => trim_age_ms = parse_age(&value)?,
                key if S3_OPTIONS.contains(&key) => options.push((key.to_owned(), value.into())),
                key => return Err(unknown(key, &S3_OPTIONS)),
            }
        }
        Ok(Self { kind: Kind::S3 { bucket, prefix, options }, trim_age_ms })
    }

    fn parse_directory(path: &str) -> io::Result<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if path.is_empty() {
            return Err(invalid("the log's URL must name a directory: file-object:DIRECTORY"));
        }
        let mut trim_age_ms = TRIM_AGE_MS;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("trim_age_ms", value)) => trim_age_ms = parse_age(value)?,
                other => return Err(unknown(other.map_or(option, |(key, _)| key), &[])),
            }
        }
        Ok(Self { kind: Kind::Directory(PathBuf::from(path)), trim_age_ms })
    }

    /// Opens the store; asks it nothing yet, but makes a directory if it may begin a log.
    ///
    /// # Errors
    /// What an option or the environment says cannot be used, or the directory cannot.
    pub fn store(&self, may_begin: bool) -> io::Result<Store> {
        match &self.kind {
            Kind::S3 { bucket, prefix, options } => {
                let prefix = Path::parse(prefix)
                    .map_err(|error| invalid(format!("the log's prefix: {error}")))?;
                Ok(Store { objects: s3(bucket, options)?, prefix, directory: None })
            }
            Kind::Directory(path) => {
                if may_begin {
                    std::fs::create_dir_all(path)?;
                }
                let path = path.canonicalize()?;
                let objects = LocalFileSystem::new_with_prefix(&path)?.with_fsync(true);
                let (objects, prefix) = (Arc::new(objects), Path::default());
                Ok(Store { objects, prefix, directory: Some(path) })
            }
        }
    }
}

fn s3(bucket: &str, options: &[(String, String)]) -> io::Result<Arc<dyn ObjectStore>> {
    // The one provider of cryptography for all of Kiln's connections. Whoever was first has set
    // the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env()
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), REQUEST_WAIT)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT_WAIT)
        .with_config(AmazonS3ConfigKey::ConditionalPut, "etag")
        .with_retry(RETRIES)
        .with_bucket_name(bucket);
    for (key, value) in options {
        let key = key.parse().map_err(|error| invalid(format!("the log's URL: {error}")))?;
        builder = builder.with_config(key, value);
    }
    Ok(Arc::new(builder.build().map_err(|error| invalid(error.to_string()))?))
}

fn parse_age(text: &str) -> io::Result<u64> {
    text.parse().map_err(|_| invalid(format!("trim_age_ms={text}: is no number of milliseconds")))
}

fn unknown(key: &str, known: &[&str]) -> io::Error {
    let known = known.iter().copied().chain(["trim_age_ms"]).collect::<Vec<_>>().join(", ");
    invalid(format!("the log's URL may not carry '{key}', only {known}"))
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_bucket_prefix_and_options() {
        let url = "s3://logs/some/shard/?endpoint=http://127.0.0.1:21500&allow_http=true&\
                   trim_age_ms=5";
        let options = [("endpoint", "http://127.0.0.1:21500"), ("allow_http", "true")];
        let kind = Kind::S3 {
            bucket: "logs".to_owned(),
            prefix: "some/shard".to_owned(),
            options: options.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
        };
        let parsed = Location::parse(url).expect("the URL is right");
        assert_eq!(parsed, Location { kind, trim_age_ms: 5 });
        parsed.store(true).expect("every option is one that the client knows");
    }

    #[test]
    fn a_directory_may_be_relative() {
        let parsed = Location::parse("file-object:data/log").expect("the URL is right");
        let kind = Kind::Directory(PathBuf::from("data/log"));
        assert_eq!(parsed, Location { kind, trim_age_ms: TRIM_AGE_MS });
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
