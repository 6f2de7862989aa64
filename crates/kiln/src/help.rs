//! What the program says about itself: `kiln help`, `--help` behind a command, `--version`.

use config::directive::Kind;
use config::table::DIRECTIVES;
use std::fmt::Write as _;

/// What there is to say something about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    Kiln,
    Server,
    Snapshot,
    Restore,
    Branch,
    Export,
    Import,
    Log,
    Inspect,
    Tail,
    Find,
}

const KILN: &str = "
A database that speaks Redis and never loses a write that it has acknowledged.

commands:
  server         run a server, with redis-server's arguments
  snapshot       take snapshots of a shard, in a process that serves nobody
  snapshot list  print which snapshots there are
  restore        make a new log of what a shard held at some moment
  branch         the same in seconds, whose data stays where it is
  export         write that to an RDB file
  import         make a new log of what a Redis or Valkey server wrote, or holds
  log inspect    print what a transaction log holds
  log tail       print what it changes, and follow it
  log find       print who changed a key, and when
  help COMMAND   say more about a command

options:
  -h, --help     show this; behind a command, what that does
  -v, --version  show the version, and which logs this build can keep

a durable server on port 6379 with its data in ./data, and any Redis client:
  kiln server --dir data
  redis-cli SET greeting hello

Beside the sources, README.md is the introduction and docs/operations/ is for operators.
";

const SERVER: &str = "
Runs a server until SIGTERM, SIGINT or SHUTDOWN. It stays in the foreground and logs to its standard
error (directive 'logfile': to a file).

  path/to/redis.conf   a configuration file like Redis's, one directive a line
  --directive value …  any of these directives; the command line overrules the file
  -                    more lines of configuration come on the standard input

examples:
  kiln server --port 7777 --dir data
  kiln server /etc/kiln.conf --loglevel verbose
  kiln server --port 7778 --dir other --transaction-log file:data/log \\
              --snapshot-store file:data/snapshots     (a replica of the first)
  echo 'maxmemory 1gb' | kiln server -

Directives are those of Redis 7.0.15; docs/compatibility.md names those that change nothing here.
CONFIG GET '*' shows all of them and their values. Kiln's own, with their defaults:
";

const SERVER_END: &str = "
docs/operations/ says how to keep the log in a directory, NATS JetStream, an object store or etcd,
where snapshots belong, and how clients find the primary.

exit status: 0 it was asked to stop, and what it acknowledged is durable; 1 it could not start or
had to stop, and said why; 2 the command line names what is not there.
";

const SNAPSHOT: &str = "
Takes snapshots of a shard as they become due, without its servers: it reads the log and the newest
snapshot, and nothing is asked of the primary, which takes none itself meanwhile. Each snapshot is
restored and compared before it is published. With 'list' it prints the snapshots, newest first, and
how far the log goes behind them.

  --once               take one snapshot now, and end
  --max-age SECONDS    let none become older, if anything was written since (3600)
  path/to/redis.conf   as 'kiln server' takes it, and likewise what follows; what matters here is
  --directive value …  where log and snapshots are ('dir', 'transaction-log', 'snapshot-store'),
                       their keys ('encryption-key-file'),
                       'databases', 'maxmemory-policy', 'loglevel', 'logfile'

examples:
  kiln snapshot --once --dir data
  kiln snapshot --max-age 900 /etc/kiln.conf

It needs as much memory as the data, and some 100 MiB. Several may run: one is at work, and another
takes over half a minute after it has died.

exit status: 0 the snapshot of '--once' was published, or there is nothing new; 1 it could not be
taken, and nothing was published; the reason is on the standard error.
";

const RESTORE: &str = "
Makes a new log, and a snapshot with which servers start on it, of what a shard held at some moment.
Log and snapshots of the shard are only read; its servers may run meanwhile. The log, or what is
archived of it, must reach back from the moment to a snapshot before it: see 'restore-window'.

  --to TIME            2026-11-20T12:00:00.000Z, or milliseconds since 1970; everything that was
                       written through that time, by the clock of the shard
  --to-position P      everything through this record, by its number or by a position as 'kiln
                       log tail' prints it; without either, everything
  --into LOG           the log to make: a directory, or a URL as 'transaction-log' takes it
  --into-archive STORE where its snapshots lie, as 'snapshot-store' takes it; beside a log in a
                       directory it is 'snapshots' if nothing is said
  --from LOG           the log to read, if it is not that of the arguments behind
  --archive STORE      likewise the snapshots
  path/to/redis.conf   as 'kiln server' takes it, and likewise what follows
  --directive value …

