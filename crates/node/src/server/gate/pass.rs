//! The part of the gate's verdict on a request that also holds for the next one of a pipeline.
//!
//! A pipeline is mostly one command again and again. Nearly every reason to refuse a request, or to
//! let it wait, rests on what a command about keys cannot change: who asks, users' rules,
//! directives, the role, pauses. So these are judged once for a run of requests of one command in
//! a batch; any other command ends the run. What the requests themselves change ends it as well: a
//! record that was appended, what the log said when it was polled amid one of them, too many
//! replies that wait, a snapshot that falls behind.

use crate::core::asker::Asker;
use crate::core::verdict::Verdict;
use crate::server::Server;
use crate::server::functions::Function;
use base::ConnectionId;
use catalog::{CommandId, Registered};
use engine::command::Args;
use engine::unit::{Context, Overdue};

/// A verdict that lets the client's next request run, if it is of the same command and only
/// commands about keys have run since.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    command: CommandId,
    /// While this stays, the log takes records or not as it did then.
    gate_serial: u64,
    pub context: Context,
}

impl Server {
    /// The pass that a request earns by having been let through; `None` if the next one must be
    /// judged in full.
    pub(crate) fn pass(
        &self,
        asker: &Asker,
        command: &Registered,
        context: Context,
    ) -> Option<Pass> {
        let core = &self.core;
        let is_data = matches!(self.functions.of(command.id), Some(Function::Data(_)));
        let is_ordinary = is_data && !asker.is_master() && !asker.is_in_transaction;
        // Limits of memory, and rules about keys, ask for each request.
        let is_free = !core.counts_clients() && core.process.acl.is_open();
        let stands = core.master().is_none()
            && !core.is_following()
            && context.overdue == Overdue::Deleted
            && self.migrations.is_idle();
        let holds = is_ordinary && is_free && stands;
        let gate_serial = core.shard.gate_serial();
        holds.then_some(Pass { command: command.id, gate_serial, context })
    }

    /// Whether the full gate lets a request run now. Builds with assertions compare a pass with it.
    pub(crate) fn would_run(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        let asker = self.core.asker(client);
        matches!(self.judge(&asker, Some(command), command.demand, args), Verdict::Run)
            && self.what_to_wait_for(&asker, command, command.demand, args, false).is_none()
    }

    /// Whether a request passes by what was found of the one before it. If not, it is judged in
    /// full.
    pub(crate) fn passes_again(
        &self,
        pass: &Pass,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        let core = &self.core;
        pass.command == command.id
            && pass.gate_serial == core.shard.gate_serial()
            && command.admits(args.len())
            && !core.is_much_held()
            && !core.is_snapshot_behind()
            && !core.has_cold_key(client, command, args)
    }
}
