//! The execution of scripts and functions: begun, driven and answered.
//!
//! ```text
//! EVAL, FCALL ─▶ run_script ─▶ drive ─▶ call … call ─▶ answered
//!                                │ takes longer than it may at once
//!                                ▼
//!                            suspended ─▶ others are told BUSY ─▶ drive ─▶ … ─▶ answered
//! ```
//! One script is one unit, or a part of the unit of the transaction that runs it: all of its
//! effects are in one record, and its reply waits for that. Its commands are executed with its
//! caller's rights, and judged by Redis's rules for scripts (`script/call`). A script that runs for
//! longer than `script_nanos_max` is suspended and goes on in the next turns
//! (`script/suspended`), and `script/busy` says what others hear meanwhile.

pub(super) mod busy;
mod call;
pub(crate) mod suspended;

use crate::core::asker::Asker;
use crate::core::verdict::refused_by_log;
use crate::libraries::Slice;
use crate::scripts::{Declared, PAUSE_WORK_STEPS};
use crate::server::Server;
use base::{ConnectionId, DatabaseId, MonotonicNanos};
use catalog::Demand;
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use engine::unit::Context;
use lua::{Answer, CodeKind, Interpreter, Invocation, ScriptError, ScriptRef, Step};
use resp::Reply;
use std::rc::Rc;
use txlog::Gate;

/// The script or function that a request runs.
pub(crate) struct Wanted {
    pub kind: CodeKind,
    /// The hash of a script, or the name of a function.
    pub name: Rc<str>,
    pub script: ScriptRef,
    pub declared: Option<Declared>,
    /// EVAL_RO and its kin: the script may not write.
    pub is_read_only: bool,
}

/// A running script or function.
pub(crate) struct Script {
    pub kind: CodeKind,
    pub name: Rc<str>,
    /// The client whose request runs it.
    asker: Asker,
    /// The context of its unit: the time does not advance.
    begun: Context,
    /// The database that its client had selected.
    database: DatabaseId,
    is_read_only: bool,
    allows_oom: bool,
    /// Whether memory was over its limit when its request came, and nothing could be evicted.
    is_short: bool,
    pub started: MonotonicNanos,
    /// Whether it has called a command that writes.
    pub has_written: bool,
    /// Whether it has run for so long that others are told BUSY.
    pub is_busy: bool,
    /// The answer with which it is resumed.
    answer: Answer,
    /// The keys of its request, until it reads: then they are recorded for its client's cache.
    named: Vec<Vec<u8>>,
}

impl Script {
    /// The client whose request runs it.
    pub fn client(&self) -> ConnectionId {
        self.asker.client
    }

    /// Whether it came from a master.
    pub fn is_master(&self) -> bool {
        self.asker.is_master()
    }
}

impl Server {
    /// Shows a request to MONITOR before the commands that its script calls, as Redis does.
    pub(crate) fn show_script_call(&mut self, client: ConnectionId, args: Args<'_>) {
        if !self.core.clients.monitors.is_empty() {
            self.core.tell_monitors(client, args);
        }
    }

