//! Every reason to refuse a request, in the order in which Redis looks at them (server.c,
//! processCommand). Refusing comes before execution, never after.

mod master;
mod pass;
mod replica;

use crate::core::asker::Asker;
use crate::core::tier_waits::Cause;
use crate::core::verdict::{Verdict, needs_data};
use crate::server::Server;
use crate::session::ClientKind;
use base::ConnectionId;
use catalog::{Demand, Kind, Registered};
use engine::command::{Args, Flags};
use engine::eviction::Room;
use engine::refusal::{Refusal, quoted};
use shard::tiering::RoomFor;

/// What a client that only watches may not do.
const ON_DATA: Flags = Flags::WRITE.union(Flags::READONLY).union(Flags::MAY_REPLICATE);

/// Longest excerpt of arguments in the error for an unknown command, in bytes (Redis 7.0).
const EXCERPT_BYTES_MAX: usize = 128;

impl Server {
    /// Judges a request. `command` is `None` if its name is unknown. In a batch, the next request
    /// of the same command is not judged again: a reason that a command about keys may bring about,
    /// or that rests on the arguments, stands in `gate/pass` as well.
    pub(crate) fn judge(
        &mut self,
        asker: &Asker,
        command: Option<&Registered>,
        demand: Demand,
        args: Args<'_>,
    ) -> Verdict {
        let Some(command) = command else { return Verdict::Refuse(unknown_command(args)) };
        if !command.subcommands.is_empty() {
            if let Some(subcommand) = args.get(1) {
                return Verdict::Refuse(unknown_subcommand(command.name(), subcommand));
            }
            if command.kind() == Kind::Container {
                return Verdict::Refuse(Refusal::arity(command.name()));
            }
        }
        if !command.admits(args.len()) {
            return Verdict::Refuse(Refusal::arity(command.name()));
        }
        if asker.is_master() {
            // The master has executed it already; only the log may have to be waited for.
            let writes = command.may_write() || command.flags.contains(Flags::EXECUTES_QUEUE);
            return self.or_until_loaded(self.core.judge_log(writes), demand);
        }
        if let Some(refusal) = self.protected_refusal(asker, command) {
            return Verdict::Refuse(refusal);
        }
        if asker.is_stranger && !command.flags.contains(Flags::NO_AUTH) {
            return Verdict::Refuse(Refusal::of("NOAUTH Authentication required."));
        }
        if asker.is_in_transaction && is_never_queued(command) {
            return Verdict::Refuse(Refusal::of("ERR Command not allowed inside a transaction"));
        }
        if let Some(denied) = self.core.denied(asker.client, command, args) {
            return Verdict::Refuse(denied.refusal(command));
        }
        let memory = self.judge_memory(asker.client, demand);
        if let Verdict::Refuse(_) = memory {
            return memory;
        }
        let verdict = self.judge_beside_memory(asker, command, demand, args);
        if matches!(memory, Verdict::Run) || matches!(verdict, Verdict::Refuse(_)) {
            // Who would be refused anyway does not wait for room first.
            return verdict;
        }
        self.core.process.tier_waits.put_off(Cause::Room);
        Verdict::Later
    }

    /// Judges what Redis looks at once there is room in memory.
    fn judge_beside_memory(
        &self,
        asker: &Asker,
        command: &Registered,
        demand: Demand,
        args: Args<'_>,
    ) -> Verdict {
        if demand.has(Demand::WRITE) && self.lacks_replicas() {
            return Verdict::Refuse(NO_REPLICAS);
        }
        if let refused @ Verdict::Refuse(_) = self.judge_role(asker, command, demand, args) {
            return refused;
        }
        if asker.only_listens
            && let Some(refusal) = subscriber_refusal(command)
        {
            return Verdict::Refuse(refusal);
        }
        match self.judge_state(asker, command, demand) {
            refused @ Verdict::Refuse(_) => refused,
            _ if command.flags.intersects(ON_DATA) && self.only_watches(asker) => {
                Verdict::Refuse(Refusal::of("ERR Replica can't interact with the keyspace"))
            }
            verdict => self.or_until_loaded(verdict, demand),
        }
    }

    /// Whether a client only hears what others do: a replica of the stream, which no pause stops,
    /// or one that said MONITOR.
    fn only_watches(&self, asker: &Asker) -> bool {
        asker.kind == ClientKind::Replica || self.core.clients.monitors.contains(&asker.client)
    }

    /// Lets a request that nothing else keeps wait for the libraries of functions, if it needs them
    /// and the loop has still to load some.
    fn or_until_loaded(&self, verdict: Verdict, demand: Demand) -> Verdict {
        match verdict {
            Verdict::Run if demand.has(Demand::LIBRARIES) && self.is_behind_libraries() => {
                Verdict::Later
            }
            verdict => verdict,
        }
    }

    /// Refuses what a directive allows to nobody, or to local connections alone.
    fn protected_refusal(&self, asker: &Asker, command: &Registered) -> Option<Refusal> {
        let settings = &self.core.process.settings;
        let guards = [
            (Flags::PROTECTED, &settings.enable_debug_command, DEBUG_REFUSED),
            (Flags::CHANGES_MODULES, &settings.enable_module_command, MODULE_REFUSED),
        ];
        let refusing = guards.into_iter().find(|(flag, permitted, _)| {
            command.flags.contains(*flag) && !permitted.permits(asker.is_local)
        });
        refusing.map(|(_, _, text)| Refusal::of(text))
    }

