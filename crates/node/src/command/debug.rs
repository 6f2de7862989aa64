//! DEBUG: the part of it that test suites use (Redis documentation, DEBUG).

mod populate;
mod protocol;
mod reload;

use super::{NodeFn, node};
use crate::core::verdict::{READ_ONLY, Verdict};
use crate::server::Server;
use base::{ConnectionId, MonotonicNanos};
use config::text::parse_size;
use engine::access::idle_seconds;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::debug_digest::{self, Digest};
use engine::glob;
use engine::refusal::{Refusal, quoted};
use engine::value::EntryRef;
use engine::value::text::canonical_integer;
use engine::value::{Value, encoding};
use shard::Shard;

pub const COMMANDS: &[Command<NodeFn>] = &[node("DEBUG subcommand [argument ...]", debug)
    .admin()
    .group(Group::Server)
    .doc("A container for debugging commands.")
    .cost("Depends on subcommand.")
    .arity(-2)
    .with(Flags::PROTECTED)];

/// Longest DEBUG SLEEP, in seconds: a mistyped one must not stop the server for ever.
const SLEEP_SECONDS_MAX: f64 = 3600.0;

/// Subcommands: name, arguments behind it, what runs.
const SUBCOMMANDS: [(&str, usize, NodeFn); 20] = [
    ("CHANGE-REPL-ID", 0, change_replication_id),
    ("CONFIG-REWRITE-FORCE-ALL", 0, reload::rewrite_all),
    ("DIGEST", 0, digest),
    ("ERROR", 1, error),
    ("HELP", 0, help),
    ("LISTPACK", 1, listpack),
    ("LOADAOF", 0, reload::load_log),
    ("LOG", 1, log),
    ("OBJECT", 1, object),
    ("PAUSE-CRON", 1, pause_cron),
    ("POPULATE", 1, populate::populate),
    ("PROTOCOL", 1, protocol::protocol),
    ("QUICKLIST-PACKED-THRESHOLD", 1, packed_threshold),
    ("RELOAD", 0, reload::reload),
    ("REPLYBUFFER", 2, reply_buffer),
    ("SDSLEN", 1, string_lengths),
    ("SET-ACTIVE-EXPIRE", 1, set_active_expire),
    ("SET-DISABLE-DENY-SCRIPTS", 1, set_disable_deny_scripts),
    ("SLEEP", 1, sleep),
    ("STRINGMATCH-LEN", 2, match_long_text),
];

fn debug(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.is(1, "DIGEST-VALUE") && args.len() > 2 {
        digest_values(server, client, args);
        return Ok(());
    }
    if args.is(1, "RELOAD") {
        return reload::reload(server, client, args);
    }
    if args.is(1, "POPULATE") && (3..=5).contains(&args.len()) {
        return populate::populate(server, client, args);
    }
    let found = SUBCOMMANDS
        .iter()
        .find(|(name, arguments, _)| args.is(1, name) && args.len() == arguments + 2);
    match found {
        Some((_, _, run)) => run(server, client, args),
        None => Err(Refusal::subcommand("DEBUG", args.at(1))),
    }
}

/// Whether a subcommand may change keys now: DEBUG is declared as one that changes none, so the
/// gate has not asked.
///
/// # Errors
/// What the gate says to a command that writes.
fn may_write(server: &Server) -> Result<(), Refusal> {
    if server.core.is_following() || server.core.is_replica() {
        return Err(READ_ONLY);
    }
    match server.core.judge_log(true) {
        Verdict::Run if server.core.pause.paused().is_none() => Ok(()),
        Verdict::Refuse(why) => Err(why),
        _ => Err(Refusal::of("ERR writes are held up now")),
    }
}

fn help(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let reply = server.core.clients.reply(client);
    reply.array(SUBCOMMANDS.len() + 1);
    reply.simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for (name, arguments, _) in SUBCOMMANDS {
        reply.simple(format!("{name}{}", " <argument>".repeat(arguments)));
    }
    Ok(())
}