    /// Runs a script for a client and answers it, unless it takes so long that it is suspended.
    /// `args` are the keys, as many as `keys` says, and then the arguments.
    pub(crate) fn run_script(
        &mut self,
        client: ConnectionId,
        wanted: Wanted,
        args: Args<'_>,
        keys: usize,
    ) -> Outcome {
        let asker = self.core.asker(client);
        self.admit_script(&asker, &wanted)?;
        let Wanted { kind, name, script: compiled, declared, is_read_only } = wanted;
        let declared = declared.unwrap_or_default();
        let begun = self.core.begun.unwrap_or_else(|| self.core.context(&asker));
        let mut script = Script {
            kind,
            name: Rc::clone(&name),
            asker,
            begun: Context { may_block: false, in_script: true, retry: false, ..begun },
            database: self.core.clients.at(client).database,
            is_read_only: is_read_only || declared.no_writes,
            allows_oom: declared.allow_oom,
            is_short: self.core.is_short_of_room,
            started: self.core.process.options.clock.monotonic(),
            has_written: false,
            is_busy: false,
            answer: Answer::Begin,
            named: Vec::new(),
        };
        let work = self.core.work();
        let counted = |argument| {
            work.step();
            work.bytes(<[u8]>::len(argument));
            argument
        };
        let (buffer, given) = self.interpreter(kind).spare_invocation();
        let given = given
            .with(args.iter().map(counted))
            .ok_or(Refusal::of("ERR the arguments of a script are too long"))?;
        if !self.core.interest.caches.is_empty() && self.core.remembers(client) {
            script.named = args.range(0..keys).map(<[u8]>::to_vec).collect();
        }
        let reply = self.reply_apart(client, buffer);
        let invocation = Invocation { script: compiled, name, keys, given, reply };
        self.interpreter(kind).start(invocation);
        let began = self.core.lap_time();
        match self.drive(&mut script, began) {
            Some(ending) => self.answer_script(&script, ending),
            None => {
                self.begin_to_suspend(script);
                Ok(())
            }
        }
    }

    /// A reply for a client in this empty buffer, with the limit of one command.
    fn reply_apart(&mut self, client: ConnectionId, buffer: Vec<u8>) -> Reply {
        let session = self.core.clients.at(client);
        let mut reply = Reply::over(buffer, session.output.reply.protocol());
        reply.bound(self.core.reply_room(client));
        reply
    }

    /// Loads libraries of functions that the shard has, for as long as a script may run on.
    pub(crate) fn load_libraries(&mut self) {
        let data = self.core.shard.engine.keyspace.libraries();
        if !self.libraries.is_behind(data) || self.core.stopping.is_some() {
            return;
        }
        let options = &self.core.process.options;
        let (nanos, pauses) = (options.limits.script_nanos_max, options.limits.script_pauses_max);
        let work = self.core.work();
        self.libraries.advance(data, &mut Slice::new(&*options.clock, work, nanos, pauses));
    }

    /// Whether requests may wait for libraries of functions that the loop has still to load.
    pub(crate) fn is_behind_libraries(&self) -> bool {
        self.libraries.is_behind(self.core.shard.engine.keyspace.libraries())
    }

    fn interpreter(&mut self, kind: CodeKind) -> &mut Interpreter {
        match kind {
            CodeKind::Scripts => &mut self.scripts.interpreter,
            CodeKind::Functions => &mut self.libraries.interpreter,
        }
    }

    /// Refuses a script for what it declares, in the order of Redis's checks before a script. The
    /// gate has done so already, but for scripts that MULTI has queued.
    fn admit_script(&mut self, asker: &Asker, wanted: &Wanted) -> Outcome {
        let is_stale = self.is_stale(asker);
        let Some(declared) = wanted.declared else {
            return if is_stale { Err(super::gate::STALE) } else { self.admit_part(Demand::WHOLE) };
        };
        if declared.no_cluster && self.core.process.settings.discovery.cluster_enabled {
            return Err(Refusal::of(
                "ERR Can not run script on cluster, 'no-cluster' flag is set.",
            ));
        }
        if !declared.allow_stale {
            if is_stale {
                return Err(STALE_SCRIPT);
            }
            self.admit_part(Demand::WHOLE)?;
        }
        if declared.no_writes {
            return Ok(());
        }
        if !asker.is_master() {
            if self.is_read_only() {
                return Err(READ_ONLY_SCRIPT);
            }
            self.admit_log()?;
        }
        if wanted.is_read_only {
            return Err(Refusal::of(
                "ERR Can not execute a script with write flag using *_ro command.",
            ));
        }
        if self.lacks_replicas() {
            return Err(super::gate::NO_REPLICAS);
        }
        if self.core.is_short_of_room && !declared.allow_oom && !asker.is_master() {
            return Err(SHORT_SCRIPT);
        }
        Ok(())
    }

    /// Whether clients may only read here.
    fn is_read_only(&self) -> bool {
        let follows = self.core.master().is_some() && self.core.process.settings.replica_read_only;
        self.core.is_following() || follows
    }

