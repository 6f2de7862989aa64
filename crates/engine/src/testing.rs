//! Runs commands in tests, and holds their effects against a twin.
//!
//! Everything a command does must be in its effects: replicas and recovery see nothing else. So a
//! [`Bench`] applies the effects of each command to a second keyspace, which never saw a command,
//! and compares the two.

use crate::cold::{ColdLimits, ColdSource, ColdStore};
use crate::command::{Args, Command, DataFn, FAMILIES};
use crate::execute::Engine;
use crate::ids::SubscriberId;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::moving::{Met, Mover, MovingHand};
use crate::number::format_double;
use crate::settings::Settings;
use crate::stream_id::StreamId;
use crate::subscribers::Sort;
use crate::unit::{Context, Unit};
use crate::value::{Element, EntryRef, StringValue, Value, encoding, type_name};
use base::{DatabaseId, HashKey, UnixMillis};
use resp::{Protocol, Reply};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use structures::entry::ValueRef;
use tier::{Read, Sealer, Tier};

/// An engine and its twin.
pub struct Bench {
    pub engine: Engine,
    pub twin: Keyspace,
    /// Client 0 hears what the twin tells as it applies.
    pub twin_interest: Interest,
    /// What the last command left behind, but for its effects.
    pub unit: Unit,
    /// Client 0 hears all keyspace events.
    pub interest: Interest,
    /// Time, database and flags of the commands to come.
    pub context: Context,
    pub protocol: Protocol,
    /// The arguments of [`Self::resume`], for the next command.
    resumed: Option<(Vec<u8>, Vec<StreamId>)>,
    /// Where the walk stands on which the engine's blocks move.
    moving: MovingHand,
    /// Steps of the moving walk so far.
    moving_steps: usize,
    /// Where the twin has its values: none of them is in memory when an effect comes.
    twin_file: MemoryFile,
}

/// A file of cold values, in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryFile {
    pub bytes: Rc<RefCell<Vec<u8>>>,
    /// So many reads to come fail.
    pub failing_reads: Rc<Cell<u64>>,
}

impl MemoryFile {
    fn sealer() -> Sealer {
        Sealer::new(&std::array::from_fn(|at| at as u8))
    }

    /// Gives a keyspace a store of cold values on this file.
    pub fn serve(&self, keyspace: &mut Keyspace, limits: ColdLimits) {
        let tier = Tier::new(tier::Limits::default(), 256 << 20);
        keyspace.open_cold(ColdStore::new(tier, Box::new(self.clone()), limits));
    }

    /// Writes all that is to be written.
    pub fn write(&self, keyspace: &mut Keyspace) {
        let Some(cold) = keyspace.cold_mut() else { return };
        cold.tier.close_pieces();
        while let Some(write) = cold.tier.next_write() {
            let mut sealed = Vec::new();
            let start = write.seal_part(&Self::sealer(), 0..write.length(), &mut sealed);
            let (from, piece) = (write.offset() as usize, &sealed[start..]);
            let mut bytes = self.bytes.borrow_mut();
            let len = bytes.len().max(from + piece.len());
            bytes.resize(len, 0);
            bytes[from..from + piece.len()].copy_from_slice(piece);
            cold.tier.written(write.id());
        }
    }
}

impl ColdSource for MemoryFile {
    fn read(&self, read: &Read) -> Result<Vec<u8>, String> {
        if let Some(left) = self.failing_reads.get().checked_sub(1) {
            self.failing_reads.set(left);
            return Err("the test has it fail".to_owned());
        }
        let from = read.offset() as usize;
        let pages = self.bytes.borrow().get(from..from + read.length()).map(<[u8]>::to_vec);
        let mut pages = pages.ok_or("the file is too short")?;
        let content = read.open(&Self::sealer(), &mut pages).map_err(|error| error.to_string())?;
        Ok(pages[content].to_vec())
    }
}

/// Steps of the moving walk before each command, and elements of a value in each.
const MOVING_STEPS: usize = 1;
const MOVED_ELEMENTS: usize = 16;

/// After so many steps large blocks are copied in pieces, or no longer.
const COPYING_STEPS: usize = 16;

/// Limits by which nearly every value may be spilled.
pub(crate) const ALL_COLD: ColdLimits = ColdLimits {
    // What is shorter has an encoding of its own.
    value_bytes_min: 45,
    // Larger ones take their time, each time.
    value_bytes_max: 16 << 10,
    expiring_bytes_max: 16 << 10,
    freed_bytes_min: 0,
    guest_bytes_max: 16 << 20,
    slice_bytes: 1 << 10,
    walked_bytes_max: 2 << 20,
    walked_bytes_min: 256 << 10,
    changed_bytes: 512 << 10,
    keeps_encoding: false,
};

