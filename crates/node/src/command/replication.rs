//! What replicas say, and WAIT, which asks them (Redis documentation, "Replication" and WAIT).

use super::{NodeFn, node, timeout_millis};
use crate::feed::Filter;
use crate::feed::sync::Wanted;
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::dump::functions_file;
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;

pub const COMMANDS: &[Command<NodeFn>] = &[
    transfer("SYNC", sync).doc("Makes the connection a replica's: all data, then every change."),
    transfer("PSYNC replicationid offset", psync)
        .doc("Makes the connection a replica's, which goes on where it was if it can.")
        .since("2.8.0")
        .arity(-3),
    node("REPLCONF", replconf)
        .admin()
        .group(Group::Server)
        .doc("What a replica says about itself, and how far it is.")
        .since("3.0.0")
        .cost("O(1)")
        .arity(-1)
        .with(Flags::ALLOW_BUSY),
    node("WAIT numreplicas timeout", wait)
        .needs_data()
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .categories(&["connection"])
        .doc(
            "Blocks until the asynchronous replication of all preceding write commands sent by \
              the connection is completed.",
        )
        .since("3.0.0")
        .cost("O(1)"),
    node("WAITAOF numlocal numreplicas timeout", wait_durable)
        .needs_data()
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .categories(&["connection"])
        .doc("Blocks until what the connection wrote is on stable storage here and on replicas.")
        .since("7.2.0")
        .cost("O(1)"),
];

/// Declares a command by which a replica asks for the data set.
const fn transfer(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .admin()
        .needs_data()
        .group(Group::Server)
        .with(Flags::NO_MULTI.union(Flags::NO_ASYNC_LOADING))
}

/// Longest address that a replica may give for itself, in bytes (Redis, NET_HOST_STR_LEN).
const ADDRESS_BYTES_MAX: usize = 255;

fn sync(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.is_fed(client) {
        return Ok(());
    }
    server.attach_replica(client, None)
}

fn psync(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if server.is_fed(client) {
        return Ok(());
    }
    if args.is(3, "FAILOVER") {
        return Err(Refusal::of("ERR PSYNC FAILOVER can't be sent to a master."));
    }
    let from = canonical_integer(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    server.attach_replica(client, Some(Wanted { id: args.at(1), from }))
}

fn replconf(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.len() > 1 && args.is(1, "MEMBER") {
        server.members.take_report(&mut server.core, client, args)?;
        server.answer_waiters();
        return Ok(());
    }
    if args.len().is_multiple_of(2) {
        return Err(Refusal::SYNTAX);
    }
    for at in (1..args.len()).step_by(2) {
        let value = args.at(at + 1);
        // Neither of the first two is answered.
        if args.is(at, "ACK") {
            let offset = canonical_integer(value).map(|it| u64::try_from(it).unwrap_or(0));
            if let Some(offset) = offset
                && server.feed.note_acknowledged(&server.core, client, offset)
            {
                server.answer_waiters();
            }
            return Ok(());
        } else if args.is(at, "GETACK") {
            return Ok(());
        } else if args.is(at, "LISTENING-PORT") {
            let port = canonical_integer(value).ok_or(Refusal::NOT_AN_INTEGER)?;
            server.feed.replica_mut(client).port = port;
        } else if args.is(at, "IP-ADDRESS") {
            if value.len() > ADDRESS_BYTES_MAX {
                return Err(Refusal::new(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} \
                         bytes",
                    value.len()
                )));
            }
            server.feed.replica_mut(client).address = printable(value);
        } else if args.is(at, "RDB-ONLY") {
            const RANGE: Refusal = Refusal::of("ERR value is out of range");
            server.feed.replica_mut(client).wants_only_file = match canonical_integer(value) {
                Some(0) => false,
                Some(1) => true,
                Some(_) => return Err(RANGE),
                None => return Err(Refusal::NOT_AN_INTEGER),
            };
        } else if args.is(at, "RDB-FILTER-ONLY") {
            server.feed.replica_mut(client).filter = Some(filter(value)?);
        // Every replica of ours can do what it may say of its capabilities, or need not.
        } else if !args.is(at, "CAPA") {
            return Err(Refusal::new(format!(
                "ERR Unrecognized REPLCONF option: {}",
                printable(args.at(at))
            )));
        }
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Reads the value of REPLCONF rdb-filter-only.
///
/// # Errors
/// It names something else than functions.
fn filter(value: &[u8]) -> Result<Filter, Refusal> {
    let mut words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let other = words.clone().find(|word| !word.eq_ignore_ascii_case(b"functions"));
    match (other, words.next()) {
        (Some(other), _) => Err(Refusal::new(format!(
            "ERR Unsupported rdb-filter-only option: {}",
            printable(other)
        ))),
        (None, Some(_)) => Ok(Filter::Functions),
        (None, None) => Ok(Filter::Nothing),
    }
}

/// A text that cannot break a line of INFO or an error.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(ADDRESS_BYTES_MAX)]);
    text.replace(|letter: char| letter.is_control() || letter == ',', " ")
}

