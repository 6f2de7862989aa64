//! LATENCY (Redis documentation, LATENCY): the latency monitor and the durations of commands.

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use catalog::Registered;
use engine::command::{Args, Command, Group, Outcome};
use engine::refusal::{Refusal, quoted};
use resp::Reply;
use statistics::Histogram;
use statistics::latency::graph;

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("LATENCY DOCTOR", doctor)
        .admin()
        .group(Group::Server)
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .doc("Returns a human-readable latency analysis report.")
        .since("2.8.13")
        .cost("O(1)"),
    node("LATENCY GRAPH event", draw)
        .admin()
        .group(Group::Server)
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .doc("Returns a latency graph for an event.")
        .since("2.8.13")
        .cost("O(1)"),
    node("LATENCY HISTOGRAM [command [command ...]]", histogram)
        .admin()
        .group(Group::Server)
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .doc("Returns the cumulative distribution of latencies of commands.")
        .since("7.0.0")
        .cost("O(N) where N is the number of commands with latency information being retrieved."),
    node("LATENCY HISTORY event", history)
        .admin()
        .group(Group::Server)
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .doc("Returns timestamp-latency samples for an event.")
        .since("2.8.13")
        .cost("O(1)"),
    node("LATENCY LATEST", latest)
        .admin()
        .group(Group::Server)
        .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
        .doc("Returns the latest latency samples for all events.")
        .since("2.8.13")
        .cost("O(1)"),
    node("LATENCY RESET [event [event ...]]", reset)
        .admin()
        .group(Group::Server)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("Resets the latency data for one or more events.")
        .since("2.8.13")
        .cost("O(1)"),
];

fn doctor(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let threshold = server.core.process.settings.latency_monitor_threshold;
    let report = server.core.process.latency.report(threshold, server.core.turn.monotonic);
    server.core.clients.reply(client).verbatim(b"txt", report);
    Ok(())
}

fn draw(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let found =
        server.core.process.latency.events().iter().find(|(name, _)| name.as_bytes() == args.at(2));
    let Some((name, series)) = found else {
        let event = quoted(args.at(2));
        return Err(Refusal::new(format!("ERR No samples available for event '{event}'")));
    };
    server
        .core
        .clients
        .reply(client)
        .verbatim(b"txt", graph(name, series, server.core.turn.monotonic));
    Ok(())
}

fn history(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let found =
        server.core.process.latency.events().iter().find(|(name, _)| name.as_bytes() == args.at(2));
    let reply = server.core.clients.reply(client);
    let Some((_, series)) = found else {
        reply.array(0);
        return Ok(());
    };
    reply.array(series.samples.len());
    for sample in &series.samples {
        reply.array(2);
        reply.integer(sample.at);
        reply.integer(sample.millis as i64);
    }
    Ok(())
}

fn latest(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let reply = server.core.clients.reply(client);
    reply.array(server.core.process.latency.events().len());
    for (name, series) in server.core.process.latency.events() {
        let last = series.samples.back();
        reply.array(4);
        reply.bulk(name);
        reply.integer(last.map_or(0, |sample| sample.at));
        reply.integer(last.map_or(0, |sample| sample.millis as i64));
        reply.integer(series.worst as i64);
    }
    Ok(())
}

fn reset(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let forgotten = match args.len() {
        2 => server.core.process.latency.reset(None),
        _ => args.from(2).map(|event| server.core.process.latency.reset(Some(event))).sum(),
    };
    server.core.clients.reply(client).integer(forgotten as i64);
    Ok(())
}

fn histogram(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let catalog = server.core.process.catalog;
    let mut wanted: Vec<&Registered> = Vec::new();
    if args.len() == 2 {
        wanted.extend(catalog.iter());
    }
    let work = server.core.work();
    for name in args.from(2) {
        work.step();
        let (container, subcommand) = match name.iter().position(|byte| *byte == b'|') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let Some(command) = catalog.find(container, subcommand) else { continue };
        wanted.push(command);
        wanted.extend(command.subcommands.iter().map(|id| catalog.command(*id)));
    }
    let durations = wanted.into_iter().filter_map(|command| {
        let counted = &server.core.process.statistics.commands[command.id.0 as usize];
        counted.durations.as_ref().map(|durations| (command, durations))
    });
    let reply = server.core.clients.reply(client);
    let map = reply.begin_map();
    let count = work.reply_each(durations, reply, |(command, durations), reply| {
        reply.bulk(command.name());
        write_histogram(durations, reply);
    });
    reply.end(map, count);
    Ok(())
}

fn write_histogram(durations: &Histogram, reply: &mut Reply) {
    reply.map(2);
    reply.bulk("calls");
    reply.integer(durations.total() as i64);
    reply.bulk("histogram_usec");
    let steps = durations.cumulative_micros();
    reply.map(steps.len());
    for (micros, count) in steps {
        reply.integer(micros as i64);
        reply.integer(count as i64);
    }
}
