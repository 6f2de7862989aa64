//! CLIENT (Redis documentation, CLIENT): what connections say about themselves and do to others.

mod filter;
mod kill;
mod tracking;

use super::connection::{NAME_BYTES_MAX, NAME_TOO_LONG, checked_name};
use super::{NodeFn, node, timeout_millis};
use crate::core::describe::describe;
use crate::core::pause::Paused;
use crate::server::Server;
use crate::session::{ReplyMode, Session};
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::{Refusal, quoted};
use engine::value::text::canonical_integer;
use filter::Filter;

pub const COMMANDS: &[Command<NodeFn>] = &[
    client("CLIENT CACHING <YES | NO>", tracking::caching)
        .doc("Instructs the server whether to track the keys in the next request.")
        .since("6.0.0"),
    client("CLIENT GETNAME", name).doc("Returns the name of the connection.").since("2.6.9"),
    client("CLIENT GETREDIR", tracking::get_redirection)
        .doc(
            "Returns the client ID to which the connection's tracking notifications are \
             redirected.",
        )
        .since("6.0.0"),
    client("CLIENT ID", id).doc("Returns the unique client ID of the connection."),
    client("CLIENT INFO", info)
        .tips(&["nondeterministic_output"])
        .doc("Returns information about the connection.")
        .since("6.2.0"),
    client(
        "CLIENT KILL <ip:port | <[[NOT-]ID client-id [client-id ...]] | [[NOT-]TYPE type] | \
         [[NOT-]USER username] | [[NOT-]ADDR ip:port] | [[NOT-]LADDR ip:port] | \
         [SKIPME yes/no] | [MAXAGE maxage] | [IDLE idle] | [[NOT-]NAME name] | \
         [[NOT-]LIB-NAME name] | [[NOT-]LIB-VER version] | [[NOT-]DB db] | [[NOT-]IP ip] | \
         [[NOT-]FLAGS flags] | [[NOT-]CAPA capa] ...>>",
        kill::kill,
    )
    .admin()
    .cost(OF_ALL)
    .doc("Terminates open connections.")
    .since("2.4.0")
    .arity(-3),
    client(
        "CLIENT LIST [[NOT-]TYPE type] [[NOT-]ID client-id [client-id ...]] \
         [[NOT-]USER username] [[NOT-]ADDR ip:port] [[NOT-]LADDR ip:port] [SKIPME yes/no] \
         [MAXAGE maxage] [IDLE idle] [[NOT-]NAME name] [[NOT-]LIB-NAME name] \
         [[NOT-]LIB-VER version] [[NOT-]DB db] [[NOT-]IP ip] [[NOT-]FLAGS flags] \
         [[NOT-]CAPA capa]",
        list,
    )
    .admin()
    .cost(OF_ALL)
    .tips(&["nondeterministic_output"])
    .doc("Lists open connections.")
    .since("2.4.0")
    .arity(-2),
    client("CLIENT NO-EVICT <ON | OFF>", no_evict)
        .admin()
        .cost(OF_ALL)
        .doc("Sets the client eviction mode of the connection.")
        .since("7.0.0"),
    client("CLIENT NO-TOUCH <ON | OFF>", no_touch)
        .doc("Controls whether commands sent by the client affect the LRU/LFU of accessed keys.")
        .since("7.2.0"),
    client("CLIENT PAUSE timeout [WRITE | ALL]", pause)
        .admin()
        .cost(OF_ALL)
        .doc("Suspends commands processing.")
        .since("2.9.50"),
    client("CLIENT READS <EVENTUAL | LINEARIZABLE>", reads)
        .doc("Sets whether reads on a replica show what it has, or the newest there is.")
        .since("7.0.0"),
    client("CLIENT REPLY <ON | OFF | SKIP>", reply_mode)
        .doc("Instructs the server whether to reply to commands.")
        .since("3.2.0"),
    client("CLIENT SETINFO attribute value", set_info)
        .doc("Sets information specific to the client or connection.")
        .since("7.2.0"),
    client("CLIENT SETNAME connection-name", set_name)
        .doc("Sets the connection name.")
        .since("2.6.9"),
    client(
        "CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] \
         [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        tracking::tracking,
    )
    .doc("Controls server-assisted client-side caching for the connection.")
    .since("6.0.0")
    .cost("O(1). Some options may introduce additional complexity."),
    client("CLIENT TRACKINGINFO", tracking::tracking_info)
        .doc("Returns information about server-assisted client-side caching for the connection.")
        .since("6.2.0"),
    client("CLIENT UNBLOCK client-id [TIMEOUT | ERROR]", unblock)
        .admin()
        .cost(OF_ALL)
        .doc("Unblocks a client blocked by a blocking command from a different connection."),
    client("CLIENT UNPAUSE", unpause)
        .admin()
        .cost(OF_ALL)
        .doc("Resumes processing commands from paused clients.")
        .since("6.2.0"),
];

/// Declares a subcommand of CLIENT.
const fn client(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .with(Flags::KEEPS_CACHING)
        .group(Group::Connection)
        .since("5.0.0")
        .cost("O(1)")
}

const OF_ALL: &str = "O(N) where N is the number of connections";