/// What one key holds, comparable: type, encoding, expiry, contents in the order of the encoding.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) type_name: &'static str,
    pub(crate) encoding: &'static str,
    pub(crate) expire_at: Option<i64>,
    pub(crate) contents: Vec<Vec<u8>>,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    pub fn new() -> Self {
        Self::with_settings(Settings::default())
    }

    pub fn with_settings(settings: Settings) -> Self {
        let mut context = Context::background(UnixMillis(1_700_000_000_000), DatabaseId(0));
        context.may_block = true;
        context.touch = true;
        let keyspace = Keyspace::new(settings.clone(), HashKey::fixed(1));
        let [interest, twin_interest] = [(); 2].map(|()| {
            let mut interest = Interest::default();
            interest.subscribers.subscribe(SubscriberId(0), Sort::Pattern, b"__key*");
            interest
        });
        let mut twin = Keyspace::new(settings, HashKey::fixed(1));
        let twin_file = MemoryFile::default();
        twin_file.serve(&mut twin, ALL_COLD);
        Self {
            engine: Engine::new(keyspace, 1),
            twin,
            twin_file,
            moving: MovingHand::default(),
            moving_steps: 0,
            twin_interest,
            unit: Unit::new(0),
            interest,
            context,
            protocol: Protocol::Resp2,
            resumed: None,
        }
    }

    /// Runs the next command as a retry after a wait, because this key became ready. Its context
    /// must say that it is a retry.
    pub fn resume(&mut self, key: &[u8], since: Vec<StreamId>) {
        self.resumed = Some((key.to_vec(), since));
    }

    /// Runs a command whose words stand between blanks. Returns the reply with a blank for each
    /// end of a line: `*2 $1 a :5`. A refusal is `-…`, a wait `(waits)`.
    pub fn run(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.run_words(&words)
    }

    /// As [`Self::run`], without the twin.
    pub fn run_alone(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let reply = self.run_words_alone(&words);
        self.unit.effects.take();
        reply
    }

    /// As [`Self::run`], with words that may hold anything.
    pub fn run_words(&mut self, words: &[&[u8]]) -> String {
        let reply = self.run_words_alone(words);
        self.compare();
        reply
    }

    /// Has blocks of the engine's keyspace allocated anew, of which no command may notice anything.
    fn move_blocks(&mut self) {
        let wanted = &mut |_: Met<'_>| true;
        let mut mover = Mover::new(wanted);
        for _ in 0..MOVING_STEPS {
            self.moving_steps += 1;
            // Now each block at once, then most of those that can be in pieces.
            if self.moving_steps / COPYING_STEPS % 2 == 1 {
                (mover.whole_bytes_max, mover.piece_bytes) = (64, 100);
            }
            self.engine.keyspace.move_blocks(&mut self.moving, MOVED_ELEMENTS, &mut mover);
        }
    }

    fn run_words_alone(&mut self, words: &[&[u8]]) -> String {
        self.move_blocks();
        let command = command(words);
        let mut buffer = Vec::new();
        let mut ranges = Vec::new();
        for word in words {
            ranges.push((buffer.len() as u32, word.len() as u32));
            buffer.extend_from_slice(word);
        }
        let mut reply = Reply::new(self.protocol);
        let resumed = self.resumed.take();
        self.unit.clear();
        if let Some((key, since)) = resumed {
            self.unit.woken_by = Some(key);
            self.unit.resumed_since = since;
        }
        self.forget_notices();
        let args = Args::new(&buffer, &ranges);
        let Self { engine, unit, interest, context, .. } = self;
        let outcome = engine.run(&command.function, *context, args, &mut reply, unit, interest);
        if let Err(refusal) = outcome {
            assert!(reply.is_empty(), "a refused command has replied: {words:?}");
            return format!("-{}", refusal.0);
        }
        if self.unit.wait.is_some() {
            assert!(reply.is_empty(), "a waiting command has replied: {words:?}");
            return "(waits)".to_owned();
        }
        String::from_utf8_lossy(reply.bytes()).replace("\r\n", " ").trim_end().to_owned()
    }

    /// Runs a command and compares its reply.
    #[track_caller]
    pub fn check(&mut self, line: &str, expected: &str) {
        let reply = self.run(line);
        assert_eq!(reply, expected, "{line}");
    }

    /// Runs several commands and compares their replies: `[(line, reply), …]`.
    #[track_caller]
    pub fn check_all(&mut self, lines: &[(&str, &str)]) {
        for (line, expected) in lines {
            self.check(line, expected);
        }
    }

    /// The events that the last command published, `event key` each. Needs a setting of
    /// `notify_keyspace_events` that has `E`.
    pub fn events(&self) -> Vec<String> {
        events(&self.interest)
    }

    /// The same of the twin, which is told as a replica is: from effects.
    pub fn twin_events(&self) -> Vec<String> {
        events(&self.twin_interest)
    }

    fn forget_notices(&mut self) {
        for interest in [&mut self.interest, &mut self.twin_interest] {
            interest.dirtied.clear();
            interest.ready.clear();
            interest.messages.clear();
        }
    }

    /// Applies the effects since the last call to the twin, and compares all keys.
    #[track_caller]
    pub(crate) fn compare(&mut self) {
        let payload = self.unit.effects.take();
        let applied = self.twin.apply_payload(&payload, self.context.now, &mut self.twin_interest);
        applied.expect("what was recorded can be applied");
        self.twin.spill_all(self.context.now);
        self.twin_file.write(&mut self.twin);
        assert_eq!(holdings(&self.engine.keyspace), holdings(&self.twin));
    }
}

