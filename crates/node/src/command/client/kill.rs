//! CLIENT KILL, in its old form (one address) and its new one (filters).

use crate::core::describe::{Kind, kind_of};
use crate::server::Server;
use crate::session::Session;
use base::ConnectionId;
use catalog::acl::{Acl, UserId};
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;
use engine::work::Work;

/// Which clients to kill: those that fit every filter given.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    kind: Option<Kind>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    user: Option<UserId>,
    spares_caller: bool,
}

impl<'a> Filter<'a> {
    fn parse(args: Args<'a>, acl: &Acl, work: &Work) -> Result<Self, Refusal> {
        let mut filter = Self { spares_caller: true, ..Self::default() };
        let mut at = 2;
        while at < args.len() {
            work.step();
            let value = args.get(at + 1).ok_or(Refusal::SYNTAX)?;
            if args.is(at, "ID") {
                let id = canonical_integer(value).and_then(|id| u64::try_from(id).ok());
                const NO_ID: Refusal = Refusal::of("ERR client-id should be greater than 0");
                filter.id = Some(id.filter(|id| *id > 0).ok_or(NO_ID)?);
            } else if args.is(at, "TYPE") {
                filter.kind = Some(Kind::parse(value)?);
            } else if args.is(at, "ADDR") {
                filter.peer = Some(value);
            } else if args.is(at, "LADDR") {
                filter.local = Some(value);
            } else if args.is(at, "USER") {
                let user = acl.find(value).ok_or_else(|| {
                    let user = String::from_utf8_lossy(value).replace(['\r', '\n'], " ");
                    Refusal::new(format!("ERR No such user '{user}'"))
                })?;
                filter.user = Some(user);
            } else if args.is(at, "SKIPME") {
                filter.spares_caller = args.is(at + 1, "YES");
                if !filter.spares_caller && !args.is(at + 1, "NO") {
                    return Err(Refusal::SYNTAX);
                }
            } else {
                return Err(Refusal::SYNTAX);
            }
            at += 2;
        }
        Ok(filter)
    }

    fn fits(&self, session: &Session) -> bool {
        self.id.is_none_or(|id| session.who.id == id)
            && self.kind.is_none_or(|kind| kind_of(session) == kind)
            && self.peer.is_none_or(|peer| session.who.peer.as_bytes() == peer)
            && self.user.is_none_or(|user| session.who.user == user)
            && self.local.is_none_or(|local| session.who.local.as_bytes() == local)
    }
}

pub(super) fn kill(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let is_old_form = args.len() == 3;
    let filter = if is_old_form {
        Filter { peer: Some(args.at(2)), ..Filter::default() }
    } else {
        Filter::parse(args, &server.core.process.acl, &server.core.work())?
    };
    let killed: Vec<ConnectionId> = server
        .core
        .sessions()
        .filter(|session| filter.fits(session))
        .map(|session| session.connection)
        .filter(|connection| *connection != client || !filter.spares_caller)
        .collect();
    if is_old_form && killed.is_empty() {
        return Err(Refusal::of("ERR No such client"));
    }
    server.core.close_all(client, &killed);
    let reply = server.core.clients.reply(client);
    if is_old_form {
        reply.ok();
    } else {
        reply.integer(killed.len() as i64);
    }
    Ok(())
}