example, the data of 'data' as it was at noon, served beside it:
  kiln restore --to 2026-11-20T12:00:00Z --into noon/log --dir data
  kiln server --port 7777 --dir noon

exit status: 0 it was made; 1 it could not be; the reason is on the standard error. What there is of
a restore that was cut short holds nothing of the shard: delete it.
";

const BRANCH: &str = "
Makes a new log of what a shard held at some moment, in seconds, however large that is: the data
stays where it is, in the parent's archive, and servers that start on the branch load it there. What
they write goes to the new log and the new archive alone. The parent's servers may run meanwhile.

The options are those of 'kiln restore'. But the parent's archive is written to: the log that is not
archived there yet is, and a pin keeps what the branch needs. It goes when the branch has
snapshots of its own ('kiln snapshot --once'). Until then servers of the branch, and whoever takes
its snapshots, must reach the parent's archive, and be allowed to write there.

example, the data of 'data' as it was at noon, served beside it:
  kiln branch --to 2026-11-20T12:00:00Z --into noon/log --dir data
  kiln server --port 7777 --dir noon

exit status: 0 it was made; 1 it could not be; the reason is on the standard error. What there is of
a branch that was cut short holds nothing of the shard: delete it.
";

const EXPORT: &str = "
Writes what a shard holds, or held at some moment, to an RDB file, which Redis from 7.0 on reads.
Log and snapshots are only read; servers may run meanwhile.

  --rdb FILE           the file to write; one that is there is replaced
  --to TIME, --to-position P, --from LOG, --archive STORE
                       as 'kiln restore' takes them
  path/to/redis.conf   as 'kiln server' takes it, and likewise what follows
  --directive value …

example:
  kiln export --rdb backup.rdb --dir data
";

const IMPORT: &str = "
Makes a new log, and a snapshot with which servers start on it, of what a Redis or Valkey server
wrote, or holds now: all databases, and libraries of functions.

  --rdb FILE           an RDB file
  --aof PATH           an append-only file: the server's data directory, its 'appendonlydir', a
                       manifest, or a single file. What a crash cut off at the end is dropped, and
                       said
  --from URL           a server that runs, redis://[user:password@]host[:port] or, over TLS,
                       rediss://…; without a password those of 'masteruser' and 'masterauth' count
  --into LOG           the log to make, and where its snapshots lie, as 'kiln restore' takes them
  --into-archive STORE
  path/to/redis.conf   as 'kiln server' takes it, and likewise what follows; rediss:// needs
  --directive value …  'tls-ca-cert-file' or 'tls-ca-cert-dir'

What is written to the server behind the copy is not in the new log. REPLICAOF, said to a server of
Kiln's, follows without a gap (docs/operations/following-redis.md).

example:
  kiln import --rdb dump.rdb --into data/log
  kiln import --aof /var/lib/redis --into data/log
  kiln import --from redis://10.0.0.1 --into data/log
  kiln server --dir data

exit status: 0 it was made; 1 it could not be, and the reason is on the standard error.
";

const LOG: &str = "
commands:
  inspect        print what a transaction log holds
  tail           print what it changes, and follow it
  find           print who changed a key, and when
";

const INSPECT: &str = "
Prints every record of a transaction log, oldest first, and under it its effects: what commands
came to, not what was asked. Servers may be running on the log; nothing is changed.

  path/to/transaction-log   a directory: 'log' in the server's 'dir', if 'transaction-log' says
                            nothing else
  URL                       a log that a service keeps, as 'transaction-log' names it:
                            jetstream://…, etcd://…, s3://…, file-object:…
  --encryption-key-file PATH
                            the keys of a log that is encrypted, as the server takes them

exit status: 0 the log was read to its end; 1 it could not be, or is damaged; the reason is on the
standard error.
";

