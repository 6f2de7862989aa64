//! The log in a NATS JetStream cluster: one stream, one message per record.
//!
//! ```text
//! put n ─▶ publish, Nats-Expected-Last-Sequence: n - 1 ─▶ leader ─▶ quorum ─▶ ack: n
//! get n ◀─ consumer of one server's copy: committed records only, possibly behind
//! watch ─▶ every 2 s: is it the same stream, set up the same, and does every server sync?
//! ```
//!
//! The number is the whole condition. The stream's leader counts proposals that are still under
//! way, so eight puts may follow each other without waiting. After a failed one, later ones fail by
//! their numbers, unless somebody else's records took the places between: that is what the chain in
//! the records is for.
//!
//! | file | holds |
//! |---|---|
//! | [`address`] | the URL, taken apart |
//! | `connection` | requests, and publishing with an answer |
//! | `stream` | the stream's properties: made, and verified |
//! | `reader` | reading in order, and waiting for more |
//! | `monitor` | whether every server syncs before it acknowledges |
//! | `watch` | looking at all of that again, while it runs |

pub mod address;
mod connection;
mod monitor;
mod reader;
mod stream;
mod watch;

use crate::opening::{Broken, Opening};
use crate::service::{Facts, Later, NO_LOG, Service, ServiceStore, Trouble};
use address::Address;
use async_nats::header::{NATS_EXPECTED_LAST_SEQUENCE, NATS_EXPECTED_STREAM};
use async_nats::{HeaderMap, Message};
use base::{Incarnation, Sequence};
use bytes::Bytes;
use connection::{Connection, Unanswered, checked};
use reader::Cursors;
use serde_json::json;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stream::{Stream, stream_of};
use tokio::sync::Notify;
use tokio::time::Instant;
use txlog::remote::store::{Operation, Outcome, StoreLimits};

/// Puts under way. With 512 KiB each, more add waiting and nothing else.
const PUTS_MAX: usize = 8;

/// A record's cost to a start, as `StoreLimits` has it: tens of thousands of small ones come in a
/// second, where a snapshot is loaded at some 100 MB/s. A guess.
const RECORD_COST_BYTES: u64 = 4 << 10;

/// What the two headers of a put need at most, beside the name of the stream.
const HEADER_BYTES_MAX: usize = 192;

/// The least room for a record, in bytes with its header, with which a server makes a log. NATS's
/// `max_payload` is 1 MiB unless set; set too small, it holds not even a record's header.
const RECORD_BYTES_MIN: usize = 4 << 10;

/// How long opening waits for a cluster that is starting or electing.
const OPEN_WAIT: Duration = Duration::from_secs(30);

/// How long a server may leave open what becomes of puts, or answer no question, before another one
/// is asked. A server that was cut off from the others holds its clients' connections and answers
/// their pings, while the others have elected a leader. Where none is elected yet, asking another
/// does no harm.
const LEAVE_WAIT: Duration = Duration::from_secs(4);

/// Between attempts to open.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// JetStream's own codes (`server/errors.json`). Of the answers to a put only those are named that
/// prove that it was not written: others leave it open.
mod code {
    pub const WRONG_LAST_SEQUENCE: u64 = 10_071;
    /// Of the server, of the account, of its storage.
    pub const EXHAUSTED: [u64; 3] = [10_023, 10_002, 10_047];
    /// A server that stands alone keeps one copy.
    pub const REPLICAS_NOT_SUPPORTED: u64 = 10_074;
}

/// Opens the log that `url` names. Blocks for up to 30 s until a cluster answers.
///
/// # Errors
/// A wrong URL, no cluster, no access, a server that is too old, or a stream that is not set up as
/// a log must be.
pub fn open(url: &str, opening: Opening) -> io::Result<ServiceStore> {
    let address = Address::parse(url)?;
    let trouble = Trouble::default();
    let connect = connect(address, trouble.clone(), opening.new, opening.broken);
    ServiceStore::start("log-jetstream", opening.waker, trouble, connect)
}

/// A client of one log.
pub struct JetStream {
    address: Address,
    connection: Connection,
    incarnation: Incarnation,
    /// What the stream listens to.
    subject: String,
    record_bytes_max: usize,
    cursors: Cursors,
    trouble: Trouble,
    /// Asks the watch to look now.
    suspicion: Notify,
    /// Why the log is lost, once it is.
    lost: Mutex<Option<String>>,
    /// Since when the cluster has said that there is no such stream.
    missing: Mutex<Option<Instant>>,
    puts: Patience,
    questions: Patience,
    broken: Option<Broken>,
}

/// Since when all has been in vain.
#[derive(Default)]
struct Patience(Mutex<Option<Instant>>);

impl Patience {
    /// Something that began then went well or not; whether patience is over, and begins anew.
    fn is_over(&self, began: Instant, went_well: bool) -> bool {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if went_well {
            *since = None;
            return false;
        }
        let is_over = since.get_or_insert(began).elapsed() >= LEAVE_WAIT;
        if is_over {
            *since = Some(Instant::now());
        }
        is_over
    }
}

