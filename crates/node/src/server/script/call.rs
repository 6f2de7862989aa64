//! Commands called by scripts: each is judged by Redis's rules for scripts, in the order of Redis's
//! checks, and executed with the rights of the script's caller.
//!
//! While one runs, its reply takes the place of the caller's output, so that a command need not
//! know who calls it. The caller's own reply is written when the script has ended.

use super::{Script, Server};
use crate::core::verdict::{READ_ONLY, Verdict};
use crate::output::Output;
use catalog::{CommandId, Demand, Registered};
use engine::command::{Args, Flags, Outcome};
use engine::refusal::Refusal;
use engine::unit::Context;

/// The most key hashes that are noted for one script; beyond that it counts as having touched all
/// keys. 512 KiB of hashes; a guess.
const KEYS_NOTED_MAX: usize = 1 << 16;

/// The most bytes of effects of a unit when its script calls a further command; one command may
/// exceed it. They are in memory, and once more in the records that hold them, here and at every
/// reader. Far more than scripts write; a guess.
const EFFECT_BYTES_MAX: usize = 256 << 20;

/// The error for a script with more effects than that, or with more commands for replicas of Redis.
const TOO_MUCH: &str = "ERR the script changes more than one unit of the log may hold";

impl Server {
    /// Runs a command for a script; returns its reply, encoded.
    pub(super) fn call_for_script(&mut self, script: &mut Script, call: &lua::Call) -> Vec<u8> {
        let args = Args::new(call.arguments.source(), call.arguments.ranges());
        let client = script.client();
        let buffer = self.interpreter(script.kind).spare_reply();
        let mut output = Output::apart(buffer, call.protocol);
        let session = self.core.clients.at_mut(client);
        std::mem::swap(&mut session.output, &mut output);
        session.is_in_script = true;
        match self.admit_call(script, args) {
            Ok(command) => {
                self.core.begin_lap();
                let database = self.core.clients.at(client).database;
                self.call(client, command, args, Context { database, ..script.begun });
                let reads = self.core.process.catalog.command(command).flags;
                if !script.named.is_empty() && reads.contains(Flags::READONLY) {
                    self.core.remember_named(client, &std::mem::take(&mut script.named));
                }
            }
            Err((command, refusal)) => self.refuse_call(script, command, &refusal),
        }
        let session = self.core.clients.at_mut(client);
        session.is_in_script = false;
        std::mem::swap(&mut session.output, &mut output);
        if output.take_over() {
            output.reply.error("ERR the reply of the command is too long for a script");
        }
        self.bound_unit(script);
        output.reply.into_bytes()
    }

    /// The reply to a call that was refused. The error is counted, as of any command.
    fn refuse_call(&mut self, script: &Script, command: Option<CommandId>, refusal: &Refusal) {
        if let Some(command) = command {
            self.core.process.statistics.command(command).rejected += 1;
        }
        self.core.refuse(script.client(), 0, refusal);
        self.core.begin_lap();
    }

    /// Bounds what a unit notes: a script alone decides how long its unit is.
    fn bound_unit(&mut self, script: &Script) {
        let unit = &mut self.core.shard.unit;
        unit.forget_keys_beyond(KEYS_NOTED_MAX);
        let is_too_much =
            unit.effects.len() > EFFECT_BYTES_MAX || unit.feed.len() > EFFECT_BYTES_MAX;
        if !unit.garbage.is_empty() {
            let garbage = std::mem::take(&mut unit.garbage);
            self.core.discard(garbage);
        }
        if is_too_much {
            self.interpreter(script.kind).kill(TOO_MUCH);
        }
    }

