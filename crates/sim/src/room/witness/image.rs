//! What a power cut would leave, judged by starting from it on a machine of its own.

use super::Witness;
use crate::disk::SimDisk;
use crate::reply::{self, Reply};
use crate::room::ledger::{Holdings, databases, queries};
use crate::room::queue;
use base::time::Clock;
use base::{DatabaseId, UnixMillis};
use engine::command::Args;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::unit::{Context, Unit};
use node::Function;
use node::standard;

type Bytes = Vec<u8>;

/// How often, of 100 times, the newest snapshot is damaged in what a cut left.
const DAMAGE_PERCENT: u64 = 20;

impl Witness {
    /// Starts from what a power cut would leave.
    pub(super) fn check_image(&mut self, image: &SimDisk) -> Result<(), String> {
        self.note_snapshots(image)?;
        // A start writes: each must find the disk as the cut left it.
        let other = self.random.chance(DAMAGE_PERCENT).then(|| image.copy());
        self.check_start(image)?;
        let Some(other) = other else { return Ok(()) };
        let damaged = self.machine.beside(&other).damage_newest(&mut self.random)?;
        let Some(name) = damaged else { return Ok(()) };
        self.seen.passed_over += 1;
        self.check_start(&other).map_err(|why| format!("with {name} damaged: {why}"))
    }

    fn check_start(&mut self, image: &SimDisk) -> Result<(), String> {
        let machine = self.machine.beside(image);
        let leads = machine.survey()?;
        let (mut engine, replayer) = machine.recover(self.random.draw())?;
        let tail = replayer.at().0;
        let found = Digest::of_keyspace(&engine.keyspace);
        match self.state_behind(tail, &leads) {
            None => return Err(format!("record {tail} was never appended")),
            Some(held) if held != found => {
                return Err(format!("replay of {tail} records is not what the server held"));
            }
            Some(_) => {}
        }
        for (client, ledger) in self.ledgers.iter().enumerate() {
            let holdings = read_holdings(&mut engine, client)?;
            ledger.check(&holdings).map_err(|why| format!("client {client}: {why}"))?;
        }
        self.queue.check(&queue_values(&mut engine)?, self.unanswered_pops())?;
        self.check_gone(&engine)
    }

    /// A new life begins with what this engine holds.
    pub(super) fn queue_is(&mut self, engine: &mut Engine) -> Result<(), String> {
        let unanswered = self.unanswered_pops();
        self.queue.resolve(&queue_values(engine)?, unanswered)
    }

    /// Keys that a client was told are gone must not come back.
    fn check_gone(&self, engine: &Engine) -> Result<(), String> {
        let database = DatabaseId(queue::DATABASE);
        let keyspace = &engine.keyspace;
        let now = self.machine.clock.unix_millis();
        let is_back = |key: &&Bytes| keyspace.exists(database, key);
        // A key past its time is hidden while its deletion waits for the log.
        let is_seen = |key: &&Bytes| is_back(key) && !keyspace.is_expired(database, key, now);
        let back = self.deleted.iter().find(is_back).or_else(|| self.gone.iter().find(is_seen));
        back.map_or(Ok(()), |key| Err(format!("{} is back", String::from_utf8_lossy(key))))
    }
}

/// Reads a client's keys as the commands of a server would.
fn read_holdings(engine: &mut Engine, client: usize) -> Result<Holdings, String> {
    let [here, there] = databases(client).map(|database| {
        let replies = queries(client).map(|words| ask(engine, database, &words));
        replies.into_iter().collect::<Result<Vec<Reply>, String>>()
    });
    Holdings::read(&here?, &there?)
}

fn queue_values(engine: &mut Engine) -> Result<Vec<Bytes>, String> {
    let mut values = Vec::new();
    for list in queue::LISTS {
        let words = ["LRANGE", list, "0", "-1"].map(|word| word.as_bytes().to_vec());
        let Reply::Array(elements) = ask(engine, DatabaseId(queue::DATABASE), &words)? else {
            return Err(format!("{list} is no list"));
        };
        values.extend(elements.into_iter().filter_map(|element| match element {
            Reply::Bulk(value) => Some(value),
            _ => None,
        }));
    }
    Ok(values)
}

fn ask(engine: &mut Engine, database: DatabaseId, words: &[Bytes]) -> Result<Reply, String> {
    let (catalog, functions) = standard();
    let command = catalog.find(&words[0], None).ok_or("unknown command")?;
    let Some(Function::Data(function)) = functions.of(command.id) else {
        return Err("not a command on keys".to_owned());
    };
    let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
    for word in words {
        ranges.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    let mut out = resp::Reply::default();
    let mut unit = Unit::new(0);
    let context = Context::background(UnixMillis(0), database);
    let outcome = engine.run(
        &function,
        context,
        Args::new(&bytes, &ranges),
        &mut out,
        &mut unit,
        &mut Interest::default(),
    );
    outcome.map_err(|refusal| refusal.0.to_string())?;
    Ok(reply::parse(out.bytes())?.ok_or("half a reply")?.0)
}
