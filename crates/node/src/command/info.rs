//! INFO (Redis documentation, INFO): sections of `field:value` lines.
//!
//! The fields are those of Redis 7.0.15, in its order, because exporters read them by name. Those
//! about mechanisms that Kiln does not have (forks, the AOF, replication links) keep the value that
//! means "never happened"; fields of our own begin with `kiln_`, but for those of the section
//! `tier`, which MemoryDB has under other spellings.
//!
//! What a section says of the process (counts, sizes, times) ends with the process, whatever the
//! log has. What it says of the data waits for the log, as every reply does.

mod commands;
pub(crate) mod process;
mod tier;
mod traffic;

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};

pub const COMMANDS: &[Command<NodeFn>] = &[node("INFO [section [section ...]]", info)
    .allowed_in_scripts()
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
    .doc("Returns information and statistics about the server.")
    .group(Group::Server)
    .cost("O(1)")
    .with(Flags::DANGEROUS)];

/// Appends a section's lines.
type Writer = fn(&Server, ConnectionId, &mut Text);

/// A section: its name, whether plain INFO shows it, its title, its lines.
struct Section {
    name: &'static str,
    is_default: bool,
    title: &'static str,
    /// Whether it tells of the data, and not of the process alone.
    reveals: bool,
    write: Writer,
}

impl Section {
    /// A section that tells of the data.
    const fn of_data(self) -> Self {
        Self { reveals: true, ..self }
    }
}

const fn section(name: &'static str, title: &'static str, write: Writer) -> Section {
    Section { name, is_default: true, title, reveals: false, write }
}

const fn on_request(name: &'static str, title: &'static str, write: Writer) -> Section {
    Section { name, is_default: false, title, reveals: false, write }
}

/// All sections, in the order in which they are shown.
const SECTIONS: [Section; 14] = [
    section("server", "Server", process::server),
    section("clients", "Clients", traffic::clients),
    section("memory", "Memory", process::memory),
    section("persistence", "Persistence", process::persistence),
    section("stats", "Stats", traffic::stats),
    section("replication", "Replication", traffic::replication).of_data(),
    section("cpu", "CPU", process::cpu),
    section("modules", "Modules", |_, _, _| {}),
    on_request("commandstats", "Commandstats", commands::counts),
    section("errorstats", "Errorstats", commands::errors),
    on_request("latencystats", "Latencystats", commands::latencies),
    section("cluster", "Cluster", |server, _, text| {
        text.line(
            "cluster_enabled",
            u8::from(server.core.process.settings.discovery.cluster_enabled),
        );
    }),
    section("keyspace", "Keyspace", traffic::keyspace).of_data(),
    section("tier", "Tier", tier::tier).of_data(),
];

/// The text in the making.
#[derive(Default)]
pub(crate) struct Text(String);

impl Text {
    pub fn line(&mut self, field: &str, value: impl std::fmt::Display) {
        use std::fmt::Write;
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{field}:{value}\r\n");
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

fn info(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let wanted: Vec<&[u8]> = args.from(1).collect();
    let (text, reveals) = render(server, client, &wanted);
    if reveals {
        server.core.shard.unit.whole = true;
    }
    server.core.clients.reply(client).verbatim(b"txt", text);
    Ok(())
}

/// The sections of these names, or the default ones if there are no names; and whether they tell of
/// the data. While the log refuses records, an answer that tells of the data might wait for long,
/// so it is given without those sections.
fn render(server: &Server, client: ConnectionId, wanted: &[&[u8]]) -> (String, bool) {
    let is_withheld = server.core.waits_for_refusing_log();
    let mut reveals = false;
    let work = server.core.work();
    let is_wanted = |section: &Section| {
        wanted.is_empty() && section.is_default
            || wanted.iter().any(|name| {
                work.step();
                let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
                is(section.name)
                    || is("all")
                    || is("everything")
                    || is("default") && section.is_default
                    || is("module_list") && section.name == "modules"
            })
    };
    let mut text = Text::default();
    for section in SECTIONS.iter().filter(|section| is_wanted(section)) {
        if !text.0.is_empty() {
            text.0.push_str("\r\n");
        }
        text.0.push_str("# ");
        text.0.push_str(section.title);
        text.0.push_str("\r\n");
        if section.reveals && is_withheld {
            text.line("kiln_withheld", 1);
        } else {
            reveals |= section.reveals;
            (section.write)(server, client, &mut text);
        }
    }
    (text.0, reveals)
}

/// Bytes as a person reads them: `1.50K`, `2.00M` (as Redis writes them).
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    for (unit, shift) in UNITS {
        if bytes >= 1 << shift {
            return format!("{:.2}{unit}", bytes as f64 / (1_u64 << shift) as f64);
        }
    }
    format!("{bytes}B")
}

/// `part` of `whole`, 0 if there is no whole.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_redis_shows_them() {
        let shown = [0, 1023, 1024, 1_113_792, 25_276_510_208].map(human);
        assert_eq!(shown, ["0B", "1023B", "1.00K", "1.06M", "23.54G"]);
    }
}
