//! A copy of what a server of Redis or Valkey holds now: this program asks for it as a replica
//! does, and hangs up when it has it.
//!
//! ```text
//! dial ─▶ handshake (PING, AUTH, REPLCONF, PSYNC ? -1) ─▶ "\n" while the server forks
//!      ─▶ RDB data, of known length or up to a mark ─▶ hang up
//! ```
//! The dialogue is that of a server that follows a master (`peers`). What is written to the other
//! server behind the copy is not in it.

use super::import::target;
use base::driver::Endpoint;
use base::{Driver, Event, MonotonicNanos};
use config::settings::NodeSettings;
use engine::execute::Engine;
use engine::import::{Importer, Step};
use intake::target::Target;
use peers::data_set::{DataSet, SHORT};
use peers::handshake::{Asks, Handshake, Next};
use peers::outgoing::{End, Happened, Outgoing};
use resp::client::take_filled_line;
use shard::loading::Failure;
use std::fmt;
use std::sync::Arc;
use url::{Host, Url};
use worker::{Claimed, Phase, Worker};
use world::net::{NetDriver, NetOptions};
use world::tls::Tls;

/// Redis's port.
const PORT: u16 = 6379;

/// Bytes that are received before the next look at what else is to be done.
const RECEIVED_BYTES_MAX: usize = 4 << 20;

/// Things of the data set that are applied before that.
const STEPS_MAX: usize = 65536;

/// The longest wait for the server before that, in nanoseconds.
const WAIT_NANOS: u64 = 100_000_000;

/// Time between two signs of life to the server, in nanoseconds. As Redis.
const ALIVE_NANOS: u64 = 1_000_000_000;

/// Bytes of the data that must arrive within each `repl-timeout`, once it has begun: a server that
/// sends one now and then is never silent, and never done. A kilobyte a second is slower than any
/// line on which a copy is of use.
const PROGRESS_BYTES_MIN: u64 = 64 << 10;

/// A server, and who asks it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    is_encrypted: bool,
    /// Both are empty if the URL names nobody.
    user: Vec<u8>,
    password: Vec<u8>,
}

impl Address {
    /// Reads `redis://[[user:]password@]host[:port][/]`, or `rediss://…` for TLS.
    ///
    /// # Errors
    /// It is none; the reason shows nothing of it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("--from takes redis://[user:password@]host[:port]: {why}");
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        let is_encrypted = match url.scheme() {
            "redis" => false,
            "rediss" => true,
            _ => return Err(wrong("begins with neither redis:// nor rediss://")),
        };
        let host = match url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) if !host.to_string().is_empty() => host.to_string(),
            _ => return Err(wrong("the host is missing")),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("behind the port nothing is expected: all databases are copied"));
        }
        let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
        // What stands there alone is a password, as redis-cli takes it.
        let (user, password) = match url.password() {
            Some(password) => (decoded(url.username()), decoded(password)),
            None => (Vec::new(), decoded(url.username())),
        };
        let port = url.port().unwrap_or(PORT);
        Ok(Self { host, port, is_encrypted, user, password })
    }
}

/// Without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "rediss" } else { "redis" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Copies what the server holds.
///
/// # Errors
/// It cannot be reached, refuses, or does not send all of it.
pub fn copy(
    worker: &mut Worker,
    address: &Address,
    settings: &NodeSettings,
    claimed: &mut Claimed,
) -> Result<Engine, Failure> {
    let mut driver = driver(address, settings)?;
    let mut copying = Copying::begin(&mut driver, address, settings, target(worker));
    let said = |why: String| format!("{address}: {why}");
    let mut events = Vec::new();
    while !copying.is_done {
        let wait = if copying.has_work { 0 } else { WAIT_NANOS };
        driver.wait(Some(wait), &mut events);
        for event in events.drain(..) {
            copying.hear(&mut driver, &event).map_err(said)?;
        }
        copying.advance(&mut driver).map_err(said)?;
        let data_set = &copying.data_set;
        let total = data_set.total_bytes.unwrap_or(0);
        worker.note(claimed, Phase::Importing, data_set.received_bytes, total)?;
    }
    if let Some(connection) = copying.line.hang_up() {
        driver.close(connection);
    }
    Ok(copying.target.engine)
}

/// Sockets, none of which listens.
fn driver(address: &Address, settings: &NodeSettings) -> Result<NetDriver, Failure> {
    let tls = Arc::<Tls>::default();
    if address.is_encrypted {
        let mut settings = settings.tls.clone();
        (settings.accepts, settings.connects) = (false, true);
        tls.adopt(&settings).map_err(|why| format!("cannot speak TLS: {why}"))?;
    }
    let options = NetOptions {
        bind: Vec::new(),
        port: None,
        tls,
        catch_signals: false,
        ..NetOptions::default()
    };
    Ok(NetDriver::bind(&options)?)
}

/// The copy under way.
struct Copying<'a> {
    address: &'a Address,
    settings: &'a NodeSettings,
    line: Outgoing,
    /// Until the data set follows.
    handshake: Option<Handshake>,
    data_set: DataSet,
    importer: Importer,
    target: Target,
    /// The importer can go on with what has arrived.
    has_work: bool,
    is_done: bool,
    said: MonotonicNanos,
    pace: Pace,
}

/// How fast the data arrives.
struct Pace {
    /// Since when the next [`PROGRESS_BYTES_MIN`] are waited for, and behind how many.
    since: MonotonicNanos,
    bytes: u64,
}

