//! What a client is while one of its requests is judged and runs.

use super::Core;
use crate::session::{ClientKind, Session};
use base::{ConnectionId, DatabaseId};
use engine::unit::{Context, Overdue};
use resp::Protocol;

/// A client as the rules see it that one of its requests goes through. They are many, and each
/// asks for something else: so it is read off the session once for a request. Nothing of it changes
/// before the request has run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub client: ConnectionId,
    pub kind: ClientKind,
    pub database: DatabaseId,
    pub is_local: bool,
    /// It has yet to say who it is.
    pub is_stranger: bool,
    /// Between MULTI and EXEC.
    pub is_in_transaction: bool,
    /// In RESP2, a subscriber may only subscribe, unsubscribe, ping, reset and quit.
    pub only_listens: bool,
    /// READONLY: it takes what a replica has applied.
    pub reads_replica: bool,
    /// CLIENT READS: it takes the newest there is, and what that is has yet to be learned.
    pub awaits_newest: bool,
    /// What it reads counts as used (CLIENT NO-TOUCH).
    pub touches: bool,
}

impl Asker {
    fn new(session: &Session, is_stranger: bool) -> Self {
        let is_resp2 = session.output.reply.protocol() == Protocol::Resp2;
        let newest = &session.newest;
        Self {
            client: session.connection,
            kind: session.kind,
            database: session.database,
            is_local: session.who.is_local,
            is_stranger,
            is_in_transaction: session.transaction.is_some(),
            only_listens: is_resp2 && session.is_subscriber(),
            reads_replica: session.reads_replica,
            awaits_newest: newest.are_wanted
                && !newest.is_confirmed
                && newest.confirmed_turn < newest.received_turn,
            touches: !session.no_touch,
        }
    }

    /// Whether what it says is the stream of the master.
    pub fn is_master(&self) -> bool {
        self.kind == ClientKind::Master
    }
}

impl Core {
    /// What a client is now.
    pub(crate) fn asker(&self, client: ConnectionId) -> Asker {
        let session = self.clients.at(client);
        let is_stranger =
            !session.who.is_authenticated && self.process.acl.requires_authentication();
        Asker::new(session, is_stranger)
    }

    /// What stands still while a command of the asker executes.
    pub(crate) fn context(&self, asker: &Asker) -> Context {
        let (overdue, stands_at) = match asker.is_master() {
            true => (Overdue::Kept, None),
            false => self.expiry(),
        };
        Context {
            now: self.shard_time(),
            stands_at,
            database: asker.database,
            may_block: !asker.is_in_transaction,
            in_script: false,
            retry: false,
            touch: asker.touches,
            overdue,
            reads_every_key: true,
        }
    }
}
