//! The servers under test.

use crate::outside::{clock, tell};
use crate::place::Place;
use base::driver::Waker;
use bytes::Bytes;
use serde_json::{Value, json};
use services::Broken;
use std::io;
use txlog::remote::store::RecordStore;

/// The servers, as the environment names them.
#[derive(Clone)]
pub struct Cluster {
    /// A log's URL, with NAME in place of its name.
    url: String,
    /// Options of the URL.
    options: String,
    broken: Option<Broken>,
}

/// The servers whose URL is in the variable `name`, or none: then a test has nothing to do.
pub fn cluster(name: &str) -> Option<Cluster> {
    let url = std::env::var(name).ok()?;
    Some(Cluster { url, options: String::new(), broken: None })
}

pub fn three_servers() -> Option<Cluster> {
    cluster("KILN_TEST_JETSTREAM")
}

impl Place for Cluster {
    const ACCEPTS_BY_NUMBER: bool = true;
    const CONFIRMS_TAIL: bool = false;

    fn url(&self, name: &str) -> String {
        format!("{}{}", self.url.replace("NAME", name), self.options)
    }

    fn open(&self, name: &str, waker: Waker, entropy: u64) -> io::Result<Box<dyn RecordStore>> {
        let url = self.url(name);
        match self.broken {
            None => services::open(&url, clock(), waker, entropy),
            Some(broken) => services::open_broken(&url, clock(), waker, entropy, broken),
        }
    }

    fn delete(&self, name: &str) {
        let deleted = self.operator(&format!("STREAM.DELETE.kiln-{name}"), &json!({}));
        assert_eq!(deleted["success"], true, "{deleted}");
    }

    fn crash(&self) {
        tell("crash");
    }
}

impl Cluster {
    /// The same servers, with these options in a log's URL.
    pub fn with(&self, options: &str) -> Self {
        Self { options: options.to_owned(), ..self.clone() }
    }

    /// The same servers, with a client that breaks a rule.
    pub fn breaking(self, rule: Broken) -> Self {
        Self { broken: Some(rule), ..self }
    }

    /// The same servers, as somebody sees them who says who it is.
    pub fn as_user(&self, user: &str) -> Self {
        let url = self.url.replace("jetstream://", &format!("jetstream://{user}@"));
        Self { url, ..self.clone() }
    }

    /// Asks JetStream past the log's back, as an operator does.
    pub fn operator(&self, subject: &str, question: &Value) -> Value {
        let servers = self.url.trim_start_matches("jetstream://").split('/').next();
        let servers: Vec<async_nats::ServerAddr> = servers
            .unwrap_or_default()
            .split(',')
            .map(|server| server.parse().expect("an address"))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime starts");
        runtime.block_on(async {
            let client = async_nats::connect(servers).await.expect("a server accepts");
            let payload = Bytes::from(question.to_string());
            let answer = client.request(format!("$JS.API.{subject}"), payload).await;
            serde_json::from_slice(&answer.expect("JetStream answers").payload).expect("JSON")
        })
    }
}