impl Pace {
    /// Whether too little has arrived for longer than this. Nothing is asked of a server that has
    /// not begun: it may be forking for hours.
    fn is_too_slow(&mut self, received: u64, now: MonotonicNanos, nanos_max: u64) -> bool {
        if received == 0 || received - self.bytes >= PROGRESS_BYTES_MIN {
            *self = Self { since: now, bytes: received };
        }
        now.since(self.since) > nanos_max
    }
}

impl<'a> Copying<'a> {
    fn begin(
        driver: &mut dyn Driver,
        address: &'a Address,
        settings: &'a NodeSettings,
        target: Target,
    ) -> Self {
        let now = driver.clock().monotonic();
        let endpoint = Endpoint::tcp(&address.host, address.port);
        let endpoint = endpoint.encrypted(address.is_encrypted);
        let mut line = Outgoing::default();
        line.dial(driver, &endpoint.from_address(settings.bind_source_addr.clone()), now);
        Self {
            address,
            settings,
            line,
            handshake: None,
            data_set: DataSet::default(),
            importer: Importer::default(),
            target,
            has_work: false,
            is_done: false,
            said: now,
            pace: Pace { since: now, bytes: 0 },
        }
    }

    /// Takes an event.
    fn hear(&mut self, driver: &mut dyn Driver, event: &Event) -> Result<(), String> {
        match self.line.take(driver, event, RECEIVED_BYTES_MAX) {
            Some(Happened::Connected) => {
                let (handshake, first) = Handshake::begin();
                self.handshake = Some(handshake);
                self.line.wait_from(driver.clock().monotonic());
                self.say(driver, &first)
            }
            Some(Happened::Received(count)) => {
                if count > 0 {
                    self.line.wait_from(driver.clock().monotonic());
                }
                Ok(())
            }
            Some(Happened::Ended(End::Unreachable(why))) => Err(format!("cannot connect: {why}")),
            Some(Happened::Ended(End::Closed)) => Err(self.cut("closed the connection")),
            Some(Happened::Ended(End::Broken)) => Err(self.cut("is gone")),
            Some(Happened::Sent) | None => Ok(()),
        }
    }

    fn cut(&self, how: &str) -> String {
        match self.data_set.received_bytes {
            0 => format!("the server {how} before it sent data"),
            bytes => format!("the server {how} after {bytes} bytes of its data"),
        }
    }

    /// Takes what has arrived, a bounded piece of it.
    fn advance(&mut self, driver: &mut dyn Driver) -> Result<(), String> {
        while let Some(handshake) = &mut self.handshake
            && let Some(line) = take_filled_line(&mut self.line.input)?
        {
            let (user, password) = match self.address.password.as_slice() {
                [] => (&self.settings.masteruser[..], &self.settings.masterauth[..]),
                password => (&self.address.user[..], password),
            };
            // Nobody can be reached here. It is not said where, as a replica behind a proxy does.
            let asks = Asks { user, password, port: 0, address: b"", place: None };
            match handshake.hear(&line, &asks)? {
                Next::Wait => {}
                Next::Say(bytes) => self.say(driver, &bytes)?,
                Next::Transfer(_) => {
                    tracing::info!("the server sends its data");
                    self.handshake = None;
                    return self.import();
                }
                Next::Continue(_) => return Err("the server goes on with a stream".to_owned()),
            }
        }
        if !self.line.is_dialing() && self.handshake.is_none() {
            self.import()?;
            self.say_alive(driver)?;
        }
        let now = driver.clock().monotonic();
        let nanos_max = u64::from(self.settings.repl_timeout) * 1_000_000_000;
        if !self.is_done && self.line.waited_nanos(now) > nanos_max {
            return Err("the server is silent for longer than repl-timeout".to_owned());
        }
        let received = self.data_set.received_bytes;
        if self.has_work {
            // The server waits for this program.
            self.pace.since = now;
        }
        if self.pace.is_too_slow(received, now, nanos_max) && !self.is_done {
            return Err(format!(
                "the server sent less than {PROGRESS_BYTES_MIN} bytes of its data within \
                 repl-timeout, after {received} in all"
            ));
        }
        Ok(())
    }

    /// Imports what has arrived of the data set.
    fn import(&mut self) -> Result<(), String> {
        let count = self.data_set.take(&mut self.line.input)?;
        self.importer.feed(&self.line.input[..count]);
        self.line.input.drain(..count);
        if !self.data_set.has_ended() {
            let step = self.target.import(&mut self.importer, STEPS_MAX);
            let step = step.map_err(|error| format!("its data cannot be read: {error}"))?;
            self.has_work = step == Step::Done;
            match step {
                Step::Finished => {
                    self.data_set.end(std::mem::take(&mut self.importer).into_rest())?;
                }
                Step::Starved if self.data_set.has_arrived() => return Err(SHORT.to_owned()),
                Step::Starved | Step::Done => {}
            }
        }
        self.is_done = self.data_set.behind(&mut self.line.input)?.is_some();
        Ok(())
    }

    /// Tells the server, once a second, that somebody takes what it sends.
    fn say_alive(&mut self, driver: &mut dyn Driver) -> Result<(), String> {
        let now = driver.clock().monotonic();
        if self.is_done || now.since(self.said) < ALIVE_NANOS {
            return Ok(());
        }
        self.said = now;
        self.say(driver, b"\n")
    }

    fn say(&mut self, driver: &mut dyn Driver, bytes: &[u8]) -> Result<(), String> {
        self.line.output.extend_from_slice(bytes);
        self.line.flush(driver).map_err(|_| self.cut("is gone"))
    }
}

#[cfg(test)]
mod tests;
