//! The connection to a NATS cluster: requests of JetStream's interface, and publishing with an
//! answer.
//!
//! JetStream is asked by messages with JSON in them, a stable and documented interface. It is
//! spoken directly, so that every answer is seen here in full: which of them prove that nothing
//! was written is too important to be folded into a library's kinds of errors.
//!
//! The client reconnects by itself. What was written to the lost connection is gone; what still
//! waited in the client's queue is sent later, in its order. A publish that arrives so late carries
//! the sequence it expected, so it lands at its own place or nowhere.

use super::address::{Address, Credentials};
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, ReconnectToServer, Server,
    StatusCode,
};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long a server may take to accept a connection. Also bounds TLS.
const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// How long a question to JetStream may take. A healthy cluster answers in milliseconds; one that
/// elects a leader answers nothing, and the question is asked again.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// How long a put waits for its acknowledgement before it is in doubt. Beyond a slow disk's sync,
/// below an election: what was sent to a leader that died is not answered by the next one.
const PUT_WAIT: Duration = Duration::from_secs(4);

/// How often the server is asked whether it lives. Two questions without an answer end the
/// connection, so a stopped or cut-off server is left after three times this.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// The longest pause between attempts to reconnect. Each server is tried in turn.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_millis(250);

/// JetStream's own code for a stream that is not there.
const STREAM_NOT_FOUND: u64 = 10_059;

/// Why a question to JetStream has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// No such stream, says the cluster.
    NoStream,
    /// JetStream said no.
    Refused { code: u64, text: String },
    /// No connection, no leader, or no answer in time.
    Silence(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStream => out.write_str("the stream is not there"),
            Self::Refused { code, text } => write!(out, "JetStream refused: {text} ({code})"),
            Self::Silence(what) => out.write_str(what),
        }
    }
}

/// Takes JetStream's error out of an answer.
pub fn checked(answer: &Message) -> Result<Value, Unanswered> {
    if answer.status == Some(StatusCode::NO_RESPONDERS) {
        return Err(Unanswered::Silence("nobody answers for JetStream: it has no leader".into()));
    }
    let value: Value = serde_json::from_slice(&answer.payload)
        .map_err(|_| Unanswered::Silence("the answer is not JSON".into()))?;
    let error = &value["error"];
    if error.is_null() {
        return Ok(value);
    }
    match error["err_code"].as_u64().unwrap_or_default() {
        STREAM_NOT_FOUND => Err(Unanswered::NoStream),
        code => {
            let text = error["description"].as_str().unwrap_or("no reason given").to_owned();
            Err(Unanswered::Refused { code, text })
        }
    }
}

/// Acknowledgements that are waited for, by the number in their reply subject.
#[derive(Default)]
struct Awaited(Mutex<BTreeMap<u64, oneshot::Sender<Message>>>);

impl Awaited {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<Message>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection and what is under way on it.
pub struct Connection {
    client: Client,
    /// Subject below which acknowledgements arrive.
    inbox: String,
    awaited: Arc<Awaited>,
    published: AtomicU64,
    /// Connections lost so far.
    losses: watch::Receiver<u64>,
    leaving: Arc<Leaving>,
}

/// The wish to go on with another server. By itself the client prefers one that has never refused
/// it, and that may be the very one to be left.
#[derive(Default)]
struct Leaving {
    is_wanted: AtomicBool,
    /// The servers are taken in turn.
    next: AtomicUsize,
}

impl Leaving {
    /// Where to connect now, if it matters.
    fn choose(&self, servers: &[Server]) -> Option<ReconnectToServer> {
        if !self.is_wanted.swap(false, Ordering::Relaxed) || servers.is_empty() {
            return None;
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed) % servers.len();
        Some(ReconnectToServer { addr: servers[next].addr.clone(), delay: Some(Duration::ZERO) })
    }
}

/// What a server said of itself when it accepted the connection.
pub struct Greeting {
    pub server_name: String,
    pub version: String,
    /// Largest message in bytes, headers included.
    pub payload_bytes_max: usize,
}

impl Connection {
    /// Connects to any of the servers.
    ///
    /// # Errors
    /// `NotConnected` if trying again may help; else what went wrong.
    pub async fn open(address: &Address) -> io::Result<Self> {
        let (lost, losses) = watch::channel(0);
        let leaving = Arc::new(Leaving::default());
        let choosing = Arc::clone(&leaving);
        let options = options(address)
            .await?
            .event_callback(move |event| {
                if event == Event::Disconnected {
                    lost.send_modify(|losses| *losses += 1);
                }
                async {}
            })
            .reconnect_to_server_callback(move |servers, _| {
                let chosen = choosing.choose(&servers);
                async move { chosen }
            });
        let servers = servers(address)?;
        let client = options.connect(servers).await.map_err(|error| refused(address, &error))?;
        let inbox = client.new_inbox();
        let awaited = Arc::new(Awaited::default());
        let mut answers = client
            .subscribe(format!("{inbox}.*"))
            .await
            .map_err(|error| io::Error::other(error.to_string()))?;
        let waiting = Arc::clone(&awaited);
        tokio::spawn(async move {
            while let Some(answer) = answers.next().await {
                let number = answer.subject.rsplit('.').next().and_then(|last| last.parse().ok());
                let waiting = number.and_then(|number: u64| waiting.locked().remove(&number));
                if let Some(waiting) = waiting {
                    // Whoever waited may have given up.
                    let _ = waiting.send(answer);
                }
            }
        });
        Ok(Self { client, inbox, awaited, published: AtomicU64::new(0), losses, leaving })
    }

