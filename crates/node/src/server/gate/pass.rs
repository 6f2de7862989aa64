//! What the gate found of a request, as far as it holds for the next one.
//!
//! A pipeline is mostly one command again and again. Nearly every reason to refuse a request, or to
//! let it wait, rests on what a command about keys cannot change: who asks, users' rules,
//! directives, the role, pauses. So these are judged once for a run of requests of one command in
//! a batch; any other command ends the run. What the requests themselves change is judged each
//! time: how many arguments there are, and whether the log takes more.

use crate::core::asker::Asker;
use crate::core::verdict::Verdict;
use crate::server::Server;
use crate::server::functions::Function;
use base::ConnectionId;
use catalog::{CommandId, Demand, Registered};
use engine::command::Args;
use engine::unit::{Context, Overdue};

/// What holds for the next request of the same client, if it is of the same command and nothing but
/// commands about keys has run since.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    command: CommandId,
    demand: Demand,
    pub context: Context,
}

impl Server {
    /// What of a request that was let through holds for the next one, if anything does.
    pub(crate) fn pass(
        &self,
        asker: &Asker,
        command: &Registered,
        demand: Demand,
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
        holds.then_some(Pass { command: command.id, demand, context })
    }

    /// Whether the whole of the gate would let a request run at once, as its pass says.
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

    /// Whether a request passes by what was found of the one before it.
    pub(crate) fn passes_again(&self, pass: &Pass, command: &Registered, args: Args<'_>) -> bool {
        pass.command == command.id
            && command.admits(args.len())
            && matches!(self.judge_writing(command, pass.demand), Verdict::Run)
    }
}
