//! What is tested: servers that the environment names, and directories.

use crate::outside::{clock, tell};
use crate::place::Place;
use base::driver::Waker;
use std::io;
use std::path::PathBuf;
use txlog::remote::store::RecordStore;

/// Where logs are kept.
#[derive(Clone, Debug)]
pub struct Objects {
    store: Store,
    /// Milliseconds that a record must have been known before it is trimmed.
    trim_age_ms: u64,
}

#[derive(Clone, Debug)]
enum Store {
    /// The server that can be killed, and forgets nothing.
    Gateway(String),
    /// One that keeps all in its memory.
    Memory(String),
    Directory(PathBuf),
}

impl Objects {
    pub fn in_gateway() -> Option<Self> {
        std::env::var("KILN_TEST_S3").ok().map(|endpoint| Self::of(Store::Gateway(endpoint)))
    }

    pub fn in_memory() -> Option<Self> {
        std::env::var("KILN_TEST_S3_SECOND").ok().map(|endpoint| Self::of(Store::Memory(endpoint)))
    }

    pub fn in_directory(path: PathBuf) -> Self {
        Self::of(Store::Directory(path))
    }

    /// Tests trim what they have just written, unless they say otherwise.
    fn of(store: Store) -> Self {
        Self { store, trim_age_ms: 0 }
    }

    /// The same, with records that must be older before they are trimmed.
    pub fn trimming_after(self, trim_age_ms: u64) -> Self {
        Self { trim_age_ms, ..self }
    }

    /// Where the snapshots of this name are, as `snapshot-store` has it.
    pub fn archive_url(&self, name: &str) -> String {
        match &self.store {
            Store::Gateway(endpoint) | Store::Memory(endpoint) => {
                format!("s3://logs/{name}?endpoint={endpoint}&region=us-east-1&allow_http=true")
            }
            Store::Directory(path) => format!("file-object:{}", path.join(name).display()),
        }
    }

    pub fn endpoint(&self) -> &str {
        match &self.store {
            Store::Gateway(endpoint) | Store::Memory(endpoint) => endpoint,
            Store::Directory(_) => "",
        }
    }
}

impl Place for Objects {
    const ACCEPTS_BY_NUMBER: bool = false;
    const CONFIRMS_TAIL: bool = true;

    fn url(&self, name: &str) -> String {
        let age = self.trim_age_ms;
        match &self.store {
            Store::Gateway(endpoint) | Store::Memory(endpoint) => format!(
                "s3://logs/{name}?endpoint={endpoint}&region=us-east-1&allow_http=true&\
                 trim_age_ms={age}"
            ),
            Store::Directory(path) => {
                format!("file-object:{}?trim_age_ms={age}", path.join(name).display())
            }
        }
    }

    fn open(&self, name: &str, waker: Waker, entropy: u64) -> io::Result<Box<dyn RecordStore>> {
        services::open(&self.url(name), clock(), waker, entropy)
    }

    fn delete(&self, name: &str) {
        match &self.store {
            Store::Gateway(endpoint) | Store::Memory(endpoint) => {
                tell(&format!("delete {endpoint} {name}"));
            }
            Store::Directory(path) => {
                std::fs::remove_dir_all(path.join(name)).expect("the log is there");
            }
        }
    }

    fn crash(&self) {
        if let Store::Gateway(_) = self.store {
            tell("kill");
            tell("start");
        }
    }
}
