//! The stream of commands that replicas of Redis are told: what units told in this turn, in order.

use base::DatabaseId;
use engine::unit::Unit;
use resp::Reply;

/// What was told since the process started, and what of it was not handed on yet.
#[derive(Default)]
pub(crate) struct Stream {
    /// Bytes told since the process started: `master_repl_offset`.
    pub offset: u64,
    /// The database that was selected last.
    selected: Option<DatabaseId>,
    /// Told in this turn and not handed on yet.
    turn: Reply,
}

impl Stream {
    /// Takes over what the unit that just ended told. Its commands are one transaction.
    pub fn gather(&mut self, unit: &Unit) {
        let told = &unit.feed;
        if !told.is_on() || told.is_empty() {
            return;
        }
        let before = self.turn.len();
        let is_transaction = told.is_transaction();
        for (index, (database, command)) in told.commands().enumerate() {
            self.select(database);
            if is_transaction && index == 0 {
                self.write(&["MULTI"]);
            }
            self.turn.raw(command);
        }
        if is_transaction {
            self.write(&["EXEC"]);
        }
        self.offset += (self.turn.len() - before) as u64;
    }

    /// Tells what is no change: PING, REPLCONF GETACK.
    pub fn tell(&mut self, words: &[&str]) {
        let before = self.turn.len();
        self.write(words);
        self.offset += (self.turn.len() - before) as u64;
    }

    /// Whoever listens from here on knows of no database yet.
    pub fn select_anew(&mut self) {
        self.selected = None;
    }

    /// What was told and not handed on; it is now.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        (!self.turn.is_empty()).then(|| self.turn.take())
    }

    fn select(&mut self, database: DatabaseId) {
        if self.selected != Some(database) {
            self.selected = Some(database);
            self.turn.array(2);
            self.turn.bulk("SELECT");
            self.turn.bulk_integer(i64::from(database.0));
        }
    }

    fn write(&mut self, words: &[&str]) {
        self.turn.array(words.len());
        for word in words {
            self.turn.bulk(word);
        }
    }
}
