//! The members under test.

use crate::outside::{clock, tell};
use crate::place::Place;
use base::driver::Waker;
use etcd_client::{Client, DeleteOptions, Error};
use std::future::Future;
use std::io;
use txlog::remote::store::RecordStore;

/// Members, as a URL names them.
#[derive(Clone)]
pub struct Cluster {
    pub members: String,
    user: String,
    options: String,
}

/// The members that the variable `name` names, or none: then a test has nothing to do.
pub fn cluster(name: &str) -> Option<Cluster> {
    let members = std::env::var(name).ok()?;
    Some(Cluster { members, user: String::new(), options: String::new() })
}

pub fn three_members() -> Option<Cluster> {
    cluster("KILN_TEST_ETCD")
}

impl Place for Cluster {
    const ACCEPTS_BY_NUMBER: bool = false;
    const CONFIRMS_TAIL: bool = true;

    fn url(&self, name: &str) -> String {
        let Self { members, user, options } = self;
        format!("etcd://{user}{members}/logs/{name}{options}")
    }

    fn open(&self, name: &str, waker: Waker, entropy: u64) -> io::Result<Box<dyn RecordStore>> {
        services::open(&self.url(name), clock(), waker, entropy)
    }

    fn delete(&self, name: &str) {
        self.delete_keys(&format!("logs/{name}/"));
    }

    fn crash(&self) {
        tell("crash");
    }
}

impl Cluster {
    /// The same members, with these options in a log's URL.
    pub fn with(&self, options: &str) -> Self {
        Self { options: format!("?{options}"), ..self.clone() }
    }

    /// The same members, as somebody sees them who says who it is.
    pub fn as_user(&self, user: &str) -> Self {
        Self { user: format!("{user}@"), ..self.clone() }
    }

    /// Does something past the log's back, as an operator does.
    pub fn operate<T, A>(&self, work: impl FnOnce(Client) -> A) -> T
    where
        A: Future<Output = Result<T, Error>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime needs no more than descriptors").block_on(async {
            let members: Vec<&str> = self.members.split(',').collect();
            let client = Client::connect(members, None).await.expect("the cluster answers");
            work(client).await.expect("the cluster answers")
        })
    }

    pub fn delete_keys(&self, prefix: &str) {
        let prefix = prefix.to_owned();
        self.operate(|mut client| async move {
            client.delete(prefix, Some(DeleteOptions::new().with_prefix())).await
        });
    }

    pub fn put_key(&self, key: &str, value: &[u8]) {
        let (key, value) = (key.to_owned(), value.to_vec());
        self.operate(|mut client| async move { client.put(key, value, None).await });
    }
}
