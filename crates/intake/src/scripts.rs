//! EVAL and its kin in an append-only file. Redis before 5.0 wrote scripts there, and until 7.0
//! could be told to, in place of what they changed (`lua-replicate-commands no`).
//!
//! Such a script was bound to do the same at each execution, so it is executed again. What fails in
//! it failed before, for all that is known: what it changed until then counts, as in Redis. Only
//! what fails for a reason of our own ends the loading: a command that is not here, and limits.

use crate::executor::{Commands, unknown};
use crate::target::Target;
use base::sha1::{hex, sha1};
use base::{Clock, DatabaseId};
use engine::command::Args;
use engine::unit::Context;
use lua::{
    Answer, Arguments, Call, CodeKind, Ending, Interpreter, Invocation, Limits, SOURCE_BYTES_MAX,
    ScriptRef, Step,
};
use resp::integer::parse_u64;
use resp::{Protocol, Reply};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A script's SHA-1.
pub(crate) type Hash = [u8; 20];

/// Scripts that are kept to be called by their hashes. Far more than applications have; a guess.
const KEPT_MAX: usize = 4096;

/// The scripts so far, and their interpreter.
pub(crate) struct Scripts {
    interpreter: Interpreter,
    kept: BTreeMap<Hash, ScriptRef>,
    /// The same, oldest first.
    order: VecDeque<Hash>,
}

impl Scripts {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let mut interpreter = Interpreter::new(CodeKind::Scripts, Limits::default());
        interpreter.set_clock(clock);
        interpreter.offer_deprecated();
        Self { interpreter, kept: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Keeps a script; its hash.
    ///
    /// # Errors
    /// It is none, or memory is short.
    pub fn keep(&mut self, body: &[u8]) -> Result<Hash, String> {
        let hash = sha1(body);
        if self.kept.contains_key(&hash) {
            return Ok(hash);
        }
        if body.len() > SOURCE_BYTES_MAX {
            return Err(format!("a script of more than {SOURCE_BYTES_MAX} bytes"));
        }
        if self.kept.len() >= KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
            && let Some(script) = self.kept.remove(&oldest)
        {
            self.interpreter.forget(script);
        }
        // A first line that declares flags is no Lua; its end stays, so that line numbers do.
        let line =
            if body.starts_with(b"#!") { body.iter().position(|it| *it == b'\n') } else { None };
        let compiled = self.interpreter.compile(&body[line.unwrap_or(0)..]);
        let script = compiled.map_err(|error| shown(&error.text))?;
        self.kept.insert(hash, script);
        self.order.push_back(hash);
        Ok(hash)
    }

    /// Reads a hash, hexadecimal in either case.
    pub fn hash_of(text: &[u8]) -> Option<Hash> {
        let mut hash = [0; 20];
        let (pairs, rest) = text.as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            *byte = (digit(high)? << 4 | digit(low)?) as u8;
        }
        Some(hash)
    }

    /// SCRIPT FLUSH.
    pub fn flush(&mut self) {
        self.interpreter.clear();
        self.kept.clear();
        self.order.clear();
    }

    /// Executes the script of an EVAL or EVALSHA, which may pause so many times.
    ///
    /// # Errors
    /// It is not kept, or cannot be executed here.
    pub fn run(
        &mut self,
        hash: Hash,
        args: Args<'_>,
        database: DatabaseId,
        target: &mut Target,
        commands: &Commands,
        pauses_max: u64,
    ) -> Result<(), String> {
        let name = hex(&hash);
        let script = self.kept.get(&hash).copied();
        let script = script.ok_or_else(|| format!("the text of script {name} is not known"))?;
        let keys = args.get(2).and_then(parse_u64).and_then(|keys| usize::try_from(keys).ok());
        let keys = keys.filter(|keys| *keys <= args.len().saturating_sub(3));
        let keys = keys.ok_or("no number of keys")?;
        let given = Arguments::of(args.from(3)).ok_or("arguments of more than 4 GiB")?;
        let reply = Reply::new(Protocol::Resp2);
        self.interpreter.start(Invocation { script, name: name.into(), keys, given, reply });
        let begun = Context { in_script: true, ..target.context(database) };
        let mut running = Running { target, commands, context: begun, missing: None };
        let (mut answer, mut pauses) = (Answer::Begin, 0);
        loop {
            answer = match self.interpreter.resume(answer) {
                Step::Call(call) => Answer::Reply(running.call(&call)),
                Step::CheckRights(_) => Answer::Allowed(true),
                Step::Log { .. } => Answer::GoOn,
                Step::Paused => {
                    pauses += 1;
                    if pauses == pauses_max {
                        running.missing = Some("the script does not end".to_owned());
                        self.interpreter.kill("ERR the script does not end");
                    }
                    Answer::GoOn
                }
                Step::Done(ending) => return ended(ending, running.missing),
            };
        }
    }
}

/// A script that runs, and what it may reach.
struct Running<'a> {
    target: &'a mut Target,
    commands: &'a Commands,
    context: Context,
    /// What it wanted and was not there.
    missing: Option<String>,
}

impl Running<'_> {
    /// Executes a command that the script calls; its reply.
    fn call(&mut self, call: &Call) -> Vec<u8> {
        let args = Args::new(call.arguments.source(), call.arguments.ranges());
        let mut reply = Reply::new(call.protocol);
        if args.is(0, "SELECT") {
            self.select(args, &mut reply);
            return reply.into_bytes();
        }
        match self.commands.find(args) {
            Ok(function) => {
                let done = self.target.run(&function, self.context, args, &mut reply);
                if let Err(refusal) = done {
                    reply.truncate(0);
                    reply.error(refusal.0.as_bytes());
                }
            }
            Err(why) => {
                reply.error(format!("ERR {why}"));
                self.missing.get_or_insert(why);
            }
        }
        reply.into_bytes()
    }

    /// Counts for the rest of the script.
    fn select(&mut self, args: Args<'_>, reply: &mut Reply) {
        let count = self.target.engine.keyspace.settings.databases;
        let number = args.get(1).and_then(parse_u64).and_then(|it| u32::try_from(it).ok());
        match number.filter(|number| *number < count) {
            Some(number) => {
                self.context.database = DatabaseId(number);
                reply.ok();
            }
            None => {
                reply.error("ERR DB index is out of range");
                self.missing.get_or_insert_with(|| unknown(args));
            }
        }
    }
}

/// What comes of the end of a script.
fn ended(ending: Ending, missing: Option<String>) -> Result<(), String> {
    let failed = match ending {
        Ending::Failed(_, error) | Ending::NotLoaded(error) => Some(error),
        Ending::Reply(_) | Ending::Loaded(_) => None,
    };
    match (missing, failed) {
        (Some(why), _) => Err(why),
        (None, Some(error)) if error.lacks_memory => Err(shown(&error.text)),
        (None, Some(error)) => {
            tracing::warn!("a script failed, as it may have before: {}", shown(&error.text));
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// The text of an error of Lua's, as it may be shown.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().filter(|it| !it.is_control()).take(300).collect()
}
