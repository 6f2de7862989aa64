//! Reading the log in order: consumers that are kept between pieces, and wait at its end.
//!
//! A server puts a message into its copy of a stream once a quorum has it, so a consumer hands out
//! committed records only. It reads one server's copy, which may be behind: a prefix, never wrong.
//!
//! A consumer is pulled: one request, then messages. Where the log's end is asked for, the request
//! ends there. Whoever has come to the end and follows it leaves a request open from one piece to
//! the next: what has arrived meanwhile is a piece, so a record costs one message, and heartbeats
//! show the server's life between them. Nothing is acknowledged; a message that got lost on its way
//! is a gap in the numbers, and a consumer that left one, or went silent, is given up. The next
//! piece begins with a new one.
//!
//! A consumer that has nothing more may be on a server that is cut off, or does not catch up: the
//! stream's leader is asked where the log ends, before a piece that may come to it and after a wait
//! in vain. A consumer that gives nothing although there is more is given up too. Servers draw
//! where the next one is.

use super::JetStream;
use super::stream::stream_of;
use async_nats::{Message, StatusCode, Subscriber};
use base::Sequence;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use txlog::remote::store::{Outcome, SEQUENCE_MAX};

/// Consumers kept: one that follows the tail, and one that looks into a doubt.
const CURSORS_MAX: usize = 2;

/// Records of one request. Bounds the messages that wait in the client beside their bytes.
const PULL_RECORDS_MAX: usize = 1024;

/// How long a piece waits at the end of the log for the next record.
const WAIT: Duration = Duration::from_secs(4);

/// How long a request stays open, if its records and bytes last.
const OPEN: Duration = Duration::from_secs(10);

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
    /// The request that messages still come for.
    open: Option<Pull>,
    next: Sequence,
    /// Records that the server said it had behind the last one that came.
    pending: u64,
}

struct Pull {
    inbox: String,
    /// Records that it may still give.
    left: usize,
}

/// The cursors that no piece is being read from.
#[derive(Default)]
pub struct Cursors(Mutex<Vec<Cursor>>);

impl Cursors {
    /// One that has come to this place. An open request does not tell where the log ends, so only
    /// who waits there can go on with it.
    fn take(&self, next: Sequence, waits: bool) -> Option<Cursor> {
        let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_right = |cursor: &Cursor| cursor.next == next && (waits || cursor.open.is_none());
        let index = resting.iter().position(is_right)?;
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
#[derive(Default)]
struct Piece {
    records: Vec<Bytes>,
    bytes: usize,
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
        let mut end = Sequence::ZERO;
        if !waits {
            match self.look().await {
                Ok(stream) => end = stream.last,
                Err(outcome) => return outcome,
            }
        }
        let kept = self.cursors.take(from, waits);
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
            Piece { broken: None, gap: None, records, .. } if records.is_empty() => {
                if waits {
                    match self.look().await {
                        Ok(stream) => end = stream.last,
                        Err(outcome) => return outcome,
                    }
                }
                if end <= last {
                    self.cursors.keep(cursor);
                }
                Outcome::Records { records, tail: end }
            }
            Piece { broken: Some(why), records, .. } if records.is_empty() => Outcome::Failed(why),
            Piece { gap: Some(found), records, .. } if records.is_empty() => {
                self.explain_gap(from, found).await
            }
            Piece { records, broken, gap, .. } => {
                let told = Sequence(last.0.saturating_add(cursor.pending)).min(SEQUENCE_MAX);
                let tail = told.max(end);
                if broken.is_none() && gap.is_none() {
                    self.cursors.keep(cursor);
                }
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
            Ok(arriving) => Ok(Cursor {
                consumer,
                inbox,
                arriving,
                pulls: 0,
                open: None,
                next: from,
                pending: 0,
            }),
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

    /// Reads what is there, to the end of the log if it does not wait, or what comes next.
    async fn pull(&self, cursor: &mut Cursor, bytes_max: usize, waits: bool) -> Piece {
        let began = Instant::now();
        let mut piece = Piece::default();
        while !waits || piece.bytes < bytes_max {
            if cursor.open.is_none() {
                if !piece.records.is_empty() {
                    break;
                }
                if let Err(why) = self.request(cursor, bytes_max, waits).await {
                    return piece.broken(&why);
                }
            }
            let arriving = cursor.arriving.next();
            let message = if waits && !piece.records.is_empty() {
                match arriving.now_or_never() {
                    Some(message) => message,
                    None => break,
                }
            } else {
                match tokio::time::timeout(SILENCE_MAX, arriving).await {
                    Ok(message) => message,
                    Err(_) => return piece.broken("the server of the consumer is silent"),
                }
            };
            let Some(message) = message else { return piece.broken("the client ended") };
            if !is_status(&message) {
                if !self.take_in(message, cursor, &mut piece) {
                    break;
                }
                continue;
            }
            let Some(open) = cursor.open.take_if(|open| open.inbox == *message.subject) else {
                // The end of an earlier pull.
                continue;
            };
            match message.status {
                Some(StatusCode::IDLE_HEARTBEAT) => {
                    cursor.open = Some(open);
                    if began.elapsed() >= WAIT {
                        break;
                    }
                }
                Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => {
                    // What a consumer counts as pending after a restart of servers may be too much.
                    cursor.pending = 0;
                    break;
                }
                // The pull's bytes are used up, which is told like an end of the consumer.
                Some(StatusCode::REQUEST_TERMINATED) if open.left < PULL_RECORDS_MAX => {}
                _ => {
                    let why = message.description.as_deref().unwrap_or("no reason given");
                    return piece.broken(&format!("the consumer ended: {why}"));
                }
            }
        }
        piece
    }

    async fn request(
        &self,
        cursor: &mut Cursor,
        bytes_max: usize,
        waits: bool,
    ) -> Result<(), String> {
        cursor.pulls += 1;
        let inbox = format!("{}.{}", cursor.inbox, cursor.pulls);
        let bytes_max = bytes_max.max(self.record_bytes_max) + MESSAGE_BYTES_EXTRA;
        let mut question = json!({ "batch": PULL_RECORDS_MAX, "max_bytes": bytes_max });
        if waits {
            question["expires"] = json!(OPEN.as_nanos() as u64);
            question["idle_heartbeat"] = json!(HEARTBEAT.as_nanos() as u64);
        } else {
            question["no_wait"] = json!(true);
        }
        let stream = stream_of(&self.address.name);
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{}", cursor.consumer);
        let question = Bytes::from(question.to_string());
        let client = self.connection.client();
        let asked = client.publish_with_reply(subject, inbox.clone(), question).await;
        asked.map_err(|error| error.to_string())?;
        cursor.open = Some(Pull { inbox, left: PULL_RECORDS_MAX });
        Ok(())
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
        piece.bytes += message.payload.len();
        piece.records.push(message.payload);
        cursor.pending = pending;
        cursor.next = sequence.next();
        if let Some(open) = &mut cursor.open {
            open.left -= 1;
        }
        cursor.open.take_if(|open| open.left == 0);
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