/// Kiln's own. Counts on a replica of the transaction log, behind READONLY.
fn reads(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let are_wanted = args.is(2, "LINEARIZABLE");
    if !are_wanted && !args.is(2, "EVENTUAL") {
        return Err(Refusal::SYNTAX);
    }
    server.core.clients.at_mut(client).newest.are_wanted = are_wanted;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn name(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.clients.at(client).who.name.is_empty() {
        server.core.clients.reply(client).null();
    } else {
        let name = server.core.clients.at(client).who.name.clone();
        server.core.clients.reply(client).bulk(name);
    }
    Ok(())
}

fn set_name(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.at_mut(client).who.name = checked_name(args.at(2))?;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn set_info(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let place = if args.is(2, "LIB-NAME") {
        &mut server.core.clients.at_mut(client).who.library.0
    } else if args.is(2, "LIB-VER") {
        &mut server.core.clients.at_mut(client).who.library.1
    } else {
        let option = quoted(args.at(2));
        return Err(Refusal::new(format!("ERR Unrecognized option '{option}'")));
    };
    let value = args.at(3);
    if value.len() > NAME_BYTES_MAX {
        return Err(NAME_TOO_LONG);
    }
    if !value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        let option = String::from_utf8_lossy(args.at(2)).to_ascii_lowercase();
        return Err(Refusal::new(format!(
            "ERR {option} cannot contain spaces, newlines or special characters."
        )));
    }
    *place = String::from_utf8_lossy(value).into_owned();
    server.core.clients.reply(client).ok();
    Ok(())
}

fn id(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let id = server.core.clients.at(client).who.id as i64;
    server.core.clients.reply(client).integer(id);
    Ok(())
}

fn info(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let line = describe(&server.core, server.core.clients.at(client));
    server.core.clients.reply(client).verbatim(b"txt", line);
    Ok(())
}

fn list(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let ids = || args.from(3).map(canonical_integer);
    let lines = if args.len() > 3 && args.is(2, "ID") && ids().all(|id| id.is_some()) {
        // With ID as the only filter, clients are listed in the order of the IDs, and unknown IDs
        // are no error.
        let named = ids().flatten().filter_map(|id| server.by_client_id(id));
        lines(server, client, named)
    } else {
        let filter = Filter::parse(&server.core, args, false).map_err(|why| {
            // What stands behind ID, and is no filter, was taken for an ID.
            let is_id = args.is(2, "ID")
                && args
                    .get(3)
                    .is_some_and(|id| why == Refusal::SYNTAX || canonical_integer(id).is_none());
            if is_id { Refusal::of("ERR Invalid client ID") } else { why }
        })?;
        // One that was cut off is sent nothing any more, and ends with the turn.
        let others = server.core.sessions().filter(|other| !other.flow.is_cut);
        let others = others.filter(|other| filter.fits(&server.core, other));
        let spared = filter.spares_caller.then_some(client);
        lines(server, client, others.filter(|other| Some(other.connection) != spared))
    };
    server.core.clients.reply(client).verbatim(b"txt", lines);
    Ok(())
}

/// A line for each of `shown`, as far as the reply takes them: an ID may be named any number of
/// times.
fn lines<'s>(
    server: &Server,
    client: ConnectionId,
    shown: impl Iterator<Item = &'s Session>,
) -> String {
    let (work, mut lines) = (server.core.work(), String::new());
    for other in shown {
        work.step();
        if !server.core.clients.at(client).output.reply.admits(lines.len()) {
            break;
        }
        lines.push_str(&describe(&server.core, other));
    }
    lines
}

fn reply_mode(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.is(2, "ON") {
        server.core.clients.at_mut(client).reply_mode = ReplyMode::On;
        server.core.clients.reply(client).ok();
    } else if args.is(2, "OFF") {
        server.core.clients.at_mut(client).reply_mode = ReplyMode::Off;
    } else if args.is(2, "SKIP") {
        if server.core.clients.at(client).reply_mode != ReplyMode::Off {
            server.core.clients.at_mut(client).reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(Refusal::SYNTAX);
    }
    Ok(())
}

/// Reads ON or OFF.
fn switch(args: Args<'_>) -> Result<bool, Refusal> {
    let is_on = args.is(2, "ON");
    if is_on || args.is(2, "OFF") { Ok(is_on) } else { Err(Refusal::SYNTAX) }
}

fn no_evict(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.at_mut(client).no_evict = switch(args)?;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn no_touch(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.at_mut(client).no_touch = switch(args)?;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn pause(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let paused = match args.len() {
        3 => Paused::All,
        4 if args.is(3, "ALL") => Paused::All,
        4 if args.is(3, "WRITE") => Paused::Writes,
        4 => return Err(Refusal::of("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Refusal::SYNTAX),
    };
    let millis = timeout_millis(server, args.at(2))?;
    server.core.pause.begin(paused, server.core.turn.monotonic.after_millis(millis));
    server.core.clients.reply(client).ok();
    Ok(())
}

fn unpause(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.pause.end();
    server.core.clients.reply(client).ok();
    Ok(())
}

fn unblock(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let is_error = match args.len() {
        3 => false,
        4 if args.is(3, "TIMEOUT") => false,
        4 if args.is(3, "ERROR") => true,
        5.. => return Err(Refusal::subcommand("CLIENT", args.at(1))),
        _ => {
            return Err(Refusal::of("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    let id = canonical_integer(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let target = u64::try_from(id).ok().and_then(|id| server.core.clients.by_id.get(&id)).copied();
    const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    let error = is_error.then_some(UNBLOCKED);
    let was_blocked = target.is_some_and(|connection| server.end_wait(connection, error));
    if was_blocked && is_error {
        server.core.process.statistics.error("UNBLOCKED");
    }
    server.core.clients.reply(client).integer(i64::from(was_blocked));
    Ok(())
}

impl Server {
    /// The session of a CLIENT ID.
    fn by_client_id(&self, id: i64) -> Option<&Session> {
        let connection = self.core.clients.by_id.get(&u64::try_from(id).ok()?)?;
        self.core.clients.sessions.get(*connection)
    }
}