async fn connect(
    address: Address,
    trouble: Trouble,
    new: Option<Incarnation>,
    broken: Option<Broken>,
) -> io::Result<(Arc<JetStream>, Facts)> {
    let (connection, stream) = patiently(&address, new).await?;
    if !stream.differences.is_empty() {
        return Err(io::Error::other(format!(
            "the stream {} is not set up as a log must be: {}",
            stream_of(&address.name),
            stream.differences.join("; ")
        )));
    }
    let headers = HEADER_BYTES_MAX + stream_of(&address.name).len();
    let record_bytes_max = record_room(connection.greeting().payload_bytes_max, headers)?;
    let client = Arc::new(JetStream {
        address,
        connection,
        incarnation: stream.incarnation,
        subject: stream.subject.clone(),
        record_bytes_max,
        cursors: Cursors::default(),
        trouble,
        suspicion: Notify::new(),
        lost: Mutex::new(None),
        missing: Mutex::new(None),
        puts: Patience::default(),
        questions: Patience::default(),
        broken,
    });
    watch::begin(Arc::clone(&client), &stream).await;
    let record_cost_bytes = RECORD_COST_BYTES;
    let limits = StoreLimits { record_bytes_max, puts_max: PUTS_MAX, record_cost_bytes };
    Ok((client, Facts { incarnation: stream.incarnation, limits }))
}

/// The largest record, in bytes with its header, of a server that takes messages of
/// `payload_bytes_max` bytes, `headers` of them NATS's.
///
/// # Errors
/// It is less than [`RECORD_BYTES_MIN`].
fn record_room(payload_bytes_max: usize, headers: usize) -> io::Result<usize> {
    let room = payload_bytes_max.saturating_sub(headers);
    if room < RECORD_BYTES_MIN {
        return Err(io::Error::other(format!(
            "the server takes messages of {payload_bytes_max} bytes at most (max_payload): a log \
             needs {}",
            RECORD_BYTES_MIN + headers
        )));
    }
    Ok(room)
}