const TAIL: &str = "
Prints every effect that the log holds durably, one a line, and follows the log as it grows, until
SIGINT, SIGTERM, or its output is closed. Servers may be running on the log; none is asked, and
nothing is changed. A line begins with its position, from which '--from' goes on right behind it:
nothing is missed, and nothing comes twice.

  path/to/transaction-log | URL   the log, as 'kiln log inspect' takes it
  --from now        with what comes from now on (the default)
  --from oldest     with the oldest record that the log still has
  --from POSITION   behind this position. It is said, by name, if the log is another history than
                    the one that the position was printed of, was trimmed, or ends before it
  --from NUMBER     behind the record of this number, unchecked
  --archive STORE   where what was trimmed of the log is archived: the 'snapshot-store' of a shard
                    that has a 'restore-window'
  --json            an object a line, with all bytes; otherwise long texts are cut short
  --until-end       ends where the log ends, instead of following it
  --encryption-key-file PATH        as 'kiln log inspect' takes it

A line without its end, after the tool was killed, is to be dropped. The lines are described in
docs/operations/change-stream.md, positions in docs/formats/position.md.

exit status: 0 the log was read to its end, or nobody reads the output; 1 it could not be, and the
reason is on the standard error.
";

const FIND: &str = "
Prints every effect on a key, oldest first, with its position, time (Unix milliseconds), epoch, the
writer and where that was. With them come what empties or swaps databases, and RENAME and COPY from
and to the name.

  path/to/transaction-log | URL   the log, as 'kiln log inspect' takes it
  --key K           the key
  --key-base64 K    the key in base64, as '--json' shows one that is no text
  --database N      in this database; otherwise in any
  --archive STORE   looks at what was trimmed of the log too, as 'kiln log tail' does
  --json            an object a line, with all bytes; otherwise long texts are cut short
  --encryption-key-file PATH        as 'kiln log inspect' takes it

exit status: 0 the log was read to its end; 1 it could not be, or is damaged; the reason is on the
standard error.
";

impl Topic {
    /// How the command is called, as one line.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Kiln => "usage: kiln COMMAND [argument …]\n",
            Self::Server => "usage: kiln server [path/to/redis.conf] [--directive value …] [-]\n",
            Self::Snapshot => {
                "usage: kiln snapshot [list | --once | --max-age SECONDS] [path/to/redis.conf] \
                 [--directive value …]\n"
            }
            Self::Restore => {
                "usage: kiln restore [--to TIME | --to-position P] --into LOG [--into-archive \
                 STORE] [--from LOG]\n                    [--archive STORE] [path/to/redis.conf] \
                 [--directive value …]\n"
            }
            Self::Branch => {
                "usage: kiln branch [--to TIME | --to-position N] --into LOG [--into-archive STORE] \
                 [--from LOG]\n                   [--archive STORE] [path/to/redis.conf] \
                 [--directive value …]\n"
            }
            Self::Export => {
                "usage: kiln export --rdb FILE [--to TIME | --to-position P] [--from LOG] \
                 [--archive STORE]\n                   [path/to/redis.conf] [--directive value …]\n"
            }
            Self::Import => {
                "usage: kiln import --rdb FILE | --aof PATH | --from URL --into LOG \
                 [--into-archive STORE]\n                   [path/to/redis.conf] [--directive \
                 value …]\n"
            }
            Self::Log => "usage: kiln log COMMAND [argument …]\n",
            Self::Inspect => "usage: kiln log inspect path/to/transaction-log | URL\n",
            Self::Tail => {
                "usage: kiln log tail path/to/transaction-log | URL [--from POSITION] \
                 [--archive STORE]\n                     [--json] [--until-end]\n"
            }
            Self::Find => {
                "usage: kiln log find path/to/transaction-log | URL --key K [--database N] \
                 [--archive STORE]\n                     [--json]\n"
            }
        }
    }

    /// The command that shows the whole text.
    pub fn call(self) -> &'static str {
        match self {
            Self::Kiln => "kiln --help",
            Self::Server => "kiln server --help",
            Self::Snapshot => "kiln snapshot --help",
            Self::Restore => "kiln restore --help",
            Self::Branch => "kiln branch --help",
            Self::Export => "kiln export --help",
            Self::Import => "kiln import --help",
            Self::Log => "kiln log --help",
            Self::Inspect => "kiln log inspect --help",
            Self::Tail => "kiln log tail --help",
            Self::Find => "kiln log find --help",
        }
    }

    /// The whole text.
    pub fn text(self) -> String {
        let usage = self.usage();
        match self {
            Self::Kiln => format!("{usage}{KILN}"),
            Self::Server => format!("{usage}{SERVER}{}{SERVER_END}", own_directives()),
            Self::Snapshot => format!("{usage}{SNAPSHOT}"),
            Self::Restore => format!("{usage}{RESTORE}"),
            Self::Branch => format!("{usage}{BRANCH}"),
            Self::Export => format!("{usage}{EXPORT}"),
            Self::Import => format!("{usage}{IMPORT}"),
            Self::Log => format!("{usage}{LOG}"),
            Self::Inspect => format!("{usage}{INSPECT}"),
            Self::Tail => format!("{usage}{TAIL}"),
            Self::Find => format!("{usage}{FIND}"),
        }
    }
}