fn events(interest: &Interest) -> Vec<String> {
    let events = interest.messages.iter().filter_map(|message| {
        let channel = String::from_utf8_lossy(&message.channel).into_owned();
        let (_, event) = channel.split_once("__keyevent@")?.1.split_once("__:")?;
        Some(format!("{event} {}", String::from_utf8_lossy(&message.payload)))
    });
    events.collect()
}

/// The command of a request; arity is the node's business, but a test should keep to it.
pub(crate) fn command(words: &[&[u8]]) -> &'static Command<DataFn> {
    let name = String::from_utf8_lossy(words[0]).to_ascii_lowercase();
    let second = words.get(1).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase());
    let container = format!("{name}|{}", second.unwrap_or_default());
    let rows = FAMILIES.iter().flat_map(|family| family.iter());
    let mut found = rows.filter(|row| {
        let declared = crate::command::Declared::new(row.usage, row.arity, row.keys);
        declared.name == name || declared.name == container
    });
    found.next().expect("the test names a command that exists")
}

pub(crate) fn holdings(keyspace: &Keyspace) -> BTreeMap<(DatabaseId, Vec<u8>), Held> {
    let databases = keyspace.databases();
    let entries = databases.flat_map(|(id, db)| db.table().iter().map(move |entry| (id, entry)));
    let held = |entry: EntryRef<'_>| {
        let whole = keyspace.with_value(entry).expect("nothing is lost");
        let held = held(whole.as_ref());
        assert_eq!(held.type_name, type_name(entry));
        assert_eq!(held.encoding, encoding(entry));
        held
    };
    let held = entries.map(|(id, entry)| ((id, entry.key().to_vec()), held(entry))).collect();
    assert_eq!(keyspace.cold_failure(), None);
    held
}

fn held(entry: EntryRef<'_>) -> Held {
    let (encoding, contents) = match entry.value() {
        ValueRef::Bytes(_) | ValueRef::Integer(_) => (encoding(entry), vec![text(entry)]),
        ValueRef::Boxed(value) => (value.encoding(), contents(value)),
        ValueRef::Cold(_) => panic!("who looks at it reads it"),
    };
    Held { type_name: type_name(entry), encoding, expire_at: entry.expire_at(), contents }
}

/// The texts of all elements. Those without an order are sorted: two keyspaces may hold the same in
/// another order.
fn contents(value: &Value) -> Vec<Vec<u8>> {
    let (mut elements, mut is_ordered) = (Vec::new(), true);
    value.each(|element| match element {
        Element::Text(bytes) | Element::Ordered(bytes) => elements.push(vec![bytes.to_vec()]),
        Element::Member(member) => {
            is_ordered = false;
            elements.push(vec![member.to_vec()]);
        }
        Element::Pair(field, text, expire_at) => {
            is_ordered = false;
            let time = expire_at.map(|at| at.to_string().into_bytes());
            elements.push([field.to_vec(), text.to_vec()].into_iter().chain(time).collect());
        }
        Element::Scored(member, score) => {
            elements.push(vec![member.to_vec(), format_double(score).as_bytes().to_vec()]);
        }
        // The bytes of blocks are compared too, because DUMP shows them.
        Element::Stream(part) => elements.push(vec![format!("{part:?}").into_bytes()]),
    });
    if !is_ordered {
        elements.sort();
    }
    elements.concat()
}

fn text(entry: EntryRef<'_>) -> Vec<u8> {
    StringValue::of(entry).map(|text| text.to_vec()).unwrap_or_default()
}