    /// Refuses a request for the state of the data, of a running script, or of the log.
    fn judge_state(&self, asker: &Asker, command: &Registered, demand: Demand) -> Verdict {
        if let refused @ Verdict::Refuse(_) = self.judge_staleness(asker, demand) {
            return refused;
        }
        if demand.has(Demand::LOADED)
            && (self.core.persistence.is_loading || self.link.is_loading())
        {
            return Verdict::Refuse(Refusal::of("LOADING Redis is loading the dataset in memory"));
        }
        if !command.flags.contains(Flags::ALLOW_BUSY)
            && let Some(refusal) = self.busy_refusal()
        {
            return Verdict::Refuse(refusal);
        }
        if let refused @ Verdict::Refuse(_) = self.judge_part(demand) {
            return refused;
        }
        // Who would write while another process does was refused already.
        match self.core.is_following() {
            true => Verdict::Run,
            false => self.judge_writing(command, demand),
        }
    }

    /// Refuses or delays what would find the log full, by what was executed before it.
    fn judge_writing(&self, command: &Registered, demand: Demand) -> Verdict {
        if needs_data(command)
            && let refused @ Verdict::Refuse(_) = self.core.judge_held()
        {
            return refused;
        }
        match self.core.judge_log(demand.has(Demand::LOG) || demand.has(Demand::CALM_LOG)) {
            // A script may write later; the refusal is then at that call.
            Verdict::Refuse(_) if !demand.has(Demand::LOG) => Verdict::Run,
            verdict => verdict,
        }
    }

    /// Evicts keys if memory is short, and refuses what needs more of it.
    fn judge_memory(&mut self, client: ConnectionId, demand: Demand) -> Verdict {
        // Who executes next finds no client too many, and may be one itself.
        self.core.evict_clients();
        if self.core.clients.at(client).flow.is_cut {
            return Verdict::Refuse(Refusal::OUT_OF_MEMORY);
        }
        // Nothing is evicted while a script's unit is suspended.
        if self.suspended.is_none() {
            // No more values leave memory in this turn, but perhaps those that its own pins keep.
            let is_known =
                self.core.process.tier_waits.has_put_off(Cause::Room) && !self.core.has_own_pins();
            let room = match is_known {
                true => Room::Behind,
                false if demand.may_grow() => self.core.make_room(Some(client), RoomFor::Growing),
                false => self.core.make_room(Some(client), RoomFor::Other),
            };
            self.core.is_short_of_room = room == Room::None;
            let waits = room == Room::Behind && demand.may_grow();
            if waits && (is_known || !self.core.passes_for_room()) {
                return Verdict::Later;
            }
        }
        if self.core.is_short_of_room && demand.has(Demand::ROOM) {
            return Verdict::Refuse(Refusal::OUT_OF_MEMORY);
        }
        Verdict::Run
    }
}

pub(super) use master::STALE;
pub(super) use pass::Pass;
pub(super) use replica::first_key;
pub(super) const NO_REPLICAS: Refusal =
    Refusal::of("NOREPLICAS Not enough good replicas to write.");

const DEBUG_REFUSED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is \
                             set to \"local\", you can run it from a local connection, otherwise \
                             you need to set this option in the configuration file, and then \
                             restart the server.";

const MODULE_REFUSED: &str = "ERR MODULE command not allowed. If the enable-module-command option \
                              is set to \"local\", you can run it from a local connection, \
                              otherwise you need to set this option in the configuration file, \
                              and then restart the server.";

/// Whether a command cannot be part of a transaction. MIGRATE can in Redis, where everything waits
/// for the other server; here only its client does, and a unit waits for nothing.
fn is_never_queued(command: &Registered) -> bool {
    command.flags.intersects(Flags::NO_MULTI.union(Flags::AWAITS_SERVER))
}

fn subscriber_refusal(command: &Registered) -> Option<Refusal> {
    if command.flags.contains(Flags::FOR_SUBSCRIBERS) {
        return None;
    }
    Some(Refusal::new(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context",
        command.name()
    )))
}

fn unknown_command(args: Args<'_>) -> Refusal {
    let printable = |bytes: &[u8], limit: usize| quoted(&bytes[..bytes.len().min(limit)]);
    let mut excerpt = String::new();
    for argument in args.from(1) {
        if excerpt.len() >= EXCERPT_BYTES_MAX {
            break;
        }
        let room = EXCERPT_BYTES_MAX - excerpt.len();
        excerpt.push_str(&format!("'{}' ", printable(argument, room)));
    }
    Refusal::new(format!(
        "ERR unknown command '{}', with args beginning with: {excerpt}",
        printable(args.at(0), EXCERPT_BYTES_MAX)
    ))
}

fn unknown_subcommand(container: &str, subcommand: &[u8]) -> Refusal {
    Refusal::new(format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        quoted(&subcommand[..subcommand.len().min(EXCERPT_BYTES_MAX)]),
        container.to_ascii_uppercase()
    ))
}
