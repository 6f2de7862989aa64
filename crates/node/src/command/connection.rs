//! Connection commands: PING, ECHO, SELECT, QUIT, AUTH, HELLO, RESET.

use super::{NodeFn, node};
use crate::server::Server;
use crate::session::ReplyMode;
use base::{ConnectionId, DatabaseId};
use engine::command::{Args, Command, Flags, Group, Outcome, Secrets, database_argument};
use engine::refusal::{Refusal, quoted};
use resp::Protocol;

/// The names of users stand in files whose words are split at blanks.
pub const NAME_WITH_BLANKS: Refusal =
    Refusal::of("ERR Usernames can't contain spaces or null characters");

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("PING [message]", ping)
        .allowed_in_scripts()
        .needs_data()
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Returns the server's liveliness response.")
        // It says of the process that it is well, and nothing of the data.
        .with(Flags::FOR_SUBSCRIBERS.union(Flags::BEARS_PART))
        .group(Group::Connection)
        .cost("O(1)")
        .fast(),
    node("ECHO message", echo)
        .allowed_in_scripts()
        .doc("Returns the given string.")
        .group(Group::Connection)
        .cost("O(1)")
        .fast(),
    node("SELECT index", select)
        .allowed_in_scripts()
        .doc("Changes the selected database.")
        .with(Flags::SELECTS_DATABASE)
        .group(Group::Connection)
        .cost("O(1)")
        .fast(),
    node("QUIT", quit)
        .doc("Closes the connection.")
        .group(Group::Connection)
        .cost("O(1)")
        .arity(-1)
        .with(Flags::FOR_SUBSCRIBERS.union(Flags::RUNS_INSIDE_MULTI))
        .with(Flags::NO_AUTH.union(Flags::ALLOW_BUSY))
        .fast(),
    node("AUTH [username] password", auth)
        .secrets(Secrets::Among(|args| (1..args.len()).collect()))
        .doc("Authenticates the connection.")
        .group(Group::Connection)
        .cost("O(N) where N is the number of passwords defined for the user")
        .with(Flags::NO_AUTH.union(Flags::ALLOW_BUSY))
        .fast(),
    node("HELLO [protover [AUTH username password] [SETNAME clientname]]", hello)
        .secrets(Secrets::Among(hello_secrets))
        .doc("Handshakes with the Redis server.")
        .group(Group::Connection)
        .since("6.0.0")
        .cost("O(1)")
        .with(Flags::NO_AUTH.union(Flags::ALLOW_BUSY))
        .fast(),
    node("RESET", reset)
        .doc("Resets the connection.")
        .group(Group::Connection)
        .since("6.2.0")
        .cost("O(1)")
        .with(Flags::FOR_SUBSCRIBERS.union(Flags::RUNS_INSIDE_MULTI))
        .with(Flags::NO_AUTH.union(Flags::ALLOW_BUSY))
        .fast(),
];

fn ping(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.len() > 2 {
        return Err(Refusal::arity("ping"));
    }
    if server.core.clients.at(client).is_subscriber()
        && server.core.clients.at(client).output.reply.protocol() == Protocol::Resp2
    {
        server.core.clients.reply(client).array(2);
        server.core.clients.reply(client).bulk(b"pong");
        server.core.clients.reply(client).bulk(args.get(1).unwrap_or(b""));
        return Ok(());
    }
    match args.get(1) {
        Some(message) => server.core.clients.reply(client).bulk(message),
        None => server.core.clients.reply(client).simple("PONG"),
    }
    Ok(())
}

fn echo(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.reply(client).bulk(args.at(1));
    Ok(())
}

fn select(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let databases = server.core.shard.engine.keyspace.settings.databases;
    let database = database_argument(args.at(1), databases)?;
    server.core.clients.at_mut(client).database = database;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn quit(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.at_mut(client).flow.is_closing = true;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn auth(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.len() > 3 {
        return Err(Refusal::SYNTAX);
    }
    let (user, password) = match args.get(2) {
        Some(password) => (args.at(1), password),
        None => {
            if server.core.process.acl.default_user().has_no_password() {
                return Err(Refusal::of(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            (&b"default"[..], args.at(1))
        }
    };
    server.core.authenticate(client, args.at(0), user, password)?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Behind each AUTH of a HELLO, as often as it is given, and all that is no option.
fn hello_secrets(args: Args<'_>) -> Vec<usize> {
    let mut secrets = Vec::new();
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "AUTH") {
            secrets.extend((at + 1..args.len()).take(2));
            at += 3;
        } else if args.is(at, "SETNAME") {
            at += 2;
        } else {
            secrets.extend(at..args.len());
            break;
        }
    }
    secrets
}

fn hello(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let mut protocol = server.core.clients.at(client).output.reply.protocol();
    if let Some(version) = args.get(1) {
        protocol = match engine::value::text::canonical_integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(Refusal::of("NOPROTO unsupported protocol version")),
            None => {
                return Err(Refusal::of("ERR Protocol version is not an integer or out of range"));
            }
        };
    }
    let (work, mut at) = (server.core.work(), 2);
    while at < args.len() {
        work.step();
        if args.is(at, "AUTH") && at + 2 < args.len() {
            server.core.authenticate(client, args.at(0), args.at(at + 1), args.at(at + 2))?;
            at += 3;
        } else if args.is(at, "SETNAME") && at + 1 < args.len() {
            // It is set at once, as in Redis, whatever becomes of the options behind it.
            server.core.clients.at_mut(client).who.name = checked_name(args.at(at + 1))?;
            at += 2;
        } else {
            let option = quoted(args.at(at));
            return Err(Refusal::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if !server.core.clients.at(client).who.is_authenticated {
        return Err(Refusal::of(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    server.core.clients.reply(client).set_protocol(protocol);
    let id = server.core.clients.at(client).who.id as i64;
    let reply = server.core.clients.reply(client);
    reply.map(7);
    for (key, value) in [("server", "redis"), ("version", crate::REDIS_VERSION)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id);
    let role = if server.core.is_replica() { "replica" } else { "master" };
    let mode = server.mode();
    let reply = server.core.clients.reply(client);
    for (key, value) in [("mode", mode), ("role", role)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// Longest name of a client or its library, in bytes: SLOWLOG and ACL LOG copy it into each entry.
/// Redis has no limit. A guess: longer than any real one.
pub const NAME_BYTES_MAX: usize = 4096;

pub const NAME_TOO_LONG: Refusal =
    Refusal::of("ERR Client names cannot be longer than 4096 bytes.");

/// A client name: printable characters without spaces, as CLIENT LIST must stay parseable.
///
/// # Errors
/// Redis's text for a name with other characters.
pub fn checked_name(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    if name.len() > NAME_BYTES_MAX {
        return Err(NAME_TOO_LONG);
    }
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        Ok(name.to_vec())
    } else {
        Err(Refusal::of("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}

fn reset(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.discard_transaction(client);
    server.core.forget_subscriptions(client);
    server.core.untrack(client);
    server.core.clients.monitors.remove(&client);
    server.core.clients.at_mut(client).database = DatabaseId(0);
    server.core.clients.at_mut(client).who.name.clear();
    server.core.clients.at_mut(client).reply_mode = ReplyMode::On;
    server.core.clients.at_mut(client).no_evict = false;
    server.core.clients.at_mut(client).no_touch = false;
    server.core.clients.at_mut(client).reads_replica = false;
    server.core.clients.at_mut(client).newest.are_wanted = false;
    server.core.make_default_user(client);
    server.core.clients.reply(client).set_protocol(Protocol::Resp2);
    server.core.clients.reply(client).simple("RESET");
    Ok(())
}