    /// Applies every reason to refuse a script's call; returns the command.
    fn admit_call(
        &mut self,
        script: &mut Script,
        args: Args<'_>,
    ) -> Result<CommandId, (Option<CommandId>, Refusal)> {
        let found = self.core.process.catalog.find(args.at(0), args.get(1));
        // A container without a subcommand has the wrong arity; with an unknown one, the subcommand
        // is unknown.
        let found = found.filter(|it| it.subcommands.is_empty() || args.len() == 1);
        let Some(command) = found else { return Err((None, UNKNOWN)) };
        let refused = |refusal| (Some(command.id), refusal);
        if !command.subcommands.is_empty() || !command.admits(args.len()) {
            return Err(refused(ARITY));
        }
        let is_forced = self.scripts.may_call_more && is_harmless(command, args);
        if command.flags.intersects(NOT_IN_SCRIPTS) && !is_forced {
            return Err(refused(Refusal::of("ERR This Redis command is not allowed from script")));
        }
        if command.demand.has(Demand::FRESH) && self.is_stale(&script.asker) {
            let stale = "ERR Can not execute the command on a stale replica";
            return Err(refused(Refusal::of(stale)));
        }
        self.admit_part(command.demand).map_err(refused)?;
        if let Some(denied) = self.core.denied(script.client(), command, args) {
            return Err(refused(denied.refusal_in_script()));
        }
        self.admit_write(script, command).map_err(refused)?;
        let is_short = script.is_short && !script.allows_oom && !script.has_written;
        if is_short && command.demand.has(Demand::ROOM) && !script.is_master() {
            return Err(refused(Refusal::OUT_OF_MEMORY));
        }
        script.has_written |= command.flags.contains(Flags::WRITE);
        if self.is_elsewhere(script, command, args) {
            return Err(refused(Refusal::of(
                "ERR Script attempted to access a non local key in a cluster node",
            )));
        }
        Ok(command.id)
    }

    /// Refuses a call that would write. A script that has written once is not stopped halfway by
    /// the server's state.
    fn admit_write(&self, script: &Script, command: &Registered) -> Outcome {
        let may_tell = Flags::WRITE.union(Flags::MAY_REPLICATE);
        if script.is_read_only && command.flags.intersects(may_tell) {
            return Err(Refusal::of("ERR Write commands are not allowed from read-only scripts."));
        }
        if script.has_written {
            return Ok(());
        }
        let writes = command.flags.contains(Flags::WRITE);
        if writes && !script.is_master() && self.is_read_only() {
            return Err(READ_ONLY);
        }
        if command.demand.has(Demand::LOG) && !self.core.is_following() {
            self.admit_log()?;
        }
        if writes && self.lacks_replicas() {
            return Err(crate::server::gate::NO_REPLICAS);
        }
        Ok(())
    }

    /// Refuses a request that needs a whole data set, while only a part of one is here.
    pub(super) fn admit_part(&self, demand: Demand) -> Outcome {
        match self.judge_part(demand) {
            Verdict::Refuse(refusal) => Err(refusal),
            Verdict::Run | Verdict::Later => Ok(()),
        }
    }

    /// Whether, on a replica of the log, a call names a key for which the primary must answer.
    fn is_elsewhere(&self, script: &Script, command: &Registered, args: Args<'_>) -> bool {
        self.core.is_following()
            && !script.asker.reads_replica
            && super::super::gate::first_key(command, args).is_some()
    }
}

/// Flags of commands that scripts may not call: Redis's denied ones, and those that wait for
/// another server.
const NOT_IN_SCRIPTS: Flags = Flags::NOSCRIPT.union(Flags::AWAITS_SERVER);

/// The denied commands that scripts may call if DEBUG allows it, with the first argument if it
/// matters: those that Redis's own tests call. No others, because denied commands wait, run a queue
/// or a script, concern the connection, which is still to be answered, or change what the
/// server is amid a unit: whom it follows, its configuration, its whole data set.
const HARMLESS: [(&str, Option<&str>); 3] =
    [("client|list", None), ("debug", Some("PROTOCOL")), ("debug", Some("SLEEP"))];

/// Whether a command that is denied to scripts is one that DEBUG may allow them.
fn is_harmless(command: &Registered, args: Args<'_>) -> bool {
    let is_named = |word: &Option<&str>| word.is_none_or(|word| args.is(1, word));
    HARMLESS.iter().any(|(name, word)| command.name() == *name && is_named(word))
}

const UNKNOWN: Refusal = Refusal::of("ERR Unknown Redis command called from script");
const ARITY: Refusal = Refusal::of("ERR Wrong number of args calling Redis command from script");