/// DEBUG SET-DISABLE-DENY-SCRIPTS: lets scripts call some of the commands that are denied to them.
fn set_disable_deny_scripts(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.scripts.may_call_more = args.at(2) != b"0";
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Nothing executes for a while, as if this command took that long.
fn sleep(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let text = std::str::from_utf8(args.at(2)).unwrap_or_default();
    let seconds = text.parse::<f64>().unwrap_or(0.0).clamp(0.0, SLEEP_SECONDS_MAX);
    let nanos = (seconds * 1e9) as u64;
    let from = server.core.process.options.clock.monotonic().max(server.core.turn.asleep_until);
    server.core.turn.asleep_until = MonotonicNanos(from.0 + nanos);
    server.core.turn.slept_nanos += nanos;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// DEBUG PAUSE-CRON: stops the periodic work, or lets it go on.
fn pause_cron(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.process.is_cron_paused = canonical_integer(args.at(2)).is_some_and(|on| on != 0);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn set_active_expire(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.process.is_active_expiry_on =
        canonical_integer(args.at(2)).is_some_and(|on| on != 0);
    server.core.clients.reply(client).ok();
    Ok(())
}

/// No node of a list is a plain string here, so there is no threshold to move.
fn packed_threshold(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let bytes = parse_size(args.at(2)).filter(|bytes| *bytes <= 4 << 30);
    bytes.ok_or(Refusal::of(
        "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
    ))?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// DEBUG REPLYBUFFER: whether outputs give room back. They do so at once when they need it no more,
/// so there is no time to set. While they don't, those that exist occupy the same all the time, as
/// Redis's do, which begin with all that they keep: Redis's tests count on it.
fn reply_buffer(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if !args.is(2, "PEAK-RESET-TIME") && !args.is(2, "RESIZING") {
        return Err(Refusal::subcommand("DEBUG", args.at(1)));
    }
    if args.is(2, "RESIZING") {
        let trims = args.at(3) != b"0";
        server.core.process.trims_outputs = trims;
        if !trims {
            for session in server.core.clients.sessions.values_mut() {
                session.output.fill_up();
            }
        }
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

fn change_replication_id(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.feed.change_history();
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Matches a pattern against a text of `a`s of this length.
fn match_long_text(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let length = canonical_integer(args.at(2)).and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= 1 << 30).ok_or(Refusal::NOT_AN_INTEGER)?;
    let is_match = glob::matches(args.at(3), &vec![b'a'; length], &server.core.work());
    server.core.clients.reply(client).integer(i64::from(is_match));
    Ok(())
}

fn error(_: &mut Server, _: ConnectionId, args: Args<'_>) -> Outcome {
    let text = quoted(args.at(2));
    Err(Refusal::new(text))
}

fn log(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args.at(2)));
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Runs `look` on the entry of the key in argument 2.
///
/// # Errors
/// There is no such key.
fn with_entry<T>(
    server: &mut Server,
    client: ConnectionId,
    args: Args<'_>,
    look: impl FnOnce(&Server, EntryRef<'_>) -> T,
) -> Result<T, Refusal> {
    let hash = server.core.shard.engine.keyspace.hash(args.at(2));
    server.core.shard.unit.observed.push(hash);
    let database =
        server.core.shard.engine.keyspace.database(server.core.clients.at(client).database);
    let entry = database.find(hash, args.at(2)).ok_or(Refusal::NO_SUCH_KEY)?;
    let whole = server.core.shard.engine.keyspace.with_value(entry)?;
    Ok(look(server, whole.as_ref()))
}

fn object(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let line = with_entry(server, client, args, |server, entry| {
        let boxed = Value::of(entry).map_or(0, Value::allocated_bytes);
        format!(
            "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
            encoding(entry),
            entry.allocated_bytes() + boxed,
            entry.access() & 0xff_ffff,
            idle_seconds(entry.access(), server.core.shard_time()),
        )
    })?;
    server.core.clients.reply(client).simple(line);
    Ok(())
}

fn digest(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.shard.unit.whole = true;
    let digest = debug_digest::of_keyspace(&server.core.shard.engine.keyspace);
    server.core.clients.reply(client).simple(digest.hex());
    Ok(())
}

fn digest_values(server: &mut Server, client: ConnectionId, args: Args<'_>) {
    let (id, work) = (server.core.clients.at(client).database, server.core.work());
    let Shard { engine, unit, .. } = &mut server.core.shard;
    let reply = server.core.clients.reply(client);
    reply.array(args.len() - 2);
    work.reply_each(args.from(2), reply, |key, reply| {
        let hash = engine.keyspace.hash(key);
        unit.observed.push(hash);
        let entry = engine.keyspace.database(id).find(hash, key);
        let digest = entry.map_or_else(Digest::default, |entry| {
            // No reply is given where something is lost.
            let whole = engine.keyspace.with_value(entry);
            whole
                .map_or_else(|_| Digest::default(), |it| debug_digest::of_value(it.as_ref(), &work))
        });
        reply.simple(digest.hex());
    });
}

fn listpack(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let is_listpack = with_entry(server, client, args, |_, entry| encoding(entry) == "listpack")?;
    if !is_listpack {
        return Err(Refusal::of("ERR Not a listpack encoded object."));
    }
    server.core.clients.reply(client).simple("Listpack structure printed on stdout");
    Ok(())
}

fn string_lengths(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let line = with_entry(server, client, args, |_, entry| {
        let boxed = Value::of(entry).map_or(0, Value::allocated_bytes);
        let key = entry.key().len();
        format!(
            "key_sds_len:{key}, key_sds_avail:0, key_zmalloc: {}, val_sds_len:{boxed}, \
             val_sds_avail:0, val_zmalloc: {boxed}",
            entry.allocated_bytes()
        )
    })?;
    server.core.clients.reply(client).simple(line);
    Ok(())
}
