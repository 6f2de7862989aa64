//! FAILOVER (Redis documentation, FAILOVER). `crate::members::failover` does it.

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;
use peers::failover::Failover;

pub const COMMANDS: &[Command<NodeFn>] =
    &[node("FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]", failover)
        .admin()
        .group(Group::Server)
        .doc("Starts a coordinated failover from a server to one of its replicas.")
        .since("6.2.0")
        .cost("O(1)")
        .without(Flags::LOADING)
        .arity(-1)];

fn failover(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.len() == 2 && args.is(1, "ABORT") {
        if server.members.failover.is_none() {
            return Err(Refusal::of("ERR No failover in progress."));
        }
        if !server.members.abort_failover(&mut server.core, "failover manually aborted") {
            return Err(Refusal::of("ERR leadership is being handed over already."));
        }
        server.core.clients.reply(client).ok();
        return Ok(());
    }
    let asked = Asked::parse(args)?;
    if server.members.failover.is_some() {
        return Err(Refusal::of("ERR FAILOVER already in progress."));
    }
    if server.core.is_replica() {
        return Err(Refusal::of("ERR FAILOVER is not valid when server is a replica."));
    }
    let now = server.core.turn.monotonic;
    let successors = || server.members.reports.successors(now);
    if successors().next().is_none() {
        return Err(Refusal::of("ERR FAILOVER requires connected replicas."));
    }
    if asked.forces && (asked.timeout_millis.is_none() || asked.target.is_none()) {
        return Err(Refusal::of(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
        ));
    }
    if let Some((host, port)) = &asked.target
        && !successors().any(|it| it.is_at(host, *port))
    {
        return Err(Refusal::of("ERR FAILOVER target HOST and PORT is not a replica."));
    }
    let until = asked.timeout_millis.map(|millis| now.after_millis(millis));
    server
        .members
        .begin_failover(&mut server.core, Failover::new(asked.target, until, asked.forces));
    server.core.clients.reply(client).ok();
    Ok(())
}

#[derive(Default)]
struct Asked {
    target: Option<(String, u16)>,
    timeout_millis: Option<u64>,
    forces: bool,
}

impl Asked {
    fn parse(args: Args<'_>) -> Result<Self, Refusal> {
        let mut asked = Self::default();
        let mut at = 1;
        while at < args.len() {
            if args.is(at, "TIMEOUT") && at + 1 < args.len() && asked.timeout_millis.is_none() {
                let millis = canonical_integer(args.at(at + 1)).ok_or(Refusal::NOT_AN_INTEGER)?;
                let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0);
                const NOT_POSITIVE: Refusal =
                    Refusal::of("ERR FAILOVER timeout must be greater than 0");
                asked.timeout_millis = Some(millis.ok_or(NOT_POSITIVE)?);
                at += 2;
            } else if args.is(at, "TO") && at + 2 < args.len() && asked.target.is_none() {
                let port = canonical_integer(args.at(at + 2)).ok_or(Refusal::NOT_AN_INTEGER)?;
                let host = String::from_utf8_lossy(args.at(at + 1)).into_owned();
                // A number that is no port is no replica's.
                asked.target = Some((host, u16::try_from(port).unwrap_or(0)));
                at += 3;
            } else if args.is(at, "FORCE") && !asked.forces {
                asked.forces = true;
                at += 1;
            } else {
                return Err(Refusal::SYNTAX);
            }
        }
        Ok(asked)
    }
}