const NOT_HERE_DURABLE: &str = concat!(
    "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas ",
    "are just local and are not propagated.",
);

const NOT_HERE: &str = concat!(
    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a ",
    "replica is configured to be writable (which is not the default) writes to replicas are just ",
    "local and are not propagated.",
);

fn wait(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if server.core.is_replica() {
        return Err(Refusal::of(NOT_HERE));
    }
    let wanted = canonical_integer(args.at(1)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let millis = timeout_millis(server, args.at(2))?;
    let written = server.written_by(client, false);
    server.wait_for_replicas(client, written, wanted, millis);
    Ok(())
}

/// WAITAOF. Whatever `numlocal` is, this server's copy is durable before the reply leaves; only
/// replicas are waited for.
fn wait_durable(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let range = |from, to| {
        Refusal::new(format!("ERR value is out of range, value must between {from} and {to}"))
    };
    let local = canonical_integer(args.at(1)).ok_or(Refusal::NOT_AN_INTEGER)?;
    if !(0..=1).contains(&local) {
        return Err(range(0, 1));
    }
    let wanted = canonical_integer(args.at(2)).filter(|wanted| *wanted >= 0);
    let wanted = wanted.ok_or(Refusal::NOT_POSITIVE)?;
    let millis = timeout_millis(server, args.at(3))?;
    if server.core.is_replica() {
        return Err(Refusal::of(NOT_HERE_DURABLE));
    }
    // The reply must wait until the client's writes are durable, also if the client asked for no
    // replies to them.
    server.core.shard.unit.whole = true;
    let written = server.written_by(client, true);
    server.wait_for_replicas(client, written, wanted, millis);
    Ok(())
}

impl Server {
    /// Whether a client is told what happens already: requests to follow are passed over.
    fn is_fed(&self, client: ConnectionId) -> bool {
        self.core.clients.at(client).is_replica() || self.core.clients.monitors.contains(&client)
    }

    /// Makes a client a replica. `wanted` is `None` for one that speaks SYNC only.
    fn attach_replica(
        &mut self,
        client: ConnectionId,
        wanted: Option<Wanted<'_>>,
    ) -> Result<(), Refusal> {
        self.feed.admits(&self.core, client)?;
        if let Some(filter) = self.feed.replica_mut(client).filter {
            let libraries = self.core.shard.engine.keyspace.libraries();
            let libraries = (filter == Filter::Functions).then_some(libraries);
            let file = functions_file(libraries, &self.core.work());
            self.feed.attach_with(&mut self.core, client, &file, wanted.is_some());
            return Ok(());
        }
        let missed = self.feed.missed(wanted.as_ref());
        if missed.is_none() {
            self.want_snapshot_for_replica()?;
        }
        self.feed.attach(&mut self.core, client, missed, wanted.is_some());
        Ok(())
    }
}
