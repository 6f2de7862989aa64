//! What happens on the connections to targets.

use super::{CONNECTING, Migration, Migrations, READING, Stage};
use crate::core::Core;
use crate::limits::RECEIVED_BYTES;
use base::{Driver, Event};
use peers::outgoing::{End, Happened};
use peers::restore::NotAnAnswer;

impl Migrations {
    /// Takes an event, if it is about a connection to a target; whether it is.
    pub(crate) fn hear(&mut self, core: &mut Core, driver: &mut dyn Driver, event: &Event) -> bool {
        let Some(connection) = event.connection() else { return false };
        if self.idle.forget(connection) {
            driver.close(connection);
            return true;
        }
        let Some((id, mut migration)) = self.of(connection) else { return false };
        if migration.is_over() {
            // It can only be the end of the connection.
            migration.hang_up(driver);
        } else if let Some(happened) = migration.line.take(driver, event, RECEIVED_BYTES) {
            self.go_on(core, driver, &mut migration, happened);
        }
        self.is_due = true;
        self.running.insert(id, migration);
        true
    }

    fn go_on(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        migration: &mut Migration,
        happened: Happened,
    ) {
        match happened {
            Happened::Connected => {
                migration.stage = Stage::Talking;
                migration.exchange.open(&migration.order);
                migration.line.wait_from(core.turn.monotonic);
            }
            Happened::Received(count) => {
                if count > 0 {
                    migration.line.wait_from(core.turn.monotonic);
                }
                migration.take_answers(driver);
            }
            Happened::Sent => {}
            Happened::Ended(End::Unreachable(_)) => migration.end(Some(CONNECTING)),
            // A target may close behind its last answer.
            Happened::Ended(End::Closed)
                if migration.exchange.dialogue.is_answered() && migration.sent > 0 => {}
            Happened::Ended(End::Closed | End::Broken) => {
                self.lose_target(core, driver, migration);
            }
        }
    }
}

impl Migration {
    /// Takes the answers that have arrived.
    fn take_answers(&mut self, driver: &mut dyn Driver) {
        match self.exchange.dialogue.hear(&mut self.line.input) {
            Ok(taken) => {
                for index in taken {
                    self.keys[index].is_taken = true;
                }
            }
            Err(NotAnAnswer) => {
                self.hang_up(driver);
                self.end(Some(READING));
            }
        }
    }
}
