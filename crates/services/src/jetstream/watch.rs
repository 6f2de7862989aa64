//! Looking at the stream and its servers again and again, while the log is in use.
//!
//! What was verified when the log was opened may change: somebody edits the stream or deletes it, a
//! server comes back with another configuration, a copy moves to another server. Then writes are
//! refused before they are executed, by name, until it is put right.

use super::JetStream;
use super::address::SyncCheck;
use super::connection::Unanswered;
use super::monitor::Monitor;
use super::stream::{Peer, Stream, stream_of};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use txlog::Refusal;
use txlog::remote::store::Outcome;

/// How often to look. Bounds how long a server that came back without syncing is relied on.
const PERIOD: Duration = Duration::from_secs(2);

/// How soon to look again when something seems wrong.
const PERIOD_MIN: Duration = Duration::from_millis(250);

/// How long the cluster may be silent before writes are refused. Elections of 4 to 9 s are waited
/// for: clients then notice a pause and no error.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How long the cluster must say that there is no such stream before the log is lost. A leader of
/// all streams that has just been elected may not know them all yet.
const MISSING_WAIT: Duration = Duration::from_secs(5);

/// Looks for the first time, and then for as long as the client's thread lives.
pub async fn begin(client: Arc<JetStream>, stream: &Stream) {
    let mut watch = Watch::new(&client);
    let found = watch.judge(&client, Ok(stream.clone())).await;
    watch.tell(&client, found);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                () = client.suspicion.notified() => tokio::time::sleep(PERIOD_MIN).await,
            }
            let looked = client.look().await;
            let found = watch.judge(&client, looked).await;
            watch.tell(&client, found);
        }
    });
}

struct Watch {
    monitor: Option<Monitor>,
    /// When the cluster last answered.
    heard: Instant,
    told: Option<Refusal>,
}

impl Watch {
    fn new(client: &JetStream) -> Self {
        let monitor = match &client.address.sync {
            SyncCheck::At(endpoints) => Some(Monitor::new(endpoints.clone())),
            SyncCheck::Off => {
                tracing::warn!(
                    log = %client.address,
                    "sync=unchecked: acknowledged writes may be lost by a power cut, unless every \
                     NATS server has sync_interval: always"
                );
                None
            }
        };
        Self { monitor, heard: Instant::now(), told: None }
    }

    async fn judge(
        &mut self,
        client: &JetStream,
        looked: Result<Stream, Outcome>,
    ) -> Option<Refusal> {
        match looked {
            Ok(stream) => {
                self.heard = Instant::now();
                if !stream.differences.is_empty() {
                    return Some(Refusal::Unavailable(format!(
                        "the stream {} was changed: {}",
                        stream_of(&client.address.name),
                        stream.differences.join("; ")
                    )));
                }
                self.monitor.as_mut()?.complaint(&peers(client, stream)).await
            }
            Err(Outcome::Lost(_)) => Some(Refusal::LogLost),
            Err(Outcome::Failed(what)) if self.heard.elapsed() >= SILENCE_MAX => {
                Some(Refusal::Unavailable(format!(
                    "the stream {} cannot be reached: {what}",
                    stream_of(&client.address.name)
                )))
            }
            // For a moment nothing new is known.
            Err(_) => self.told.clone(),
        }
    }

    fn tell(&mut self, client: &JetStream, found: Option<Refusal>) {
        if found == self.told {
            return;
        }
        match &found {
            Some(why) => tracing::warn!(log = %client.address, %why, "the log takes no writes"),
            None => tracing::info!(log = %client.address, "the log takes writes again"),
        }
        self.told.clone_from(&found);
        client.trouble.set(found);
    }
}

/// A server outside a cluster is its stream's only one.
fn peers(client: &JetStream, stream: Stream) -> Vec<Peer> {
    if !stream.peers.is_empty() {
        return stream.peers;
    }
    vec![Peer { name: client.connection.greeting().server_name, is_away: false }]
}

impl JetStream {
    /// Why the log is lost, if this says so.
    pub(super) fn loss(&self, found: &Result<Stream, Unanswered>) -> Option<String> {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = stream_of(&self.address.name);
        match found {
            Ok(found) if found.incarnation == self.incarnation => {
                *missing = None;
                None
            }
            Ok(_) => Some(format!("the stream {stream} was deleted, and another one was made")),
            Err(Unanswered::NoStream) => {
                let since = missing.get_or_insert_with(Instant::now);
                let is_gone = since.elapsed() >= MISSING_WAIT;
                is_gone.then(|| format!("the stream {stream} was deleted"))
            }
            Err(_) => None,
        }
    }
}
