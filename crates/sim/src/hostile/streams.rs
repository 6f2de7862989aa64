//! Requests about streams, and what RESTORE is handed.

use super::effects::empty;
use super::{HASH_SEED, NOW, survives_a_snapshot};
use crate::reply::{self, Reply};
use base::{DatabaseId, HashKey};
use engine::command::Args;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use engine::rdb::Crc64;
use engine::settings::Settings;
use engine::unit::{Context, Unit};
use node::{Function, standard};

/// Version of RDB files that payloads say they are of.
const VERSION: [u8; 2] = [10, 0];

/// Entries of a block: few, so that a short input fills several.
const BLOCK_ENTRIES: u64 = 4;

/// Commands that are executed, beside those of streams.
const OTHERS: [&[u8]; 4] = [b"DEL", b"COPY", b"RENAME", b"OBJECT"];

/// What becomes of a value that RESTORE took: whatever it is, it can be used.
const USES: &str = "XINFO STREAM s FULL COUNT 0\nXAUTOCLAIM s g alice 0 -\n\
                    XREADGROUP GROUP g bob STREAMS s >\nXPENDING s g - + 9\nXINFO GROUPS s\n\
                    XACKDEL s g DELREF IDS 2 3-0 4-1\nXTRIM s MAXLEN ~ 5 ACKED\n\
                    XADD s MAXLEN ~ 3 * a b\nXDEL s 3-0 4-1\nXTRIM s MINID 6\nCOPY s t\n\
                    XTRIM s MAXLEN 1 DELREF\nXSETID s 5\nXADD s 6 a b\nXTRIM t MAXLEN 1 ACKED";

/// Runs lines of commands about streams; or RESTORE, if the input begins with `r`, of a payload
/// whose version and checksum are right, and then uses what it made. What effects say is what
/// happened; what is in memory can be written and read back; ranges are in order from either end,
/// and as long as XLEN says.
///
/// # Panics
/// If one of these does not hold: the finding.
pub fn play_streams(input: &[u8]) {
    let mut player = Player::new();
    match input {
        [b'r', body @ ..] => {
            let mut payload = [body, &VERSION].concat();
            let mut crc = Crc64::default();
            crc.update(&payload);
            payload.extend_from_slice(&crc.value().to_le_bytes());
            player.run(&[b"RESTORE", b"s", b"0", &payload]);
            player.play(USES.as_bytes());
        }
        lines => player.play(lines),
    }
    player.end();
}

/// An engine, and one that knows effects alone.
struct Player {
    engine: Engine,
    twin: Keyspace,
    unit: Unit,
}

impl Player {
    fn new() -> Self {
        let settings = Settings { stream_node_max_entries: BLOCK_ENTRIES, ..Settings::default() };
        let keyspace = Keyspace::new(settings.clone(), HashKey::fixed(HASH_SEED));
        let twin = Keyspace::new(settings, HashKey::fixed(HASH_SEED + 1));
        Self { engine: Engine::new(keyspace, 1), twin, unit: Unit::new(0) }
    }

    fn play(&mut self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let name = words[0].to_ascii_uppercase();
            if name.starts_with(b"X") || OTHERS.contains(&&name[..]) {
                self.run(&words);
            }
        }
    }

    /// The reply to a request that is one, and was not refused.
    fn run(&mut self, words: &[&[u8]]) -> Option<Reply> {
        let (catalog, functions) = standard();
        let command = catalog.find(words[0], words.get(1).copied())?;
        let Some(Function::Data(function)) = functions.of(command.id) else { return None };
        if !command.admits(words.len()) {
            return None;
        }
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in words {
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        let Self { engine, twin, unit } = self;
        let (mut reply, mut interest) = (resp::Reply::default(), Interest::default());
        let (context, args) = (Context::background(NOW, DatabaseId(0)), Args::new(&bytes, &ranges));
        unit.clear();
        let outcome = engine.run(&function, context, args, &mut reply, unit, &mut interest);
        let effects = unit.effects.take();
        twin.apply_payload(&effects, NOW, &mut interest).expect("what was recorded can be applied");
        outcome.ok()?;
        reply::parse(reply.bytes()).expect("a reply is one").map(|(reply, _)| reply)
    }

    fn end(mut self) {
        for key in [&b"s"[..], b"t", b"u"] {
            let Some(Reply::Array(mut back)) = self.run(&[b"XREVRANGE", key, b"+", b"-"]) else {
                continue;
            };
            back.reverse();
            let len = back.len() as i64;
            let there = self.run(&[b"XRANGE", key, b"-", b"+"]);
            assert_eq!(there, Some(Reply::Array(back)), "ranges are the same from either end");
            assert_eq!(self.run(&[b"XLEN", key]), Some(Reply::Integer(len)));
        }
        let digest = Digest::of_keyspace(&self.engine.keyspace);
        assert_eq!(digest, Digest::of_keyspace(&self.twin), "effects say what happened");
        survives_a_snapshot(&self.engine.keyspace);
        empty(self.engine.keyspace);
        empty(self.twin);
    }
}
