//! ACL (Redis documentation, ACL): users and their rights. The rules themselves: [`catalog::acl`].

use super::connection::NAME_WITH_BLANKS;
use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use catalog::Registered;
use catalog::acl::rule::is_one_word;
use catalog::acl::user::Denied;
use catalog::category::Categories;
use engine::command::{Args, Command, Group, Outcome, Secrets};
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;

pub const COMMANDS: &[Command<NodeFn>] = &[
    acl("ACL CAT [category]", categories)
        .doc("Lists the ACL categories, or the commands inside a category.")
        .cost("O(1) since the categories and commands are a fixed set."),
    acl("ACL DELUSER username [username ...]", delete)
        .admin()
        .doc("Deletes ACL users, and terminates their connections.")
        .cost("O(1) amortized time considering the typical user."),
    acl("ACL DRYRUN username command [arg [arg ...]]", dry_run)
        .admin()
        .doc("Simulates the execution of a command by a user, without executing the command.")
        .secrets(Secrets::InRequest(3))
        .since("7.0.0")
        .cost("O(1)."),
    acl("ACL GENPASS [bits]", generate_password)
        .doc("Generates a pseudorandom, secure password that can be used to identify ACL users.")
        .cost("O(1)"),
    acl("ACL GETUSER username", show).admin().doc("Lists the ACL rules of a user.").cost(
        "O(N). Where N is the number of password, command and pattern rules that the user has.",
    ),
    acl("ACL LIST", list)
        .admin()
        .doc("Dumps the effective rules in ACL file format.")
        .cost("O(N). Where N is the number of configured users."),
    acl("ACL LOAD", load)
        .admin()
        .doc("Reloads the rules from the configured ACL file.")
        .cost("O(N). Where N is the number of configured users."),
    acl("ACL LOG [count | RESET]", log)
        .admin()
        .doc("Lists recent security events generated due to ACL rules.")
        .cost("O(N) with N being the number of entries shown."),
    acl("ACL SAVE", save)
        .admin()
        .doc("Saves the effective ACL rules in the configured ACL file.")
        .cost("O(N). Where N is the number of configured users."),
    acl("ACL SETUSER username [rule [rule ...]]", set)
        .admin()
        .secrets(Secrets::Among(|args| (2..args.len()).collect()))
        .doc("Creates and modifies an ACL user and its rules.")
        .cost("O(N). Where N is the number of rules provided."),
    acl("ACL USERS", users)
        .admin()
        .doc("Lists all ACL users.")
        .cost("O(N). Where N is the number of configured users."),
    acl("ACL WHOAMI", who_am_i)
        .doc("Returns the authenticated username of the current connection.")
        .cost("O(1)"),
];

/// Declares a subcommand of ACL.
const fn acl(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function).group(Group::Server).since("6.0.0")
}

/// Bits of a generated password, and how many may be asked for (Redis 7.0).
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4096;

/// Entries that LOG shows unless it is told how many (Redis 7.0).
const LOG_COUNT: i64 = 10;

const NO_FILE: Refusal = Refusal::of(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users \
     via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis \
     configuration file set) in order to store users in the Redis configuration.",
);