/// The version, that of the Redis whose commands it speaks, and where this build can keep a log.
pub fn version() -> String {
    let clients = [
        ("directory", true),
        ("jetstream", cfg!(feature = "jetstream")),
        ("objects", cfg!(feature = "objects")),
        ("etcd", cfg!(feature = "etcd")),
    ];
    let logs: Vec<&str> =
        clients.iter().filter(|(_, is_here)| *is_here).map(|(log, _)| *log).collect();
    let (kiln, redis) = (env!("CARGO_PKG_VERSION"), node::REDIS_VERSION);
    format!("kiln {kiln} (Redis {redis}), logs: {}\n", logs.join(", "))
}

/// A line for each directive that Redis does not have: how it is given by default, and what for.
fn own_directives() -> String {
    let given: Vec<(String, &str)> = DIRECTIVES
        .iter()
        .filter(|directive| directive.is_own())
        .map(|directive| {
            let value = match directive.kind {
                Kind::Location { folder, .. } => format!("file:DIR/{folder}"),
                _ => directive.default.to_owned(),
            };
            (format!("--{} {value}", directive.name), directive.summary)
        })
        .collect();
    let width = given.iter().map(|(call, _)| call.len()).max().unwrap_or_default();
    given.iter().fold(String::new(), |mut lines, (call, summary)| {
        let _ = writeln!(lines, "  {call:width$}  {summary}");
        lines
    })
}

/// The name that was probably meant: the nearest one, if it is near.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Letters inserted, left out or replaced. With more, a word is another one.
    const DISTANCE_MAX: usize = 2;
    let (distance, name) = names.map(|name| (distance(word, name), name)).min()?;
    (distance <= DISTANCE_MAX && distance < name.len()).then_some(name)
}

/// Letters to insert, leave out or replace, at least, to make one word of the other (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[to + 1];
            row[to + 1] = replaced.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_a_terminal_and_begins_with_the_usage() {
        use Topic::{
            Branch, Export, Find, Import, Inspect, Kiln, Log, Restore, Server, Snapshot, Tail,
        };
        let topics =
            [Kiln, Server, Snapshot, Restore, Branch, Export, Import, Log, Inspect, Tail, Find];
        for topic in topics {
            let text = topic.text();
            assert!(text.starts_with(topic.usage()), "{text}");
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }

    #[test]
    fn the_server_s_help_explains_every_directive_of_kiln_s_own() {
        let text = Topic::Server.text();
        for directive in DIRECTIVES.iter().filter(|directive| directive.is_own()) {
            assert!(text.contains(&format!("  --{} ", directive.name)), "{}", directive.name);
            assert!(text.contains(directive.summary), "{}", directive.name);
        }
        assert!(text.contains("--transaction-log file:DIR/log "), "{text}");
    }

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = || ["server", "log", "help"].into_iter();
        assert_eq!(nearest("sever", names()), Some("server"));
        assert_eq!(nearest("hlep", names()), Some("help"));
        assert_eq!(nearest("start", names()), None);
        assert_eq!(nearest("x", names()), None);
    }
}
