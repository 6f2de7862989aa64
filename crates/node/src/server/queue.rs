//! The execution of a transaction's queue by EXEC, request by request, as one unit.

use crate::server::Server;
use crate::server::script::busy::TOO_LONG_ON_REPLICA;
use crate::session::Transaction;
use base::{ConnectionId, MonotonicNanos};
use engine::refusal::Refusal;
use engine::unit::Context;

/// A transaction that is being executed, with its progress.
pub(crate) struct Queue {
    transaction: Transaction,
    next: usize,
    /// The context of the unit: its time does not advance.
    begun: Context,
    /// When EXEC began.
    pub began: MonotonicNanos,
}

impl Queue {
    pub fn new(transaction: Transaction, begun: Context, began: MonotonicNanos) -> Self {
        Self { transaction, next: 0, begun, began }
    }
}

impl Server {
    /// Executes the rest of a queue. A script in it that runs for long leaves the rest for later.
    /// The rest is refused once a replica of the log has stood still for it for very long.
    pub(crate) fn run_queue(&mut self, client: ConnectionId, mut queue: Queue) {
        let work = self.core.work();
        while let Some(request) = queue.transaction.queued().get(queue.next) {
            queue.next += 1;
            // Whatever a command does with what it was given, before it counts anything.
            work.step();
            request.args().iter().for_each(|argument| work.bytes(argument.len()));
            let mut context = self.core.context(&self.core.asker(client));
            context.may_block = false;
            // The transaction keeps its time: a renewal of the lease meanwhile makes no key expire.
            let Context { now, overdue, stands_at, .. } = queue.begun;
            (context.now, context.overdue, context.stands_at) = (now, overdue, stands_at);
            let written = self.core.clients.at(client).output.end();
            let command = self.core.process.catalog.command(request.command);
            // If a right was revoked since MULTI, only its command is refused, as in Redis.
            if let Some(denied) = self.core.denied(client, command, request.args()) {
                self.core.refuse(client, written, &denied.refusal_in_exec());
                continue;
            }
            if self.holds_replica_up(queue.began) {
                self.core.refuse(client, written, &Refusal::of(TOO_LONG_ON_REPLICA));
                continue;
            }
            // All other refusals were decided before EXEC: from here on it is all or nothing, also
            // if memory runs short meanwhile.
            self.call(client, request.command, request.args(), context);
            if self.is_suspending() {
                return self.leave_queue(queue);
            }
        }
        self.core.clients.at_mut(client).is_in_exec = false;
    }
}
