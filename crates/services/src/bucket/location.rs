//! The URL of what lies in an object store: which store, which prefix, which options.
//!
//! ```text
//! s3://BUCKET/PREFIX?endpoint=https://…&region=…&allow_http=true
//! gs://BUCKET/PREFIX
//! az://CONTAINER/PREFIX?account_name=…
//! file-object:DIRECTORY
//! ```
//!
//! Credentials come from the environment (`AWS_ACCESS_KEY_ID` and the rest of `AWS_*`, `GOOGLE_*`,
//! `AZURE_*`), from a web identity, from the container's or the machine's metadata, as these
//! stores' clients find them; never from the URL, which `ps` and INFO show.

use super::{Purpose, Service};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

impl Service {
    const REMOTE: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
            Self::Directory => "file-object",
        }
    }

    /// Options that its URLs may carry. None of them is secret.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::S3 => &["endpoint", "region", "allow_http", "virtual_hosted_style_request"],
            Self::Google => &["base_url", "allow_http"],
            Self::Azure => &["account_name", "endpoint", "allow_http"],
            Self::Directory => &[],
        }
    }

    /// Its URLs, for people.
    fn form(self) -> &'static str {
        match self {
            Self::S3 => "a bucket and a prefix: s3://BUCKET/PREFIX",
            Self::Google => "a bucket and a prefix: gs://BUCKET/PREFIX",
            Self::Azure => "a container and a prefix: az://CONTAINER/PREFIX",
            Self::Directory => "a directory: file-object:DIRECTORY",
        }
    }
}

/// Where something is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    Bucket { service: Service, bucket: String, prefix: String, options: Vec<(String, String)> },
    Directory(PathBuf),
}

/// What a URL says beside the place, in the order in which it stands there.
pub type OwnOptions = Vec<(String, String)>;

/// An opened place for objects.
pub struct Store {
    pub objects: Arc<dyn ObjectStore>,
    pub prefix: Path,
    pub service: Service,
    /// Where the objects are files.
    pub directory: Option<PathBuf>,
}

impl Location {
    /// The place, and those options that are the purpose's own.
    ///
    /// # Errors
    /// Says what is wrong with the URL.
    pub fn parse(url: &str, purpose: &Purpose) -> io::Result<(Self, OwnOptions)> {
        let owner = purpose.owner;
        if let Some(path) = url.strip_prefix("file-object:") {
            return Self::parse_directory(path, purpose);
        }
        let parsed = Url::parse(url).map_err(|error| invalid(format!("{owner}'s URL: {error}")))?;
        let asked = |service: &&Service| service.scheme() == parsed.scheme();
        let service = purpose.services.iter().find(asked).copied();
        let Some(service) = service else {
            let known = Service::REMOTE.iter().any(|service| asked(&service));
            let of_it = if known { format!(" that {owner} can lie in") } else { String::new() };
            let what = format!("{}: is no URL of an object store{of_it}", parsed.scheme());
            return Err(invalid(what));
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let what = format!(
                "credentials do not belong into {owner}'s URL: set {}",
                service.credentials()
            );
            return Err(invalid(what));
        }
        let bucket = parsed.host_str().unwrap_or_default().to_owned();
        let prefix = parsed.path().trim_matches('/').to_owned();
        if bucket.is_empty() || prefix.is_empty() {
            return Err(invalid(format!("{owner}'s URL must name {}", service.form())));
        }
        let (mut options, mut own) = (Vec::new(), Vec::new());
        for (key, value) in parsed.query_pairs() {
            match key.as_ref() {
                key if purpose.options.contains(&key) => own.push((key.to_owned(), value.into())),
                key if service.options().contains(&key) => {
                    options.push((key.to_owned(), value.into()));
                }
                key => return Err(unknown(key, service, purpose)),
            }
        }
        Ok((Self::Bucket { service, bucket, prefix, options }, own))
    }

