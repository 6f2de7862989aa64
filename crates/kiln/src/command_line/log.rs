//! The command line behind `kiln log`.

use super::{Request, Topic, unknown, wrong};
use crate::changes::decode_base64;
use crate::find::Find;
use crate::inspect::Inspect;
use crate::tail::{Beginning, Tail};
use base::DatabaseId;

/// Names the keys of an encrypted log, in every command.
const KEY_FILE: &str = "--encryption-key-file";

const COMMANDS: [&str; 3] = ["inspect", "tail", "find"];

/// Reads the words behind `log`.
pub(super) fn read<'a>(words: &[&'a str]) -> Request<'a> {
    match *words {
        [] => wrong("a command of 'log' is missing", Topic::Log),
        ["-h" | "--help"] => Request::Show(Topic::Log.text()),
        ["inspect", ref behind @ ..] => inspect(behind),
        ["tail", ref behind @ ..] => tail(behind),
        ["find", ref behind @ ..] => find(behind),
        [other, ..] => unknown(other, "log ", &COMMANDS, Topic::Log),
    }
}

pub(super) fn help_on(topic: &[&str]) -> Request<'static> {
    let topic = match topic {
        [] => Topic::Log,
        ["inspect"] => Topic::Inspect,
        ["tail"] => Topic::Tail,
        ["find"] => Topic::Find,
        [other, ..] => return unknown(other, "log ", &COMMANDS, Topic::Log),
    };
    Request::Show(topic.text())
}

fn inspect<'a>(behind: &[&'a str]) -> Request<'a> {
    match Words::read(behind, &[], &[], Topic::Inspect) {
        Ok(words) => Request::Inspect(Inspect { log: words.log, key_file: words.value(KEY_FILE) }),
        Err(request) => request,
    }
}

fn tail<'a>(behind: &[&'a str]) -> Request<'a> {
    let words = match Words::read(
        behind,
        &["--json", "--until-end"],
        &["--from", "--archive"],
        Topic::Tail,
    ) {
        Ok(words) => words,
        Err(request) => return request,
    };
    let Some(from) = words.value("--from").map_or(Some(Beginning::Now), Beginning::parse) else {
        let what = "'--from' takes a position, the number of a record, 'oldest' or 'now'";
        return wrong(what, Topic::Tail);
    };
    let (is_json, until_end) = (words.has("--json"), words.has("--until-end"));
    let (archive, key_file) = (words.value("--archive"), words.value(KEY_FILE));
    Request::Tail(Tail { log: words.log, archive, key_file, from, is_json, until_end })
}

fn find<'a>(behind: &[&'a str]) -> Request<'a> {
    let valued = ["--key", "--key-base64", "--database", "--archive"];
    let words = match Words::read(behind, &["--json"], &valued, Topic::Find) {
        Ok(words) => words,
        Err(request) => return request,
    };
    let key = match (words.value("--key"), words.value("--key-base64")) {
        (Some(text), None) => Some(text.as_bytes().to_vec()),
        (None, Some(base64)) => decode_base64(base64),
        (None, None) => return wrong("'--key' is missing", Topic::Find),
        (Some(_), Some(_)) => return wrong("'--key' is given twice", Topic::Find),
    };
    let Some(key) = key else {
        return wrong("'--key-base64' takes base64 with its padding", Topic::Find);
    };
    let Ok(database) = words.value("--database").map(str::parse).transpose() else {
        return wrong("'--database' takes a number", Topic::Find);
    };
    let (database, is_json) = (database.map(DatabaseId), words.has("--json"));
    let (archive, key_file) = (words.value("--archive"), words.value(KEY_FILE));
    Request::Find(Find { log: words.log, archive, key_file, key, database, is_json })
}

/// A log and options, in any order.
struct Words<'a> {
    log: &'a str,
    options: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Words<'a> {
    /// Reads them. Options are `plain` or have a value behind them, which may be any word, as that
    /// has which all commands take.
    fn read(
        words: &[&'a str],
        plain: &[&str],
        valued: &[&str],
        topic: Topic,
    ) -> Result<Self, Request<'a>> {
        let (mut log, mut options) = (None, Vec::new());
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "-h" | "--help" => return Err(Request::Show(topic.text())),
                _ if options.iter().any(|(known, _)| *known == word) => {
                    return Err(wrong(&format!("'{word}' is given twice"), topic));
                }
                _ if plain.contains(&word) => options.push((word, None)),
                _ if valued.contains(&word) || word == KEY_FILE => {
                    let missing = || wrong(&format!("the value of '{word}' is missing"), topic);
                    options.push((word, Some(words.next().ok_or_else(missing)?)));
                }
                _ if word.starts_with('-') => {
                    return Err(wrong(&format!("no option '{word}'"), topic));
                }
                _ if log.is_some() => {
                    return Err(wrong(&format!("'{word}' is more than one log"), topic));
                }
                _ => log = Some(word),
            }
        }
        let log = log.ok_or_else(|| wrong("the log is missing", topic))?;
        Ok(Self { log, options })
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == option)
    }

    fn value(&self, option: &str) -> Option<&'a str> {
        self.options.iter().find(|(known, _)| *known == option).and_then(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &'static str) -> Request<'static> {
        read(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn options_of_tail_come_in_any_order() {
        let plain = Tail {
            log: "data/log",
            archive: None,
            key_file: None,
            from: Beginning::Now,
            is_json: false,
            until_end: false,
        };
        let all = Tail {
            archive: Some("store"),
            from: Beginning::Oldest,
            is_json: true,
            until_end: true,
            ..plain
        };
        assert_eq!(read_line("tail data/log"), Request::Tail(plain));
        assert_eq!(
            read_line("tail --until-end --archive store --from oldest data/log --json"),
            Request::Tail(all)
        );
    }

    #[test]
    fn a_key_is_any_word_or_base64() {
        let find = |key: &[u8], database, is_json| {
            Request::Find(Find {
                log: "data/log",
                archive: None,
                key_file: None,
                key: key.to_vec(),
                database,
                is_json,
            })
        };
        assert_eq!(read_line("find data/log --key --json"), find(b"--json", None, false));
        assert_eq!(
            read_line("find data/log --json --key-base64 /w== --database 3"),
            find(b"\xff", Some(DatabaseId(3)), true)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("tail", "the log is missing"),
            ("tail a --from", "the value of '--from' is missing"),
            ("tail a --from yesterday", "'--from' takes a position, the number of a record"),
            ("tail a --follow", "no option '--follow'"),
            ("tail a --json --json", "'--json' is given twice"),
            ("tial a", "no command 'log tial'; did you mean 'log tail'?"),
            ("find a", "'--key' is missing"),
            ("find a --key k --key-base64 aw==", "'--key' is given twice"),
            ("find a --key-base64 aw", "'--key-base64' takes base64"),
            ("find a --key k --database x", "'--database' takes a number"),
        ] {
            let Request::Wrong(text) = read_line(line) else {
                panic!("kiln log {line} is understood")
            };
            assert!(text.contains(said), "kiln log {line}: {text}");
        }
    }
}
