//! CONFIG (Redis documentation, "Commands", group server). The configuration itself is a value:
//! see [`config`].

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use config::change::{Caller, Proposal};
use config::rewrite::rewrite_file;
use config::secrets::may_hold_secret;
use config::settings::node_settings;
use config::settings::tls::tls_directive;
use config::table::{DIRECTIVES, row};
use engine::command::{Args, Command, Group, Outcome, Secrets};
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("CONFIG GET parameter [parameter ...]", get)
        .admin()
        .group(Group::Server)
        .doc("Returns the effective values of configuration parameters.")
        .since("2.0.0")
        .cost("O(N) when N is the number of configuration parameters provided"),
    node("CONFIG SET parameter value [parameter value ...]", set)
        .admin()
        .group(Group::Server)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .secrets(Secrets::Among(set_secrets))
        .doc("Sets configuration parameters in-flight.")
        .since("2.0.0")
        .cost("O(N) when N is the number of configuration parameters provided"),
    node("CONFIG RESETSTAT", reset_statistics)
        .admin()
        .group(Group::Server)
        .doc("Resets the server's statistics.")
        .since("2.0.0")
        .cost("O(1)"),
    node("CONFIG REWRITE", rewrite)
        .admin()
        .group(Group::Server)
        .doc("Persists the effective configuration to file.")
        .since("2.8.0")
        .cost("O(1)"),
];

fn get(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.link.tell_configuration(&mut server.core);
    let work = server.core.work();
    let found = server.core.process.config.get(args.from(2), &work);
    let reply = server.core.clients.reply(client);
    reply.map(found.len());
    work.reply_each(found, reply, |(name, value), reply| {
        reply.bulk(name);
        reply.bulk(value);
    });
    Ok(())
}

fn set(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let caller = Caller {
        is_local: server.core.clients.at(client).who.is_local,
        is_loading: server.core.persistence.is_loading,
    };
    let arguments: Vec<&[u8]> = args.from(2).collect();
    let proposal = server
        .core
        .process
        .config
        .propose(&arguments, caller, &*server.core.process.options.disk)
        .map_err(|error| Refusal::new(String::from_utf8_lossy(&error.reply()).into_owned()))?;
    check_world(server, &proposal)?;
    server.adopt(proposal.config);
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Whatever stands behind the name of a directive that may hold a secret.
fn set_secrets(args: Args<'_>) -> Vec<usize> {
    (3..args.len()).filter(|at| may_hold_secret(args.at(at - 1))).collect()
}

/// Refuses changes that would need other sockets than those opened at the start, and lets what is
/// encrypted be encrypted as the proposal says, or refuses it. Nothing else may fail afterwards.
fn check_world(server: &Server, proposal: &Proposal) -> Outcome {
    const LISTENING: [usize; 3] = [row("port"), row("tls-port"), row("bind")];
    let failed = |directive: &str, why: &str| {
        let text =
            format!("ERR CONFIG SET failed (possibly related to argument '{directive}') - {why}");
        Refusal::new(text.replace(['\r', '\n'], " "))
    };
    if let Some(&row) = proposal.changed.iter().find(|row| LISTENING.contains(row)) {
        let why = "Unable to listen on this port: listening addresses change with a restart only";
        return Err(failed(DIRECTIVES[row].name, why));
    }
    // A certificate that was renewed has the name that it had: naming it reads it again.
    if let Some(directive) = tls_directive(&proposal.named) {
        let settings = node_settings(&proposal.config).tls;
        let spoken = server.core.process.options.machine.speak_tls(&settings);
        spoken.map_err(|why| {
            failed(directive, &format!("Unable to update TLS configuration: {why}"))
        })?;
    }
    Ok(())
}

fn reset_statistics(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.process.statistics.reset();
    server.core.shard.engine.keyspace.statistics.reset();
    server.core.clients.reply(client).ok();
    Ok(())
}

fn rewrite(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.link.tell_configuration(&mut server.core);
    let Some(path) = &server.core.process.config.file else {
        return Err(Refusal::of("ERR The server is running without a config file"));
    };
    // With an ACL file, the configuration file declares no users.
    let users = if server.core.process.settings.aclfile.is_none() {
        server.core.process.acl.lines(server.core.process.catalog)
    } else {
        Vec::new()
    };
    rewrite_file(&*server.core.process.options.disk, path, &server.core.process.config, &users)
        .map_err(|error| {
            tracing::warn!(%error, "CONFIG REWRITE failed");
            Refusal::new(format!("ERR Rewriting config file: {error}"))
        })?;
    server.core.clients.reply(client).ok();
    Ok(())
}
