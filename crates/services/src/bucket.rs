//! Object stores, as a log and an archive use them alike: their URLs, a proof that they keep their
//! word, and what their errors tell an operator.
//!
//! | file | holds |
//! |---|---|
//! | [`location`] | the URL: which store, which prefix, which options |
//! | [`probe`] | the proof that a store keeps create-only puts apart |
//! | `faulty` | a store in memory that behaves badly on demand, for tests |

#[cfg(test)]
pub mod faulty;
pub mod location;
pub mod probe;

use object_store::{Error, RetryConfig};
use std::error::Error as StdError;
use std::io;

/// Something that lies in an object store, and what its client asks of it.
pub struct Purpose {
    /// As errors name it.
    pub owner: &'static str,
    /// What cannot be held by a store that does not keep its word.
    pub content: &'static str,
    /// The stores whose URLs it takes, beside directories.
    pub services: &'static [Service],
    /// Options of its URLs beside the store's.
    pub options: &'static [&'static str],
    /// One attempt at a request, and at a connection, as the client has them.
    pub request_wait: &'static str,
    pub connect_wait: &'static str,
    /// After the first attempt.
    pub retries: RetryConfig,
}

/// A sort of store, by the protocol that it speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    S3,
    Google,
    Azure,
    /// Objects are files.
    Directory,
}

impl Service {
    /// Where its credentials come from, for people.
    fn credentials(self) -> &'static str {
        match self {
            Self::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            Self::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            Self::Azure => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
            Self::Directory => "the owner and the mode of the directory",
        }
    }
}

/// Says to an operator what to look at.
pub fn explained(error: Error, service: Service) -> io::Error {
    let (kind, hint) = match &error {
        Error::PermissionDenied { .. } if error.to_string().contains("RequestTimeTooSkewed") => {
            (io::ErrorKind::PermissionDenied, "is this machine's clock right?".to_owned())
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let hint = format!("check {}, and the bucket's policy", service.credentials());
            (io::ErrorKind::PermissionDenied, hint)
        }
        Error::NotFound { .. } => (io::ErrorKind::NotFound, "is there such a bucket?".to_owned()),
        Error::NotImplemented { .. } | Error::NotSupported { .. } => {
            (io::ErrorKind::Unsupported, "create-only puts are needed".to_owned())
        }
        _ => return io::Error::other(format!("the object store: {error}")),
    };
    io::Error::new(kind, format!("the object store: {error} ({hint})"))
}

/// Whether nothing was written for want of space. The file system says it by its error's kind, the
/// stores by codes of their own.
pub fn is_full(error: &Error) -> bool {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            );
        }
        source = cause.source();
    }
    let text = error.to_string();
    ["QuotaExceeded", "NoSpaceLeftOnDevice", "XMinioStorageFull", "507 Insufficient Storage"]
        .iter()
        .any(|code| text.contains(code))
}

/// Tells "there is no such object" from failures.
pub fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