    fn parse_directory(path: &str, purpose: &Purpose) -> io::Result<(Self, OwnOptions)> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if path.is_empty() {
            let form = Service::Directory.form();
            return Err(invalid(format!("{}'s URL must name {form}", purpose.owner)));
        }
        let mut own = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some((key, value)) if purpose.options.contains(&key) => {
                    own.push((key.to_owned(), value.to_owned()));
                }
                other => {
                    let key = other.map_or(option, |(key, _)| key);
                    return Err(unknown(key, Service::Directory, purpose));
                }
            }
        }
        Ok((Self::Directory(PathBuf::from(path)), own))
    }

    /// Opens the store; asks it nothing yet, but makes a directory if something may be begun there.
    ///
    /// # Errors
    /// What an option or the environment says cannot be used, or the directory cannot.
    pub fn store(&self, may_begin: bool, purpose: &Purpose) -> io::Result<Store> {
        match self {
            Self::Bucket { service, bucket, prefix, options } => {
                let owner = purpose.owner;
                let prefix = Path::parse(prefix)
                    .map_err(|error| invalid(format!("{owner}'s prefix: {error}")))?;
                let objects = client(*service, bucket, options, purpose)?;
                Ok(Store { objects, prefix, service: *service, directory: None })
            }
            Self::Directory(path) => {
                if may_begin {
                    std::fs::create_dir_all(path)?;
                }
                let path = path.canonicalize()?;
                let objects = LocalFileSystem::new_with_prefix(&path)?.with_fsync(true);
                let (objects, prefix) = (Arc::new(objects), Path::default());
                let service = Service::Directory;
                Ok(Store { objects, prefix, service, directory: Some(path) })
            }
        }
    }
}

/// A client of one bucket. Each builder is another type, so the same is said three times.
fn client(
    service: Service,
    bucket: &str,
    options: &[(String, String)],
    purpose: &Purpose,
) -> io::Result<Arc<dyn ObjectStore>> {
    // The one provider of cryptography for all of Kiln's connections. Whoever was first has set
    // the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Purpose { owner, request_wait, connect_wait, retries, .. } = purpose;
    let wrong_key = |error| invalid(format!("{owner}'s URL: {error}"));
    let refused = |error: object_store::Error| invalid(error.to_string());
    let (request, connect) = (ClientConfigKey::Timeout, ClientConfigKey::ConnectTimeout);
    Ok(match service {
        Service::S3 => {
            let mut builder = AmazonS3Builder::from_env()
                .with_config(AmazonS3ConfigKey::Client(request), *request_wait)
                .with_config(AmazonS3ConfigKey::Client(connect), *connect_wait)
                .with_config(AmazonS3ConfigKey::ConditionalPut, "etag")
                .with_retry(retries.clone())
                .with_bucket_name(bucket);
            for (key, value) in options {
                builder = builder.with_config(key.parse().map_err(wrong_key)?, value);
            }
            Arc::new(builder.build().map_err(refused)?)
        }
        Service::Google => {
            let mut builder = GoogleCloudStorageBuilder::from_env()
                .with_config(GoogleConfigKey::Client(request), *request_wait)
                .with_config(GoogleConfigKey::Client(connect), *connect_wait)
                .with_retry(retries.clone())
                .with_bucket_name(bucket);
            for (key, value) in options {
                builder = builder.with_config(key.parse().map_err(wrong_key)?, value);
            }
            Arc::new(builder.build().map_err(refused)?)
        }
        Service::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env()
                .with_config(AzureConfigKey::Client(request), *request_wait)
                .with_config(AzureConfigKey::Client(connect), *connect_wait)
                .with_retry(retries.clone())
                .with_container_name(bucket);
            for (key, value) in options {
                builder = builder.with_config(key.parse().map_err(wrong_key)?, value);
            }
            Arc::new(builder.build().map_err(refused)?)
        }
        Service::Directory => return Err(invalid("a directory is no bucket")),
    })
}

fn unknown(key: &str, service: Service, purpose: &Purpose) -> io::Error {
    let Purpose { owner, options, .. } = purpose;
    let known: Vec<&str> = service.options().iter().chain(*options).copied().collect();
    let only = match known.is_empty() {
        true => "none".to_owned(),
        false => format!("only {}", known.join(", ")),
    };
    invalid(format!("{owner}'s URL may not carry '{key}', {only}"))
}

pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}
