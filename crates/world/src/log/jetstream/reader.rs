//! Reading the log in order: consumers that are kept between pieces, and wait at its end.
//!
//! A server puts a message into its copy of a stream once a quorum has it, so a consumer hands out
//! committed records only. It reads one server's copy, which may be behind: a prefix, never wrong.
//!
//! A consumer is pulled: one request, then messages until there are enough or the copy ends. At the
//! end the request waits for the next record, with a heartbeat that shows the server's life.
//! Nothing is acknowledged; a message that got lost on its way is a gap in the numbers, and a
//! consumer that left one, or went silent, is given up. The next piece begins with a new one.

use super::JetStream;
use super::stream::stream_of;
use async_nats::{Message, StatusCode, Subscriber};
use base::Sequence;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use txlog::remote::store::{Outcome, SEQUENCE_MAX};

/// Consumers kept: one that follows the tail, and one that looks into a doubt.
const CURSORS_MAX: usize = 2;

/// Records of one piece. Bounds the messages that wait in the client beside their bytes.
const PIECE_RECORDS_MAX: usize = 1024;

/// How long a piece waits at the end of the log for the next record.
const WAIT: Duration = Duration::from_secs(4);

/// How often a server shows its life meanwhile.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A server that shows no life for so long is given up: three heartbeats.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// A consumer that nobody pulls from is forgotten by the servers after this time.
const IDLE: Duration = Duration::from_secs(30);

/// What a message needs in a pull's bytes beside its record: subjects and headers, far less.
const MESSAGE_BYTES_EXTRA: usize = 4 << 10;

/// A consumer and the place it has come to.
struct Cursor {
    consumer: String,
    /// Subject below which messages arrive; each pull has its own.
    inbox: String,
    arriving: Subscriber,
    pulls: u64,
    next: Sequence,
}

/// The cursors that no piece is being read from.
#[derive(Default)]
pub struct Cursors(Mutex<Vec<Cursor>>);

impl Cursors {
    fn take(&self, next: Sequence) -> Option<Cursor> {
        let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = resting.iter().position(|cursor| cursor.next == next)?;
        Some(resting.remove(index))
    }

    fn keep(&self, cursor: Cursor) {
        let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if resting.len() == CURSORS_MAX {
            resting.remove(0);
        }
        resting.push(cursor);
    }
}

/// What a pull gave.
struct Piece {
    records: Vec<Bytes>,
    /// Records that the server had behind the last one.
    pending: u64,
    /// Why the cursor cannot be pulled again.
    broken: Option<String>,
    /// The first message was this one, not the next.
    gap: Option<Sequence>,
}

/// Place of a message in its stream, and how many follow: in its reply subject, from the end:
/// stream sequence, consumer sequence, time, pending; then possibly a random token.
fn place(message: &Message) -> Option<(Sequence, u64)> {
    let tokens: Vec<&str> = message.reply.as_ref()?.split('.').collect();
    // $JS.ACK.stream.consumer.delivered.… or $JS.ACK.domain.account.stream.consumer.delivered.…
    let at = match tokens.len() {
        9 => 5,
        11.. => 7,
        _ => return None,
    };
    let is_ack = tokens.first() == Some(&"$JS") && tokens.get(1) == Some(&"ACK");
    let number = |index: usize| tokens.get(index).and_then(|token| token.parse::<u64>().ok());
    is_ack.then_some(())?;
    let sequence = Sequence(number(at)?);
    (sequence <= SEQUENCE_MAX).then_some((sequence, number(at + 3)?))
}

impl JetStream {
    /// Reads a piece of the log.
    pub async fn get(&self, from: Sequence, bytes_max: usize, waits: bool) -> Outcome {
        let kept = self.cursors.take(from);
        let was_kept = kept.is_some();
        let mut cursor = match kept {
            Some(cursor) => cursor,
            None => match self.cursor_at(from).await {
                Ok(cursor) => cursor,
                Err(outcome) => return outcome,
            },
        };
        let mut piece = self.pull(&mut cursor, bytes_max, waits).await;
        if was_kept && piece.records.is_empty() && piece.broken.is_some() {
            // Forgotten by the servers, or lost with one of them.
            cursor = match self.cursor_at(from).await {
                Ok(cursor) => cursor,
                Err(outcome) => return outcome,
            };
            piece = self.pull(&mut cursor, bytes_max, waits).await;
        }
        let last = Sequence(cursor.next.0 - 1);
        match piece {
            Piece { broken: Some(why), records, .. } if records.is_empty() => Outcome::Failed(why),
            Piece { gap: Some(found), records, .. } if records.is_empty() => {
                self.explain_gap(from, found).await
            }
            Piece { records, pending, broken, gap } => {
                if broken.is_none() && gap.is_none() {
                    self.cursors.keep(cursor);
                }
                let tail = Sequence(last.0.saturating_add(pending)).min(SEQUENCE_MAX);
                Outcome::Records { records, tail }
            }
        }
    }

