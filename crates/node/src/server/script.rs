//! Scripts and functions: how one is begun, driven and answered.
//!
//! ```text
//! EVAL, FCALL ─▶ run_script ─▶ drive ─▶ call … call ─▶ answered
//!                                │ takes longer than a turn may
//!                                ▼
//!                            suspended ─▶ others are told BUSY ─▶ drive ─▶ … ─▶ answered
//! ```
//! One script is one unit, or a part of the transaction's whose EXEC runs it: all of its effects
//! stand in one record, and its reply waits for that. What it calls is executed as its caller
//! would be, and judged by Redis's rules for scripts (`script/call`). One that runs for longer than
//! a turn may lies suspended, and goes on in the next turns (`script/suspended`).

mod call;
pub(crate) mod suspended;

use crate::core::asker::Asker;
use crate::scripts::Declared;
use crate::server::Server;
use base::{ConnectionId, DatabaseId, MonotonicNanos};
use catalog::Demand;
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use engine::unit::Context;
use lua::{Answer, Interpreter, Invocation, Kind, ScriptError, ScriptRef, Step};
use resp::Reply;
use txlog::Gate;

/// Steps of work that the steps of Lua between two pauses amount to, about: 10,000 instructions
/// take some 100 microseconds.
pub(crate) const PAUSE_WORK_STEPS: usize = 100;

/// What a request wants to run.
pub(crate) struct Wanted {
    pub kind: Kind,
    /// The hash of a script, the name of a function.
    pub name: String,
    pub script: ScriptRef,
    pub declared: Option<Declared>,
    /// EVAL_RO and its kin: nothing may be written.
    pub is_read_only: bool,
}

/// A script or a function that runs.
pub(crate) struct Script {
    pub kind: Kind,
    pub name: String,
    /// Whose request runs it.
    asker: Asker,
    /// What stands still while it runs.
    begun: Context,
    /// What its client had selected.
    database: DatabaseId,
    is_read_only: bool,
    allows_oom: bool,
    /// Memory was short when its request came, and nothing could be evicted.
    is_short: bool,
    pub started: MonotonicNanos,
    /// It has called a command that writes.
    pub has_written: bool,
    /// It has run for so long that others are told.
    pub is_busy: bool,
    /// What it waits for.
    answer: Answer,
    /// The keys that it was given, until it reads: they are remembered for its client's cache then.
    named: Vec<Vec<u8>>,
}

impl Script {
    /// Whose request runs it.
    pub fn client(&self) -> ConnectionId {
        self.asker.client
    }

    /// Whether a master sent it.
    pub fn is_master(&self) -> bool {
        self.asker.is_master()
    }
}

impl Server {
    /// Shows a request to the sessions that run MONITOR before what its script calls, as Redis
    /// does.
    pub(crate) fn show_script_call(&mut self, client: ConnectionId, args: Args<'_>) {
        if !self.core.clients.monitors.is_empty() {
            self.core.tell_monitors(client, args);
        }
    }

    /// Runs a script for a client and answers it, unless it takes so long that it lies suspended.
    /// `args`: what it is called with, so many keys first.
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
            name: name.clone(),
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
        let owned = |argument: &[u8]| {
            work.step();
            work.bytes(argument.len());
            argument.to_vec()
        };
        let invocation = Invocation {
            script: compiled,
            name,
            keys: args.range(0..keys).map(owned).collect(),
            arguments: args.from(keys).map(owned).collect(),
            reply: self.reply_apart(client),
        };
        if !self.core.interest.caches.is_empty() && self.core.remembers(client) {
            script.named.clone_from(&invocation.keys);
        }
        self.interpreter(kind).start(invocation);
        match self.drive(&mut script) {
            Some(outcome) => self.answer_script(&script, outcome),
            None => {
                self.begin_to_suspend(script);
                Ok(())
            }
        }
    }

    /// An empty reply for a client, bounded as one of its commands.
    fn reply_apart(&mut self, client: ConnectionId) -> Reply {
        let session = self.core.clients.at(client);
        let mut reply = Reply::new(session.output.reply.protocol());
        reply.bound(self.core.reply_room(client));
        reply
    }

    fn interpreter(&mut self, kind: Kind) -> &mut Interpreter {
        match kind {
            Kind::Scripts => &mut self.scripts.interpreter,
            Kind::Functions => &mut self.libraries.interpreter,
        }
    }

    /// Refuses a script by what it declares, in Redis's order (script.c, scriptPrepareForRun). The
    /// gate has done so already, but for what is queued in MULTI.
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

    /// Whether clients may not write here.
    fn is_read_only(&self) -> bool {
        let follows = self.core.master().is_some() && self.core.process.settings.replica_read_only;
        self.core.is_following() || follows
    }

    /// Refuses what would write while the log takes nothing. That it is busy is no reason: the gate
    /// has waited for that.
    fn admit_log(&self) -> Outcome {
        match self.core.shard.gate() {
            Gate::Open | Gate::Wait => Ok(()),
            Gate::Refuse(why) => {
                Err(Refusal::new(format!("MISCONF Errors writing to the transaction log: {why}")))
            }
        }
    }

    /// Goes on with a script until it ends, or has taken as long as a turn may take.
    fn drive(&mut self, script: &mut Script) -> Option<lua::Outcome> {
        let limits = self.core.process.options.limits;
        let began = self.core.process.options.clock.monotonic();
        let mut pauses = 0;
        loop {
            let answer = std::mem::replace(&mut script.answer, Answer::GoOn);
            let now = match self.interpreter(script.kind).resume(answer) {
                Step::Done(outcome) => return Some(outcome),
                Step::Call(call) => {
                    script.answer = Answer::Reply(self.call_for_script(script, &call));
                    // When the call ended.
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
                    self.core.process.options.clock.monotonic()
                }
            };
            if now.since(began) > limits.turn_nanos_max || pauses >= limits.script_pauses_max {
                return None;
            }
        }
    }

    /// Answers the client of a script that ended.
    fn answer_script(&mut self, script: &Script, outcome: lua::Outcome) -> Outcome {
        let client = script.client();
        self.core.clients.at_mut(client).database = script.database;
        let failed = match outcome {
            lua::Outcome::Reply(mut reply) => {
                let is_over = reply.unbound();
                let output = &mut self.core.clients.at_mut(client).output;
                output.reply.raw(reply.bytes());
                output.note_over(is_over);
                return Ok(());
            }
            lua::Outcome::Failed(_, error) | lua::Outcome::NotLoaded(error) => error,
            lua::Outcome::Loaded(_) => {
                ScriptError { text: b"ERR a library answers nobody".to_vec(), was_counted: false }
            }
        };
        if failed.was_counted {
            self.core.clients.reply(client).error(&failed.text);
            self.core.turn.has_failed = true;
            return Ok(());
        }
        Err(crate::scripts::refusal(failed))
    }

    /// What `redis.acl_check_cmd` says of a command.
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

/// How many keys a request names, as argument `at` tells.
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
