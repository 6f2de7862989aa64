//! The command line: which command it means, and what to say when it means none.
//!
//! What `kiln server` is given is Redis's business and read in `configuration`; here only a
//! question for help is taken out of it.

mod log;

use crate::find::Find;
use crate::help::{self, Topic};
use crate::inspect::Inspect;
use crate::tail::Tail;
use crate::{restore, snapshot};
use config::secrets::hide_credentials;

/// What the command line asks for.
#[derive(PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Run a server with these arguments.
    Server(&'a [String]),
    /// Take snapshots of the shard of which these are a server's arguments.
    Snapshot(snapshot::Options, &'a [String]),
    /// Make a new log of what the shard held at some moment; write that to a file; make a new log
    /// of what another server wrote or holds.
    Restore(Box<restore::Options>, &'a [String]),
    /// Make a new log of it whose data stays where it is.
    Branch(Box<restore::Options>, &'a [String]),
    Export(Box<restore::Options>, &'a [String]),
    Import(Box<restore::Options>, &'a [String]),
    /// Print the snapshots of that shard.
    ListSnapshots(&'a [String]),
    /// Print the log at this place.
    Inspect(Inspect<'a>),
    /// Print what the log at a place changes.
    Tail(Tail<'a>),
    /// Print what changed a key.
    Find(Find<'a>),
    /// Print a text on the standard output.
    Show(String),
    /// Nothing that is understood: print this on the standard error.
    Wrong(String),
}

/// What may stand behind the program's name.
const COMMANDS: &[&str] =
    &["server", "snapshot", "restore", "branch", "export", "import", "log", "help", "--version"];

/// Reads the arguments behind the program's name.
pub fn read(arguments: &[String]) -> Request<'_> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => wrong("a command is missing", Topic::Kiln),
        ["-h" | "--help"] => Request::Show(Topic::Kiln.text()),
        ["help", ref topic @ ..] => help_on(topic),
        ["-v" | "--version" | "version"] | ["server", "-v" | "--version"] => {
            Request::Show(help::version())
        }
        ["server", ref behind @ ..] if asks_for_help(behind) => Request::Show(Topic::Server.text()),
        ["server", ..] => Request::Server(&arguments[1..]),
        ["snapshot", ref behind @ ..] if asks_for_help(behind) => {
            Request::Show(Topic::Snapshot.text())
        }
        ["snapshot", "list", ..] => Request::ListSnapshots(&arguments[2..]),
        ["snapshot", ..] => take_snapshots(&arguments[1..]),
        ["restore", ref behind @ ..] if asks_for_help(behind) => {
            Request::Show(Topic::Restore.text())
        }
        ["branch", ref behind @ ..] if asks_for_help(behind) => Request::Show(Topic::Branch.text()),
        ["export", ref behind @ ..] if asks_for_help(behind) => Request::Show(Topic::Export.text()),
        ["import", ref behind @ ..] if asks_for_help(behind) => Request::Show(Topic::Import.text()),
        ["restore", ..] => {
            with(&restore::RESTORE, &arguments[1..], Topic::Restore, Request::Restore)
        }
        ["branch", ..] => with(&restore::RESTORE, &arguments[1..], Topic::Branch, Request::Branch),
        ["export", ..] => with(&restore::EXPORT, &arguments[1..], Topic::Export, Request::Export),
        ["import", ..] => with(&restore::IMPORT, &arguments[1..], Topic::Import, Request::Import),
        ["log", ref behind @ ..] => log::read(behind),
        [other, ..] => unknown(other, "", COMMANDS, Topic::Kiln),
    }
}

/// Whether a server's arguments ask for help. In between, `--help` may be a directive's value.
fn asks_for_help(behind: &[&str]) -> bool {
    match behind {
        ["-h" | "--help", ..] => true,
        [.., before, "-h" | "--help"] => !before.starts_with("--"),
        _ => false,
    }
}

fn help_on(topic: &[&str]) -> Request<'static> {
    match topic {
        [] | ["help"] => Request::Show(Topic::Kiln.text()),
        ["server"] => Request::Show(Topic::Server.text()),
        ["snapshot"] => Request::Show(Topic::Snapshot.text()),
        ["restore"] => Request::Show(Topic::Restore.text()),
        ["branch"] => Request::Show(Topic::Branch.text()),
        ["export"] => Request::Show(Topic::Export.text()),
        ["import"] => Request::Show(Topic::Import.text()),
        ["log", topic @ ..] => log::help_on(topic),
        [other, ..] => unknown(other, "", COMMANDS, Topic::Kiln),
    }
}

/// A request with options, which stand before what is a server's.
fn with<'a>(
    names: &[&str],
    behind: &'a [String],
    topic: Topic,
    request: fn(Box<restore::Options>, &'a [String]) -> Request<'a>,
) -> Request<'a> {
    match restore::Options::take(names, behind) {
        Ok((options, rest)) => request(Box::new(options), rest),
        Err(why) => wrong(&why, topic),
    }
}

/// The options stand before what is a server's.
fn take_snapshots(mut behind: &[String]) -> Request<'_> {
    let mut options = snapshot::Options::default();
    loop {
        behind = match behind {
            [word, rest @ ..] if word == "--once" => {
                options.once = true;
                rest
            }
            [word, rest @ ..] if word == "--max-age" => {
                let Some(seconds) = rest.first().and_then(|it| it.parse().ok()) else {
                    return wrong("--max-age takes a number of seconds", Topic::Snapshot);
                };
                options.age_max = seconds;
                &rest[1..]
            }
            rest => return Request::Snapshot(options, rest),
        };
    }
}

fn unknown(word: &str, before: &str, known: &[&str], topic: Topic) -> Request<'static> {
    let sort = if word.starts_with('-') { "option" } else { "command" };
    let hint = match help::nearest(word, known.iter().copied()) {
        Some(nearest) => format!("; did you mean '{before}{nearest}'?"),
        None => String::new(),
    };
    wrong(&format!("no {sort} '{before}{word}'{hint}"), topic)
}

/// What it says names words of the command line, which may be URLs with passwords.
fn wrong(what: &str, topic: Topic) -> Request<'static> {
    let what = hide_credentials(what);
    let (usage, call) = (topic.usage(), topic.call());
    Request::Wrong(format!("kiln: {what}\n{usage}'{call}' says more\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_found_with_their_arguments() {
        let line = words("server a.conf --port 1");
        assert_eq!(read(&line), Request::Server(&line[1..]));
        assert_eq!(read(&words("server")), Request::Server(&[]));
        let line = words("snapshot --once --max-age 60 a.conf --dir x");
        let options = snapshot::Options { once: true, age_max: 60 };
        assert_eq!(read(&line), Request::Snapshot(options, &line[4..]));
        let line = words("snapshot --dir x --once y");
        assert_eq!(read(&line), Request::Snapshot(snapshot::Options::default(), &line[1..]));
        let line = words("snapshot list --dir x");
        assert_eq!(read(&line), Request::ListSnapshots(&line[2..]));
        assert_eq!(
            read(&words("log inspect data/log")),
            Request::Inspect(Inspect { log: "data/log", key_file: None })
        );
    }

    #[test]
    fn help_is_shown_for_every_way_to_ask() {
        for (line, topic) in [
            ("--help", Topic::Kiln),
            ("-h", Topic::Kiln),
            ("help", Topic::Kiln),
            ("help server", Topic::Server),
            ("server --help", Topic::Server),
            ("server -h", Topic::Server),
            ("server --port 1 --help", Topic::Server),
            ("help snapshot", Topic::Snapshot),
            ("snapshot --help", Topic::Snapshot),
            ("help restore", Topic::Restore),
            ("restore --help", Topic::Restore),
            ("help branch", Topic::Branch),
            ("branch -h", Topic::Branch),
            ("export -h", Topic::Export),
            ("import --rdb x --help", Topic::Import),
            ("help log", Topic::Log),
            ("log --help", Topic::Log),
            ("help log inspect", Topic::Inspect),
            ("log inspect --help", Topic::Inspect),
            ("help log tail", Topic::Tail),
            ("log tail data/log --json --help", Topic::Tail),
            ("help log find", Topic::Find),
            ("log find -h", Topic::Find),
            ("log inspect data/log --help", Topic::Inspect),
        ] {
            assert_eq!(read(&words(line)), Request::Show(topic.text()), "kiln {line}");
        }
        for line in ["--version", "-v", "server --version", "server -v"] {
            assert_eq!(read(&words(line)), Request::Show(help::version()), "kiln {line}");
        }
    }

    #[test]
    fn a_value_is_no_question_for_help() {
        for line in ["server --requirepass --help", "server --requirepass --help --port 1"] {
            let line = words(line);
            assert_eq!(read(&line), Request::Server(&line[1..]));
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_a_hint() {
        for (line, said) in [
            ("", "kiln: a command is missing\nusage: kiln COMMAND"),
            ("sever", "no command 'sever'; did you mean 'server'?"),
            ("--versoin", "no option '--versoin'; did you mean '--version'?"),
            ("frobnicate", "no command 'frobnicate'\n"),
            ("help sever", "no command 'sever'; did you mean 'server'?"),
            ("log", "a command of 'log' is missing\n"),
            (
                "snapshot --max-age soon",
                "--max-age takes a number of seconds\nusage: kiln snapshot",
            ),
            ("snapshot --max-age", "--max-age takes a number of seconds\n"),
            ("log inspcet x", "no command 'log inspcet'; did you mean 'log inspect'?"),
            ("restore --into", "--into takes a value\nusage: kiln restore"),
            ("log inspect", "the log is missing\nusage: kiln log inspect"),
            ("log inspect a b", "'b' is more than one log"),
            ("log inspect --all a", "no option '--all'"),
        ] {
            let line = words(line);
            let Request::Wrong(text) = read(&line) else { panic!("kiln {line:?} is understood") };
            assert!(text.contains(said), "kiln {line:?}: {text}");
            assert!(text.ends_with("says more\n"), "kiln {line:?}: {text}");
        }
    }
}