    /// A consumer from this place on.
    async fn cursor_at(&self, from: Sequence) -> Result<Cursor, Outcome> {
        let stream = self.look().await?;
        if from < stream.first {
            return Err(Outcome::Trimmed { first: stream.first });
        }
        if from > stream.last.next() {
            return Err(Outcome::Records { records: Vec::new(), tail: stream.last });
        }
        let question = json!({
            "stream_name": stream_of(&self.address.name),
            "config": {
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": from.0,
                "ack_policy": "none",
                "replay_policy": "instant",
                "inactive_threshold": IDLE.as_nanos() as u64,
                "num_replicas": 1,
                "mem_storage": true,
            },
        });
        let subject = format!("CONSUMER.CREATE.{}", stream_of(&self.address.name));
        let answer = self.connection.ask(&subject, &question).await;
        let answer = answer.map_err(|error| Outcome::Failed(error.to_string()))?;
        let consumer = answer["name"].as_str().unwrap_or_default().to_owned();
        let client = self.connection.client();
        let inbox = client.new_inbox();
        match client.subscribe(format!("{inbox}.*")).await {
            Ok(arriving) => Ok(Cursor { consumer, inbox, arriving, pulls: 0, next: from }),
            Err(error) => Err(Outcome::Failed(error.to_string())),
        }
    }

    async fn explain_gap(&self, from: Sequence, found: Sequence) -> Outcome {
        match self.look().await {
            Ok(stream) if stream.first > from => Outcome::Trimmed { first: stream.first },
            Ok(_) => Outcome::Failed(format!("record {found} came instead of {from}")),
            Err(outcome) => outcome,
        }
    }

    async fn pull(&self, cursor: &mut Cursor, bytes_max: usize, waits: bool) -> Piece {
        cursor.pulls += 1;
        let inbox = format!("{}.{}", cursor.inbox, cursor.pulls);
        let bytes_max = bytes_max.max(self.record_bytes_max) + MESSAGE_BYTES_EXTRA;
        let mut question = json!({
            "batch": PIECE_RECORDS_MAX, "max_bytes": bytes_max, "no_wait": true,
        });
        if waits {
            question["expires"] = json!(WAIT.as_nanos() as u64);
            question["idle_heartbeat"] = json!(HEARTBEAT.as_nanos() as u64);
        }
        let stream = stream_of(&self.address.name);
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{}", cursor.consumer);
        let question = Bytes::from(question.to_string());
        let client = self.connection.client();
        let mut piece = Piece { records: Vec::new(), pending: 0, broken: None, gap: None };
        let asked = client.publish_with_reply(subject, inbox.clone(), question).await;
        if let Err(error) = asked {
            piece.broken = Some(error.to_string());
            return piece;
        }
        loop {
            let message = match tokio::time::timeout(SILENCE_MAX, cursor.arriving.next()).await {
                Ok(Some(message)) if message.subject.as_str() == inbox || !is_status(&message) => {
                    message
                }
                // The end of an earlier pull.
                Ok(Some(_)) => continue,
                Ok(None) => return piece.broken("the client ended"),
                Err(_) => return piece.broken("the server of the consumer is silent"),
            };
            if is_status(&message) {
                match message.status {
                    Some(StatusCode::IDLE_HEARTBEAT) => continue,
                    Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => return piece,
                    // The pull's bytes are used up, which is told like an end of the consumer.
                    Some(StatusCode::REQUEST_TERMINATED) if !piece.records.is_empty() => {
                        return piece;
                    }
                    _ => {
                        let why = message.description.as_deref().unwrap_or("no reason given");
                        return piece.broken(&format!("the consumer ended: {why}"));
                    }
                }
            }
            if !self.take_in(message, cursor, &mut piece)
                || piece.records.len() == PIECE_RECORDS_MAX
            {
                return piece;
            }
        }
    }

    /// Adds a message to the piece. False if it is not the next one.
    fn take_in(&self, message: Message, cursor: &mut Cursor, piece: &mut Piece) -> bool {
        let Some((sequence, pending)) = place(&message) else {
            piece.broken = Some("a message has no place".to_owned());
            return false;
        };
        if message.subject.as_str() != self.subject {
            piece.broken = Some("a message belongs to another log".to_owned());
            return false;
        }
        if sequence != cursor.next {
            piece.gap = Some(sequence);
            return false;
        }
        piece.records.push(message.payload);
        piece.pending = pending;
        cursor.next = sequence.next();
        true
    }
}

impl Piece {
    fn broken(mut self, why: &str) -> Self {
        self.broken = Some(why.to_owned());
        self
    }
}

fn is_status(message: &Message) -> bool {
    message.status.is_some_and(|status| status != StatusCode::OK)
}
