//! A master of Redis, as far as a replica sees it: it hands out one data set, piece by piece.

use base::driver::{Driver, Event, Received, Sent};
use base::{ConnectionId, DatabaseId, HashKey, UnixMillis};
use engine::digest::Digest;
use engine::effect::{Effect, End};
use engine::keyspace::Keyspace;
use engine::rdb::Crc64;
use engine::save::checksum;
use engine::settings::Settings;
use sim::driver::SimDriver;

/// Turns between two pieces of the data set, so that a snapshot finds time in between.
const PIECE_TURNS: u64 = 30;

/// A data set, as a file and as what it holds.
pub struct DataSet {
    pub file: Vec<u8>,
    pub digest: Digest,
}

impl DataSet {
    /// Strings, lists and sets; the same each time.
    pub fn new() -> Self {
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(3));
        let mut apply = |key: &str, effect: Effect<'_>| {
            let applied = keyspace.apply(DatabaseId(0), key.as_bytes(), &effect);
            applied.expect("each key has one type");
        };
        for number in 0..200 {
            let text = format!("{number}:{}", "v".repeat(40));
            apply(&format!("new:{number}"), Effect::SetInteger { value: number });
            apply("list", Effect::ListPush { end: End::Tail, value: text.as_bytes() });
            apply("set", Effect::SetAdd { member: text.as_bytes() });
        }
        let mut file = Vec::new();
        keyspace.begin_snapshot(UnixMillis(0));
        while !keyspace.walk_snapshot(64, 4096) {
            file.extend(keyspace.take_snapshot_bytes(Vec::new()));
        }
        file.extend(keyspace.take_snapshot_bytes(Vec::new()));
        keyspace.end_snapshot();
        let mut crc = Crc64::default();
        crc.update(&file);
        file.extend(checksum(crc));
        Self { file, digest: Digest::of_keyspace(&keyspace) }
    }
}

/// The master, and the one replica that it has at a time.
pub struct Master<'a> {
    driver: SimDriver,
    data: &'a DataSet,
    piece_bytes: usize,
    /// Hangs up the first connection when it has sent so many bytes of the data set.
    pub hangs_up_at: Option<usize>,
    /// Bytes at the end of the data set that it neither announces nor sends.
    pub missing: usize,
    /// What follows the data set.
    pub stream: Vec<u8>,
    replica: Option<ConnectionId>,
    heard: Vec<u8>,
    /// Bytes of the data set that were sent, once it was asked for.
    sent: Option<usize>,
    turns: u64,
    /// The replica has acknowledged: it has all the data.
    pub is_acknowledged: bool,
}

impl<'a> Master<'a> {
    pub fn new(driver: SimDriver, data: &'a DataSet, piece_bytes: usize) -> Self {
        Self {
            driver,
            data,
            piece_bytes,
            hangs_up_at: None,
            missing: 0,
            stream: Vec::new(),
            replica: None,
            heard: Vec::new(),
            sent: None,
            turns: 0,
            is_acknowledged: false,
        }
    }

    /// One turn: answers what was asked, and sends a piece now and then.
    pub fn turn(&mut self) {
        let mut events = Vec::new();
        self.driver.wait(Some(0), &mut events);
        for event in events {
            match event {
                Event::Accepted { connection, .. } => {
                    self.replica = Some(connection);
                    self.sent = None;
                    self.heard.clear();
                }
                Event::Readable(connection) => self.hear(connection),
                Event::Broken(connection) => self.close(connection),
                _ => {}
            }
        }
        self.answer();
        self.turns += 1;
        if self.turns.is_multiple_of(PIECE_TURNS) {
            self.send_piece();
        }
    }

    fn hear(&mut self, connection: ConnectionId) {
        if self.driver.receive(connection, &mut self.heard, 4096) == Received::Closed {
            self.close(connection);
        }
    }

    fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
        if self.replica == Some(connection) {
            self.replica = None;
        }
    }

    fn answer(&mut self) {
        let place = format!("+FULLRESYNC {} 0\r\n", "a".repeat(40));
        for (word, said) in [
            ("PING", "+PONG\r\n"),
            ("listening-port", "+OK\r\n"),
            ("psync2", "+OK\r\n"),
            ("version", "-ERR Unrecognized REPLCONF option: version\r\n"),
            ("PSYNC", place.as_str()),
            ("ACK", ""),
        ] {
            let mut words = self.heard.windows(word.len());
            let Some(at) = words.position(|it| it == word.as_bytes()) else { continue };
            self.heard.drain(..at + word.len());
            self.say(said.as_bytes());
            match word {
                "PSYNC" => self.sent = Some(0),
                "ACK" => self.is_acknowledged = true,
                _ => {}
            }
        }
    }

    fn send_piece(&mut self) {
        let (Some(sent), Some(replica)) = (self.sent, self.replica) else { return };
        if self.hangs_up_at.is_some_and(|at| sent >= at) {
            self.hangs_up_at = None;
            self.close(replica);
            return;
        }
        let file = &self.data.file[..self.data.file.len() - self.missing];
        if sent == 0 {
            self.say(format!("\n\n${}\r\n", file.len()).as_bytes());
        }
        let until = (sent + self.piece_bytes).min(file.len());
        self.sent = Some(until);
        self.say(&file[sent..until]);
        if until == file.len() {
            let stream = std::mem::take(&mut self.stream);
            self.say(&stream);
        }
    }

    fn say(&mut self, mut bytes: &[u8]) {
        let Some(replica) = self.replica else { return };
        while !bytes.is_empty() {
            match self.driver.send(replica, bytes) {
                Sent::Bytes(count) => bytes = &bytes[count..],
                Sent::Closed => return,
            }
        }
    }
}
