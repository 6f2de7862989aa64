//! What the driver tells of the connections to targets; each says whether the connection is a
//! migration's.

use super::Migrations;
use super::exchange::Exchange;
use super::{CONNECTING, Migration, READING, Stage};
use crate::core::Core;
use base::driver::Received;
use base::{ConnectionId, Driver};
use peers::restore::NotAnAnswer;

/// Bytes of answers received at a time: some thousands of them.
const RECEIVE_BYTES: usize = 16 << 10;

impl Migrations {
    pub(crate) fn connected(&mut self, core: &mut Core, connection: ConnectionId) -> bool {
        self.with_migration(connection, |_, migration| {
            migration.stage = Stage::Talking;
            migration.exchange.open(&migration.order);
            migration.moved = core.turn.monotonic;
        })
    }

    pub(crate) fn unreachable(&mut self, connection: ConnectionId) -> bool {
        self.with_migration(connection, |_, migration| {
            migration.connection = None;
            migration.end(Some(CONNECTING));
        })
    }

    pub(crate) fn writable(&mut self, connection: ConnectionId) -> bool {
        self.with_migration(connection, |_, migration| migration.is_clogged = false)
    }

    pub(crate) fn broken(&mut self, core: &mut Core, connection: ConnectionId) -> bool {
        if self.idle.forget(connection) {
            self.dropped.push(connection);
            return true;
        }
        self.with_migration(connection, |migrations, migration| {
            migrations.lose_target(core, migration);
        })
    }

    pub(crate) fn readable(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if self.idle.forget(connection) {
            self.dropped.push(connection);
            return true;
        }
        self.with_migration(connection, |migrations, migration| {
            let Exchange { dialogue, input, .. } = &mut migration.exchange;
            let received = driver.receive(connection, input, RECEIVE_BYTES);
            if let Received::Bytes { .. } = received {
                migration.moved = core.turn.monotonic;
            }
            match dialogue.hear(input) {
                Ok(taken) => {
                    for index in taken {
                        migration.keys[index].is_taken = true;
                    }
                }
                Err(NotAnAnswer) => {
                    migrations.dropped.extend(migration.connection.take());
                    migration.end(Some(READING));
                    return;
                }
            }
            // A target may close behind its last answer.
            let is_done = migration.exchange.dialogue.is_answered() && migration.sent > 0;
            if received == Received::Closed && !is_done {
                migrations.lose_target(core, migration);
            }
        })
    }

    /// Does something to the migration that has this connection; whether there is one.
    fn with_migration(
        &mut self,
        connection: ConnectionId,
        act: impl FnOnce(&mut Self, &mut Migration),
    ) -> bool {
        let Some((id, mut migration)) = self.of(connection) else { return false };
        if migration.is_over() {
            // It can only be the end of the connection.
            self.dropped.extend(migration.connection.take());
        } else {
            act(self, &mut migration);
        }
        self.is_due = true;
        self.running.insert(id, migration);
        true
    }
}