    /// Refuses a script that may write while the log accepts no records. A busy log is no reason:
    /// the gate has waited for it.
    fn admit_log(&self) -> Outcome {
        match self.core.shard.gate() {
            Gate::Open | Gate::Wait => Ok(()),
            Gate::Refuse(why) => Err(refused_by_log(&why)),
        }
    }

    /// Runs a script until it ends, or has run for `script_nanos_max` since `began` (`None`).
    fn drive(&mut self, script: &mut Script, began: MonotonicNanos) -> Option<lua::Ending> {
        let limits = self.core.process.options.limits;
        let mut pauses = 0;
        loop {
            let answer = std::mem::replace(&mut script.answer, Answer::GoOn);
            let now = match self.interpreter(script.kind).resume(answer) {
                Step::Done(ending) => return Some(ending),
                Step::Call(call) => {
                    script.answer = Answer::Reply(self.call_for_script(script, &call));
                    self.interpreter(script.kind).take_back_arguments(call.arguments);
                    // The time at which the call ended.
                    self.core.turn.lap
                }
                Step::CheckRights(arguments) => {
                    let args = Args::new(arguments.source(), arguments.ranges());
                    script.answer = self.check_rights(script.client(), args);
                    began
                }
                Step::Log { level, text } => {
                    crate::scripts::log_line(level, &text);
                    began
                }
                Step::Paused => {
                    pauses += 1;
                    self.core.work().steps(PAUSE_WORK_STEPS);
                    self.core.lap_time()
                }
            };
            if now.since(began) > limits.script_nanos_max || pauses >= limits.script_pauses_max {
                return None;
            }
        }
    }

    /// Answers the client of a script that has ended.
    fn answer_script(&mut self, script: &Script, ending: lua::Ending) -> Outcome {
        let client = script.client();
        self.core.clients.at_mut(client).database = script.database;
        let failed = match ending {
            lua::Ending::Reply(mut reply) => {
                let is_over = reply.unbound();
                let output = &mut self.core.clients.at_mut(client).output;
                output.reply.raw(reply.bytes());
                output.note_over(is_over);
                self.interpreter(script.kind).take_back_reply(reply.into_bytes());
                return Ok(());
            }
            lua::Ending::Failed(_, error) | lua::Ending::NotLoaded(error) => error,
            lua::Ending::Loaded(_) => ScriptError::of("ERR a library answers nobody"),
        };
        if failed.was_counted {
            self.core.clients.reply(client).error(&failed.text);
            self.core.turn.has_failed = true;
            return Ok(());
        }
        Err(crate::scripts::refusal(failed))
    }

    /// The answer to `redis.acl_check_cmd`.
    fn check_rights(&self, client: ConnectionId, args: Args<'_>) -> Answer {
        let process = &self.core.process;
        let found = process.catalog.find(args.at(0), args.get(1));
        let Some(command) = found.filter(|it| it.subcommands.is_empty()) else {
            return Answer::UnknownCommand;
        };
        let user = process.acl.user(self.core.clients.at(client).who.user);
        Answer::Allowed(user.check(command, args, &self.core.work()).is_ok())
    }
}

const STALE_SCRIPT: Refusal = Refusal::of(
    "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and \
     'allow-stale' flag is not set on the script.",
);
const READ_ONLY_SCRIPT: Refusal =
    Refusal::of("READONLY Can not run script with write flag on readonly replica");
const SHORT_SCRIPT: Refusal = Refusal::of(
    "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
);

/// Reads the number of keys of a request from argument `at`.
///
/// # Errors
/// Redis's texts.
pub(crate) fn key_count(args: Args<'_>, at: usize) -> Result<usize, Refusal> {
    let count = resp::integer::parse_i64(args.at(at)).ok_or(Refusal::NOT_AN_INTEGER)?;
    if count > (args.len() - at - 1) as i64 {
        return Err(Refusal::of("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(count).map_err(|_| Refusal::of("ERR Number of keys can't be negative"))
}
