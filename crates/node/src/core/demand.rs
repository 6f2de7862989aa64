//! What a request needs of the server before it may run.

use super::Core;
use base::ConnectionId;
use catalog::{Demand, Registered};
use engine::command::Flags;

impl Core {
    /// What a request needs: an EXEC, also what its queue does.
    pub(crate) fn demand(&self, client: ConnectionId, command: &Registered) -> Demand {
        if !command.flags.contains(Flags::EXECUTES_QUEUE) {
            return command.demand;
        }
        let transaction = self.clients.at(client).transaction.as_ref();
        transaction.map_or(command.demand, |queued| command.demand.union(queued.demand()))
    }
}
