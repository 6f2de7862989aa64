//! CONFIG (Redis documentation, "Commands", group server). The configuration itself is a value:
//! see [`config`].

mod tier;

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use base::machine::Listening;
use config::Config;
use config::change::{Caller, Proposal};
use config::rewrite::{Extent, rewrite_file};
use config::secrets::may_hold_secret;
use config::settings::tls::tls_directive;
use config::settings::{NodeSettings, node_settings};
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
    let tier = tier::prepare(server, &proposal)?;
    change_world(server, &proposal)?;
    server.adopt(proposal.config);
    tier::put_in_force(server, tier);
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Whatever stands behind the name of a directive that may hold a secret.
fn set_secrets(args: Args<'_>) -> Vec<usize> {
    (3..args.len()).filter(|at| may_hold_secret(args.at(at - 1))).collect()
}

/// Puts keys, changed listening addresses and TLS settings in force, all or none of them. After
/// this CONFIG SET cannot fail.
fn change_world(server: &mut Server, proposal: &Proposal) -> Outcome {
    let has_read_keys = read_keys(server, &proposal.named, &proposal.config)?;
    let changed = change_connections(server, proposal);
    if changed.is_err()
        && has_read_keys
        && let Some(keys) = server.core.process.options.machine.keys()
    {
        keys.put_back();
    }
    changed
}

const KEY_FILE: usize = row("encryption-key-file");

/// Reads the keys of encryption at rest anew if their file was named: it may have the same name and
/// other keys. Whether that was so.
fn read_keys(server: &Server, named: &[usize], config: &Config) -> Result<bool, Refusal> {
    if !named.contains(&KEY_FILE) {
        return Ok(false);
    }
    let keys = server.core.process.options.machine.keys();
    let is_encrypted = keys.is_some_and(|keys| keys.current().is_some());
    let read = match (keys, node_settings(config).encryption_key_file) {
        (Some(keys), Some(file)) if is_encrypted => keys.read(&file),
        (_, None) if !is_encrypted => return Ok(false),
        _ => Err("encryption begins and ends with a restart".to_owned()),
    };
    read.map_err(|why| cannot_set(DIRECTIVES[KEY_FILE].name, &why))?;
    Ok(true)
}

fn change_connections(server: &mut Server, proposal: &Proposal) -> Outcome {
    let changed = proposal.changed.iter().find(|row| LISTENING.contains(row));
    if let Some(&changed) = changed {
        server.core.process.options.machine.listen(&listening(&proposal.config)).map_err(
            |why| {
                tracing::warn!(why, "CONFIG SET cannot change where the server listens");
                let is_bind = changed == row("bind");
                let text = if is_bind { "Failed to bind to specified addresses." } else { NO_PORT };
                cannot_set(DIRECTIVES[changed].name, text)
            },
        )?;
    }
    // A renewed certificate may have the same file name, so setting it to the same name reads it
    // again.
    if let Some(directive) = tls_directive(&proposal.named) {
        let machine = &server.core.process.options.machine;
        machine.speak_tls(&node_settings(&proposal.config).tls).map_err(|why| {
            let back = changed.map(|_| machine.listen(&listening(&server.core.process.config)));
            if let Some(Err(why)) = back {
                tracing::warn!(why, "the server cannot listen again where it did");
            }
            cannot_set(directive, &format!("Unable to update TLS configuration: {why}"))
        })?;
    }
    if changed.is_some() {
        let Listening { port, tls_port, .. } = listening(&proposal.config);
        server.core.process.options.port = if port == 0 { tls_port } else { port };
    }
    Ok(())
}

/// The directives about where the server listens.
const LISTENING: [usize; 3] = [row("port"), row("tls-port"), row("bind")];

/// Where a server with this configuration listens.
fn listening(config: &Config) -> Listening {
    let NodeSettings { bind, port, tls_port, .. } = node_settings(config);
    Listening { bind, port, tls_port }
}

/// The refusal of a CONFIG SET for the sake of one directive.
fn cannot_set(directive: &str, why: &str) -> Refusal {
    let text =
        format!("ERR CONFIG SET failed (possibly related to argument '{directive}') - {why}");
    Refusal::new(text.replace(['\r', '\n'], " "))
}

const NO_PORT: &str = "Unable to listen on this port. Check server logs.";

fn reset_statistics(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.process.statistics.reset();
    server.core.process.tier_waits.reset();
    server.core.shard.engine.keyspace.statistics.reset();
    server.core.clients.reply(client).ok();
    Ok(())
}

fn rewrite(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    write_configuration(server, Extent::Needed)?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Writes the present values into the configuration file.
///
/// # Errors
/// There is no such file, or it cannot be written.
pub(super) fn write_configuration(server: &mut Server, extent: Extent) -> Outcome {
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
    let process = &server.core.process;
    rewrite_file(&*process.options.disk, path, &process.config, &users, extent).map_err(|error| {
        tracing::warn!(%error, "CONFIG REWRITE failed");
        Refusal::new(format!("ERR Rewriting config file: {error}"))
    })
}
