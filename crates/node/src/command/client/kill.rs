//! CLIENT KILL, in its old form (one address) and its new one (filters).

use super::filter::Filter;
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;

pub(super) fn kill(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let is_old_form = args.len() == 3;
    let core = &server.core;
    let filter = match is_old_form {
        true => Filter::of_peer(args.at(2)),
        false => Filter::parse(core, args, true)?,
    };
    let killed: Vec<ConnectionId> = core
        .sessions()
        .filter(|session| filter.fits(core, session))
        .map(|session| session.connection)
        .filter(|connection| *connection != client || !filter.spares_caller)
        // Who was killed earlier in the turn is gone.
        .filter(|connection| !core.clients.closing.contains(connection))
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
