//! Whether one client has the server to itself: then its log is synced by the loop.

use base::ConnectionId;

/// Turns in a row with one and the same client before the loop syncs the log itself.
const LONE_TURNS_MIN: u32 = 32;

/// Whether only one client has been active lately.
#[derive(Default)]
pub(crate) struct LoneClient {
    last: Option<ConnectionId>,
    turns: u32,
}

impl LoneClient {
    pub fn saw(&mut self, connection: ConnectionId) {
        if self.last == Some(connection) {
            self.turns = self.turns.saturating_add(1);
        } else {
            *self = Self { last: Some(connection), turns: 0 };
        }
    }

    pub fn is_alone(&self) -> bool {
        self.turns >= LONE_TURNS_MIN
    }
}