/// Refuses a subcommand with more arguments than it takes.
fn takes_at_most(count: usize, args: Args<'_>) -> Outcome {
    if args.len() <= count {
        return Ok(());
    }
    Err(Refusal::subcommand("ACL", args.at(1)))
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn categories(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    takes_at_most(3, args)?;
    let Some(name) = args.get(2) else {
        server.core.clients.reply(client).array(Categories::each().count());
        for (_, name) in Categories::each() {
            server.core.clients.reply(client).bulk(name);
        }
        return Ok(());
    };
    let category = Categories::named(name).ok_or_else(|| {
        let name = &name[..name.len().min(128)];
        Refusal::new(format!("ERR Unknown category '{}'", shown(name)))
    })?;
    let is_in = |command: &&Registered| command.categories.intersects(category);
    server
        .core
        .clients
        .reply(client)
        .array(server.core.process.catalog.iter().filter(is_in).count());
    for command in server.core.process.catalog.iter().filter(is_in) {
        server.core.clients.reply(client).bulk(command.name());
    }
    Ok(())
}

fn set(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let name = args.at(2);
    if !is_one_word(name) {
        return Err(NAME_WITH_BLANKS);
    }
    let rules: Vec<&[u8]> = args.from(3).collect();
    let user = server
        .core
        .process
        .acl
        .changed(name, &rules, server.core.process.catalog, &server.core.work())
        .map_err(|error| Refusal::new(format!("ERR {error}")))?;
    server.core.set_user(client, user);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn delete(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.from(2).any(|name| name == b"default") {
        return Err(Refusal::of("ERR The 'default' user cannot be removed"));
    }
    let work = server.core.work();
    let names = args.from(2).inspect(|_| work.step());
    let deleted = names.filter(|name| server.core.delete_user(client, name)).count();
    server.core.clients.reply(client).integer(deleted as i64);
    Ok(())
}

fn show(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    match server.core.process.acl.find(args.at(2)) {
        Some(id) => server
            .core
            .process
            .acl
            .user(id)
            .show(server.core.process.catalog, server.core.clients.reply(client)),
        None => server.core.clients.reply(client).null(),
    }
    Ok(())
}

fn list(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let lines = server.core.process.acl.lines(server.core.process.catalog);
    server.core.clients.reply(client).array(lines.len());
    for line in lines {
        server.core.clients.reply(client).bulk(line);
    }
    Ok(())
}

fn users(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.reply(client).array(server.core.process.acl.users().len());
    for user in server.core.process.acl.users() {
        server.core.clients.reply(client).bulk(&user.name);
    }
    Ok(())
}

fn who_am_i(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let user = server.core.process.acl.user(server.core.clients.at(client).who.user);
    server.core.clients.reply(client).bulk(&user.name);
    Ok(())
}

fn load(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.process.settings.aclfile.is_none() {
        return Err(NO_FILE);
    }
    server.core.load_users(client).map_err(|errors| Refusal::new(format!("ERR {errors}")))?;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn save(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.process.settings.aclfile.is_none() {
        return Err(NO_FILE);
    }
    server.core.save_users().map_err(|error| {
        tracing::warn!(%error, "ACL SAVE failed");
        Refusal::of(
            "ERR There was an error trying to save the ACLs. Please check the server logs for \
             more information",
        )
    })?;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn generate_password(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    takes_at_most(3, args)?;
    let bits = match args.get(2) {
        Some(bits) => canonical_integer(bits).ok_or(Refusal::NOT_AN_INTEGER)?,
        None => PASSWORD_BITS,
    };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(Refusal::new(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to {PASSWORD_BITS_MAX}"
        )));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    server.core.process.options.machine.fill_random(&mut bytes);
    let mut password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    server.core.clients.reply(client).bulk(password);
    Ok(())
}

fn log(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    takes_at_most(3, args)?;
    if args.is(2, "RESET") {
        server.core.process.acl.log.reset();
        server.core.clients.reply(client).ok();
        return Ok(());
    }
    let count = match args.get(2) {
        Some(count) => canonical_integer(count).ok_or(Refusal::NOT_AN_INTEGER)?,
        None => LOG_COUNT,
    };
    let entries = server.core.process.acl.log.entries();
    let count = usize::try_from(count).unwrap_or(0).min(entries.len());
    let reply = server.core.clients.reply(client);
    reply.array(count);
    for entry in entries.take(count) {
        reply.map(7);
        reply.bulk("count");
        reply.integer(entry.count as i64);
        reply.bulk("reason");
        reply.bulk(entry.reason.word());
        reply.bulk("context");
        reply.bulk(entry.context.word());
        reply.bulk("object");
        reply.bulk(&entry.object);
        reply.bulk("username");
        reply.bulk(&entry.user);
        reply.bulk("age-seconds");
        reply.double((server.core.turn.monotonic.since(entry.at) / 1_000_000) as f64 / 1000.0);
        reply.bulk("client-info");
        reply.bulk(&entry.client);
    }
    Ok(())
}

fn dry_run(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let not_found =
        |what: &str, name: &[u8]| Refusal::new(format!("ERR {what} '{}' not found", shown(name)));
    let id =
        server.core.process.acl.find(args.at(2)).ok_or_else(|| not_found("User", args.at(2)))?;
    let request = args.tail(3);
    let command = server
        .core
        .process
        .catalog
        .find(request.at(0), request.get(1))
        // A container is found instead of a subcommand that it does not have.
        .filter(|command| command.subcommands.is_empty() || request.len() == 1)
        .ok_or_else(|| not_found("Command", request.at(0)))?;
    if !command.admits(request.len()) {
        return Err(Refusal::arity(command.name()));
    }
    let named = |at: usize| shown(request.at(at));
    match server.core.process.acl.user(id).check(command, request, &server.core.work()) {
        Ok(()) => server.core.clients.reply(client).ok(),
        Err(denied) => server.core.clients.reply(client).bulk(match denied {
            Denied::Command => {
                format!("This user has no permissions to run the '{}' command", command.name())
            }
            Denied::Key(at) => {
                format!("This user has no permissions to access the '{}' key", named(at))
            }
            Denied::Channel(at) => {
                format!("This user has no permissions to access the '{}' channel", named(at))
            }
        }),
    }
    Ok(())
}
