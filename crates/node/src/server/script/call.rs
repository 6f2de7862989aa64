//! The commands that scripts call: each is judged by Redis's rules for scripts, in its order
//! (script.c, scriptCall), and executed as its script's caller would.
//!
//! While one runs, its reply stands in the place of the caller's: so a command need not know who
//! calls it. What the caller itself is to be told is written when the script has ended.

use super::{Script, Server};
use crate::core::verdict::{READ_ONLY, Verdict};
use crate::output::Output;
use catalog::{CommandId, Demand, Registered};
use engine::command::{Args, Flags, Outcome};
use engine::refusal::Refusal;
use engine::unit::Context;

/// Keys of one script whose hashes are noted, before it counts as having touched all. 512 KiB of
/// hashes; a guess.
const KEYS_NOTED_MAX: usize = 1 << 16;

/// Bytes of effects that one unit may have when its script calls a further command; one command may
/// overshoot. They lie in memory, and once more in the records that hold them, here and at every
/// reader. Far more than scripts write; a guess.
const EFFECT_BYTES_MAX: usize = 256 << 20;

/// What ends a script that has more effects than that, or tells replicas of Redis more.
const TOO_MUCH: &str = "ERR the script changes more than one unit of the log may hold";

impl Server {
    /// Runs a command for a script; its reply, encoded.
    pub(super) fn call_for_script(&mut self, script: &mut Script, call: &lua::Call) -> Vec<u8> {
        let args = Args::new(call.arguments.source(), call.arguments.ranges());
        let client = script.client();
        let session = self.core.clients.at_mut(client);
        let kept = std::mem::replace(&mut session.output, Output::apart(call.protocol));
        session.is_in_script = true;
        match self.admit_call(script, args) {
            Ok(command) => {
                self.core.turn.lap = self.core.process.options.clock.monotonic();
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
        let mut output = std::mem::replace(&mut session.output, kept);
        if output.take_over() {
            output.reply.error("ERR the reply of the command is too long for a script");
        }
        self.bound_unit(script);
        output.reply.into_bytes()
    }

    /// Answers a call that was refused. The error counts, as of any command.
    fn refuse_call(&mut self, script: &Script, command: Option<CommandId>, refusal: &Refusal) {
        if let Some(command) = command {
            self.core.process.statistics.command(command).rejected += 1;
        }
        self.core.refuse(script.client(), 0, refusal);
        self.core.turn.lap = self.core.process.options.clock.monotonic();
    }

    /// Keeps within bounds what a unit keeps, whose length its script alone decides.
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

    /// Every reason to refuse a script's call; and the command, if there is one of this name.
    fn admit_call(
        &mut self,
        script: &mut Script,
        args: Args<'_>,
    ) -> Result<CommandId, (Option<CommandId>, Refusal)> {
        let found = self.core.process.catalog.find(args.at(0), args.get(1));
        // A container by itself has too few arguments; else its subcommand is unknown.
        let found = found.filter(|it| it.subcommands.is_empty() || args.len() == 1);
        let Some(command) = found else { return Err((None, UNKNOWN)) };
        let refused = |refusal| (Some(command.id), refusal);
        if !command.subcommands.is_empty() || !command.admits(args.len()) {
            return Err(refused(ARITY));
        }
        let is_forced = self.scripts.may_call_more && !command.flags.intersects(NEVER_IN_SCRIPTS);
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
            return Err(refused(crate::server::gate::OUT_OF_MEMORY));
        }
        script.has_written |= command.flags.contains(Flags::WRITE);
        if self.is_elsewhere(script, command, args) {
            return Err(refused(Refusal::of(
                "ERR Script attempted to access a non local key in a cluster node",
            )));
        }
        Ok(command.id)
    }

    /// Refuses a call that would write. Once a script has written, nothing of the server's state
    /// stops it halfway.
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

    /// Refuses what needs a whole data set while a part of one is here.
    pub(super) fn admit_part(&self, demand: Demand) -> Outcome {
        match self.judge_part(demand) {
            Verdict::Refuse(refusal) => Err(refusal),
            Verdict::Run | Verdict::Later => Ok(()),
        }
    }

    /// Whether a call is about a key for which the primary answers, on a replica of the log.
    fn is_elsewhere(&self, script: &Script, command: &Registered, args: Args<'_>) -> bool {
        self.core.is_following()
            && !script.asker.reads_replica
            && super::super::gate::first_key(command, args).is_some()
    }
}

/// What scripts may not call: what Redis keeps from them, and what waits for another server.
const NOT_IN_SCRIPTS: Flags = Flags::NOSCRIPT.union(Flags::AWAITS_SERVER);

/// What scripts may not call even if DEBUG says so: what runs scripts, waits, or is about the
/// connection.
const NEVER_IN_SCRIPTS: Flags = Flags::RUNS_SCRIPT
    .union(Flags::AWAITS_SERVER)
    .union(Flags::BLOCKING)
    .union(Flags::ALLOW_BUSY)
    .union(Flags::NO_MULTI)
    .union(Flags::EXECUTES_QUEUE)
    .union(Flags::PUBSUB);

const UNKNOWN: Refusal = Refusal::of("ERR Unknown Redis command called from script");
const ARITY: Refusal = Refusal::of("ERR Wrong number of args calling Redis command from script");