/// Connects, and finds the stream or makes it, however long the cluster takes to get ready.
async fn patiently(
    address: &Address,
    new: Option<Incarnation>,
) -> io::Result<(Connection, Stream)> {
    let deadline = Instant::now() + OPEN_WAIT;
    let is_late = || Instant::now() >= deadline;
    let connection = loop {
        match Connection::open(address).await {
            Ok(connection) => break connection,
            Err(error) if is_late() || error.kind() != io::ErrorKind::NotConnected => {
                return Err(error);
            }
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    };
    let greeting = connection.greeting();
    if !monitor::is_new_enough(&greeting.version) {
        let (major, minor) = monitor::VERSION_MIN;
        return Err(io::Error::other(format!(
            "NATS server {} has version {}, and {major}.{minor} is needed",
            greeting.server_name, greeting.version
        )));
    }
    let silence = Patience::default();
    loop {
        let error = match Stream::find(&connection, address).await {
            Ok(stream) => return Ok((connection, stream)),
            Err(Unanswered::NoStream) => {
                let Some(incarnation) = new else {
                    return Err(io::Error::new(io::ErrorKind::NotFound, NO_LOG));
                };
                match Stream::create(&connection, address, incarnation).await {
                    Ok(()) => continue,
                    Err(Unanswered::Refused { code: code::REPLICAS_NOT_SUPPORTED, text }) => {
                        return Err(io::Error::other(format!(
                            "{text}: replicas=1 keeps one copy, which one machine may lose"
                        )));
                    }
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        if is_late() {
            let stream = stream_of(&address.name);
            return Err(io::Error::other(format!("cannot get the stream {stream}: {error}")));
        }
        if silence.is_over(Instant::now(), false) {
            connection.leave().await;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

impl JetStream {
    fn lost(&self) -> Option<Outcome> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.clone().map(Outcome::Lost)
    }

    /// Asks for the stream, and notices if it is not this log's any more.
    async fn look(&self) -> Result<Stream, Outcome> {
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        let found = Stream::find(&self.connection, &self.address).await;
        if let Some(why) = self.loss(&found) {
            let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
            *lost = Some(why.clone());
            return Err(Outcome::Lost(why));
        }
        found.map_err(|error| Outcome::Failed(error.to_string()))
    }

    /// The condition of a put: the whole order of the log rests on it.
    fn headers(&self, sequence: Sequence) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_STREAM, stream_of(&self.address.name));
        if self.broken != Some(Broken::IgnoresNumbers) {
            let last = sequence.0.saturating_sub(1);
            headers.insert(NATS_EXPECTED_LAST_SEQUENCE, last.to_string());
        }
        headers
    }

    /// What an answer to a put says.
    fn judge(&self, answer: &Message, sequence: Sequence) -> Outcome {
        let stream = stream_of(&self.address.name);
        match checked(answer) {
            Ok(ack) if ack["stream"] == stream && ack["seq"] == sequence.0 => Outcome::Stored,
            Ok(_) if self.broken == Some(Broken::IgnoresNumbers) => Outcome::Stored,
            Ok(ack) => {
                Outcome::InDoubt(format!("record {sequence} was acknowledged as {}", ack["seq"]))
            }
            Err(Unanswered::Refused { code: code::WRONG_LAST_SEQUENCE, .. }) => Outcome::Misplaced,
            Err(Unanswered::Refused { code, text }) if code::EXHAUSTED.contains(&code) => {
                Outcome::Full(text)
            }
            Err(error) => self.in_doubt(error.to_string()),
        }
    }

    fn in_doubt(&self, what: String) -> Outcome {
        match self.broken {
            Some(Broken::AssumesTheBest) => Outcome::Stored,
            _ => Outcome::InDoubt(what),
        }
    }

    /// Goes to another server if this one does nothing but leave it open.
    async fn judge_server(&self, patience: &Patience, began: Instant, outcome: &Outcome) {
        let went_well = !matches!(outcome, Outcome::InDoubt(_) | Outcome::Failed(_));
        if patience.is_over(began, went_well) && self.connection.is_up() {
            let server = self.connection.greeting().server_name;
            tracing::warn!(server, ?outcome, "leaves a NATS server for another one");
            self.connection.leave().await;
        }
    }

    async fn trim(&self, through: Sequence) -> Outcome {
        let stream = match self.look().await {
            Ok(stream) => stream,
            Err(outcome) => return outcome,
        };
        // A purge keeps the record that it names.
        let kept = through.next().min(stream.last);
        if kept <= stream.first {
            return Outcome::First { sequence: stream.first };
        }
        let subject = format!("STREAM.PURGE.{}", stream_of(&self.address.name));
        match self.connection.ask(&subject, &json!({ "seq": kept.0 })).await {
            Ok(_) => Outcome::First { sequence: kept },
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    async fn respond(&self, question: Operation) -> Outcome {
        match question {
            Operation::Get { from, bytes_max, waits } => self.get(from, bytes_max, waits).await,
            Operation::Trim { through } => self.trim(through).await,
            Operation::Tail => match self.look().await {
                // A leader that was cut off answers too, so its word confirms nothing.
                Ok(stream) => {
                    let is_confirmed = self.broken == Some(Broken::TrustsTheTail);
                    Outcome::Tail { sequence: stream.last, is_confirmed }
                }
                Err(outcome) => outcome,
            },
            Operation::First => match self.look().await {
                Ok(stream) => Outcome::First { sequence: stream.first },
                Err(outcome) => outcome,
            },
            Operation::Put { .. } => Outcome::Failed("a put is not a question".to_owned()),
        }
    }
}

impl Service for JetStream {
    #[expect(clippy::async_yields_async, reason = "sent and answered are waited for apart")]
    fn put(self: Arc<Self>, sequence: Sequence, record: Bytes) -> Later<Later<Outcome>> {
        Box::pin(async move {
            let began = Instant::now();
            let published = match self.lost() {
                Some(lost) => Err(lost),
                None => {
                    let headers = self.headers(sequence);
                    let published = self.connection.publish(&self.subject, headers, record).await;
                    published.map_err(Outcome::Failed)
                }
            };
            let ends: Later<Outcome> = Box::pin(async move {
                let outcome = match published {
                    Ok(answer) => match answer.await {
                        Ok(answer) => self.judge(&answer, sequence),
                        Err(what) => self.in_doubt(what),
                    },
                    Err(outcome) => outcome,
                };
                if matches!(outcome, Outcome::InDoubt(_) | Outcome::Full(_) | Outcome::Failed(_)) {
                    self.suspicion.notify_one();
                }
                self.judge_server(&self.puts, began, &outcome).await;
                outcome
            });
            ends
        })
    }

    fn answer(self: Arc<Self>, question: Operation) -> Later<Outcome> {
        Box::pin(async move {
            let waits = matches!(question, Operation::Get { waits: true, .. });
            let asked = Instant::now();
            let outcome = self.respond(question).await;
            // Who waits for news has not been in vain all the while.
            let began = if waits { Instant::now() } else { asked };
            self.judge_server(&self.questions, began, &outcome).await;
            if matches!(outcome, Outcome::Failed(_)) {
                self.suspicion.notify_one();
            }
            outcome
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_whose_messages_hold_no_record_is_refused() {
        assert_eq!(record_room(1 << 20, 200).expect("it is NATS's own limit"), (1 << 20) - 200);
        assert_eq!(record_room(RECORD_BYTES_MIN + 200, 200).expect("it is enough"), 4096);
        for payload in [0, 100, 1024, RECORD_BYTES_MIN + 199] {
            let refusal = record_room(payload, 200).expect_err("no record fits").to_string();
            assert!(refusal.contains("max_payload"), "{refusal}");
        }
    }
}