    /// Goes on with another server.
    pub async fn leave(&self) {
        self.leaving.is_wanted.store(true, Ordering::Relaxed);
        if let Err(error) = self.client.force_reconnect().await {
            tracing::debug!(%error, "the client of NATS has ended");
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn greeting(&self) -> Greeting {
        let info = self.client.server_info();
        Greeting {
            server_name: info.server_name,
            version: info.version,
            payload_bytes_max: info.max_payload,
        }
    }

    pub fn is_up(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Asks JetStream something.
    pub async fn ask(&self, subject: &str, question: &Value) -> Result<Value, Unanswered> {
        if !self.is_up() {
            return Err(Unanswered::Silence("no NATS server can be reached".into()));
        }
        let request = async_nats::Request::new()
            .payload(question.to_string().into())
            .timeout(Some(ANSWER_WAIT));
        let answer = self.client.send_request(format!("$JS.API.{subject}"), request).await;
        checked(&answer.map_err(|error| Unanswered::Silence(error.to_string()))?)
    }

    /// Publishes, and returns a future for the answer, once the message has its place behind all
    /// earlier ones.
    pub async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<impl Future<Output = Result<Message, String>> + use<>, String> {
        if !self.is_up() {
            return Err("no NATS server can be reached".to_owned());
        }
        let mut losses = self.losses.clone();
        let lost_before = *losses.borrow_and_update();
        let number = self.published.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        self.awaited.locked().insert(number, answered);
        let forget = Forget { awaited: Arc::clone(&self.awaited), number };
        let reply = format!("{}.{number}", self.inbox);
        self.client
            .publish_with_reply_and_headers(subject.to_owned(), reply, headers, payload)
            .await
            .map_err(|error| error.to_string())?;
        Ok(async move {
            let _forget = forget;
            tokio::select! {
                answer = answer => answer.map_err(|_| "the client ended".to_owned()),
                // An answer may still come over the next connection; finding out what became of
                // the message is faster than waiting for that.
                _ = losses.wait_for(|&losses| losses != lost_before) => {
                    Err("the connection was lost".to_owned())
                }
                () = tokio::time::sleep(PUT_WAIT) => {
                    Err(format!("no answer within {} s", PUT_WAIT.as_secs()))
                }
            }
        })
    }
}

/// Stops waiting for an answer.
struct Forget {
    awaited: Arc<Awaited>,
    number: u64,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.awaited.locked().remove(&self.number);
    }
}

/// Addresses for the client. They carry no secrets: the client may show them.
fn servers(address: &Address) -> io::Result<Vec<async_nats::ServerAddr>> {
    let scheme = if address.tls.is_required { "tls" } else { "nats" };
    address.servers.iter().map(|server| format!("{scheme}://{server}").parse()).collect()
}

async fn options(address: &Address) -> io::Result<ConnectOptions> {
    let mut options = ConnectOptions::new()
        .name(format!("kiln {}", address.name))
        .connection_timeout(CONNECT_WAIT)
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(|attempts| {
            RECONNECT_PAUSE_MAX.min(Duration::from_millis(10 * attempts as u64))
        });
    options = match &address.credentials {
        Credentials::None => options,
        Credentials::Token(token) => options.token(token.clone()),
        Credentials::Password { user, password } => {
            options.user_and_password(user.clone(), password.clone())
        }
        Credentials::File(path) => options.credentials_file(path).await?,
    };
    if let Some(path) = &address.tls.authorities {
        options = options.add_root_certificates(path.clone());
    }
    if let (Some(certificate), Some(key)) = (&address.tls.certificate, &address.tls.key) {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options.require_tls(address.tls.is_required))
}

fn refused(address: &Address, error: &async_nats::ConnectError) -> io::Error {
    let kind = match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            io::ErrorKind::PermissionDenied
        }
        ConnectErrorKind::ServerParse => io::ErrorKind::InvalidInput,
        // So rustls says that a certificate is not to be trusted.
        _ if cause(error) == Some(io::ErrorKind::InvalidData) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::NotConnected,
    };
    io::Error::new(
        kind,
        format!("cannot connect to any of {}: {error}", address.servers.join(", ")),
    )
}

fn cause(error: &async_nats::ConnectError) -> Option<io::ErrorKind> {
    Some(error.source()?.downcast_ref::<io::Error>()?.kind())
}
